"""``policy explain`` names what fired and what nearly did, by file and line, as the engine computed
it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from policy_project import example_input, rule_file, run, run_json, write

from agenttool_otel.authoring.completing import complete_input
from agenttool_otel.authoring.explaining import explain
from agenttool_otel.authoring.project import load_project
from agenttool_otel.policy.decider import Decider
from agenttool_otel.policy.engines.embedded import EmbeddedEngine
from agenttool_otel.policy.samples import sample_documents

RULE = "agenttool/custom/deployments.rego"
MORE = "agenttool/custom/more.rego"

pytestmark = pytest.mark.usefixtures("no_opa")


def _explained(project: Path, document: Any, *options: str) -> Any:
    status, told = run_json("explain", project, "-", "--json", *options, stdin=json.dumps(document))
    assert status == 0
    return told


def _own(told: Any, part: str) -> list[Any]:
    return [rule for rule in told[part] if rule["own"]]


def _line_of(project: Path, file: str, text: str) -> int:
    lines = (project / file).read_text("utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_the_rule_that_decided_is_named_with_its_line(project: Path) -> None:
    told = _explained(project, example_input(project))
    assert told["decision"]["behavior"] == "deny"
    line = _line_of(project, RULE, "deny contains")
    assert told["decided_by"] == [{"file": RULE, "line": line}]
    (fired,) = _own(told, "fired")
    assert (fired["file"], fired["line"], fired["label"]) == (
        RULE,
        line,
        "custom.deployments.frozen_day",
    )
    assert fired["title"] == "Nothing is deployed on a frozen day"
    assert fired["findings"] == [
        {"rule": "custom.deployments.frozen_day", "message": "nothing is deployed on a frozen day"}
    ]


def test_the_rule_that_nearly_fired_says_what_stopped_it(project: Path) -> None:
    told = _explained(project, example_input(project, time="2026-11-19T12:00:00Z"))
    (nearly,) = _own(told, "nearly")
    assert (nearly["passed"], nearly["expressions"]) == (1, 2)
    assert nearly["failed"]["expression"] == "not open_day"
    assert nearly["failed"]["line"] == _line_of(project, RULE, "not open_day")
    # the helper that it asks holds, which is why its negation does not
    assert [(item["rule"], item["fired"]) for item in nearly["because"]] == [
        ("data.agenttool.custom.open_day", True)
    ]


def test_a_helper_that_stopped_a_rule_is_followed(project: Path) -> None:
    document = example_input(project)
    document["tool"] |= {"id": "x", "name": "x"}
    (rule,) = _own(_explained(project, document), "others")
    assert rule["failed"]["expression"] == "deploys"
    (helper,) = rule["because"]
    assert helper["failed"]["expression"] == "data.agenttool.lib.is_called(pattern)"
    assert helper["failed"]["line"] == _line_of(project, RULE, "is_called(pattern)")


def test_it_is_readable(project: Path) -> None:
    done = run("explain", project, project / "input.json")
    assert done.exit_code == 0
    assert done.output.startswith("DENY  nothing is deployed on a frozen day")
    assert f"by custom.deployments.frozen_day  {RULE}:18" in done.output
    assert "Nearly" in done.output
    assert "other rules did not come near" in done.output
    assert (
        len(run("explain", project, project / "input.json", "--all").output) > len(done.output) * 2
    )


def test_what_the_failing_expression_read_is_shown(project: Path) -> None:
    write(
        project,
        {MORE: rule_file('\tinput.tool.kind == "function"\n\tinput.actor.tenant == "acme"')},
    )
    document = example_input(project)
    rule = next(
        item for item in _own(_explained(project, document), "nearly") if item["file"] == MORE
    )
    assert rule["failed"]["line"] == 12
    assert rule["failed"]["reads"] == {"input.actor.tenant": None}
    done = run("explain", project, project / "input.json")
    assert "1 of 2 hold; stopped at agenttool/custom/more.rego:12" in done.output
    assert "input.actor.tenant = null" in done.output


SHAPES = {
    "several on a line": (
        '\tinput.tool.name == "deploy"; input.tool.kind == "x"',
        1,
        'input.tool.kind == "x"',
        11,
    ),
    "comments": (
        '\t# {\n\tinput.tool.name == "deploy" # }\n\n\t"a;b" == "a;c" # x',
        1,
        '"a;b" == "a;c"',
        14,
    ),
    "strings first": (
        '\t"deploy" in {input.tool.name}\n\t`x` == input.tool.id',
        1,
        "`x` == input.tool.id",
        12,
    ),
    "some": (
        '\tsome name in ["a", "deploy"]\n\tname == input.tool.id\n\tname == "a"',
        2,
        'name == "a"',
        13,
    ),
    "comprehension": (
        '\tnames := {name |\n\t\tsome name in ["a"]\n\t}\n\tinput.tool.name in names',
        1,
        "input.tool.name in names",
        14,
    ),
    "every": (
        "\tinput.tool.name\n\tevery x in [1, 2] {\n\t\tx == 1\n\t}",
        1,
        "every x in [1, 2] { x == 1 }",
        12,
    ),
    "negation": (
        "\tinput.tool.name\n\tnot input.tool.open_world",
        1,
        "not input.tool.open_world",
        12,
    ),
    "with": (
        '\tinput.tool.name == "x" with input.tool.name as "x"\n\tinput.tool.name == "x"',
        1,
        'input.tool.name == "x"',
        12,
    ),
    "out of order": ('\tname == "x"\n\tname = input.tool.name', 1, 'name == "x"', 11),
    "undefined": (
        "\tinput.tool.id\n\tinput.input.nothing.there",
        1,
        "input.input.nothing.there",
        12,
    ),
    "an object first": (
        '\t{"a": 1} == {"a": 1}\n\t{"a": 1} == {"b": 1}',
        1,
        '{"a": 1} == {"b": 1}',
        12,
    ),
    "letters": ('\t"é∂" == "é∂"\n\t"ü" == input.tool.id', 1, '"ü" == input.tool.id', 12),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_first_expression_that_fails_is_found_in_every_shape(project: Path, shape: str) -> None:
    body, passed, expression, line = SHAPES[shape]
    write(project, {MORE: rule_file(body)})
    told = _explained(project, example_input(project))
    rule = next(item for item in _own(told, "nearly") if item["file"] == MORE)
    assert (rule["passed"], rule["failed"]["expression"], rule["failed"]["line"]) == (
        passed,
        expression,
        line,
    )


def test_an_error_in_a_rule_is_shown_where_it_happens(project: Path) -> None:
    write(
        project,
        {
            MORE: rule_file(
                '\tinput.tool.name == "deploy"\n\ttime.parse_rfc3339_ns(input.tool.name) > 0'
            )
        },
    )
    status, told = run_json("explain", project, project / "input.json", "--json")
    # the engine gives no decision then, so it is a deny and an error
    assert status == 2
    assert told["decision"]["behavior"] == "deny"
    assert told["decision"]["fail_closed"]
    rule = next(item for item in _own(told, "nearly") if item["file"] == MORE)
    assert rule["failed"]["line"] == 12
    assert rule["problem"]


def test_rules_right_below_custom_count_deeper_ones_do_not(project: Path) -> None:
    write(
        project,
        {
            "agenttool/custom/a/a.rego": rule_file(
                '\tinput.tool.id == "deploy"', package="agenttool.custom.a"
            ),
            "agenttool/custom/a/b.rego": rule_file(
                '\tinput.tool.id == "deploy"', package="agenttool.custom.a.b"
            ),
        },
    )
    files = {rule["file"] for rule in _own(_explained(project, example_input(project)), "fired")}
    assert files == {RULE, "agenttool/custom/a/a.rego"}


def test_findings_of_the_permission_package_are_found_too(project: Path) -> None:
    write(project, {"agenttool/settings/data.json": '{"preset": "no such preset"}'})
    told = _explained(project, example_input(project))
    assert told["decision"]["reason"]["rule_ref"] == "agenttool.permission.configuration"
    (place,) = told["decided_by"]
    assert place["file"] == "agenttool/permission/decision.rego"


def test_a_bundle_without_findings_is_explained_by_its_decision(tmp_path: Path) -> None:
    text = (
        "package agenttool.permission\n\n"
        'decision := {"behavior": "allow"} if {\n\tinput.tool.read_only\n\tinput.tool.id == "x"\n}'
        ' else := {"behavior": "deny"}\n'
    )
    write(tmp_path, {"whole/p.rego": text})
    told = _explained(tmp_path / "whole", {"tool": {"name": "y", "read_only": True}})
    assert told["decision"]["behavior"] == "deny"
    (nearly,) = told["nearly"]
    assert (nearly["kind"], nearly["passed"], nearly["failed"]["line"]) == ("decision", 1, 5)


def test_data_of_the_caller_changes_the_explanation(project: Path, tmp_path: Path) -> None:
    data = tmp_path / "data.json"
    data.write_text('{"agenttool": {"custom": {"deployments": {"frozen_days": []}}}}', "utf-8")
    told = run_json("explain", project, project / "input.json", "--data", data, "--json")[1]
    assert told["decision"]["behavior"] == "ask"
    data.write_text("[]", "utf-8")
    assert run("explain", project, project / "input.json", "--data", data).exit_code == 2


# --- the input ------------------------------------------------------------------------------------


def test_a_partial_input_is_completed_with_what_permits_nothing(project: Path) -> None:
    told = _explained(
        project, {"tool": {"name": "deploy"}, "input": {"a": 1}, "time": "2026-11-19T12:00:00Z"}
    )
    assert {"tool.destructive", "session", "facts"} <= set(told["filled_in"])
    document, _ = complete_input(
        {"tool": {"namespace": "ns", "name": "deploy"}, "session": {"labels": {"a": "b"}}}
    )
    assert document["tool"]["id"] == "ns.deploy"
    assert document["tool"]["destructive"] is True
    assert document["tool"]["open_world"] is True
    assert document["tool"]["read_only"] is False
    assert "read_only" in document["tool"]["inferred"]
    assert document["session"]["interactive"] is False
    assert document["session"]["labels"] == {"a": "b"}
    assert document["approval"] is None
    assert told["decision"]["behavior"] == "ask"


def test_the_emptiest_call_is_not_allowed() -> None:
    status, told = run_json("explain", "--stock", "-", "--json", stdin='{"tool": {"name": "x"}}')
    assert status == 0
    assert told["decision"]["behavior"] in ("ask", "deny")


def test_a_complete_input_is_left_alone(project: Path) -> None:
    document = example_input(project)
    completed, filled = complete_input(document)
    assert completed == document
    assert filled == []


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "7", "{}", '{"tool": 5}', '{"tool": {"name": 5}}', '{"tool": {"name": "x", "extra": 1}}',
     '{"tool": {"name": "x"}, "nothing": 1}', '{"tool": {"name": "x"}, "tool": {"name": "y"}}',
     '{"tool": {"name": "x"}, "input": [1]}', '{"tool": {"name": "x"}, "input": {"a": NaN}}',
     '{"tool": {"name": "x"}, "facts": {"paths": [{}]}}', "[" * 20000],
)  # fmt: skip
def test_an_input_that_fits_nothing_is_refused(project: Path, text: str) -> None:
    done = run("explain", project, "-", stdin=text)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr


def test_a_broken_project_is_an_error_with_file_and_line(project: Path) -> None:
    write(project, {MORE: "package agenttool.custom.more\n\ndeny if {\n"})
    done = run("explain", project, project / "input.json")
    assert done.exit_code == 2
    assert f"{MORE}:4" in done.stderr
    assert run("explain", project, project / "nothing.json").exit_code == 2
    assert run("explain", "a", "b", "c").exit_code == 2


def test_secrets_of_the_input_are_not_printed(project: Path) -> None:
    secret = "-".join(["ghp", "x"]).replace("-x", "_" + "aB3" * 12)
    write(project, {MORE: rule_file('\tinput.tool.name == "deploy"\n\tinput.input.token == "x"')})
    document = example_input(project, input={"token": secret})
    for options in ([], ["--json"], ["--all"]):
        done = run("explain", project, "-", *options, stdin=json.dumps(document))
        assert done.exit_code == 0
        assert "more.rego" in done.output
        assert secret not in done.output


def test_control_characters_do_not_reach_the_terminal(project: Path) -> None:
    write(project, {MORE: rule_file('\tinput.tool.name == "deploy"\n\tinput.actor.id == "x"')})
    document = example_input(project)
    document["actor"]["id"] = "\x1b[2Jgone\u202e"
    done = run("explain", project, "-", stdin=json.dumps(document))
    assert "\x1b[2J" not in done.output
    assert "\u202e" not in done.output


# --- it tells what the engine computed ------------------------------------------------------------


@pytest.mark.slow
def test_what_is_said_to_fire_is_what_the_rules_say(project: Path) -> None:
    """For many inputs: the findings of all bodies of a rule together are the value of that rule."""
    loaded = load_project(project)
    engine = EmbeddedEngine(loaded.whole, fast=False)
    deciding = 0
    for document in sample_documents(loaded.program, 16):
        told = explain(loaded, document)
        assert told.verdict.behavior == Decider([engine]).decide(document).behavior
        by_rule: dict[str, set[str]] = {}
        for rule in told.fired:
            found = {json.dumps(value, sort_keys=True) for value in rule.findings}
            by_rule.setdefault(rule.rule, set()).update(found)
        for name in {rule.rule for part in (told.fired, told.nearly, told.others) for rule in part}:
            if name.rsplit(".", 1)[1] not in ("deny", "ask"):
                continue
            value = engine.evaluate(name, document, timeout=10).value
            assert {json.dumps(item, sort_keys=True) for item in value} == by_rule.get(
                name, set()
            ), name
        deciding += bool(told.deciding)
    assert deciding >= 3
