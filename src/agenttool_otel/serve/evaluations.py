"""AuthZEN's evaluations: what would be decided of a call. They run, count and ask nothing."""

from __future__ import annotations

from typing import Final

from agenttool_otel.call.preflight import Preflight
from agenttool_otel.call.runtime import Runtime
from agenttool_otel.call.tool import GovernedTool, unknown_tool
from agenttool_otel.names import Behavior, ErrorClass, EvaluationsSemantic, ProblemType
from agenttool_otel.serve.caller import caller
from agenttool_otel.serve.messages import (
    INVOCATIONS_PATH,
    EvaluationAnswer,
    EvaluationContext,
    EvaluationPart,
    EvaluationRequest,
    EvaluationsAnswer,
    EvaluationsRequest,
)
from agenttool_otel.serve.problems import Refusal
from agenttool_otel.serve.tools import NAMESPACE

_STOPS_AT: Final = {
    EvaluationsSemantic.EXECUTE_ALL: None,
    EvaluationsSemantic.DENY_ON_FIRST_DENY: False,
    EvaluationsSemantic.PERMIT_ON_FIRST_PERMIT: True,
}
"""The decision after which a batch has no further answer."""
_INCOMPLETE: Final = EvaluationAnswer(
    decision=False,
    context=EvaluationContext(
        behavior=Behavior.DENY.value,
        reason="the evaluation lacks a subject, an action or a resource",
        error_class=ErrorClass.INVALID_ARGUMENTS.value,
    ),
)
"""The answer to one of a batch that is no call."""


def tool_of(governor: Runtime, name: str) -> GovernedTool:
    """Return a tool by its name; for an unknown name what refuses its calls.

    Args:
        governor: who decides.
        name: name, alias or id.
    """
    found: GovernedTool | None = governor.find(name)
    return unknown_tool(name, governor, NAMESPACE) if found is None else found


async def evaluate(governor: Runtime, request: EvaluationRequest) -> EvaluationAnswer:
    """Decide one call, without consequences.

    Args:
        governor: who decides.
        request: the call.

    Raises:
        Refusal: what the client states of itself can't be.
    """
    with caller(request, governor.settings.roots):
        tool = tool_of(governor, request.action.name)
        preflight = await tool.acheck(request.resource.properties)
    allowed = preflight.allowed and preflight.error is None
    return EvaluationAnswer(decision=allowed, context=_context(preflight))


def _context(preflight: Preflight) -> EvaluationContext:
    decision, error = preflight.decision, preflight.error
    obligations = {}
    if decision is not None:
        obligations = decision.obligations.model_dump(mode="json", exclude_defaults=True)
    asks = preflight.behavior is Behavior.ASK and error is None
    return EvaluationContext(
        behavior=preflight.behavior.value,
        reason=preflight.reason,
        rule=decision.reason.rule_ref if decision is not None else None,
        error_class=error.error_class.value if error is not None else None,
        obligations=obligations,
        alternatives=list(preflight.alternatives),
        next_step=preflight.next_step,
        requestable=asks,
        request_endpoint=INVOCATIONS_PATH if asks else None,
        policy_refs=decision.policy_refs if decision is not None else [],
    )


async def evaluate_all(governor: Runtime, request: EvaluationsRequest) -> EvaluationsAnswer:
    """Decide the calls of a batch, as far as it is worked through.

    Args:
        governor: who decides.
        request: the calls.

    Raises:
        Refusal: there is no list, and the one call lacks a member.
    """
    stops_at = _STOPS_AT[request.options.evaluations_semantic]
    answers = []
    for part in request.evaluations or [EvaluationPart()]:
        call = _call(part, request)
        if call is not None:
            answer = await evaluate(governor, call)
        elif request.evaluations:
            answer = _INCOMPLETE.model_copy(deep=True)
        else:
            raise Refusal(ProblemType.BAD_REQUEST, "no subject, action or resource")
        answers.append(answer)
        if answer.decision is stops_at:
            break
    return EvaluationsAnswer(evaluations=answers)


def _call(part: EvaluationPart, batch: EvaluationPart) -> EvaluationRequest | None:
    """Return a call of a batch, with the batch's defaults for what it leaves out; ``None`` where there
    is none.
    """
    subject = part.subject or batch.subject
    action = part.action or batch.action
    resource = part.resource or batch.resource
    if subject is None or action is None or resource is None:
        return None
    call = EvaluationRequest(subject=subject, action=action, resource=resource)
    context = part.context or batch.context
    if context is not None:
        call.context = context
    return call
