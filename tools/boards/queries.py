"""PromQL, TraceQL and LogQL for the panels, built from the registry so that a query can't name what is
never exported.

Series names are those of Prometheus's default translation: dots become underscores, the unit and
``_total`` are appended. Service, agent and tool are filtered by the template variables wherever the
metric carries the label.
"""

from __future__ import annotations

import semconv
from agenttool_otel.names import Attr, GenAI, Label, Metric

REGISTRY = semconv.load()

SDK_LOSSES = {
    "otel_sdk_exporter_span_exported_total": "error_type",
    "otel_sdk_processor_span_processed_total": "error_type",
    "otel_sdk_exporter_operation_duration_seconds_count": "http_response_status_code",
}
"""The SDK's own series of spans and of batches, and the label that says why they were lost."""

_UNITS = {"s": "_seconds", "By": "_bytes"}
_VARIABLES = {GenAI.AGENT_NAME: "$agent", GenAI.TOOL_NAME: "$tool"}


def label(attribute: str) -> str:
    """The label that an attribute becomes."""
    return attribute.replace(".", "_")


def series(metric: str, suffix: str = "") -> str:
    """The series of a metric; ``suffix`` is bucket, count or sum for a histogram."""
    signal = REGISTRY.metrics[metric]
    name = label(metric) + _UNITS.get(signal.unit, "")
    if signal.instrument == "counter":
        return f"{name}_total"
    if signal.instrument == "histogram":
        if suffix not in {"bucket", "count", "sum"}:
            raise ValueError(f"{metric} is a histogram: say bucket, count or sum")
        return f"{name}_{suffix}"
    return name


def select(metric: str, suffix: str = "", **matchers: str) -> str:
    """A series with the board's filters.

    Args:
        metric: metric name.
        suffix: bucket, count or sum for a histogram.
        matchers: further matchers: label (already translated) to operator and quoted value, such as
          ``='deny'``.
    """
    known = REGISTRY.metrics[metric].attributes
    for name in matchers:
        if name not in {label(attribute) for attribute in known}:
            raise ValueError(f"{metric} has no label {name}")
    parts = ['job=~"$job"', 'instance=~"$instance"']
    parts += [
        f'{label(name)}=~"{variable}"' for name, variable in _VARIABLES.items() if name in known
    ]
    parts += [f"{name}{matcher}" for name, matcher in matchers.items()]
    return f"{series(metric, suffix)}{{{','.join(parts)}}}"


def _by(labels: tuple[str, ...]) -> str:
    return f" by ({', '.join(label(name) for name in labels)})" if labels else ""


def rate(metric: str, *labels: str, suffix: str = "", **matchers: str) -> str:
    """Events per second, summed, by labels."""
    return f"sum{_by(labels)} (rate({select(metric, suffix, **matchers)}[$__rate_interval]))"


def total(metric: str, *labels: str, suffix: str = "", **matchers: str) -> str:
    """Events in the board's time range, summed, by labels."""
    return f"sum{_by(labels)} (increase({select(metric, suffix, **matchers)}[$__range]))"


def _sdk_loss(name: str, window: str) -> str:
    return f'{name}{{job=~"$job",instance=~"$instance",{SDK_LOSSES[name]}!=""}}[{window}]'


def sdk_loss_rates() -> list[tuple[str, str]]:
    """Spans, or refused batches, per second that the SDK lost: a query and its legend for each of
    its series.
    """
    return [
        (f"sum by ({reason}) (rate({_sdk_loss(name, '$__rate_interval')}))", f"{{{{{reason}}}}}")
        for name, reason in SDK_LOSSES.items()
    ]


def lost_total() -> str:
    """Telemetry that was lost in the board's time range, by this package or by the SDK."""
    selected = [
        select(Metric.TELEMETRY_DROPPED) + "[$__range]",
        *(_sdk_loss(name, "$__range") for name in SDK_LOSSES),
    ]
    return f"sum ({' or '.join(f'increase({item})' for item in selected)})"


def now(metric: str, *labels: str, **matchers: str) -> str:
    """The present value, summed, by labels."""
    return f"sum{_by(labels)} ({select(metric, **matchers)})"


def level(metric: str) -> str:
    """The present value of a level that is read from approval stores."""
    lasting, memory = _stores(metric)
    return f"sum (max by (job) ({lasting}) or sum by (job) ({memory}))"


def oldest(metric: str) -> str:
    """The largest of a level that is read from approval stores."""
    return f"max ({select(metric)})"


