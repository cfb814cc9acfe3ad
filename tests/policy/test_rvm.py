"""The compiled form gives the interpreter's answers, errors included, or is not used."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from policy_inputs import JSON, documents, make_document
from undefined_values import UNDEFINED

from agenttool_otel.errors import PolicyEvaluationError
from agenttool_otel.names import FailClosedCause
from agenttool_otel.policy.bundles.bundle import bundle_from_files, default_bundle_path
from agenttool_otel.policy.bundles.check import load_program
from agenttool_otel.policy.bundles.load import load_bundle
from agenttool_otel.policy.engines import evaluation
from agenttool_otel.policy.engines.embedded import EmbeddedEngine
from agenttool_otel.policy.engines.rvm import compile_program

DECISION = "data.agenttool.permission.decision"


def both(rules: str) -> tuple[EmbeddedEngine, EmbeddedEngine]:
    bundle = bundle_from_files(
        {"p.rego": f"package agenttool.permission\n\n{rules}\n".encode()}, origin="t"
    )
    return EmbeddedEngine(bundle), EmbeddedEngine(bundle, fast=False)


def answer(engine: EmbeddedEngine, document: Any) -> Any:
    try:
        return engine.evaluate(DECISION, document, timeout=60).value
    except PolicyEvaluationError as error:
        return error.cause


X = "input.input.x"
CONDITIONS = [
    f'startswith({X}, "a")',
    f'not endswith({X}, "a")',
    f"contains({X}, {X})",
    f"count({X}) > 1",
    f"lower({X}) == `a`",
    f'concat("", [{X}, "b"]) == "ab"',
    f'concat({X}, ["b"]) == "b"',
    f"sort({X})[0] == 1",
    f"min({X}) < 2",
    f"max({X}) > 2",
    f"array.concat([1], {X}) == [1, 2]",
    f'object.get({X}, "k", 1) == 1',
    f"object.keys({X}) == {{`k`}}",
    f"object.union({{}}, {X}) == {X}",
    f'split({X}, ",")[0] == "a"',
    f'trim_suffix({X}, "/") == "a"',
    f'glob.match({X}, null, "a")',
    f'glob.match("*", null, {X})',
    f'glob.match("a*", {X}, "ab")',
    f'regex.match("^a", {X})',
    f'regex.match({X}, "a")',
    f"substring({X}, 1, -1) == `b`",
    f"to_number({X}) > 1",
    f"sprintf(`%d`, [{X}]) == `1`",
    f"not to_number({X}) > 1",
    f"every item in {X} {{ startswith(item, `a`) }}",
    f"some item in [1, 2]; count({X}) > item",
    f"[y | some y in [{X}]; startswith(y, `a`)] == [`a`]",
    f"helper({X})",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_an_error_in_a_deny_rule_is_an_error_in_both_forms(condition: str) -> None:
    fast, slow = both(
        'default decision := {"behavior": "allow"}\n\n'
        'decision := {"behavior": "deny"} if count(denials) > 0\n\n'
        f'denials contains "x" if {{\n\t{condition}\n}}\n\nhelper(value) if startswith(value, "a")'
    )
    assert fast.interpreted_because == ""
    values: list[Any] = [
        "a",
        "ab",
        "a/",
        "(",
        "",
        1,
        2.5,
        None,
        True,
        [],
        [1],
        [3, 1],
        ["a"],
        ["b", 2],
        {},
        {"k": 1},
    ]
    for value in values:
        document = make_document({"input": {"x": value}})
        assert answer(fast, document) == answer(slow, document), value
    assert answer(fast, make_document()) == answer(slow, make_document())


@pytest.mark.parametrize("rules", UNDEFINED)
def test_what_is_undefined_holds_in_neither_form(rules: str) -> None:
    fast, slow = both(rules)
    for document in (make_document(), make_document({"input": {"missing": 1}})):
        assert answer(fast, document) == answer(slow, document)
    program = compile_program(fast.bundle, load_program(fast.bundle), [DECISION])
    assert program.binary
    assert "another answer" not in fast.interpreted_because


@pytest.mark.parametrize(
    "rules",
    [
        "decision := role if some role in input.actor.roles",
        "decision := 1 if input.tool.read_only\n\ndecision := 2 if input.tool.destructive",
        "decision := f(input.actor.roles)\n\nf(roles) := role if some role in roles",
        "decision := f(1)\n\nf(x) := 1 if input.tool.read_only\n\nf(x) := x + 1 if input.tool.destructive",
        "decision := [a | a := helper]\n\nhelper := input.actor.roles[_]",
        'default decision := "allow"\n\ndecision := x if {\n\tsome x in ["deny", "ask"]\n\tx in input.actor.roles\n}',
    ],
)
def test_a_rule_with_two_values_is_an_error_in_both_forms(rules: str) -> None:
    fast, slow = both(rules)
    for roles in ([], ["a"], ["a", "b"], ["deny", "ask"], ["a", "a"]):
        for destructive in (False, True):
            document = make_document({"actor.roles": roles, "tool.destructive": destructive})
            assert answer(fast, document) == answer(slow, document)


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ("decision := 1 if a with input.tool as {}\n\na if input.tool.id", "uses with"),
        ("decision := input.input.a + 1", "unproven type"),
        ("decision := 1 / count(input.tool.aliases)", "unproven type"),
        ("decision := {1} | input.input.a", "not proven to be sets"),
        ("decision := {k: 1 | some x in input.tool.aliases; k := x}", "key twice"),
        ("decision := q[input.tool.id]\n\nq.a := 1\n\nq.b := 2", "computed name"),
        (
            "decision := object\n\nobject[k] := 1 if some k in input.tool.aliases",
            "object made of several rules",
        ),
    ],
)
def test_what_can_not_be_shown_to_be_safe_is_interpreted(rules: str, reason: str) -> None:
    fast, _ = both(rules)
    assert reason in fast.interpreted_because


def test_a_compiled_form_that_contradicts_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    true_answer = evaluation.Machine.evaluate

    def wrong(self: Any, entry_point: str, text: str) -> Any:
        found = true_answer(self, entry_point, text)
        return ("allow",) if found == ("deny",) else found

    monkeypatch.setattr(evaluation.Machine, "evaluate", wrong)
    fast, _ = both('decision := "deny" if input.tool.read_only else := "ask"')
    assert "another answer" in fast.interpreted_because
    assert answer(fast, make_document()) == "deny"


def test_a_rule_that_always_stops_takes_nothing_from_the_others() -> None:
    fast, slow = both("decision := number.value if input.tool.name == `n`\n\nelse := 1\n\n"
        "number.value := 2 if input.tool.read_only\n\nnumber.value := 3 if input.tool.destructive")  # fmt: skip
    assert fast.interpreted_because == ""
    for name in ["n"] * 100 + ["m"] * 10:
        document = make_document({"tool.name": name})
        assert answer(fast, document) == answer(slow, document)
    machine = evaluation._own_instance(fast._compiled)._machine
    assert machine is not None
    assert machine.runs - machine.stops >= 10


def test_iterating_no_collection_is_undefined_or_an_error() -> None:
    """The one place where the interpreter is stricter than OPA: it errs. The compiled form does as
    OPA does.
    """
    fast, slow = both(f"decision := 1 if {{\n\tsome item in {X}\n\titem\n}}")
    for value in ("", "text", 1, None, True):
        document = make_document({"input": {"x": value}})
        assert answer(fast, document) in (FailClosedCause.UNDEFINED, FailClosedCause.ENGINE_ERROR)
        assert answer(slow, document) is FailClosedCause.ENGINE_ERROR


STOCK = load_bundle(default_bundle_path())
STOCK_FAST, STOCK_SLOW = EmbeddedEngine(STOCK), EmbeddedEngine(STOCK, fast=False)


def test_the_stock_bundle_is_compiled() -> None:
    assert STOCK_FAST.interpreted_because == ""


@settings(max_examples=60, deadline=None)
@given(documents())
def test_both_forms_of_the_stock_bundle_agree(document: Any) -> None:
    assert answer(STOCK_FAST, document) == answer(STOCK_SLOW, document)


FAST, SLOW = both(
    'default decision := "allow"\n\n'
    f'decision := "deny" if count(denials) > 0\n\ndenials contains 1 if startswith({X}, "a")\n\n'
    f"denials contains 2 if count({X}) > 3\n\n"
    f'denials contains 3 if {{\n\tis_array({X})\n\tsome item in {X}\n\tlower(item) == "b"\n}}'
)


@settings(max_examples=150, deadline=None)
@given(JSON)
def test_both_forms_agree_on_any_argument(value: Any) -> None:
    document = make_document({"input": {"x": value}})
    assert answer(FAST, document) == answer(SLOW, document)
