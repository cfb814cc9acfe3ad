"""Every shape of callable, with every way a call can end: what the caller gets, and what the span
says.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from agenttool_otel import ApprovalRequired, ToolDenied, agent_context
from agenttool_otel.names import SCHEMA_VERSION
from agenttool_otel.testing import Capture, StaticEngine, capture

BODY: dict[str, Any] = {}


def act(text: str) -> Any:
    """The body of every shape: returns, or does what the test put into BODY."""
    if BODY.get("raise") is not None:
        raise BODY["raise"]
    BODY["ran"] = BODY.get("ran", 0) + 1
    BODY["span"] = __import__("opentelemetry.trace", fromlist=["x"]).get_current_span()
    return f"done {text}"


def function(text: str) -> str:
    """Act on a text."""
    return act(text)


async def coroutine(text: str) -> str:
    """Act on a text."""
    await asyncio.sleep(0)
    return act(text)


def generator(text: str) -> Iterator[str]:
    """Act on a text."""
    yield act(text)


async def async_generator(text: str) -> AsyncIterator[str]:
    """Act on a text."""
    await asyncio.sleep(0)
    yield act(text)


class Holder:
    def __init__(self, govern: Callable[..., Any]) -> None:
        self.govern = govern


def make(shape: str, govern: Callable[..., Any]) -> Callable[..., Any]:
    """Return a governed callable of a shape, all of them named ``act_on``."""
    facts = {"name": "act_on", "namespace": "test"}
    if shape in {"function", "coroutine", "generator", "async_generator"}:
        return govern(globals()[shape], **facts)
    if shape == "partial":
        return govern(functools.partial(function), **facts)
    if shape == "async_partial":
        return govern(functools.partial(coroutine), **facts)
    if shape == "callable_object":

        class Callee:
            def __call__(self, text: str) -> str:
                return act(text)

        return govern(Callee(), **facts)
    if shape == "async_callable_object":

        class AsyncCallee:
            async def __call__(self, text: str) -> str:
                return act(text)

        return govern(AsyncCallee(), **facts)

    class Thing:
        @govern(**facts)
        def method(self, text: str) -> str:
            assert isinstance(self, Thing)
            return act(text)

        @govern(**facts)
        async def async_method(self, text: str) -> str:
            assert isinstance(self, Thing)
            return act(text)

        @govern(**facts)
        @classmethod
        def class_method(cls, text: str) -> str:
            assert cls is Thing
            return act(text)

        @classmethod
        @govern(**facts)
        def inner_classmethod(cls, text: str) -> str:
            assert cls is Thing
            return act(text)

        @govern(**facts)
        @staticmethod
        def static_method(text: str) -> str:
            return act(text)

        @govern(**facts)
        def method_generator(self, text: str) -> Iterator[str]:
            yield act(text)

    return getattr(Thing(), shape)


SYNC = [
    "function",
    "partial",
    "callable_object",
    "method",
    "class_method",
    "inner_classmethod",
    "static_method",
    "generator",
    "method_generator",
]
ASYNC = ["coroutine", "async_partial", "async_callable_object", "async_method", "async_generator"]
STREAMS = {"generator", "method_generator", "async_generator"}


def call(shape: str, governed: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call to the end, whatever the shape; a stream gives the list of its items."""
    if shape in ASYNC:

        async def go() -> Any:
            if shape in STREAMS:
                return [item async for item in governed(*args, **kwargs)]
            return await governed(*args, **kwargs)

        return asyncio.run(go())
    if shape in STREAMS:
        return list(governed(*args, **kwargs))
    return governed(*args, **kwargs)


@pytest.fixture(autouse=True)
def _fresh_body() -> Iterator[None]:
    BODY.clear()
    yield
    BODY.clear()


BASE = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "act_on",
    "gen_ai.tool.type": "function",
    "gen_ai.agent.name": "tester",
    "gen_ai.conversation.id": "s-1",
    "agenttool.schema_version": SCHEMA_VERSION,
    "agenttool.tool.id": "test.act_on",
    "agenttool.tool.namespace": "test",
    "agenttool.tool.kind": "function",
    "agenttool.tool.risk_level": "medium",
    "agenttool.session.id": "s-1",
    "agenttool.actor.id": "agent:tester",
    "agenttool.tenant.id": "acme",
    "agenttool.redaction.state": "none",
    "agenttool.redaction.count": 0,
    "agenttool.result.persistence": "inline",
}
IDS = {
    "agenttool.invocation.id": "inv_",
    "agenttool.permission.decision_id": "perm_",
    "agenttool.approval.id": "appr_",
}


def decided(behavior: str) -> dict[str, Any]:
    return {
        "agenttool.permission.behavior": behavior,
        "agenttool.permission.mode": "enforce",
        "agenttool.permission.source": "policy",
        "agenttool.permission.reason.type": "rule",
        "agenttool.permission.rule": f"test.{behavior}",
        "agenttool.policy.engine": "static",
        "agenttool.policy.revision": "test-1",
        "agenttool.policy.cached": False,
    }


