"""A decision in the words of OpenTelemetry's proposal for guardrails, beside this package's own.

The proposal is open, so its names may change; they are recorded only where
``AGENTTOOL_GUARDRAIL_NAMES`` asks for them.

Source: https://github.com/open-telemetry/semantic-conventions-genai/pull/427
"""

from __future__ import annotations

from typing import Any, Final

from agenttool_otel.call.invocation import Invocation
from agenttool_otel.names import Behavior, GenAI, GuardrailAction, GuardrailVerdict, PolicyMode
from agenttool_otel.policy.types import Verdict

_COMPONENT: Final = "agenttool"
_VERDICTS: Final = {
    Behavior.ALLOW: GuardrailVerdict.ALLOW,
    Behavior.ASK: GuardrailVerdict.ESCALATE,
    Behavior.DENY: GuardrailVerdict.DENY,
}
_ACTIONS: Final = {
    GuardrailVerdict.ALLOW: GuardrailAction.ALLOW,
    GuardrailVerdict.MODIFY: GuardrailAction.MODIFY,
    GuardrailVerdict.ESCALATE: GuardrailAction.ESCALATE,
    GuardrailVerdict.DENY: GuardrailAction.BLOCK,
}


def guardrail_attributes(call: Invocation, verdict: Verdict) -> dict[str, Any]:
    """Return the attributes of a guardrail that looked at a tool call.

    A decision that leaves the call to the framework (``passthrough``) is no guardrail's verdict, so
    it has neither verdict nor action.

    Args:
        call: the call.
        verdict: its decision.
    """
    attributes: dict[str, Any] = {
        GenAI.GUARDRAIL_COMPONENT_NAME: _COMPONENT,
        GenAI.GUARDRAIL_TARGET_TYPE: "input",
        GenAI.GUARDRAIL_TARGET_SUBTYPE: "tool_call",
        GenAI.GUARDRAIL_TARGET_ID: call.native_call_id or call.id,
        GenAI.GUARDRAIL_VERDICT_REASON: str(verdict.reason_type),
        GenAI.GUARDRAIL_SECURITY_POLICY_ID: verdict.revision,
        GenAI.GUARDRAIL_SECURITY_POLICY_RULE_ID: verdict.rule_ref,
    }
    found = _verdict_of(verdict)
    if found is not None:
        in_force = verdict.mode is not PolicyMode.SHADOW
        action = _ACTIONS[found] if in_force else GuardrailAction.ALLOW
        attributes[GenAI.GUARDRAIL_VERDICT_TYPE] = found.value
        attributes[GenAI.GUARDRAIL_ACTION_TYPE] = action.value
    return attributes


def _verdict_of(verdict: Verdict) -> GuardrailVerdict | None:
    # in shadow mode the call runs, whatever the policy decided
    is_shadow = verdict.mode is PolicyMode.SHADOW and verdict.shadow is not None
    decided = verdict.shadow if is_shadow and verdict.shadow is not None else verdict
    if decided.behavior is Behavior.ALLOW and decided.updated_input is not None:
        return GuardrailVerdict.MODIFY
    return _VERDICTS.get(decided.behavior)
