"""What is right is called right: the stock bundle, the scaffold, the docs' rules, and the policies of
three companies that were written from the docs alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest
from policy_project import REPOSITORY, make_project, write

from agenttool_otel.authoring.checking import Check, check_text
from agenttool_otel.authoring.project import load_project
from agenttool_otel.authoring.testing import run_tests

COMPANIES: Final = Path(__file__).with_name("companies")
FENCE: Final = re.compile(r"^```rego[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES: Final = ("docs/policies.md", "docs/tutorials/policy.md", "docs/using.md")
SLIP: Final = "slip/own.rego"
"""The tutorial's slip, which is shown to be refused."""


def _alarms(checks: Iterable[Check]) -> list[str]:
    return [
        f"{check.name}: {problem.place}: {problem.message}"
        for check in checks
        for problem in check.problems
    ]


@pytest.mark.parametrize("name", ["bank", "hospital", "software"])
def test_a_company_has_no_alarm(name: str) -> None:
    project = load_project(COMPANIES / name)
    assert _alarms(check_text(project)) == []
    assert run_tests(project, engine="embedded").failures == []


@pytest.mark.slow
def test_the_stock_bundle_has_no_alarm() -> None:
    assert _alarms(check_text(load_project(REPOSITORY / "policies"))) == []


def test_the_scaffold_has_no_alarm(tmp_path: Path) -> None:
    assert _alarms(check_text(load_project(make_project(tmp_path / "project")))) == []


@pytest.mark.parametrize("folder", ["examples/custom_policy/policy"])
def test_an_example_has_no_alarm(folder: str) -> None:
    assert _alarms(check_text(load_project(REPOSITORY / folder))) == []


@pytest.mark.parametrize("page", PAGES)
def test_the_rules_of_a_page_have_no_alarm(page: str, tmp_path: Path) -> None:
    text = (REPOSITORY / page).read_text("utf-8")
    files = {}
    for number, match in enumerate(FENCE.finditer(text)):
        if SLIP in match[0]:
            continue
        suffix = "_test" if "_test" in match[1].split("\n", 1)[0] else ""
        files[f"agenttool/custom/r{number}/r{suffix}.rego"] = match[1]
    assert files
    assert _alarms(check_text(load_project(write(tmp_path, files)))) == []
