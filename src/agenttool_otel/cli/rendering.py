"""Traces of governed tool calls as a Rich tree, a summary table, and the story of one decision in
plain sentences.

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

from agenttool_otel.cli.spans import SpanView
from agenttool_otel.cli.story import clean, duration_text, size_text, waited
from agenttool_otel.names import Attr, Behavior, GenAI, Outcome, RedactionState

_PIPE_WIDTH_CHARS: Final = 200
BEHAVIOR_STYLE: Final = {
    Behavior.ALLOW.value: ("✓", "green"),
    Behavior.ASK.value: ("?", "yellow"),
    Behavior.DENY.value: ("✗", "bold red"),
}


def out() -> Console:
    """Return a console for standard output; without a terminal it is as wide as ``COLUMNS``, or
    wide enough.
    """
    console = Console()
    if not console.is_terminal and not os.environ.get("COLUMNS"):
        return Console(width=_PIPE_WIDTH_CHARS)
    return console


def render_tree(spans: Sequence[SpanView], *, events: bool = False) -> Tree:
    """Draw the spans of one or more traces as trees."""
    known = {span.span_id for span in spans}
    children: dict[str | None, list[SpanView]] = {}
    for span in sorted(spans, key=lambda item: (item.start_ns, item.span_id)):
        parent = (
            span.parent_id if span.parent_id in known and span.parent_id != span.span_id else None
        )
        children.setdefault(parent, []).append(span)

    traces: dict[str, list[SpanView]] = {}
    for span in children.get(None, []):
        traces.setdefault(span.trace_id, []).append(span)
    root = Tree(
        Text(f"{len(traces)} trace{'' if len(traces) == 1 else 's'}", style="dim"), hide_root=True
    )
    drawn: set[str] = set()
    for trace_id, tops in traces.items():
        branch = root.add(_trace_title(trace_id, tops[0]))
        _grow(branch, tops, children, events, drawn)
    # parents that point at each other are in no tree yet: show them rather than lose them
    for span in spans:
        if span.span_id not in drawn:
            _grow(root.add(_trace_title(span.trace_id, span)), [span], children, events, drawn)
    return root


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
        stack.extend((node, child) for child in reversed(children.get(span.span_id, [])))


def _trace_title(trace_id: str, span: SpanView) -> Text:
    title = Text().append("trace ", style="bold").append(clean(trace_id), style="bold cyan")
    if service := span.resource.get("service.name"):
        title.append(f"  {clean(service)}", style="dim")
    started = datetime.fromtimestamp(span.start_ns / 1e9, tz=UTC)
    return title.append(f"  {started:%Y-%m-%d %H:%M:%S} UTC", style="dim")


def render_span(span: SpanView, *, events: bool = False) -> Group:
    """Draw one span: a headline and, for a tool call, what was decided, waited for,
    redacted and kept.
    """
    lines = [_headline(span)]
    lines.extend(Text("  ").append_text(line) for line in _details(span))
    if events:
        for event in span.events:
            offset = duration_text(max(0, event.time_ns - span.start_ns) / 1e9)
            line = (
                Text().append(f"  +{offset} ", style="dim").append(clean(event.name), style="cyan")
            )
            for key, value in sorted(event.attributes.items()):
                line.append(f" {clean(key)}=", style="dim").append(clean(value, limit=80))
            lines.append(line)
    return Group(*lines)


def _headline(span: SpanView) -> Text:
    behavior = str(span.get(Attr.PERMISSION_BEHAVIOR) or "")
    mark, style = BEHAVIOR_STYLE.get(behavior, ("•", "magenta" if behavior else "dim"))
    line = Text().append(f"{mark} ", style=style)
    line.append(clean(span.name, limit=120), style="bold" if span.is_tool_call else "")
    if behavior:
        line.append(f"  {clean(behavior)}", style=style)
    if outcome := span.get(Attr.PERMISSION_OUTCOME):
        effect = {
            Outcome.EXECUTED: "ran",
            Outcome.NOT_EXECUTED: "did not run",
            Outcome.PENDING: "waits",
        }
        line.append(f" · {clean(effect.get(outcome, outcome))}")
    if rule := span.get(Attr.PERMISSION_RULE):
        line.append("  rule ", style="dim").append(clean(rule), style="cyan")
    if span.get(Attr.POLICY_CACHED) is True:
        line.append(" (cached)", style="dim")
    line.append(
        "  open" if span.seconds is None else f"  {duration_text(span.seconds)}", style="dim"
    )
    error = span.attributes.get(GenAI.ERROR_TYPE)
    if span.status == "error":
        line.append(f"  {clean(error or 'error')}", style="red")
    return line.append(f"  [{clean(span.span_id)}]", style="dim")


def _details(span: SpanView) -> Iterator[Text]:
    message = span.get(Attr.PERMISSION_REASON_MESSAGE)
    if message and span.get(Attr.PERMISSION_BEHAVIOR) != Behavior.ALLOW:
        yield Text().append("why: ", style="dim").append(clean(message, limit=200))
    if cause := span.get(Attr.PERMISSION_FAIL_CLOSED):
        yield Text().append("fail-closed: ", style="bold red").append(clean(cause))
    shadow = span.get(Attr.PERMISSION_SHADOW_BEHAVIOR)
    if shadow and shadow != span.get(Attr.PERMISSION_BEHAVIOR):
        line = (
            Text().append("shadow would say ", style="dim").append(clean(shadow), style="magenta")
        )
        rule = span.get(Attr.PERMISSION_SHADOW_RULE)
        yield line.append(f" (rule {clean(rule)})", style="dim") if rule else line
    if approval := span.get(Attr.APPROVAL_STATUS):
        line = Text().append("approval: ", style="dim").append(clean(approval), style="yellow")
        wait = waited(span)
        yield (
            line.append(f" after {duration_text(wait)}", style="dim") if wait is not None else line
        )
    state = span.get(Attr.REDACTION_STATE)
    if state and state != RedactionState.NONE:
        line = Text().append("redaction: ", style="dim").append(clean(state), style="magenta")
        count = span.get(Attr.REDACTION_COUNT)
        yield line.append(f" ×{clean(count)}", style="magenta") if count else line
    size = span.get(Attr.RESULT_SIZE_BYTES)
    if isinstance(size, int):
        line = Text().append("result: ", style="dim").append(size_text(size))
        for name in (Attr.RESULT_STATUS, Attr.RESULT_PERSISTENCE):
            if span.get(name):
                line.append(f" · {clean(span.get(name))}")
        yield line


def render_summary(spans: Sequence[SpanView]) -> Table:
    """Count the tool calls per tool: decisions, waits, redactions, bytes and the time of the
    slowest call.
    """
    table = Table(title="Tool calls", title_justify="left", header_style="bold")
    table.add_column("tool")
    for name in ("calls", "allow", "ask", "deny", "errors", "redacted", "result bytes", "slowest"):
        table.add_column(name, justify="right")
    calls = [span for span in spans if span.is_tool_call]
    per_tool: dict[str, list[SpanView]] = {}
    for span in calls:
        per_tool.setdefault(str(span.get(GenAI.TOOL_NAME) or span.name), []).append(span)
    for tool, group in sorted(per_tool.items()):
        table.add_row(Text(clean(tool)), *_figures(group))
    if len(per_tool) > 1:
        table.add_section()
        table.add_row(Text("all", style="bold"), *_figures(calls))
    return table


def _figures(group: Sequence[SpanView]) -> list[Text]:
    behaviors = Counter(str(span.get(Attr.PERMISSION_BEHAVIOR)) for span in group)
    redacted = sum(_number(span.get(Attr.REDACTION_COUNT)) for span in group)
    size = sum(_number(span.get(Attr.RESULT_SIZE_BYTES)) for span in group)
    slowest = max((span.seconds or 0.0 for span in group), default=0.0)
    # a denial has status ERROR too; counted here is what went wrong otherwise
    errors = sum(
        span.status == "error" and span.get(Attr.PERMISSION_BEHAVIOR) != Behavior.DENY
        for span in group
    )
    cells = [Text(str(len(group)))]
    for behavior in (Behavior.ALLOW, Behavior.ASK, Behavior.DENY):
        count = behaviors[behavior.value]
        cells.append(Text(str(count), style=BEHAVIOR_STYLE[behavior.value][1] if count else "dim"))
    cells.extend(Text(str(number), style="" if number else "dim") for number in (errors, redacted))
    cells.extend((Text(size_text(size)), Text(duration_text(slowest))))
    return cells


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
