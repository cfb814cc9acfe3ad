"""What a governed LangChain tool gives back: its own result, or a refusal in LangChain's idiom."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, ToolException

from agenttool_otel.envelope import outcome_of, to_result
from agenttool_otel.errors import ToolDenied
from agenttool_otel.invocation import Invocation
from agenttool_otel.names import Outcome

__all__ = ["LangChainToolDenied", "content_of", "deliver", "first_of", "refusal"]


class LangChainToolDenied(ToolException, ToolDenied):
    """A refusal of a tool that was called without a tool call id, so that no ToolMessage can carry it.

    It is a ToolException, so ``handle_tool_error`` sees it, and a ToolDenied, so that it is as typed as elsewhere.
    """


def first_of(value: Any) -> Any:
    """Return the content of a content-and-artifact pair.

    Args:
        value: what such a tool returned.
    """
    return content_of(value[0]) if isinstance(value, tuple) and len(value) == 2 else value


def content_of(value: Any) -> Any:
    """Return what a model sees of a value: a message's content, or the value.

    Args:
        value: what a tool returned.
    """
    return value.content if isinstance(value, ToolMessage) else value


def deliver(call: Invocation, tool: BaseTool, said: str | None) -> Any:
    """Return what LangChain makes the tool's answer of.

    Args:
        call: the call, at its end.
        tool: the tool.
        said: what a person answered in the tool's place.

    Raises:
        LangChainToolDenied: the call did not run, and no message can carry the refusal.
    """
    if call.exception is not None:
        raise call.exception
    if not call.ran:
        return _refuse(call, tool, said)
    value, shown = call.value, call.model_value
    pair = tool.response_format == "content_and_artifact" and isinstance(value, tuple) and len(value) == 2
    content, artifact = value if pair else (value, None)
    if shown is content_of(content):
        return value
    if isinstance(content, ToolMessage):
        shown = content.model_copy(update={"content": shown})
    # what was redacted or cut for the model must not come back through the artifact when a policy obliged it
    obliged = call.verdict is not None and bool(call.verdict.redact_result or call.spec.redact_result)
    return (shown, None if obliged else artifact) if pair else shown


def _refuse(call: Invocation, tool: BaseTool, said: str | None) -> Any:
    if call.native_call_id is None:
        outcome = outcome_of(call)
        denied = LangChainToolDenied(
            str(outcome),
            result=outcome.result,
            decision=outcome.decision,
            error_class=outcome.error_class,
            invocation_id=call.id,
        )
        raise outcome if not isinstance(outcome, ToolDenied) else denied
    message = refusal(call, tool.name, said)
    return (message, None) if tool.response_format == "content_and_artifact" else message


def refusal(call: Invocation, name: str, said: str | None = None) -> ToolMessage:
    """Make the message that tells a model why its call did not run; the envelope travels as its artifact.

    Args:
        call: the call.
        name: the tool's name.
        said: what a person answered in the tool's place; the model gets it as the answer.
    """
    result = to_result(call)
    lines = [result.summary or f"{name} did not run"]
    if said is not None:
        lines = [said]
    elif call.outcome is Outcome.PENDING:
        lines.append("It did not run: the approval can't be waited for here. Do not call it again until it is given.")
    for alternative in call.verdict.alternatives if call.verdict is not None else ():
        lines.append(f"Call {alternative.get('tool')} with {alternative.get('arguments')} instead.")
    return ToolMessage(
        content="\n".join(lines),
        tool_call_id=call.native_call_id or "",
        name=name,
        status="error" if said is None else "success",
        artifact=result.to_json_object(),
    )
