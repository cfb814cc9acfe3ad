"""What becomes of a held call: its error, its records, its span and its story."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from held_calls import HOLDS, REFUSES, Run, held, run_by, write

from agenttool_otel import enforcement
from agenttool_otel.cli.spans import SpanView
from agenttool_otel.cli.story import why
from agenttool_otel.enforcement import HeldResult, Violation, arun_command, run_command
from agenttool_otel.errors import SandboxUnavailable
from agenttool_otel.names import Attr, ErrorClass, Event, GenAI, Metric
from agenttool_otel.testing import Capture, StaticEngine, capture, decision
from function_engine import FunctionEngine

TOKEN = "ghp_" + "a1B2c3D4" * 4 + "e5F6"


@pytest.fixture
def readable() -> None:
    """Skip where this host can't hold the profile read."""
    proof = enforcement.available()["read"]
    if not proof.proven:
        pytest.skip(f"the profile read can't be had here: {proof.reason}")


@pytest.fixture
def captured() -> Iterator[Capture]:
    with capture(policy=held()) as captured:
        yield captured


def refused(captured: Capture, place: Path) -> Any:
    """The result of a call that tries to write to a place."""
    return Run(captured, str(place)).govern(write).tool.invoke(path=str(place))


def events_of(captured: Capture, name: str) -> list[dict[str, Any]]:
    return [dict(event.attributes) for event in captured.span.events if event.name == name]


@pytest.mark.usefixtures("readable")
def test_the_error_names_what_was_refused(captured: Capture, tmp_path: Path) -> None:
    error = refused(captured, tmp_path / "out").error
    assert error.error_class is ErrorClass.SANDBOX_VIOLATION
    assert "the sandbox read refused: write" in error.message
    assert "EACCES" in error.message
    assert error.native_error_ref == "builtins.PermissionError"


@pytest.mark.usefixtures("readable")
def test_the_error_is_redacted(captured: Capture, tmp_path: Path) -> None:
    result = refused(captured, tmp_path / TOKEN)
    assert TOKEN not in result.error.message
    assert TOKEN not in captured.span.to_json()
    assert TOKEN not in json.dumps(captured.records)


@pytest.mark.usefixtures("readable")
def test_the_caller_gets_the_bodys_own_exception(captured: Capture, tmp_path: Path) -> None:
    error = run_by(HOLDS["call"], captured, tmp_path / "out")
    assert type(error) is PermissionError
    assert error.filename == str(tmp_path / "out")


@pytest.mark.usefixtures("readable")
def test_a_held_call_is_counted_by_its_profile(captured: Capture, tmp_path: Path) -> None:
    refused(captured, tmp_path / "out")
    [point] = captured.points(Metric.SANDBOX_INVOCATIONS)
    assert dict(point.attributes) == {
        GenAI.TOOL_NAME: "write",
        Attr.SANDBOX_PROFILE: "read",
        Attr.SANDBOX_ENFORCED: True,
        GenAI.ERROR_TYPE: "sandbox_violation",
    }


@pytest.mark.usefixtures("readable")
def test_the_span_shows_how_often_and_not_where(captured: Capture, tmp_path: Path) -> None:
    refused(captured, tmp_path / "out")
    attributes = captured.span.attributes
    assert attributes[Attr.SANDBOX_PROFILE] == "read"
    assert attributes[Attr.SANDBOX_SCOPE] == "thread"
    assert attributes[Attr.SANDBOX_VIOLATIONS] == 1
    assert attributes[Attr.SANDBOX_MECHANISM] == enforcement.available()["read"].mechanism
    [violated] = events_of(captured, Event.SANDBOX_VIOLATED)
    assert violated[Attr.SANDBOX_VIOLATION_KINDS] == ("write",)
    assert str(tmp_path) not in captured.span.to_json()


@pytest.mark.usefixtures("readable")
def test_where_is_shown_where_content_is_captured(tmp_path: Path) -> None:
    with capture(policy=held(), capture="SPAN_AND_EVENT") as captured:
        refused(captured, tmp_path / TOKEN)
    [violated] = events_of(captured, Event.SANDBOX_VIOLATED)
    assert violated[Attr.SANDBOX_VIOLATION_TARGET].startswith(str(tmp_path))
    assert TOKEN not in captured.span.to_json()


@pytest.mark.usefixtures("readable")
def test_entering_is_an_event_of_its_own(captured: Capture, tmp_path: Path) -> None:
    refused(captured, tmp_path / "out")
    [entered] = events_of(captured, Event.SANDBOX_ENTERED)
    assert (entered[Attr.SANDBOX_PROFILE], entered[Attr.SANDBOX_SCOPE]) == ("read", "thread")


