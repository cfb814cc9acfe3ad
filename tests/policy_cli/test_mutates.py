"""``policy mutate`` changes each condition and number, and names what no test notices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from policy_project import rule_file, run, run_json, write

from agenttool_otel.authoring.mutating import mutate
from agenttool_otel.authoring.project import load_project

RULE = rule_file(
    '\tstartswith(input.tool.name, "refund") # as [1] and (2) have it\n'
    "\tinput.input.amount > 500\n"
    '\tnot "lead" in input.actor.roles\n'
    "\tinput.input.amount <= data.agenttool.custom.more.most"
)

TESTS = """package agenttool.custom_test.more

import data.agenttool.lib.fixtures_test as f

refund(amount, roles) := f.changed({
	"tool": {"name": "refund"},
	"actor": {"roles": roles},
	"input": {"amount": amount},
})

denied(document) if {
	count(data.agenttool.custom.more.deny) == 1 with input as document
}

test_large_ones_are_denied if denied(refund(%(large)d, ["clerk"]))

test_small_ones_are_not if not denied(refund(500, ["clerk"]))

test_a_lead_may if not denied(refund(900, ["lead"]))

test_no_other_tool if not denied(f.changed({"tool": {"name": "sell"}, "input": {"amount": 900}}))

test_the_most if denied(refund(1000, ["clerk"]))

test_beyond_the_most if not denied(refund(%(beyond)d, ["clerk"]))
"""


def _project(root: Path, *, large: int = 501, beyond: int = 1001, rule: str = RULE) -> Path:
    return write(
        root,
        {
            "agenttool/custom/more/more.rego": rule,
            "agenttool/custom/more/more_test.rego": TESTS % {"large": large, "beyond": beyond},
            "agenttool/custom/more/data.json": '{\n  "names": ["500"],\n  "most": 1000\n}\n',
        },
    )


def _survivors(root: Path) -> list[tuple[str, str]]:
    report = mutate(load_project(root))
    return [(mutant.change.original, mutant.change.what) for mutant in report.survivors]


def test_every_change_of_a_well_tested_rule_is_noticed(tmp_path: Path) -> None:
    report = mutate(load_project(_project(tmp_path)))
    assert not report.survivors
    assert [mutant.change.what for mutant in report.mutants].count("left out") == 4
    assert not report.unreadable


def test_a_number_that_no_test_is_next_to_survives(tmp_path: Path) -> None:
    root = _project(tmp_path, large=700, beyond=2000)
    status, report = run_json("mutate", root, "--json")
    assert status == 1
    found = [each for each in report["mutants"] if not each["noticed_by"]]
    assert [(Path(each["file"]).name, each["line"], each["change"]) for each in found] == [
        ("data.json", 3, "1001 instead of 1000"),
        ("more.rego", _line_of(RULE, "> 500"), "501 instead of 500"),
    ]


def _line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


def test_the_tests_that_notice_a_change_are_named(tmp_path: Path) -> None:
    report = mutate(load_project(_project(tmp_path)), rules=r"\.deny$")
    left_out = [each for each in report.mutants if each.change.original.startswith('not "lead"')]
    assert {each.change.what: each.noticed_by for each in left_out}["left out"] == [
        "data.agenttool.custom_test.more.test_a_lead_may"
    ]


FORMS = """package agenttool.custom.forms

import rego.v1

limit(kind) := 5 if kind == "a" else := 6 if kind in ["b"]

deny contains {"rule": "custom.forms", "message": "m"} if {
	some word in input.input.words
	word == ("x")
	every other in input.input.words {
		count([1 | some part in other; part != "y"]) > -1; (limit(word)) >= 5
	}
	input.mode == "z" with input.mode as "z"
}
"""


def test_conditions_of_every_form_can_be_changed(tmp_path: Path) -> None:
    root = _project(tmp_path)
    write(root, {"agenttool/custom/forms.rego": FORMS})
    report = mutate(load_project(root), rules="forms", pattern="small")
    assert not report.unreadable
    left_out = {each.change.original for each in report.mutants if each.change.what == "left out"}
    assert {'kind == "a"', 'kind in ["b"]', 'word == ("x")', 'part != "y"'} <= left_out
    assert {"(limit(word)) >= 5", 'input.mode == "z" with input.mode as "z"'} <= left_out


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("test_x if false", "tests fail without any change"),
        ("x := 1", "There are no tests"),
    ],
)
def test_tests_that_can_judge_nothing_fail_it(tmp_path: Path, text: str, problem: str) -> None:
    root = _project(tmp_path)
    write(
        root,
        {"agenttool/custom/more/more_test.rego": f"package agenttool.custom_test.more\n\n{text}\n"},
    )
    done = run("mutate", root, "--json")
    report: dict[str, Any] = json.loads(done.stdout)
    assert done.exit_code == 1
    assert problem in report["problem"]


def test_the_scaffold_leaves_no_change_unnoticed(project: Path) -> None:
    done = run("mutate", project)
    assert done.exit_code == 0
    assert "changes were noticed by 4 tests" in done.output
