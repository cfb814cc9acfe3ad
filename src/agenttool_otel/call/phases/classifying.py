"""A classifier's part in the permission phase: when it is asked, and how a decision records it.

It is asked once for a call, where nothing but intent and the general rules on writing tools is asked
about. Then the call is decided again with its answer among the facts, so that a deny wins, and what
another rule asks is asked.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from agenttool_otel.call.invocation import Invocation
from agenttool_otel.facts.classified import Classified
from agenttool_otel.names import Behavior, PolicyMode, ReasonType
from agenttool_otel.policy.types import Verdict

_INTENT: Final = "agenttool.rules.dataflow.not_called_for"
_GENERAL: Final = (
    "agenttool.rules.declared.writes",
    "agenttool.rules.declared.access_external_send",
    "agenttool.rules.declared.access_network",
    "agenttool.rules.declared.access_browser",
    "agenttool.rules.declared.access_file_write",
    "agenttool.rules.destructive.effects",
)
"""Rules that ask about a call that the user wants as well. No answer is worth anything beside others,
such as those on payments and credentials.
"""


def may_classify(call: Invocation, verdict: Verdict) -> bool:
    """Return whether a classifier's answer could spare the question.

    Args:
        call: the call.
        verdict: the decision that asks.
    """
    if call.decision.classified is not None or call.decision.approval is not None or call.resumed:
        return False
    if verdict.behavior is not Behavior.ASK or verdict.mode is not PolicyMode.ENFORCE:
        return False
    rules = {verdict.rule_ref, *verdict.rule_refs}
    return _INTENT in rules and all(rule == _INTENT or rule.startswith(_GENERAL) for rule in rules)


def with_classifier(verdict: Verdict, classified: Classified) -> Verdict:
    """Return a decision with what the classifier answered, as its record has it.

    Args:
        verdict: the decision that was made with the answer among its facts.
        classified: the answer.
    """
    extra = {**verdict.extra, "pending_classifier_check": classified.record}
    if verdict.behavior is Behavior.ALLOW and classified.wanted:
        return replace(verdict, extra=extra, reason_type=ReasonType.CLASSIFIER)
    return replace(verdict, extra=extra)
