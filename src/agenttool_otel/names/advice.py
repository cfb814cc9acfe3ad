"""What to declare or set where a stock rule asks or denies, in words for people."""

from __future__ import annotations

from typing import Final

_STOCK_RULES: Final = "agenttool.rules."

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


def advice(rule: str) -> str:
    """Return what to declare or set where a rule asks or denies.

    Args:
        rule: the rule's full name.
    """
    # "mycompany.rules.paths.x" is not stock: only its author can explain it
    if rule.startswith(_STOCK_RULES):
        name = rule.removeprefix(_STOCK_RULES)
        for start, text in ADVICE.items():
            if name.startswith(start):
                return text
    return "what that rule states"


def would_answer(rule: str) -> str:
    """Return what would answer a rule's question without a person asked each time.

    Args:
        rule: the rule's full name.
    """
    if rule.endswith((".unproven", ".uncertain")):
        return "a person, each time"
    if rule.startswith(_STOCK_RULES):
        return f"{advice(rule)}; or its name in waives of an allow"
    return "its name in waives of an allow, or settings.effects"
