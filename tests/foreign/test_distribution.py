"""A door in a distribution of its own, found by its entry point, passes the test of doors with no
edit here.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agenttool_otel import ConfigurationError
from agenttool_otel.govern import doors
from agenttool_otel.testing import StaticEngine, capture
from agenttool_otel.testing.doors import DOOR_CHECKS, check_door

DISTRIBUTION = Path(__file__).with_name("distribution")
SCHEMA = {"type": "object", "properties": {"word": {"type": "string"}}}


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(DISTRIBUTION))
    doors._by_class.cache_clear()
    yield
    doors._by_class.cache_clear()
    for name in ("toy", "toy_driver", "agenttool_toy"):
        sys.modules.pop(name, None)


def toy() -> Any:
    return importlib.import_module("toy")


def driver() -> Any:
    return importlib.import_module("toy_driver").ToyDriver()


@pytest.mark.parametrize("check", DOOR_CHECKS, ids=lambda check: check.__name__)
def test_the_door_passes(check: Any) -> None:
    check(driver())


def test_the_distribution_has_at_most_120_lines() -> None:
    files = [*DISTRIBUTION.glob("*.py"), *DISTRIBUTION.rglob("entry_points.txt")]
    assert sum(len(file.read_text("utf-8").splitlines()) for file in files) <= 120


def test_every_door_is_listed_without_being_imported() -> None:
    listed = [door for door in doors.installed_doors() if door.class_name.startswith("toy.")]
    assert [door.distribution for door in listed] == ["agenttool-toy 1.0"] * 2
    assert "agenttool_toy" not in sys.modules


def test_a_broken_door_is_refused_and_the_others_work() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        broken = toy().Broken("b", "b", SCHEMA, str)
        with pytest.raises(ConfigurationError, match=r"agenttool_toy\.missing"):
            captured.governor.govern(broken)
        whole = captured.governor.govern(toy().ToyTool("w", "w", SCHEMA, str), read_only=True)
        assert not whole.call({"word": "a"}, "call_1").failed


def test_two_doors_of_one_class_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = tmp_path / "agenttool_other-2.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: agenttool-other\nVersion: 2.0\n")
    (other / "entry_points.txt").write_text("[agenttool_otel.doors]\ntoy.ToyTool = other:door\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    doors._by_class.cache_clear()
    with (
        capture(policy=StaticEngine("allow")) as captured,
        pytest.raises(ConfigurationError, match="agenttool-other 2"),
    ):
        captured.governor.govern(toy().ToyTool("w", "w", SCHEMA, str))


def test_the_check_names_what_a_door_does_wrong() -> None:
    class Ungoverned(type(driver())):  # type: ignore[misc]
        def govern(self, governor: Any, tool: Any) -> Any:
            return tool

    with pytest.raises(AssertionError, match="allowed_call_runs: one call leaves one span, not 0"):
        check_door(Ungoverned())


@pytest.mark.parametrize("behavior", ["allow", "deny", "ask"])
def test_the_doors_attributes_are_on_every_span(behavior: str) -> None:
    with capture(policy=StaticEngine(behavior)) as captured:
        tool = captured.governor.govern(toy().ToyTool("w", "w", SCHEMA, str), read_only=True)
        tool.call({"word": "a"}, "call_1")
        assert captured.span.attributes["toy.version"] == "1"
