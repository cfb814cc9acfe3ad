"""The page of coverage is what its rows say, its tests are there, and a run still shows what it
claims.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import coverage_table as table  # type: ignore[import-not-found]  # noqa: E402


def test_the_page_of_coverage_is_current() -> None:
    assert table.PAGE.read_text(encoding="utf-8") == table.page(), (
        "run python tools/coverage_table.py"
    )


def test_every_requirement_has_a_test_or_a_reason() -> None:
    rows = list(table.rows())
    assert len(rows) > 700
    assert [row.requirement for row in rows if not row.test and not row.reason] == []


def test_every_named_test_and_place_is_there() -> None:
    for row in table.rows():
        assert not row.test or (ROOT / row.test.split(" (")[0]).is_file(), row
        place = ROOT / (
            row.where if row.where.startswith("policies") else f"src/agenttool_otel/{row.where}"
        )
        assert not row.where or place.exists(), row


def test_a_run_shows_what_the_page_says_it_shows() -> None:
    assert set(table.EVIDENCE["scenarios"]) <= set(table.seen())


def test_all_event_classes_of_the_standard_are_rows() -> None:
    assert len(table.EVENTS) == len(set(table.EVENTS)) == 27
