"""What shadow mode would have asked about and denied, by tool and rule, with what to
declare or set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from rich.table import Table
from rich.text import Text

from agenttool_otel.cli.plain_text import clean
from agenttool_otel.cli.rendering import style_of
from agenttool_otel.cli.spans import SpanView
from agenttool_otel.names import Attr, Behavior, GenAI
from agenttool_otel.names.advice import advice

_WOULD_HAVE_BEEN: Final[dict[str, str]] = {
    Behavior.ASK: "asked about",
    Behavior.DENY: "denied",
}


def render_would_have(spans: Sequence[SpanView]) -> Table:
    """Count what a shadow decision would have stopped, the most frequent first."""
    calls = [span for span in spans if span.get(Attr.PERMISSION_SHADOW_BEHAVIOR)]
    stopped = Counter(_stopped(calls))
    table = Table(
        title=f"Of {len(calls)} calls decided in shadow, {stopped.total()} would not just have run",
        title_justify="left",
        header_style="bold",
    )
    table.add_column("tool")
    table.add_column("would have been")
    table.add_column("calls", justify="right")
    table.add_column("rule", overflow="fold")
    table.add_column("declare or set", overflow="fold")
    for (tool, rule, behavior), number in stopped.most_common():
        table.add_row(
            Text(clean(tool)),
            Text(
                clean(_WOULD_HAVE_BEEN.get(behavior, behavior)),
                style=style_of(behavior),
            ),
            str(number),
            Text(clean(rule)),
            Text(advice(rule)),
        )
    return table


def _stopped(calls: Iterable[SpanView]) -> Iterable[tuple[str, str, str]]:
    """Yield tool, rule and behavior of each call that the shadow policy would not have allowed."""
    for span in calls:
        behavior = str(span.get(Attr.PERMISSION_SHADOW_BEHAVIOR))
        if behavior == Behavior.ALLOW:
            continue
        tool = str(span.get(GenAI.TOOL_NAME) or span.name)
        rule = str(span.get(Attr.PERMISSION_SHADOW_RULE) or "")
        yield tool, rule, behavior
