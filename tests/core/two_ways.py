"""One call by both ways: straight where it may be, and by the pipeline alone; all that can be seen of it."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from unittest.mock import patch

from opentelemetry import trace
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider, ObservableCounter
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON

from agenttool_otel import Governor, TelemetrySettings, agent_context
from agenttool_otel.call.straight import way
from agenttool_otel.call.straight.call import StraightCall
from agenttool_otel.context.context import current_context
from agenttool_otel.values.canonical import DIGEST_KEY

CALLS: Final = 4
"""How often each call is made: the first decides, from the third on an ordinary one goes straight."""

_ID: Final = re.compile(r"\b([a-z]+)_[0-9a-f]{32}\b")
_TIMES: Final = re.compile(r"(_s|duration|seconds|_ms)$")
_DELTA: Final = dict.fromkeys((Counter, Histogram, ObservableCounter), AggregationTemporality.DELTA)


class World:
    """A Governor whose calls go one way, and what it recorded.

    Args:
        straight: whether calls may go straight.
        sampled: whether spans are sampled.
        recorded: whether decisions are recorded.
        telemetry: fields of TelemetrySettings.
        options: arguments of Governor.
    """

    def __init__(
        self,
        *,
        straight: bool,
        sampled: bool = True,
        recorded: bool = False,
        telemetry: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.straight = straight
        self._spans = InMemorySpanExporter()
        self._reader = InMemoryMetricReader(preferred_temporality=_DELTA)
        self.tracers = TracerProvider(sampler=ALWAYS_ON if sampled else ALWAYS_OFF)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self.meters = MeterProvider(metric_readers=[self._reader])
        self._lines: list[str] = []
        settings = TelemetrySettings(
            tracer_provider=self.tracers,
            meter_provider=self.meters,
            decision_subscribers=(self._lines.append,) if recorded else (),
            **(telemetry or {}),
        )
        with patch.dict(os.environ, {DIGEST_KEY: "a key of the tests"}):
            self.governor = Governor(telemetry=settings, **options)
        self.notes: list[Any] = []  # what a body saw
        self.went_straight = 0
        self.runner = asyncio.Runner()

    @contextmanager
    def only_way(self) -> Iterator[None]:
        """Let calls of the block go this world's way, and count those that go straight."""
        was, begin = way._open, StraightCall.begin

        def counted(call: StraightCall) -> None:
            self.went_straight += 1
            begin(call)

        way._open, StraightCall.begin = self.straight, counted  # type: ignore[method-assign]
        try:
            yield
        finally:
            way._open, StraightCall.begin = was, begin  # type: ignore[method-assign]

    def observe(
        self, make: Callable[[World], Callable[[], Any]], context: Mapping[str, Any] | None
    ) -> list[Any]:
        """Make a call several times and return all that can be seen of each.

        Args:
            make: makes the tool, and returns what calls it.
            context: arguments of ``agent_context``; ``None`` for no context.
        """
        seen: list[Any] = []
        with self.only_way(), ExitStack() as stack:
            if context is not None:
                stack.enter_context(agent_context(**context))
            call = make(self)
            for _ in range(CALLS):
                seen.append(self._observe_one(call))
        return seen

    def _observe_one(self, call: Callable[[], Any]) -> dict[str, Any]:
        self._spans.clear()
        self._lines.clear()
        self.notes.clear()
        self.governor.pipeline._ended.clear()
        self.governor.telemetry.losses._counts.clear()
        looked_up = self._cache()
        before = trace.get_current_span()
        outcome = _outcome(call)
        spans = self._spans.get_finished_spans()
        session = self.governor.sessions.of(self.governor.effective(current_context()))
        ledger = session.ledger
        return {
            "outcome": outcome,
            "spans": [_shown(span, spans) for span in spans],
            "metrics": self._metrics(spans),
            "decisions": self._decisions(spans),
            "counters": session.counters(""),
            "tools": dict(session._tools),
            "history": [entry.outcome for entry in session.history],
            "forgot": session._forgot,
            "ledger": None if ledger is None else ledger.has_evidence,
            "cache": [
                after - earlier for after, earlier in zip(self._cache(), looked_up, strict=True)
            ],
            "running": list(self.governor.pipeline.running),
            "ended": [tool_id for _, tool_id in self.governor.pipeline._ended],
            "lost": self.governor.telemetry.losses.by_kind(),
            "notes": [masked(note) for note in self.notes],
            "span restored": trace.get_current_span() is before,
        }

    def _cache(self) -> tuple[int, ...]:
        cache = self.governor.decider._cache
        return () if cache is None else cache.stats()

    def _metrics(self, spans: tuple[ReadableSpan, ...]) -> list[Any]:
        data = self._reader.get_metrics_data()
        found = []
        for resource in data.resource_metrics if data is not None else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    for point in metric.data.data_points:
                        found.append(_point(metric, point, spans))
        return sorted(found, key=repr)

    def _decisions(self, spans: tuple[ReadableSpan, ...]) -> list[Any]:
        recorder = self.governor.pipeline.decisions
        for sink in recorder.sinks if recorder is not None else ():
            assert sink.flush()
        known = {f"{span.context.span_id:016x}" for span in spans}
        found = []
        for line in self._lines:
            record = json.loads(line)["record"]
            record.pop("trace_id", None)
            record["span"] = record.pop("span_id", "") in known
            assert record["input"].pop("time")
            found.append(masked(record))
        return found

    def close(self) -> None:
        """Close the Governor and the providers."""
        self.runner.close()
        self.governor.close()
        self.tracers.shutdown()
        self.meters.shutdown()


