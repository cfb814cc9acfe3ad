"""The table of doors has every door of this package."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path

import pytest
import support_table

from agenttool_otel import integrations
from agenttool_otel.testing import doors

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "doors.md").read_text("utf-8")
NO_DOORS = {"children", "coverage", "facts", "foreign", "instrumentor"}
"""Modules that several doors use."""


def test_every_door_has_a_row() -> None:
    listed = re.findall(r"^\|.*\| `agenttool_otel\.integrations\.(\w+)` \|", PAGE, re.MULTILINE)
    modules = {module.name for module in pkgutil.iter_modules(integrations.__path__)}
    assert set(listed) == modules - NO_DOORS


def test_versions_are_those_of_the_extras() -> None:
    assert support_table.page(PAGE) == PAGE, "run make docs"


def test_a_door_without_a_row_is_noticed() -> None:
    without = "\n".join(line for line in PAGE.splitlines() if "integrations.a2a`" not in line)
    with pytest.raises(KeyError, match="a2a"):
        support_table.page(without)


def test_every_check_of_a_door_is_run() -> None:
    checks = {
        name
        for name, value in vars(doors).items()
        if getattr(value, "__annotations__", {}) == {"driver": "DoorDriver", "return": "None"}
    }
    assert {check.__name__ for check in doors.DOOR_CHECKS} == checks - {"check_door"}
