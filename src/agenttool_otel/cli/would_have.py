"""What shadow mode would have asked about and denied, by tool and rule, with what to declare or set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from rich.table import Table
from rich.text import Text

from agenttool_otel.cli.rendering import BEHAVIOR_STYLE
from agenttool_otel.cli.spans import SpanView
from agenttool_otel.cli.story import clean
from agenttool_otel.names import Attr, Behavior, GenAI

_RULES: Final = "agenttool.rules."
_ADVICE: Final = (
    ("declared.unstated", "state its facts: agenttool tools suggest --module ..."),
    ("declared.", "settings.approval.always_allow for this tool and rule, or an approver"),
    ("paths.undeclared", "path_args"),
    ("paths.write_inside", "settings.approval.always_allow for this tool and rule, the preset coding, or an approver"),
    ("paths.", "roots; settings.paths"),
    ("network.undeclared", "url_args"),
    ("network.", "settings.network.allowed_hosts, .ports or .schemes"),
    ("shell.", "settings.shell.commands or .categories, the preset coding, or an approver"),
    ("sql.", "settings.sql.statements, or an approver"),
    ("destructive.", "an approver"),
    ("dataflow.", "an approver, or settings.dataflow"),
    ("approval.", "an approver, or settings.approval"),
    ("roles.", "roles in agent_context; settings.roles"),
    ("tenancy.", "the tenant in agent_context; settings.tenancy"),
    ("budgets.", "settings.budgets"),
    ("evaluation.", "an evaluator's verdict in agent_context"),
)
"""What to look at, by the beginning of the rule's name; a rule of one's own speaks for itself."""


def render_would_have(spans: Sequence[SpanView]) -> Table:
    """Count what a shadow decision would have stopped, the most frequent first."""
    calls = [span for span in spans if span.get(Attr.PERMISSION_SHADOW_BEHAVIOR)]
    stopped = Counter(
        (str(span.get(GenAI.TOOL_NAME) or span.name), str(span.get(Attr.PERMISSION_SHADOW_RULE) or ""), behavior)
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
            Text(clean(tool)), Text(clean(told), style=style), str(number), Text(clean(rule)), Text(_advice(rule))
        )
    return table


def _advice(rule: str) -> str:
    name = rule.removeprefix(_RULES)
    return next((text for start, text in _ADVICE if rule != name and name.startswith(start)), "what that rule says")