def check_span(
    captured: Capture,
    expected: dict[str, Any],
    status: StatusCode,
    events: list[str],
    error: str | None = None,
) -> None:
    span = captured.span
    assert span.name == "execute_tool act_on"
    assert span.kind is SpanKind.INTERNAL
    assert span.status.status_code is status
    assert span.status.description == error
    attributes = dict(span.attributes or {})
    assert type(attributes.pop("agenttool.permission.duration_s")) is float
    assert attributes.pop("gen_ai.tool.description")
    run_seconds = attributes.pop("agenttool.invocation.run_s", None)
    assert (type(run_seconds) is float) is (
        attributes["agenttool.permission.outcome"] == "executed"
    )
    for name, prefix in IDS.items():
        if name in attributes:
            value = attributes.pop(name)
            assert isinstance(value, str)
            assert value.startswith(prefix)
    assert attributes == {**BASE, **expected}
    assert all(type(value) in (str, int, bool) for value in attributes.values())
    assert [event.name for event in span.events] == events
    assert span.parent is not None
    assert span.parent.span_id == BODY["parent"]


def check_metrics(
    captured: Capture, behavior: str, outcome: str, error: str | None, *, sized: bool
) -> None:
    (duration,) = captured.points("gen_ai.execute_tool.duration")
    labels = {
        "gen_ai.tool.name": "act_on",
        "gen_ai.tool.type": "function",
        "gen_ai.agent.name": "tester",
    }
    assert dict(duration.attributes) == {**labels, **({"error.type": error} if error else {})}
    assert duration.count == 1
    (decisions,) = captured.points("agenttool.permission.decisions")
    assert decisions.value == 1
    assert dict(decisions.attributes) == {
        "gen_ai.tool.name": "act_on",
        "agenttool.permission.behavior": behavior,
        "agenttool.permission.outcome": outcome,
        "agenttool.permission.source": "policy",
        "agenttool.permission.mode": "enforce",
        "agenttool.permission.rule": f"test.{behavior}",
    }
    assert len(captured.points("agenttool.permission.duration")) == 1
    assert len(captured.points("agenttool.result.size")) == (1 if sized else 0)
    assert captured.points("agenttool.permission.fail_closed") == []


def under_parent(captured: Capture, shape: str, governed: Callable[..., Any]) -> Any:
    tracer = captured.tracer_provider.get_tracer("test")
    with (
        agent_context(actor="agent:tester", tenant="acme", roles=["r"], session_id="s-1"),
        tracer.start_as_current_span("parent") as parent,
    ):
        BODY["parent"] = parent.get_span_context().span_id
        return call(shape, governed, "x")


@pytest.mark.parametrize("shape", SYNC + ASYNC)
def test_an_allowed_call_returns_what_its_tool_returns(shape: str) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        result = under_parent(captured, shape, make(shape, captured.governor.govern))
        assert result == (["done x"] if shape in STREAMS else "done x")
        assert BODY["ran"] == 1
        assert BODY["span"].get_span_context() == captured.span.get_span_context()
        size = {"agenttool.result.size_bytes": 6}
        items = {"agenttool.result.items": 1} if shape in STREAMS else {}
        check_span(
            captured,
            {
                **decided("allow"),
                **size,
                **items,
                "agenttool.invocation.status": "succeeded",
                "agenttool.permission.outcome": "executed",
                "agenttool.result.status": "succeeded",
            },
            StatusCode.UNSET,
            ["tool.permission.decided", "tool.result.created", "tool.invocation.succeeded"],
        )
        check_metrics(captured, "allow", "executed", None, sized=True)


@pytest.mark.parametrize("shape", SYNC + ASYNC)
def test_a_denied_call_raises_a_typed_denial_and_leaves_its_span(shape: str) -> None:
    with capture(policy=StaticEngine("deny")) as captured:
        with pytest.raises(ToolDenied) as denied:
            under_parent(captured, shape, make(shape, captured.governor.govern))
        assert isinstance(denied.value, PermissionError)
        assert "ran" not in BODY
        result = denied.value.result
        assert result is not None
        assert result.status == "denied"
        assert result.is_error
        assert result.error is not None
        assert result.error.error_class == "permission_denied"
        assert denied.value.decision is not None
        assert (
            denied.value.decision.invocation_id
            == denied.value.invocation_id
            == result.invocation_id
        )
        check_span(
            captured,
            {
                **decided("deny"),
                "agenttool.invocation.status": "denied",
                "agenttool.permission.outcome": "not_executed",
                "agenttool.result.status": "denied",
                "error.type": "permission_denied",
                "agenttool.error.code": "AT-301",
                "agenttool.error.recoverability": "change_arguments_or_policy",
            },
            StatusCode.ERROR,
            ["tool.permission.decided", "tool.result.created", "tool.invocation.failed"],
            "permission_denied",
        )
        check_metrics(captured, "deny", "not_executed", "permission_denied", sized=False)


