"""A module is read once while a policy has it, and one policy's copy is no other's."""

from __future__ import annotations

from agenttool_otel.policy.rego.syntax import parse_program

ONE = "package a.b\n\nallowed if limit > 3\n"
TWO = "package a.b\n\nlimit := 4\n"


def reads(modules: dict[str, str]) -> set[str]:
    """Return what the rule ``allowed`` refers to."""
    program = parse_program(modules)
    (rule,) = (rule for rule in program.rules if rule.path[-1] == "allowed")
    return {str(reference) for reference in rule.references}


def test_a_name_of_another_file_is_found_in_that_policy_alone() -> None:
    assert not any("limit" in name for name in reads({"one.rego": ONE}))
    assert any("limit" in name for name in reads({"one.rego": ONE, "two.rego": TWO}))
    assert not any("limit" in name for name in reads({"one.rego": ONE}))


def test_a_copy_that_forgets_its_trees_leaves_the_others() -> None:
    kept, forgets = parse_program({"one.rego": ONE}), parse_program({"one.rego": ONE})
    forgets.forget_trees()
    assert [rule.node for rule in forgets.rules] == [{}]
    assert all(rule.node for rule in kept.rules)
    assert all(rule.node for rule in parse_program({"one.rego": ONE}).rules)
    assert kept.modules[0].text == ONE
