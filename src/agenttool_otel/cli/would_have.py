"""What shadow mode would have asked about and denied, by tool and rule, with what to
declare or set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from rich.table import Table
from rich.text import Text

from agenttool_otel.cli.rendering import BEHAVIOR_STYLE
from agenttool_otel.cli.spans import SpanView
from agenttool_otel.cli.story import clean, words
from agenttool_otel.names import Attr, Behavior, GenAI

_RULES: Final = "agenttool.rules."


def render_would_have(spans: Sequence[SpanView]) -> Table:
    """Count what a shadow decision would have stopped, the most frequent first."""
    calls = [span for span in spans if span.get(Attr.PERMISSION_SHADOW_BEHAVIOR)]
    stopped = Counter(
        (
            str(span.get(GenAI.TOOL_NAME) or span.name),
            str(span.get(Attr.PERMISSION_SHADOW_RULE) or ""),
            behavior,
        )
        for span in calls
        if (behavior := str(span.get(Attr.PERMISSION_SHADOW_BEHAVIOR))) != Behavior.ALLOW
    )
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
        style = BEHAVIOR_STYLE.get(behavior, ("", ""))[1]
        told = {Behavior.ASK: "asked about", Behavior.DENY: "denied"}.get(behavior, behavior)  # type: ignore[call-overload]
        table.add_row(
            Text(clean(tool)),
            Text(clean(told), style=style),
            str(number),
            Text(clean(rule)),
            Text(_advice(rule)),
        )
    return table


def _advice(rule: str) -> str:
    name = rule.removeprefix(_RULES)
    return next(
        (
            text
            for start, text in words()["would_have"].items()
            if rule != name and name.startswith(start)
        ),
        "what that rule says",
    )
