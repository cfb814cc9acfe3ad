"""A person is asked by the client of a server: MCP's elicitation.

Up to protocol 2025-11-25 the server sends the question while the call is open. From 2026-07-28 on it
answers the call with the question, and the client makes the call again with the answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from agenttool_otel.approvals.display import request_facts, visible
from agenttool_otel.approvals.types import ApprovalAnswer, ApprovalRequest
from agenttool_otel.integrations.mcp.sdk import (
    MODERN_PROTOCOL_VERSIONS,
    ElicitResult,
    client_capabilities,
    client_info,
)
from agenttool_otel.names import AnswerWay

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp_types import ElicitRequest

ANSWER_KEY: Final = "approval"
"""The name under which the client's answer comes back."""
FORM: Final = {
    "type": "object",
    "properties": {
        "approve": {
            "type": "boolean",
            "title": "Approve",
            "description": "Whether this very call may run, once.",
        }
    },
    "required": ["approve"],
}
"""What a person fills in."""


def can_ask(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Return whether the client shows questions to a person.

    Args:
        ctx: The request's context.
    """
    capabilities = client_capabilities(ctx.session)
    return capabilities is not None and capabilities.elicitation is not None


def answers_later(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Return whether the question is the answer to the call, which the client makes again.

    Args:
        ctx: The request's context.
    """
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def question(request: ApprovalRequest) -> ElicitRequest:
    """Return the question as the answer to a call, as protocol 2026-07-28 has it.

    Args:
        request: What is asked.
    """
    from mcp_types import ElicitRequest, ElicitRequestFormParams

    params = ElicitRequestFormParams(message=question_text(request), requested_schema=FORM)
    return ElicitRequest(params=params)


def question_text(request: ApprovalRequest) -> str:
    """Return what the client shows.

    Args:
        request: What is asked.
    """
    facts = [f"{label}: {visible(text)}" for label, text in request_facts(request)]
    arguments = json.dumps(request.arguments_preview, indent=2, ensure_ascii=False)
    # nothing hides: the argument of one line that is shown as two is spelt out
    return "\n".join([*facts, "Arguments:", visible(arguments, keep="\n"), request.diff]).rstrip()


def answer_of(given: Any, client: str) -> ApprovalAnswer | None:
    """Return a person's answer; ``None`` where they closed the question, or it can't be read.

    Args:
        given: The client's elicitation result.
        client: The client's name.
    """
    if isinstance(given, Mapping):
        try:
            given = ElicitResult.model_validate(given, by_name=False)
        except ValidationError:
            return None
    if not isinstance(given, ElicitResult) or given.action == "cancel":
        return None
    content = given.content or {}
    # {"approve": "false"} is a text, and no approval
    approved = given.action == "accept" and content.get("approve") is True
    return ApprovalAnswer(approved=approved, answered_by=f"mcp:{client}", way=AnswerWay.ELICITATION)


def client_name(ctx: ServerRequestContext[Any, Any]) -> str:
    """Return what the client calls itself; it is recorded, and no permission of any kind.

    Args:
        ctx: The request's context.
    """
    info = client_info(ctx.session)
    return "client" if info is None else str(info.name)
