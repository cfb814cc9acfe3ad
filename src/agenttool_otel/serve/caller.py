"""Who calls, from AuthZEN's subject and context: the one place where a request becomes an
``agent_context``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from agenttool_otel.context.context import AgentContext, agent_context, delegated_by, native_call
from agenttool_otel.names import ProblemType
from agenttool_otel.serve.messages import CallContext, EvaluationRequest, Subject, SubjectProperties
from agenttool_otel.serve.problems import Refusal

MAPPING: Final = {
    "subject.type": "actor",
    "subject.id": "actor",
    **{f"subject.properties.{name}": name for name in SubjectProperties.model_fields},
    "subject.properties": "resources.authzen.subject",
    "action.name": "the tool",
    "action.properties": "resources.authzen.action",
    "resource.type": "resources.authzen.resource",
    "resource.id": "the native call id",
    "resource.properties": "the arguments",
    **{f"context.{name}": name for name in CallContext.model_fields},
}
"""What of a request becomes what of a call; docs/serve.md shows it."""
_CALL: Final = "tool_call"
"""The type of a resource that is nothing but the call."""


@contextmanager
def caller(request: EvaluationRequest, roots: Sequence[str]) -> Iterator[AgentContext]:
    """Set the context of a request's call.

    Args:
        request: the request.
        roots: the directories of the decision point; a client may narrow them.

    Raises:
        Refusal: a root of the client's is outside of them, or a fact has another type.
    """
    stated = request.context.model_dump(exclude_none=True, exclude={"chain"})
    _check_roots(stated.get("roots", ()), roots)
    subject, known = request.subject, set(SubjectProperties.model_fields)
    facts: dict[str, Any] = subject.properties.model_dump(exclude_none=True, include=known)
    facts.update(stated)
    entities = _entities(request)
    if entities:
        facts["resources"] = {**stated.get("resources", {}), "authzen": entities}
    chain = [delegator.model_dump() for delegator in request.context.chain or ()]
    with (
        agent_context(actor=_actor(subject), **facts),
        delegated_by(chain) as context,
        native_call(request.resource.id),
    ):
        yield context


def _entities(request: EvaluationRequest) -> dict[str, Any]:
    """Return what AuthZEN's entities hold that a call has no place for."""
    found: dict[str, Any] = {}
    if request.subject.properties.model_extra:
        found["subject"] = dict(request.subject.properties.model_extra)
    if request.action.properties:
        found["action"] = request.action.properties
    if request.resource.type != _CALL:
        found["resource"] = {"type": request.resource.type, "id": request.resource.id}
    return found


def _actor(subject: Subject) -> str:
    prefix = f"{subject.type}:"
    # {"type": "agent", "id": "agent:coder"} is agent:coder
    if subject.id.startswith(prefix):
        return subject.id
    return f"{prefix}{subject.id}"


def _check_roots(stated: Sequence[str], allowed: Sequence[str]) -> None:
    """Refuse roots that would widen those of the decision point."""
    if not allowed:
        return
    places = [os.path.realpath(root) for root in allowed]
    for root in stated:
        real = os.path.realpath(root)
        if not any(os.path.commonpath((place, real)) == place for place in places):
            raise Refusal(
                ProblemType.BAD_REQUEST, "/context/roots: outside of the roots of this process"
            )
