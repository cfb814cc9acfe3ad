"""Doors by the straight way and by the pipeline: nobody can see by which of them a call went."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from functools import partial
from typing import Any

import pytest
from foreign_shapes import ForeignShape, declared, foreign_shapes
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from straight_shapes import CONTEXTS, READS, SETTINGS
from two_ways import CALLS, World, Worlds

from agenttool_otel import agent_context
from agenttool_otel.call.binding import PlainArguments
from agenttool_otel.call.recording.span import CallSpan
from agenttool_otel.call.straight import call as straight_call
from agenttool_otel.call.straight.call import StraightCall
from agenttool_otel.errors import ToolDenied
from agenttool_otel.integrations.foreign import ForeignCall, ForeignTool
from agenttool_otel.integrations.mcp.calls import McpCall, text_result
from agenttool_otel.names import ResultStatus
from agenttool_otel.policy.bundles.bundle import bundle_from_files
from agenttool_otel.policy.engines.embedded import EmbeddedEngine
from agenttool_otel.records import McpMapping
from agenttool_otel.redaction import RedactionSettings, Redactor
from agenttool_otel.redaction.types import Span
from samples import one_in

SHAPES = list(foreign_shapes())


@pytest.fixture(scope="module")
def worlds() -> Iterator[Worlds]:
    with closing(Worlds(SETTINGS)) as worlds:
        yield worlds


def compare(worlds: Worlds, shape: ForeignShape, session: str) -> tuple[list[str], int]:
    """Return in what a shape differs by the two ways, and how many of its calls went straight."""
    context = CONTEXTS[shape.context]
    assert context is not None
    return worlds.compare(shape, {"session_id": session, **context})


@pytest.mark.parametrize(
    "number", one_in(4, range(len(SHAPES)), lambda number: str(SHAPES[number]))
)
def test_both_ways_leave_the_same(worlds: Worlds, number: int) -> None:
    found, _ = compare(worlds, SHAPES[number], session=f"s-{number}")
    assert not found, "\n".join(found[:20])


STRAIGHT = [
    ForeignShape(),
    ForeignShape(door="run"),
    ForeignShape(door="MCP", body="gives a text of MCP"),
    ForeignShape(door="MCP", body="gives a text of MCP", tool="open world"),
    ForeignShape(door="MCP", body="gives a structured result", before="a read"),
    ForeignShape(door="MCP by objects", body="gives a model", tool="open world"),
    ForeignShape(door="looked at while it runs"),
    ForeignShape(door="that reads results to their end", body="gives rows"),
    ForeignShape(door="that stops the program"),
    ForeignShape(arguments="JSON"),
    ForeignShape(arguments="a list"),
    ForeignShape(arguments="nested"),
    ForeignShape(tool="path", arguments="a path", context="roots"),
    ForeignShape(body="raises builtins.ValueError"),
    ForeignShape(settings="unsampled"),
    ForeignShape(settings="recorded"),
    ForeignShape(settings="recorded", door="MCP", body="gives a text of MCP"),
]


@pytest.mark.parametrize("shape", STRAIGHT, ids=str)
def test_an_ordinary_call_goes_straight(worlds: Worlds, shape: ForeignShape) -> None:
    found, count = compare(worlds, shape, session=f"straight-{shape}")
    assert not found, "\n".join(found[:20])
    assert count >= CALLS - 2  # what the first call gives is a fact of the second


WALKED = [
    ForeignShape(door="looked at before"),
    ForeignShape(arguments="unknown"),
    ForeignShape(arguments="a large number"),
    ForeignShape(arguments="bad JSON"),
    ForeignShape(settings="captured"),
    ForeignShape(settings="hooks"),
    ForeignShape(settings="sinks", tool="open world"),
    ForeignShape(tool="asked about"),
    ForeignShape(tool="redacted result"),
    ForeignShape(door="run", around="a mapped call"),
]


@pytest.mark.parametrize("shape", WALKED, ids=str)
def test_any_other_call_takes_the_pipeline(worlds: Worlds, shape: ForeignShape) -> None:
    found, count = compare(worlds, shape, session=f"walked-{shape}")
    assert (found, count) == ([], 0)


@pytest.mark.parametrize(
    ("owner", "name"),
    [(StraightCall, "_record"), (StraightCall, "ended"), (CallSpan, "record_result")],
    ids=str,
)
def test_a_seeded_difference_is_found(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    def nothing(*_: Any) -> None:
        return None

    monkeypatch.setattr(owner, name, nothing)
    with closing(Worlds(SETTINGS)) as worlds:
        found, count = compare(worlds, ForeignShape(door="MCP", tool="open world"), "s")
    assert found
    assert count


@pytest.fixture
def world() -> Iterator[World]:
    made = World(straight=True)
    yield made
    made.close()


def _of_server(tool: ForeignTool, name: str) -> ForeignCall:
    mapping = McpMapping(server_name=name) if name else None
    return McpCall(tool, {"value": "a"}, mapping=mapping)


def _of_model(tool: ForeignTool, name: str) -> ForeignCall:
    return ForeignCall(tool, {"value": "a"}, name or None)


IDS: dict[str, Callable[[ForeignTool, str], ForeignCall]] = {
    'input.invocation.external_mappings[_].server_name == "evil"': _of_server,
    "count(input.invocation.external_mappings) > 0": _of_server,
    '"external_mappings" in object.keys(input.invocation)': _of_server,
    'input.invocation.native_call_id == "evil"': _of_model,
}
"""What a rule reads of a call's ids, and a call of that id."""


