"""Traces of governed tool calls as a Rich tree and as a summary table.

Text from a trace is foreign: control and direction characters are shown, never sent to the
terminal, and nothing is read as Rich markup.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from agenttool_otel.cli.plain_text import clean, counted, duration_text, size_text
from agenttool_otel.cli.spans import SpanView
from agenttool_otel.names import Attr, Behavior, GenAI, Outcome, RedactionState

_PIPE_WIDTH_CHARS: Final = 200
_MARKS: Final[dict[str, str]] = {
    Behavior.ALLOW: "✓",
    Behavior.ASK: "?",
    Behavior.DENY: "✗",
}
_STYLES: Final[dict[str, str]] = {
    Behavior.ALLOW: "green",
    Behavior.ASK: "yellow",
    Behavior.DENY: "bold red",
}
_OUTCOMES: Final[dict[str, str]] = {
    Outcome.EXECUTED: "ran",
    Outcome.NOT_EXECUTED: "did not run",
    Outcome.PENDING: "waits",
}
_FIGURES: Final = ("calls", "allow", "ask", "deny", "errors", "redacted", "result bytes", "slowest")


def style_of(behavior: str) -> str:
    """Return the Rich style of a behavior; empty for a word that is none of the three."""
    return _STYLES.get(behavior, "")


def out() -> Console:
    """Return a console for standard output; without a terminal it is as wide as ``COLUMNS``, or
    wide enough.
    """
    console = Console()
    # agenttool trace x.json | less: Rich would fold the lines at 80 columns
    if not console.is_terminal and not os.environ.get("COLUMNS"):
        return Console(width=_PIPE_WIDTH_CHARS)
    return console


def render_tree(spans: Sequence[SpanView], *, events: bool = False) -> Tree:
    """Draw the spans of one or more traces as trees.

    Args:
        spans: The spans, in any order.
        events: Whether each span's events are listed below it.
    """
    children = _by_parent(spans)
    traces: dict[str, list[SpanView]] = {}
    for span in children.get(None, []):
        traces.setdefault(span.trace_id, []).append(span)
    title = Text(counted(len(traces), "trace"), style="dim")
    root = Tree(title, hide_root=True)
    drawn: set[str] = set()
    for trace_id, tops in traces.items():
        branch = root.add(_trace_title(trace_id, tops[0]))
        _grow(branch, tops, children, events, drawn)
    # parents that point at each other are in no tree yet: show them rather than lose them
    for span in spans:
        if span.span_id not in drawn:
            branch = root.add(_trace_title(span.trace_id, span))
            _grow(branch, [span], children, events, drawn)
    return root


def _by_parent(spans: Sequence[SpanView]) -> dict[str | None, list[SpanView]]:
    """The spans by the id of their parent, oldest first; ``None`` for those without one here."""
    known = {span.span_id for span in spans}
    children: dict[str | None, list[SpanView]] = {}
    for span in sorted(spans, key=lambda item: (item.start_ns, item.span_id)):
        parent = span.parent_id
        # half a trace from a backend's search, or a span that names itself
        if parent not in known or parent == span.span_id:
            parent = None
        children.setdefault(parent, []).append(span)
    return children


def _grow(
    branch: Tree,
    tops: Sequence[SpanView],
    children: dict[str | None, list[SpanView]],
    events: bool,
    drawn: set[str],
) -> None:
    """Add spans below a branch, without recursion: a trace may be deeper than Python's stack."""
    stack = [(branch, span) for span in reversed(tops)]
    while stack:
        parent, span = stack.pop()
        if span.span_id in drawn:
            continue
        drawn.add(span.span_id)
        node = parent.add(render_span(span, events=events))
        for child in reversed(children.get(span.span_id, [])):
            stack.append((node, child))


def _trace_title(trace_id: str, span: SpanView) -> Text:
    title = Text.assemble(("trace ", "bold"), (clean(trace_id), "bold cyan"))
    if service := span.resource.get("service.name"):
        title.append(f"  {clean(service)}", style="dim")
    started = datetime.fromtimestamp(span.start_ns / 1e9, tz=UTC)
    title.append(f"  {started:%Y-%m-%d %H:%M:%S} UTC", style="dim")
    return title


def render_span(span: SpanView, *, events: bool = False) -> Group:
    """Draw one span: a headline and, for a tool call, what was decided, waited for,
    redacted and kept.

    Args:
        span: The span.
        events: Whether its events are listed, with their time since the span's start.
    """
    lines = [_headline(span)]
    for detail in _details(span):
        lines.append(Text("  ").append_text(detail))
    if events:
        lines.extend(_events(span))
    return Group(*lines)


def _events(span: SpanView) -> Iterator[Text]:
    for event in span.events:
        seconds = max(0, event.time_ns - span.start_ns) / 1e9
        line = Text.assemble(
            (f"  +{duration_text(seconds)} ", "dim"),
            (clean(event.name), "cyan"),
        )
        for key, value in sorted(event.attributes.items()):
            line.append(f" {clean(key)}=", style="dim")
            line.append(clean(value, limit=80))
        yield line


