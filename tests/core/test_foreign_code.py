"""What other people's classes raise while a call is recorded is never what the tool's caller gets
instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.trace import INVALID_SPAN_CONTEXT, NonRecordingSpan, Tracer
from opentelemetry.trace import TracerProvider as AnyProvider

from agenttool_otel import Governor, agent_context
from agenttool_otel.telemetry import TelemetrySettings
from agenttool_otel.testing import StaticEngine

STOPS = [ValueError, SystemExit, asyncio.CancelledError, GeneratorExit]


def raises(error: type[BaseException]) -> Callable[..., Any]:
    def method(*args: Any, **kwargs: Any) -> Any:
        raise error("x")

    return method


def allowing(**telemetry: Any) -> Governor:
    return Governor(policy=StaticEngine("allow"), telemetry=TelemetrySettings(**telemetry))


@pytest.mark.parametrize("error", [*STOPS, KeyboardInterrupt])
@pytest.mark.parametrize(
    "member", ["__str__", "response", "status_code", "__cause__", "retry_after"]
)
def test_an_exception_whose_members_raise_reaches_its_caller(
    member: str, error: type[BaseException]
) -> None:
    body = raises(error)
    odd = type("Odd", (Exception,), {member: body if member == "__str__" else property(body)})

    def act() -> None:
        raise odd

    with pytest.raises(odd):
        allowing().govern(act)()


class Text(str):
    __len__ = isascii = encode = __str__ = raises(SystemExit)  # type: ignore[assignment]


class Items(list):  # type: ignore[type-arg]
    __iter__ = __len__ = raises(SystemExit)


class Result(dict):  # type: ignore[type-arg]
    items = __iter__ = get = __len__ = raises(SystemExit)  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("make", "status"),
    [
        (lambda: Text("x"), "succeeded"),
        (lambda: Items([1]), "failed"),  # result_mapping_failed: no content could be made of it
        (lambda: Result(a=1), "succeeded"),
    ],
)
@pytest.mark.parametrize("session", [None, "s"])
@pytest.mark.parametrize("capture", ["NO_CONTENT", "SPAN_AND_EVENT"])
def test_a_result_whose_methods_raise_reaches_its_caller(
    make: Any, status: str, session: str | None, capture: Any
) -> None:
    value = make()
    act = allowing(capture=capture).govern(lambda: value, name="act")
    with agent_context(session_id=session):
        assert act() is value
        result = act.tool.invoke()
    assert result.value is value
    assert result.status == status


class Foreign(AnyProvider):
    """Gives spans of which one method raises."""

    def __init__(self, method: str) -> None:
        members = {"is_recording": lambda self: True, method: raises(ValueError)}
        self._span = type("Odd", (NonRecordingSpan,), members)

    def get_tracer(self, *args: Any, **kwargs: Any) -> Any:
        odd = self._span

        class Making(Tracer):
            def start_span(self, *args: Any, **kwargs: Any) -> Any:
                return odd(INVALID_SPAN_CONTEXT)

            def start_as_current_span(self, *args: Any, **kwargs: Any) -> Any:
                raise NotImplementedError

        return Making()


@pytest.mark.parametrize("capture", ["NO_CONTENT", "SPAN_AND_EVENT"])
@pytest.mark.parametrize(
    "method",
    [
        "is_recording",
        "set_attribute",
        "set_attributes",
        "add_event",
        "end",
        "set_status",
        "get_span_context",
    ],
)
def test_a_span_whose_methods_raise_keeps_no_tool_from_running(method: str, capture: Any) -> None:
    governor = allowing(tracer_provider=Foreign(method), capture=capture)
    act = governor.govern(lambda: "v", name="act")
    assert act() == "v"
    assert act.tool.invoke().status == "succeeded"


@pytest.mark.parametrize("error", STOPS)
@pytest.mark.parametrize("where", ["subscriber", "on_start", "on_end"])
def test_whoever_watches_calls_keeps_none_from_running(
    where: str, error: type[BaseException]
) -> None:
    settings: dict[str, Any] = {"subscribers": (raises(error),)}
    if where != "subscriber":
        provider = TracerProvider()
        provider.add_span_processor(type("Odd", (SpanProcessor,), {where: raises(error)})())
        settings = {"tracer_provider": provider}
    governor = allowing(**settings)
    assert governor.govern(lambda: "v", name="act")() == "v"
    assert governor.telemetry.losses.total


def test_somebody_at_the_keyboard_may_stop_the_program() -> None:
    governor = allowing(subscribers=(raises(KeyboardInterrupt),))
    with pytest.raises(KeyboardInterrupt):
        governor.govern(lambda: "v", name="act")()


class NoObservables(MeterProvider):
    """Makes meters that can't have observable counters."""

    def get_meter(self, *args: Any, **kwargs: Any) -> Any:
        meter = super().get_meter(*args, **kwargs)

        def refuse(*_: Any, **__: Any) -> Any:
            raise RuntimeError("no observable counters here")

        meter.create_observable_counter = refuse  # type: ignore[method-assign]
        return meter


def test_a_meter_that_refuses_an_instrument_stops_no_governor() -> None:
    settings = TelemetrySettings(meter_provider=NoObservables())
    governor = Governor(policy=StaticEngine("allow"), telemetry=settings)
    assert governor.govern(lambda: 7, name="seven")() == 7


class Broken:
    """A provider of anything that gives nothing."""

    def __getattr__(self, name: str) -> Any:
        return raises(RuntimeError)


def test_a_provider_that_raises_costs_its_telemetry_alone() -> None:
    broken: Any = Broken()
    governor = allowing(
        tracer_provider=broken, meter_provider=broken, logger_provider=broken, events="both"
    )
    assert governor.govern(lambda: 7, name="seven")() == 7
    assert {where for where, _ in governor.telemetry.losses.by_kind()} >= {
        "get_tracer",
        "get_meter",
        "get_logger",
    }