def answers(metric: str, *labels: str) -> str:
    """Events per second that are counted in approval stores, by labels of the metric."""
    lasting, memory = (f"rate({item}[$__rate_interval])" for item in _stores(metric))
    own = (*REGISTRY.metrics[metric].attributes,)
    kept = ", ".join(("job", *(label(name) for name in own if name != Label.APPROVAL_STORE)))
    return f"sum{_by(labels)} (max by ({kept}) ({lasting}) or sum by ({kept}) ({memory}))"


def _stores(metric: str) -> tuple[str, str]:
    """The series of lasting stores, which each process reports whole, and those of stores in memory,
    which add up.
    """
    kind = label(Label.APPROVAL_STORE)
    return select(metric, **{kind: "='lasting'"}), select(metric, **{kind: "='memory'"})


def quantile(metric: str, q: float, *labels: str, **matchers: str) -> str:
    """A quantile of a histogram, by labels."""
    return f"histogram_quantile({q}, {rate(metric, 'le', *labels, suffix='bucket', **matchers)})"


def top(count: int, query: str) -> str:
    """The largest of a query's series."""
    return f"topk({count}, {query})"


COLUMNS = (
    GenAI.TOOL_NAME,
    Attr.PERMISSION_BEHAVIOR,
    Attr.PERMISSION_OUTCOME,
    Attr.PERMISSION_RULE,
    Attr.PERMISSION_SOURCE,
    GenAI.ERROR_TYPE,
    Attr.RESULT_SIZE_BYTES,
    Attr.REDACTION_COUNT,
    Attr.INVOCATION_ID,
    Attr.SESSION_ID,
)


def calls(*conditions: str, columns: tuple[str, ...] = COLUMNS) -> str:
    """TraceQL for tool calls that meet all conditions, with the columns that a reader needs.

    Args:
        conditions: conditions on span attributes, made by ``where``.
        columns: attributes to show.
    """
    filters = " && ".join((where(GenAI.OPERATION_NAME, "=", "execute_tool"), *conditions))
    for name in columns:
        _known(name)
    return f"{{ {filters} }} | select({', '.join(f'span.{name}' for name in columns)})"


def where(attribute: str, operator: str, value: str | int) -> str:
    """One TraceQL condition on a registered span attribute."""
    _known(attribute)
    return (
        f"span.{attribute} {operator} {value}"
        if isinstance(value, int)
        else f'span.{attribute} {operator} "{value}"'
    )


def tags(**values: str) -> str:
    """Tags of a search in Jaeger, in logfmt.

    Args:
        values: the value of each span attribute, by the attribute's constant in ``Attr``.
    """
    named = {getattr(Attr, name): value for name, value in values.items()}
    for name in named:
        _known(name)
    return " ".join(f'{name}="{value}"' for name, value in named.items())


def entries(event: str = "", *conditions: str) -> str:
    """LogQL for the log records of events that meet all conditions.

    Loki has a record's attributes as structured metadata, with underscores for dots, and the name of
    an event as ``event_name``.

    Args:
        event: name of the event; all of this package's where not given.
        conditions: conditions on the event's attributes, made by ``logged``.
    """
    named = f'event_name="{_event(event)}"' if event else 'event_name=~"tool[.].+"'
    return " | ".join(('{service_name=~"$service"}', named, *conditions))


def logged(event: str, attribute: str, operator: str, value: str) -> str:
    """One LogQL condition on an attribute of an event."""
    if attribute not in REGISTRY.events[_event(event)].attributes:
        raise ValueError(f"{event} has no attribute {attribute}")
    return f'{label(attribute)}{operator}"{value}"'


def counted(query: str, by: str, window: str = "$__auto") -> str:
    """Log records of a query in a window, summed by an attribute or ``event_name``."""
    return f"sum by ({label(by)}) (count_over_time({query} [{window}]))"


def _event(name: str) -> str:
    if name not in REGISTRY.events:
        raise ValueError(f"there is no event {name}")
    return name


def _known(attribute: str) -> None:
    if not any(attribute in span.attributes for span in REGISTRY.spans.values()):
        raise ValueError(f"no span has the attribute {attribute}")


__all__ = [
    "Metric",
    "answers",
    "calls",
    "counted",
    "entries",
    "label",
    "level",
    "logged",
    "now",
    "oldest",
    "quantile",
    "rate",
    "select",
    "series",
    "tags",
    "top",
    "total",
    "where",
]