def _headline(span: SpanView) -> Text:
    behavior = span.text(Attr.PERMISSION_BEHAVIOR)
    # a behavior that a later version of the standard has is shown, in a colour of its own
    style = _STYLES.get(behavior, "magenta" if behavior else "dim")
    mark = _MARKS.get(behavior, "•")
    line = Text(f"{mark} ", style=style)
    name = clean(span.name, limit=120)
    line.append(name, style="bold" if span.is_tool_call else "")
    if behavior:
        line.append(f"  {clean(behavior)}", style=style)
    outcome = span.text(Attr.PERMISSION_OUTCOME)
    if outcome:
        effect = _OUTCOMES.get(outcome, outcome)
        line.append(f" · {clean(effect)}")
    rule = span.text(Attr.PERMISSION_RULE)
    if rule:
        line.append("  rule ", style="dim")
        line.append(clean(rule), style="cyan")
    if span.get(Attr.POLICY_CACHED) is True:
        line.append(" (cached)", style="dim")
    duration = "open"
    if span.seconds is not None:
        duration = duration_text(span.seconds)
    line.append(f"  {duration}", style="dim")
    if span.status == "error":
        error = span.attributes.get(GenAI.ERROR_TYPE)
        line.append(f"  {clean(error or 'error')}", style="red")
    line.append(f"  [{clean(span.span_id)}]", style="dim")
    return line


def _details(span: SpanView) -> Iterator[Text]:
    for draw in (
        _reason,
        _fail_closed,
        _shadow,
        _approval,
        _redaction,
        _result,
    ):
        line = draw(span)
        if line is not None:
            yield line


def _reason(span: SpanView) -> Text | None:
    message = span.text(Attr.PERMISSION_REASON_MESSAGE)
    # an allow gives its reason only in the story: a line for each call would hide the others
    if not message or span.get(Attr.PERMISSION_BEHAVIOR) == Behavior.ALLOW:
        return None
    return Text.assemble(
        ("why: ", "dim"),
        clean(message, limit=200),
    )


def _fail_closed(span: SpanView) -> Text | None:
    cause = span.text(Attr.PERMISSION_FAIL_CLOSED)
    if not cause:
        return None
    return Text.assemble(
        ("fail-closed: ", "bold red"),
        clean(cause),
    )


def _shadow(span: SpanView) -> Text | None:
    behavior = span.text(Attr.PERMISSION_SHADOW_BEHAVIOR)
    if not behavior or behavior == span.text(Attr.PERMISSION_BEHAVIOR):
        return None
    line = Text.assemble(
        ("shadow would decide ", "dim"),
        (clean(behavior), "magenta"),
    )
    rule = span.text(Attr.PERMISSION_SHADOW_RULE)
    if rule:
        line.append(f" (rule {clean(rule)})", style="dim")
    return line


def _approval(span: SpanView) -> Text | None:
    status = span.text(Attr.APPROVAL_STATUS)
    if not status:
        return None
    line = Text.assemble(
        ("approval: ", "dim"),
        (clean(status), "yellow"),
    )
    wait = span.approval_wait
    if wait is not None:
        line.append(f" after {duration_text(wait)}", style="dim")
    return line


def _redaction(span: SpanView) -> Text | None:
    state = span.text(Attr.REDACTION_STATE)
    if not state or state == RedactionState.NONE:
        return None
    line = Text.assemble(
        ("redaction: ", "dim"),
        (clean(state), "magenta"),
    )
    count = span.text(Attr.REDACTION_COUNT)
    if count:
        line.append(f" ×{clean(count)}", style="magenta")
    return line


def _result(span: SpanView) -> Text | None:
    size = span.get(Attr.RESULT_SIZE_BYTES)
    if not isinstance(size, int):
        return None
    line = Text.assemble(
        ("result: ", "dim"),
        size_text(size),
    )
    for name in (Attr.RESULT_STATUS, Attr.RESULT_PERSISTENCE):
        value = span.text(name)
        if value:
            line.append(f" · {clean(value)}")
    return line


def render_summary(spans: Sequence[SpanView]) -> Table:
    """Count the tool calls per tool: decisions, waits, redactions, bytes and the time of the
    slowest call.
    """
    table = Table(title="Tool calls", title_justify="left", header_style="bold")
    table.add_column("tool")
    for name in _FIGURES:
        table.add_column(name, justify="right")
    calls = [span for span in spans if span.is_tool_call]
    per_tool: dict[str, list[SpanView]] = {}
    for span in calls:
        tool = str(span.get(GenAI.TOOL_NAME) or span.name)
        per_tool.setdefault(tool, []).append(span)
    for tool, group in sorted(per_tool.items()):
        table.add_row(Text(clean(tool)), *_figures(group))
    if len(per_tool) > 1:
        table.add_section()
        table.add_row(Text("all", style="bold"), *_figures(calls))
    return table


def _figures(calls: Sequence[SpanView]) -> list[Text]:
    """The cells of one row, in the order of ``_FIGURES``."""
    behaviors: Counter[str] = Counter()
    errors = 0
    redacted = 0
    size = 0
    slowest = 0.0
    for span in calls:
        behavior = span.text(Attr.PERMISSION_BEHAVIOR)
        behaviors[behavior] += 1
        # a denial has status ERROR too, and has a column of its own
        if span.status == "error" and behavior != Behavior.DENY:
            errors += 1
        redacted += _number(span, Attr.REDACTION_COUNT)
        size += _number(span, Attr.RESULT_SIZE_BYTES)
        slowest = max(slowest, span.seconds or 0.0)
    return [
        Text(str(len(calls))),
        _figure(behaviors[Behavior.ALLOW], style_of(Behavior.ALLOW)),
        _figure(behaviors[Behavior.ASK], style_of(Behavior.ASK)),
        _figure(behaviors[Behavior.DENY], style_of(Behavior.DENY)),
        _figure(errors),
        _figure(redacted),
        Text(size_text(size)),
        Text(duration_text(slowest)),
    ]


def _figure(number: int, style: str = "") -> Text:
    return Text(str(number), style=style if number else "dim")


def _number(span: SpanView, name: str) -> int:
    value: Any = span.get(name)
    # True is an int for Python, and no count
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return 0
