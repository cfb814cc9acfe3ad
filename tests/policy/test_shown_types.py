"""The table of types in docs/policy-input.md and in the schema is what the code does, for every
kind of value.
"""

from __future__ import annotations

import json
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import Any

import numpy
import policy_input
import pytest

from agenttool_otel.policy.bundles.input_schema import input_schema
from agenttool_otel.values.inspection import Kind
from agenttool_otel.values.policy_value import to_policy_value

ROWS = policy_input.shown_types()
NAMES = {
    value.__name__: value
    for value in (date, timedelta, Decimal, Enum, Fraction, PurePosixPath, numpy)
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["of"])
def test_an_example_is_shown_as_the_table_says(row: dict[str, Any]) -> None:
    shown: Any = to_policy_value({"a": eval(row["example"], dict(NAMES))})
    if not row["shown"]:
        assert "$error" in shown["a"]
        return
    assert json.dumps(shown["a"]) == row["shown"]


def test_every_kind_of_value_has_a_row() -> None:
    assert {kind for row in ROWS for kind in row["kinds"]} == {kind.name for kind in Kind}


def test_page_and_schema_have_every_row() -> None:
    page = (Path(__file__).parents[2] / "docs" / "policy-input.md").read_text("utf-8")
    members = input_schema()["properties"]
    for row in ROWS:
        assert f"| {row['of']} | {row['json']} |" in page
        for name in ("input", "resources"):
            assert f"{row['of']}: {row['json']}".replace("`", "") in members[name]["description"]