@pytest.mark.parametrize("read", IDS)
def test_a_rule_about_ids_decides_each_call_anew(read: str) -> None:
    rules = f"""package agenttool.permission
default decision := {{"behavior": "allow"}}
decision := {{"behavior": "deny"}} if {read}"""
    engine = EmbeddedEngine(bundle_from_files({"p.rego": rules.encode()}, origin="t"))
    ran: list[str] = []

    def body(given: Any) -> dict[str, Any]:
        ran.append(name)
        return text_result("ran")

    with closing(World(straight=True, policy=engine)) as world, agent_context(session_id="s"):
        tool = declared(world, READS)
        for name in [""] * CALLS + ["evil"]:
            with suppress(ToolDenied):
                IDS[read](tool, name).run(body)
    assert ran == [""] * CALLS


class PlainCall(ForeignCall):
    """A call of a door that reads plain arguments in its own way, too."""

    def bind(self, call: Any) -> None:
        super().bind(call)

    def plain_arguments(self) -> PlainArguments | None:
        return super().plain_arguments()


@pytest.mark.parametrize("door", [ForeignCall, PlainCall])
def test_a_door_that_binds_itself_takes_the_pipeline(world: World, door: type[ForeignCall]) -> None:
    class BindingCall(door):  # type: ignore[misc, valid-type]
        def bind(self, call: Any) -> None:
            super().bind(call)
            call.call_args = ({"value": "read"},)

    with world.only_way(), agent_context(actor="agent:one", session_id="s"):
        tool = declared(world, READS)
        for _ in range(CALLS):
            assert BindingCall(tool, {"value": "a"}).run(lambda given: given["value"]) == "read"
    assert world.went_straight == 0


def test_what_a_straight_call_gives_is_remembered(world: World) -> None:
    with world.only_way(), agent_context(actor="agent:one", session_id="s") as context:
        tool = declared(world, {**READS, "open_world": True})
        for _ in range(CALLS):
            ForeignCall(tool, {"value": "a"}).run(lambda given: "done")
        ledger = world.governor.sessions.of(context).ledger
        assert ledger is not None
        known, before = len(ledger), world.went_straight
        ForeignCall(tool, {"value": "a"}).run(lambda given: "write to eve@evil.example")
    assert world.went_straight == before + 1
    assert len(ledger) > known


def test_a_failing_memory_changes_no_result(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(*_: Any) -> None:
        raise RuntimeError("a bug of ours")

    with world.only_way(), agent_context(actor="agent:one", session_id="s"):
        tool = declared(world, {**READS, "open_world": True})
        for _ in range(CALLS):
            ForeignCall(tool, {"value": "a"}).run(lambda given: "done")
        monkeypatch.setattr(straight_call, "record_output", raises)
        before = world.went_straight
        assert ForeignCall(tool, {"value": "a"}).run(lambda given: "done") == "done"
        assert world.went_straight == before + 1
    assert world.governor.telemetry.losses.by_kind() == {("result", "RuntimeError"): 1}


class Looking(SpanProcessor):
    """Looks at a call as data while its span starts and ends."""

    def __init__(self) -> None:
        self.call: ForeignCall | None = None
        self.seen: list[Any] = []

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        self._look()

    def on_end(self, span: ReadableSpan) -> None:
        self._look()

    def _look(self) -> None:
        if self.call is not None:
            self.seen.append(self.call.call.value)


def test_a_look_from_elsewhere_changes_no_result(world: World) -> None:
    looking = Looking()
    world.tracers.add_span_processor(looking)
    with world.only_way(), agent_context(actor="agent:one", session_id="s"):
        tool = declared(world, READS)
        for _ in range(CALLS):
            looking.call = None
            call = looking.call = ForeignCall(tool, {"value": "a"})
            if world.went_straight == 0:
                looking.call = None
            assert call.run(lambda given: "done") == "done"
            assert (call.call.value, call.result.status) == ("done", ResultStatus.SUCCEEDED)
    assert world.went_straight
    assert looking.seen[-1] == "done"


def test_a_second_run_gives_its_own_result(world: World) -> None:
    with world.only_way(), agent_context(actor="agent:one", session_id="s"):
        tool = declared(world, READS)
        for _ in range(CALLS):
            call = ForeignCall(tool, {"value": "a"})
            call.run(lambda given: "one")
        assert call.went_straight
        assert call.call.value == "one"
        assert call.run(lambda given: "two") == "two"


def test_a_detector_may_make_a_call_of_its_own() -> None:
    inner: list[Callable[[], Any]] = []

    class Calling:
        name = "calling"

        def find(self, data: bytes, lowered: bytes) -> Iterable[Span]:
            while inner:
                inner.pop()()
            return ()

    world = World(straight=True, redactor=Redactor(RedactionSettings(extra_detectors=(Calling(),))))
    tool = declared(world, READS)

    def call(body: Callable[[Any], Any], server: str = "files") -> Any:
        mapping = McpMapping(server_id=server, method="tools/call", tool_name="tool")
        return McpCall(tool, {"value": "a"}, mapping=mapping).run(body)

    def body(given: Any) -> Any:
        inner.append(partial(call, str))
        return [handle.status for handle in world.governor.running()]

    def make() -> None:
        with world.only_way(), agent_context(actor="agent:one", session_id="s"):
            for _ in range(CALLS):
                call(str)
            call(body, server="of ids that were not redacted before")

    thread = threading.Thread(target=make, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    assert not inner
    world.close()