@pytest.mark.parametrize("shape", SYNC + ASYNC)
def test_an_asked_call_waits_and_is_no_error(shape: str) -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        with pytest.raises(ApprovalRequired) as asked:
            under_parent(captured, shape, make(shape, captured.governor.govern))
        assert "ran" not in BODY
        assert asked.value.request_id.startswith("appr_")
        assert asked.value.result is not None
        assert not asked.value.result.is_error
        check_span(
            captured,
            {
                **decided("ask"),
                "agenttool.invocation.status": "awaiting_approval",
                "agenttool.permission.outcome": "pending",
                "agenttool.result.status": "pending",
                "agenttool.approval.status": "pending",
            },
            StatusCode.UNSET,
            [
                "tool.permission.decided",
                "tool.permission.requested",
                "tool.approval.requested",
            ],
        )
        check_metrics(captured, "ask", "pending", None, sized=False)


@pytest.mark.parametrize("shape", SYNC + ASYNC)
def test_the_tools_own_exception_comes_out_unmodified(shape: str) -> None:
    error = FileNotFoundError(2, "no such file", "secret-name.txt")
    BODY["raise"] = error
    with capture(policy=StaticEngine("allow")) as captured:
        with pytest.raises(FileNotFoundError) as raised:
            under_parent(captured, shape, make(shape, captured.governor.govern))
        assert raised.value is error
        assert error.__cause__ is None
        assert error.__context__ is None
        assert error.filename == "secret-name.txt"
        # a sink has an event of every item, so they are counted
        items = {"agenttool.result.items": 0} if shape in STREAMS else {}
        check_span(
            captured,
            {
                **decided("allow"),
                **items,
                "agenttool.invocation.status": "failed",
                "agenttool.permission.outcome": "executed",
                "agenttool.result.status": "failed",
                "error.type": "execution_failed",
                "agenttool.error.code": "AT-502",
                "agenttool.error.recoverability": "change_arguments",
                "agenttool.error.native_type": "builtins.FileNotFoundError",
            },
            StatusCode.ERROR,
            [
                "tool.permission.decided",
                "exception",
                "tool.result.created",
                "tool.invocation.failed",
            ],
            "execution_failed",
        )
        (event,) = [event for event in captured.span.events if event.name == "exception"]
        assert dict(event.attributes or {}) == {"exception.type": "builtins.FileNotFoundError"}
        check_metrics(captured, "allow", "executed", "execution_failed", sized=False)


@pytest.mark.parametrize("shape", SYNC + ASYNC)
def test_a_canceled_call_is_recorded_and_the_signal_goes_on(shape: str) -> None:
    signal: BaseException = asyncio.CancelledError() if shape in ASYNC else KeyboardInterrupt()
    BODY["raise"] = signal
    with capture(policy=StaticEngine("allow")) as captured:
        with pytest.raises(type(signal)):
            under_parent(captured, shape, make(shape, captured.governor.govern))
        span = captured.span
        assert span.attributes is not None
        assert span.attributes["agenttool.invocation.status"] == "canceled"
        assert span.attributes["agenttool.result.status"] == "canceled"
        assert span.attributes["agenttool.permission.outcome"] == "executed"
        assert span.attributes["error.type"] == "canceled"
        assert span.status.status_code is StatusCode.ERROR
        check_metrics(captured, "allow", "executed", "canceled", sized=False)


@pytest.mark.parametrize("shape", SYNC + ASYNC)
def test_what_a_governed_callable_looks_like_does_not_change(shape: str) -> None:
    plain: Any = {
        "function": function,
        "coroutine": coroutine,
        "generator": generator,
        "async_generator": async_generator,
    }.get(shape)
    with capture(policy=StaticEngine("allow")) as captured:
        governed = make(shape, captured.governor.govern)
        assert list(inspect.signature(governed).parameters) == ["text"]
        if plain is None:
            return
        assert inspect.signature(governed) == inspect.signature(plain)
        assert governed.__doc__ == plain.__doc__
        assert governed.__name__ == plain.__name__
        assert governed.__module__ == plain.__module__
        assert inspect.getsource(governed) == inspect.getsource(plain)
        for predicate in (
            inspect.iscoroutinefunction,
            inspect.isgeneratorfunction,
            inspect.isasyncgenfunction,
            asyncio.iscoroutinefunction,
        ):
            assert predicate(governed) == predicate(plain)


def test_an_unsampled_call_is_decided_and_leaves_its_metrics() -> None:
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

    with capture(policy=StaticEngine({"act_on": None}), sampler=ALWAYS_OFF) as captured:
        with pytest.raises(ToolDenied):
            make("function", captured.governor.govern)("x")
        assert captured.spans == ()
        assert captured.points("agenttool.permission.fail_closed")[0].value == 1
