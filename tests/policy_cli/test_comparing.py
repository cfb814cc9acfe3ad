"""The left side of a failed comparison is cut out of its source, or nothing is."""

from __future__ import annotations

import pytest

from agenttool_otel.authoring.probes import compared


@pytest.mark.parametrize(
    ("text", "left", "modifiers"),
    [
        ('decision.behavior == "deny"', "decision.behavior", ""),
        ("count(found) > 3", "count(found)", ""),
        ('a["x == y"].b != "z"', 'a["x == y"].b', ""),
        (
            'data.x.behavior == "deny" with input as document',
            "data.x.behavior",
            "with input as document",
        ),
        ('f({"a": 1 < 2}) in {"b"}', 'f({"a": 1 < 2})', ""),
        ("inside.x >= 1", "inside.x", ""),
        ("main == 1", "main", ""),
    ],
)
def test_a_comparison_is_cut_up(text: str, left: str, modifiers: str) -> None:
    assert compared(text) == (left, modifiers)


@pytest.mark.parametrize(
    "text",
    [
        "helper",
        "not a == b",
        "x := a == b",
        "some x in xs",
        "every x in xs { x == 1 }",
        'f("a == b")',
        "== 1",
        "",
    ],
)
def test_what_is_no_comparison_is_left_alone(text: str) -> None:
    assert compared(text) is None
