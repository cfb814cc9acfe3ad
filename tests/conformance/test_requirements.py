"""The rows of the standard's requirements: each can be broken, each is on the page, and a sample of
them is broken again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import coverage_page
import proof
import pytest
from requirements import EVENTS, Kind, rows

ROOT = Path(__file__).resolve().parents[2]
ROWS = rows()


@cache
def recorded() -> dict[str, Any]:
    """Return what the last whole run of the proofs has found."""
    return json.loads(proof.RESULTS.read_text("utf-8"))


def share_shown(kind: Kind | None = None) -> float:
    """Return the share of rows whose mutant a test killed."""
    findings = [recorded()[row.id]["finding"] for row in ROWS if kind in (None, row.kind)]
    return Counter(findings)["shown"] / len(findings)


def test_every_requirement_has_a_mutant_or_a_reason() -> None:
    assert [row.id for row in ROWS if (row.mutant is None) != bool(row.not_met)] == []


def test_every_mutant_can_be_made() -> None:
    assert [row.mutant.problem() for row in ROWS if row.mutant and row.mutant.problem()] == []


def test_every_requirement_was_tried() -> None:
    assert {row.id for row in ROWS} == recorded().keys()


def test_no_requirement_is_uncovered() -> None:
    findings = {recorded()[row.id]["finding"] for row in ROWS}
    assert findings <= {"shown", "mentioned", "not met"}


def test_most_requirements_are_shown_by_a_killed_mutant() -> None:
    assert share_shown(Kind.BEHAVIOR) >= 0.95
    assert share_shown() >= 0.9


def test_the_page_is_current() -> None:
    assert coverage_page.PAGE.read_text("utf-8") == coverage_page.page()


def test_all_event_classes_of_the_standard_are_rows() -> None:
    assert len(EVENTS) == len(set(EVENTS)) == 27


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_sample_of_the_mutants_is_killed_again() -> None:
    # CI tries the same rows each time, so that a failure is the change's; people try others
    seed = ["--seed", os.environ["SEED"]] if "SEED" in os.environ else []
    run = subprocess.run(
        [sys.executable, "tools/proof.py", "--sample", "40", *seed],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-2000:]
