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

_STOCK_RULES: Final = "agenttool.rules."
_WOULD_HAVE_BEEN: Final[dict[str, str]] = {
    Behavior.ASK: "asked about",
    Behavior.DENY: "denied",
}

ADVICE: Final = {
    "declared.unstated": "state its facts: agenttool tools suggest --module ...",
    "declared.": "settings.approval.always_allow for this tool and rule, or an approver",
    "paths.undeclared": "path_args",
    "paths.write_inside": (
        "settings.approval.always_allow for this tool and rule, the preset coding, or an approver"
    ),
    "paths.": "roots; settings.paths",
    "network.undeclared": "url_args",
    "network.": "settings.network.allowed_hosts, .ports or .schemes",
    "shell.": (
        "runs_commands=True for a tool that starts commands by run_command, so that they can be"
        " held; settings.shell.commands or .categories, the preset coding, or an approver"
    ),
    "sql.": "settings.sql.statements, or an approver",
    "destructive.": "an approver",
    "dataflow.untrusted_target": (
        "open_world=False or result_trust for the tool whose output has the value, where nobody"
        " else writes there; or an approver"
    ),
    "dataflow.unvouched": (
        "result_trust for the source, settings.counterparties, inert_args; or an approver"
    ),
    "dataflow.other_source": "sources, which states where the value may come from; or an approver",
    "dataflow.not_called_for": "verbs; or an approver",
    "dataflow.no_target": "inert_args; or an approver",
    "dataflow.untraced": "session_id and user_text in agent_context",
    "dataflow.": "an approver, or settings.dataflow",
    "approval.": "an approver, or settings.approval",
    "roles.": "roles in agent_context; settings.roles",
    "tenancy.": "the tenant in agent_context; settings.tenancy",
    "budgets.": "settings.budgets",
    "evaluation.": "an evaluator's verdict in agent_context",
}
"""What to declare or set, by the beginning of a stock rule's name; the first that fits counts."""


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
            Text(_advice(rule)),
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


def _advice(rule: str) -> str:
    # "mycompany.rules.paths.x" is not stock: only its author can explain it
    if rule.startswith(_STOCK_RULES):
        name = rule.removeprefix(_STOCK_RULES)
        for start, text in ADVICE.items():
            if name.startswith(start):
                return text
    return "what that rule states"
