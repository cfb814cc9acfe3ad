"""Checks exported spans, log records and metrics against the registry: every name, every type,
every enumerated value.

For tests: ``problems = check_spans(exporter.get_finished_spans())`` is empty when all is
registered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from semconv import Registry, Signal, load

if TYPE_CHECKING:
    from opentelemetry.sdk._logs import ReadableLogRecord
    from opentelemetry.sdk.metrics.export import MetricsData
    from opentelemetry.sdk.trace import ReadableSpan

__all__ = ["check_attributes", "check_logs", "check_metrics", "check_spans"]

SCOPE = "agenttool_otel"
_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "int": int,
    "double": (int, float),
    "boolean": bool,
}


def check_attributes(
    registry: Registry,
    signal: Signal,
    attributes: Mapping[str, Any],
    where: str,
    *,
    complete: bool = True,
) -> list[str]:
    """Compare attributes with what the registry lets this signal carry.

    Args:
        registry: the registry.
        signal: the span, event or metric.
        attributes: what was exported.
        where: how to name the place in a finding.
        complete: also find required attributes that are missing.

    Returns:
        Findings; empty when all is right.
    """
    found = []
    for name, value in attributes.items():
        known = registry.attributes.get(name)
        if known is None:
            found.append(f"{where}: {name} is not in the registry")
            continue
        if name not in signal.attributes:
            found.append(f"{where}: the registry does not give it {name}")
        if not _fits(known.type, value):
            found.append(
                f"{where}: {name} is {type(value).__name__}, the registry says {known.type}"
            )
        elif known.members and value not in known.members:
            found.append(
                f"{where}: {name} has the value {value!r}, which the registry does not list"
            )
    if complete:
        missing = [
            name
            for name, level in signal.attributes.items()
            if level == "required" and name not in attributes
        ]
        found.extend(f"{where}: required {name} is missing" for name in missing)
    return found


def _fits(kind: str, value: Any) -> bool:
    if kind.endswith("[]"):
        return isinstance(value, list | tuple) and all(_fits(kind[:-2], item) for item in value)
    if isinstance(value, bool) and kind != "boolean":
        return False
    return isinstance(value, _TYPES[kind])


def check_spans(
    spans: Iterable[ReadableSpan], registry: Registry | None = None, *, scope: str = SCOPE
) -> list[str]:
    """Check spans that this package made, and their events.

    Args:
        spans: exported spans; those of other instrumentation scopes are passed over.
        registry: the registry, read from ``semconv/`` by default.
        scope: name of the instrumentation scope.
    """
    registry = registry or load()
    found: list[str] = []
    for span in spans:
        if span.instrumentation_scope is None or span.instrumentation_scope.name != scope:
            continue
        where = f"span {span.name!r}"
        kind = span.name.partition(" ")[0]
        signal = registry.spans.get(f"agenttool.{kind}")
        if signal is None:
            found.append(f"{where}: the registry knows no such span")
            continue
        found += check_attributes(registry, signal, span.attributes or {}, where)
        if span.kind.name != "INTERNAL":
            found.append(f"{where}: kind {span.kind.name}, the registry says internal")
        expected = f"{kind} {(span.attributes or {}).get('gen_ai.tool.name')}"
        if span.name != expected:
            found.append(f"{where}: the name should be {expected!r}")
        for event in span.events:
            found += _check_event(
                registry, event.name, event.attributes or {}, f"{where}, event {event.name!r}"
            )
    return found


def _check_event(
    registry: Registry, name: str, attributes: Mapping[str, Any], where: str
) -> list[str]:
    signal = registry.events.get(name)
    if signal is None:
        return [f"{where}: the registry knows no such event"]
    return check_attributes(registry, signal, attributes, where)


def check_logs(
    records: Iterable[ReadableLogRecord], registry: Registry | None = None, *, scope: str = SCOPE
) -> list[str]:
    """Check log records that carry events.

    Args:
        records: exported log records; those of other instrumentation scopes are passed over.
        registry: the registry, read from ``semconv/`` by default.
        scope: name of the instrumentation scope.
    """
    registry = registry or load()
    found: list[str] = []
    for record in records:
        if record.instrumentation_scope is None or record.instrumentation_scope.name != scope:
            continue
        name = record.log_record.event_name or ""
        found += _check_event(
            registry, name, record.log_record.attributes or {}, f"log event {name!r}"
        )
    return found


def check_metrics(
    data: MetricsData | None, registry: Registry | None = None, *, scope: str = SCOPE
) -> list[str]:
    """Check metrics: name, instrument, unit and labels.

    Args:
        data: what a metric reader collected.
        registry: the registry, read from ``semconv/`` by default.
        scope: name of the instrumentation scope.
    """
    registry = registry or load()
    found: list[str] = []
    for resource in data.resource_metrics if data else ():
        for scoped in resource.scope_metrics:
            if scoped.scope.name != scope:
                continue
            for metric in scoped.metrics:
                signal = registry.metrics.get(metric.name)
                if signal is None:
                    found.append(f"metric {metric.name}: not in the registry")
                    continue
                where = f"metric {metric.name}"
                if (metric.unit or "") != signal.unit:
                    found.append(
                        f"{where}: unit {metric.unit!r}, the registry says {signal.unit!r}"
                    )
                if _instrument(metric.data) != signal.instrument:
                    found.append(
                        f"{where}: a {_instrument(metric.data)}, the registry says {signal.instrument}"
                    )
                points: Sequence[Any] = metric.data.data_points
                for point in points:
                    found += check_attributes(registry, signal, point.attributes or {}, where)
    return sorted(set(found))


def _instrument(data: Any) -> str:
    name = type(data).__name__
    if name == "Sum":
        return "counter" if data.is_monotonic else "updowncounter"
    return {"Gauge": "gauge", "Histogram": "histogram", "ExponentialHistogram": "histogram"}.get(
        name, name
    )