class Worlds:
    """Worlds of both ways, each made when it is first needed.

    Args:
        settings: what ``World`` is made with, by name.
    """

    def __init__(self, settings: Mapping[str, Mapping[str, Any]]) -> None:
        self._settings = settings
        self._made: dict[tuple[str, bool], World] = {}

    def of(self, settings: str, *, straight: bool) -> World:
        """Return the world of some settings.

        Args:
            settings: their name.
            straight: whether its calls may go straight.
        """
        key = settings, straight
        if key not in self._made:
            self._made[key] = World(straight=straight, **self._settings[settings])
        return self._made[key]

    def compare(self, shape: Any, context: Mapping[str, Any] | None) -> tuple[list[str], int]:
        """Return in what a shape of a call differs by the two ways, and how many of its calls went
        straight.

        Args:
            shape: has ``settings``, and ``make`` as ``World.observe`` takes it.
            context: arguments of ``agent_context``; ``None`` for no context.
        """
        by_straight = self.of(shape.settings, straight=True)
        before = by_straight.went_straight
        seen = by_straight.observe(shape.make, context)
        count = by_straight.went_straight - before
        by_pipeline = self.of(shape.settings, straight=False).observe(shape.make, context)
        return differences(seen, by_pipeline), count

    def close(self) -> None:
        """Close all of them."""
        for world in self._made.values():
            world.close()


def _outcome(call: Callable[[], Any]) -> Any:
    try:
        value = call()
    except BaseException as error:
        return "raised", _error(error)
    return "returned", type(value).__name__, masked(value)


def _error(error: BaseException | None) -> Any:
    if error is None:
        return None
    return (
        type(error).__name__,
        masked(str(error)),
        _error(error.__context__),
        _error(error.__cause__),
    )


def _shown(span: ReadableSpan, spans: tuple[ReadableSpan, ...]) -> dict[str, Any]:
    names = {each.context.span_id: each.name for each in spans if each.context is not None}
    parent = span.parent
    times = [span.start_time, *(event.timestamp for event in span.events), span.end_time]
    return {
        "name": span.name,
        "kind": span.kind,
        "parent": None if parent is None else names.get(parent.span_id, "outside"),
        "attributes": _attributes(span.attributes),
        "events": [(event.name, _attributes(event.attributes)) for event in span.events],
        "links": [_attributes(link.attributes) for link in span.links],
        "status": (span.status.status_code, span.status.description),
        "scope": str(span.instrumentation_scope),
        "in order": times == sorted(times, key=int),
    }


def _attributes(attributes: Any) -> dict[str, Any]:
    shown = {}
    for name, value in sorted((attributes or {}).items()):
        if name == "exception.stacktrace":
            continue  # of an outer span's own: it names our frames
        is_time = isinstance(value, float) and _TIMES.search(name)
        shown[name] = ("a time", value >= 0) if is_time else masked(value)
    return shown


def _point(metric: Any, point: Any, spans: tuple[ReadableSpan, ...]) -> Any:
    ids = {each.context.span_id: each.name for each in spans if each.context is not None}
    count = getattr(point, "count", None)
    total = getattr(point, "sum", getattr(point, "value", None))
    # one of several is chosen at random
    exemplars = {
        ids.get(exemplar.span_id, "outside") for exemplar in point.exemplars if exemplar.span_id
    }
    if metric.unit == "s":
        total = "a time"
    return metric.name, sorted(point.attributes.items()), count, total, exemplars


def masked(value: Any) -> Any:
    """Return a value with the ids in its texts masked."""
    if isinstance(value, str):
        return _ID.sub(r"\1_", value)
    if isinstance(value, (list, tuple)):
        return [masked(item) for item in value]
    if isinstance(value, dict):
        return {masked(name): masked(item) for name, item in value.items()}
    if isinstance(value, int) and value.bit_length() > 64:
        return hex(value)  # a text of more than 4,300 digits is refused
    return repr(value) if type(value).__module__ == "builtins" else type(value).__name__


def differences(one: Any, other: Any, place: str = "") -> list[str]:
    """Return where two observations differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        found = []
        for name in {**one, **other}:
            inner = f"{place}/{name}"
            if name not in one or name not in other:
                found.append(f"{inner}: only in {'one' if name in one else 'the other'}")
            else:
                found += differences(one[name], other[name], inner)
        return found
    if (
        isinstance(one, (list, tuple))
        and isinstance(other, (list, tuple))
        and len(one) == len(other)
    ):
        return [
            each
            for number, (a, b) in enumerate(zip(one, other, strict=True))
            for each in differences(a, b, f"{place}/{number}")
        ]
    return [] if one == other else [f"{place}: {one!r} != {other!r}"]