@pytest.mark.usefixtures("readable")
def test_what_the_profile_allows_is_delivered(captured: Capture, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("hello", "utf-8")
    read = captured.governor.govern(lambda path: Path(path).read_text("utf-8"), name="read")
    assert read(str(tmp_path / "in")) == "hello"
    attributes = captured.span.attributes
    assert (attributes[Attr.SANDBOX_ENFORCED], attributes[Attr.SANDBOX_VIOLATIONS]) == (True, 0)


@pytest.mark.usefixtures("readable")
def test_the_decisions_record_has_the_obligation(captured: Capture, tmp_path: Path) -> None:
    refused(captured, tmp_path / "out")
    assert '"sandbox": {"profile": "read", "network": "none"}' in json.dumps(captured.records)


@pytest.mark.usefixtures("readable")
def test_a_refusal_that_a_body_survived_is_recorded(
    captured: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = (Violation("connection", "10.0.0.1:80", 13), Violation("write", "/x", suspected=True))
    monkeypatch.setattr(
        enforcement, "hold", lambda *args, **kwargs: HeldResult("done", violations=seen)
    )
    assert Run(captured, "/x").call() == "done"
    assert captured.span.attributes[Attr.SANDBOX_VIOLATIONS] == 1
    [violated] = events_of(captured, Event.SANDBOX_VIOLATED)
    assert violated[Attr.SANDBOX_VIOLATION_KINDS] == ("connection",)


@pytest.mark.usefixtures("readable")
def test_a_body_that_can_not_be_held_after_all_fails(
    captured: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*args: Any, **kwargs: Any) -> HeldResult:
        raise SandboxUnavailable("too many domains", profile="read")

    monkeypatch.setattr(enforcement, "hold", fail)
    error = run_by(HOLDS["retries"], captured, tmp_path / "out")
    assert isinstance(error, SandboxUnavailable)
    attributes = captured.span.attributes
    assert attributes[Attr.SANDBOX_ENFORCED] is False
    assert attributes[GenAI.ERROR_TYPE] == ErrorClass.POLICY_BLOCKED


@pytest.mark.usefixtures("readable")
def test_the_story_of_a_held_call_has_a_sentence(captured: Capture, tmp_path: Path) -> None:
    refused(captured, tmp_path / "out")
    story = why(SpanView.from_sdk(captured.span))
    assert "It ran inside the sandbox read, held by landlock." in story
    assert "The sandbox refused once what it tried." in story


def test_the_story_of_a_call_that_nothing_could_hold(
    captured: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    proof = SimpleNamespace(proven=False, mechanism="", reason="none")
    monkeypatch.setattr(enforcement, "available", lambda: {"read": proof})
    refused(captured, tmp_path / "out")
    story = why(SpanView.from_sdk(captured.span))
    assert "nothing on that host could hold it as the policy obliges" in story
    assert "The decision obliges the sandbox read, and nothing ran inside of it." in story


# --- commands -------------------------------------------------------------------------------------


async def touch(path: str) -> int:
    """Create a file by a program."""
    return (await arun_command(["touch", path])).status


@pytest.mark.usefixtures("readable")
def test_the_commands_of_a_coroutine_are_held(captured: Capture, tmp_path: Path) -> None:
    place = tmp_path / "out"
    status = asyncio.run(Run(captured, str(place)).call(touch, runs_commands=True))
    assert status != 0
    assert not place.exists()
    attributes = captured.span.attributes
    assert (attributes[Attr.SANDBOX_SCOPE], attributes[Attr.SANDBOX_ENFORCED]) == ("command", True)


@pytest.mark.usefixtures("readable")
def test_the_commands_of_a_function_are_held(captured: Capture, tmp_path: Path) -> None:
    place = tmp_path / "out"
    assert Run(captured, str(place)).call(lambda path: run_command(["touch", path]).status) != 0
    assert not place.exists()


# --- what a policy is shown -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("way", "scope"),
    [(way, "thread") for way in HOLDS.values()] + [(way, "none") for way in REFUSES.values()],
    ids=[*HOLDS, *REFUSES],
)
def test_a_policy_sees_what_can_hold_this_very_body(way: Any, scope: str, tmp_path: Path) -> None:
    shown: list[Any] = []

    def decide(document: Any) -> Any:
        shown.append(document["execution"])
        return decision("deny")

    with capture(policy=FunctionEngine(decide)) as captured:
        run_by(way, captured, tmp_path / "out")
    proven = [name for name, proof in enforcement.available().items() if proof.proven]
    expected = proven if scope != "none" else []
    assert shown == [{"sandboxes": expected, "scope": scope, "refused": []}]


@pytest.mark.parametrize("policy", [{}, {"policy": StaticEngine("allow")}], ids=["stock", "static"])
def test_nothing_is_proven_before_a_policy_reads_it(
    policy: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def prove() -> Any:
        raise AssertionError("nobody has asked")

    monkeypatch.setattr(enforcement, "available", prove)
    with capture(**policy) as captured:
        governed = captured.governor.govern(lambda: 1, name="one", read_only=True, access_kinds=[])
        assert governed() == 1
