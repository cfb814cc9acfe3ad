"""The straight way and the pipeline: whatever a call is, nobody can see by which of them it went."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from closing import closed_once
from straight_shapes import CONTEXTS, FILES, READS, SETTINGS, Shape, shapes
from two_ways import CALLS, World, Worlds, differences

from agenttool_otel import ContextModifier, ToolDenied, agent_context, current_call
from agenttool_otel.call.invocation import Established
from agenttool_otel.call.phases.execute import Body
from agenttool_otel.call.recording.span import CallSpan
from agenttool_otel.call.straight import way
from agenttool_otel.call.straight.call import StraightCall
from agenttool_otel.call.straight.plan import Plan
from agenttool_otel.context.context import AgentContext
from agenttool_otel.context.sessions import Session
from agenttool_otel.facts.plan import FactPlan
from agenttool_otel.facts.types import EMPTY_FACTS
from agenttool_otel.names import Lifecycle
from agenttool_otel.policy.bundles.bundle import bundle_from_files
from samples import one_in

SHAPES = list(shapes())


@pytest.fixture(scope="module")
def worlds() -> Iterator[Worlds]:
    with contextlib.closing(Worlds(SETTINGS)) as worlds:
        yield worlds


@pytest.fixture
def new_worlds() -> Iterator[Worlds]:
    with contextlib.closing(Worlds(SETTINGS)) as worlds:
        yield worlds


def compare(worlds: Worlds, shape: Shape, session: str = "s") -> tuple[list[str], int]:
    """Return in what a shape differs by the two ways, and how many of its calls went straight."""
    context = CONTEXTS[shape.context]
    if context is not None:
        context = {"session_id": session, **context}
    return worlds.compare(shape, context)


@pytest.mark.parametrize(
    "number", one_in(4, range(len(SHAPES)), lambda number: str(SHAPES[number]))
)
def test_both_ways_leave_the_same(worlds: Worlds, number: int) -> None:
    found, _ = compare(worlds, SHAPES[number], session=f"s-{number}")
    assert not found, "\n".join(found[:20])


def test_there_are_enough_shapes() -> None:
    assert len(set(SHAPES)) == len(SHAPES) >= 400


STRAIGHT = [
    Shape(),
    Shape(form="coroutine"),
    Shape(form="method"),
    Shape(form="async_method"),
    Shape(settings="unsampled"),
    Shape(settings="recorded"),
    Shape(settings="recorded", tool="path", context="roots"),
    Shape(settings="recorded, unsampled"),
    Shape(tool="path", arguments="a path", context="roots"),
    Shape(tool="sql", arguments="a query"),
    Shape(tool="shell, all stated", arguments="a command", context="roots"),
    Shape(
        tool="shell that runs commands", arguments="a command", context="roots", form="coroutine"
    ),
    Shape(arguments="beyond ASCII"),
    Shape(context="labels"),
    Shape(around="a native call"),
    Shape(body="raises builtins.ValueError"),
    Shape(body="gives a dict"),
]


@pytest.mark.parametrize("shape", STRAIGHT, ids=str)
def test_an_ordinary_call_goes_straight(new_worlds: Worlds, shape: Shape) -> None:
    assert compare(new_worlds, shape) == ([], CALLS - 1)
    assert new_worlds.of(shape.settings, straight=False).went_straight == 0


WALKED = [
    Shape(settings="captured"),
    Shape(settings="no cache"),
    Shape(settings="shadow"),
    Shape(settings="hooks"),
    Shape(settings="sinks"),
    Shape(settings="listeners"),
    Shape(context="user text"),
    Shape(context="resources"),
    Shape(context="labels of numbers"),
    Shape(arguments="a list"),
    Shape(arguments="none"),
    Shape(arguments="quoting"),
    Shape(tool="locked"),
    Shape(tool="limited in time"),
    Shape(tool="checked"),
    Shape(tool="sensitive result"),
    Shape(around="a span of the tool"),
    Shape(around="a listener"),
    Shape(around="a mapped call"),
]


@pytest.mark.parametrize("shape", WALKED, ids=str)
def test_any_other_call_takes_the_pipeline(new_worlds: Worlds, shape: Shape) -> None:
    _, count = compare(new_worlds, shape)
    assert count == 0


@pytest.mark.parametrize("by", ["its id", "its task", "its caller's time", "its coroutine's end"])
def test_a_coroutine_is_stopped_alike_by_both_ways(by: str) -> None:
    seen = []
    for straight in (True, False):
        world = World(straight=straight)
        context = {"actor": "agent:one", "session_id": "s"}
        seen.append(world.observe(functools.partial(_stopped, by), context))
        assert bool(world.went_straight) is straight
        assert world.governor.running() == []
        world.close()
    assert differences(*seen) == []


def _stopped(by: str, world: World) -> Callable[[], Any]:
    """Return what makes a call whose body waits until it is stopped, from the third on."""
    calls = itertools.count()

    async def wait(text: str) -> str:
        if next(calls) > 1:
            started.put_nowait(current_call())
            await asyncio.sleep(60)
        return text

    tool = world.governor.govern(wait, name="tool", **READS)
    started: asyncio.Queue[Any] = asyncio.Queue()

    async def scenario() -> Any:
        if by == "its coroutine's end":
            return await closed_once(started.qsize, tool("a"))
        task = asyncio.ensure_future(tool("a"))
        if by == "its caller's time":
            async with asyncio.timeout(0.5):
                return await task
        getting = asyncio.ensure_future(started.get())
        await asyncio.wait({task, getting}, return_when=asyncio.FIRST_COMPLETED)
        if getting.done():
            _stop(by, world, task, getting.result().invocation_id)
        getting.cancel()
        return await task

    return lambda: world.runner.run(scenario())


def _stop(by: str, world: World, task: asyncio.Future[Any], call_id: str) -> None:
    if by == "its task":
        task.cancel()
    else:
        world.governor.cancel(call_id, "enough")


def _less_counted(session: Session, tool_id: str) -> None:
    session._forgot = True


def _no_record(*_: Any) -> None:
    return None


def _shared_alone(call: StraightCall, counters: dict[str, int]) -> dict[str, Any]:
    return call.prepared.document


SEEDED: list[tuple[type, str, Callable[..., Any], str]] = [
    # of the straight way
    (StraightCall, "_record", _no_record, "usual"),
    (Session, "admit_unread", _less_counted, "usual"),
    (StraightCall, "_policy_input", _shared_alone, "recorded"),
    # of the pipeline
    (CallSpan, "record_result", _no_record, "usual"),
    (CallSpan, "record_decision", _no_record, "usual"),
    (Body, "_begin", _no_record, "usual"),
]


@pytest.mark.parametrize(
    ("owner", "name", "seeded", "settings"),
    SEEDED,
    ids=[f"{owner.__name__}.{name}" for owner, name, *_ in SEEDED],
)
def test_a_seeded_difference_is_found(
    new_worlds: Worlds,
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    name: str,
    seeded: Callable[..., Any],
    settings: str,
) -> None:
    monkeypatch.setattr(owner, name, seeded)
    found, count = compare(new_worlds, Shape(settings=settings))
    assert found
    assert count


# --- up to the body it fails closed, from there on it fails silent -------------------------------


@pytest.fixture
def world() -> Iterator[World]:
    made = World(straight=True)
    yield made
    made.close()


def _warm(world: World, body: Callable[[str], Any] = str.upper) -> Callable[[str], Any]:
    tool: Callable[[str], Any] = world.governor.govern(
        lambda text: body(text), name="tool", **READS
    )
    for _ in range(3):
        tool("a")
    return tool


def test_a_failure_before_the_body_counts_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with world.only_way(), agent_context(actor="agent:one", session_id="s") as context:
        tool = _warm(world)
        session = world.governor.sessions.of(context)
        monkeypatch.setattr(StraightCall, "_begin_span", _raises)
        assert tool("a") == "A"
        assert session.counters("test.tool")["calls"] == 4
        assert not world.governor.pipeline.running


def _raises(*_: Any) -> Any:
    raise RuntimeError("a bug of ours")


@pytest.mark.parametrize("part", ["prepared", "facts", "session"])
def test_a_failing_look_up_takes_the_pipeline(
    world: World, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    with world.only_way(), agent_context(actor="agent:one", session_id="s"):
        tool = _warm(world)
        monkeypatch.setattr(Plan, part, _raises)
        before = world.went_straight
        assert tool("a") == "A"
        assert world.went_straight == before


@pytest.mark.parametrize("path", ["/tmp/a.txt", "/home/ann/.ssh/id_rsa"])
def test_facts_are_established_once_by_whichever_way(
    world: World, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    with world.only_way(), agent_context(actor="agent:one", session_id="s", roots=["/tmp"]):
        tool: Any = world.governor.govern(lambda value: value, name="tool", **FILES)
        tool("/tmp/b.txt"), tool("/tmp/b.txt")
        looked: list[Any] = []
        establish = FactPlan.establish
        monkeypatch.setattr(
            FactPlan, "establish", lambda *given: looked.append(given) or establish(*given)
        )
        with contextlib.suppress(ToolDenied):
            tool(path)
    assert len(looked) == 1


def test_facts_of_other_arguments_are_not_taken() -> None:
    context = AgentContext()
    known = Established(context, {"value": 1}, EMPTY_FACTS)
    assert known.fits(context, {"value": 1})
    for other in ({"value": True}, {"value": 2}, {}, {"value": 1, "more": 1}):
        assert not known.fits(context, other)
    assert not known.fits(AgentContext(), {"value": 1})


def test_a_failing_record_changes_no_result(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with world.only_way(), agent_context(actor="agent:one", session_id="s"):
        tool = _warm(world)
        monkeypatch.setattr(StraightCall, "_record", _raises)
        assert tool("a") == "A"
    assert world.governor.telemetry.losses.by_kind() == {("end", "RuntimeError"): 1}


def test_a_broken_span_changes_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(straight=True)
    with world.only_way(), agent_context(actor="agent:one", session_id="s"):
        tool = _warm(world)
        span_class = type(world.tracers.get_tracer("x").start_span("x"))
        for name in ("add_event", "set_attributes", "end"):
            monkeypatch.setattr(span_class, name, _raises)
        assert tool("a") == "A"
    monkeypatch.undo()
    world.close()


def test_a_change_of_context_is_made_by_both_ways(world: World) -> None:
    changed: list[str] = []
    with world.only_way(), agent_context(actor="agent:one", session_id="s"):
        tool = _warm(
            world, lambda text: ContextModifier(text, functools.partial(changed.append, text))
        )
        before = world.went_straight
        assert tool("a") == "a"
        assert world.went_straight == before + 1
    assert changed == ["a"] * 4


# --- what changes is seen at the next call --------------------------------------------------------


def test_a_changed_label_is_decided_anew(world: World) -> None:
    with world.only_way(), agent_context(actor="agent:one", labels={"a": "b"}) as context:
        tool = _warm(world)
        before = world.went_straight
        context.labels["a"] = "c"  # type: ignore[index]
        tool("a")
    assert world.went_straight == before


def test_a_tool_that_is_disabled_meanwhile_is_refused(world: World) -> None:
    with world.only_way(), agent_context(actor="agent:one", session_id="s"):
        tool: Any = _warm(world)
        tool.tool.declaration.lifecycle = Lifecycle.DISABLED
        with pytest.raises(Exception, match="disabled"):
            tool("a")


def test_changed_defaults_take_the_pipeline(world: World) -> None:
    def tool(text: str, kind: Any = "a") -> Any:
        return kind

    with world.only_way(), agent_context(actor="agent:one", session_id="s"):
        governed: Any = world.governor.govern(tool, **READS)
        for _ in range(3):
            governed("a")
        kinds = ["b"]
        tool.__defaults__ = (kinds,)
        before = world.went_straight
        assert governed("a") == "a"  # what was decided
        assert world.went_straight == before


def test_a_reloaded_policy_decides_the_next_call(world: World) -> None:
    with world.only_way(), agent_context(actor="agent:one", session_id="s"):
        tool = _warm(world)
        engine: Any = world.governor.decider.engines[0]
        engine.swap(bundle_from_files({"p.rego": _DENIES}, origin="t"))
        with pytest.raises(ToolDenied):
            tool("a")


_DENIES = b"""
package agenttool.permission

# METADATA
# entrypoint: true
decision := {"behavior": "deny", "reason": {"type": "rule", "rule_ref": "p", "message": "no"}}
"""


def test_a_forgotten_decision_is_made_anew(world: World) -> None:
    with world.only_way(), agent_context(actor="agent:one", session_id="s"):
        tool = _warm(world)
        before = world.went_straight
        world.governor.decider._cache.clear()
        tool("a")
        assert world.went_straight == before
        tool("a")
        assert world.went_straight == before + 1


def test_calls_of_many_threads_are_all_counted(world: World) -> None:
    def many(context: Any) -> None:
        with agent_context(actor="agent:one", session_id="s"):
            for _ in range(200):
                tool("a")

    with world.only_way(), agent_context(actor="agent:one", session_id="s") as context:
        tool = _warm(world)
        threads = [threading.Thread(target=many, args=(context,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        session = world.governor.sessions.of(context)
        assert session.counters("test.tool")["calls"] == 8 * 200 + 3
    assert len(world._spans.get_finished_spans()) == 8 * 200 + 3
    assert not world.governor.pipeline.running


def test_a_closed_way_is_the_pipeline_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with world.only_way(), agent_context(actor="agent:one", session_id="s"):
        tool = _warm(world)
        before = world.went_straight
        monkeypatch.setattr(way, "_open", False)
        assert tool("a") == "A"
        assert world.went_straight == before
