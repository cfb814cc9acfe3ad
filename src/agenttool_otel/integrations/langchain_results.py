"""What a governed LangChain tool gives back: its own result, or a refusal in LangChain's idiom."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, ToolException

from agenttool_otel.echoes import echoes_of, plain
from agenttool_otel.envelope import outcome_of, to_result
from agenttool_otel.errors import ToolDenied
from agenttool_otel.invocation import Invocation
from agenttool_otel.names import Outcome, PersistenceStrategy, RedactionState

if TYPE_CHECKING:
    from agenttool_otel.governor import Governor

__all__ = ["LangChainToolDenied", "content_of", "deliver", "deliver_answer", "first_of", "refusal"]


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


def deliver(call: Invocation, tool: BaseTool, governor: Governor, said: str | None) -> Any:
    """Return what LangChain makes the tool's answer of.

    Args:
        call: the call, at its end.
        tool: the tool.
        governor: the Governor in charge.
        said: what a person answered in the tool's place.

    Raises:
        LangChainToolDenied: the call did not run, and no message can carry the refusal.
    """
    if call.exception is not None:
        raise call.exception
    if not call.ran:
        return _refuse(call, tool, said)
    value = call.value
    if tool.response_format == "content_and_artifact" and isinstance(value, tuple) and len(value) == 2:
        content, artifact = value
        return _shown(call, governor, content), _beside(call, governor, artifact, content)
    return _shown(call, governor, value)


def deliver_answer(call: Invocation, governor: Governor, said: str | None) -> Any:
    """Return what an agent gets of a call that its guard decided.

    Args:
        call: the call, at its end.
        governor: the Governor in charge.
        said: what a person answered in the tool's place.
    """
    if call.exception is not None:
        raise call.exception
    if not call.ran:
        return refusal(call, call.spec.name, said)
    value = call.value
    if isinstance(value, ToolMessage):
        return _shown(call, governor, value)
    if call.model_value is value or not _obliged(call):
        return value
    # a command can't be carried out in part: what of it may be seen takes its place
    shown = call.model_value
    return ToolMessage(
        content=shown if isinstance(shown, str) else json.dumps(plain(shown)),
        tool_call_id=call.native_call_id or "",
        name=call.spec.name,
        status="error",
    )


def _shown(call: Invocation, governor: Governor, content: Any) -> Any:
    """Return a value with what may be seen of its content; the other parts of a message are seen by no model."""
    if not isinstance(content, ToolMessage):
        return call.model_value
    if call.model_value is content.content and not _obliged(call):
        return content
    parts: dict[str, Any] = {
        "content": call.model_value,
        "artifact": _beside(call, governor, content.artifact, content),
    }
    for name in ("additional_kwargs", "response_metadata"):
        part = _beside(call, governor, getattr(content, name), content)
        parts[name] = part if isinstance(part, dict) else {}
    return content.model_copy(update=parts)


def _beside(call: Invocation, governor: Governor, value: Any, content: Any) -> Any:
    """Return what may go along with a content: an obligation is about the whole result, not about its content alone."""
    if value is None or value == {} or not _obliged(call):
        return value
    if call.redaction_state is RedactionState.FAILED:
        return None
    if call.verdict is not None and call.verdict.persistence not in (None, PersistenceStrategy.INLINE):
        return None  # it would be kept in the state of an agent, where the policy chose how results are kept
    if not _redacts(call):
        return value if call.model_value is content_of(content) else None
    try:
        data = plain(value)
        echoes = echoes_of(call, governor.redactor)
        masked = data if echoes is None else echoes.value(data)
        verdict = call.verdict
        pointers = (*call.spec.redact_result, *(verdict.redact_result if verdict is not None else ()))
        redacted = governor.redactor.redact(masked, pointers=pointers)
        # an object that is no plain data can't be changed, nor was it looked into: its plain form takes its place
        untouched = not redacted.redactions and bool(masked == data == value)
    except Exception as error:
        governor.telemetry.losses.note("result", error)
        return None
    if redacted.state is RedactionState.FAILED:
        return None
    return value if untouched else redacted.value


def _redacts(call: Invocation) -> bool:
    verdict = call.verdict
    if call.spec.redact_result or call.spec.permission.redaction_required:
        return True
    return verdict is not None and bool(verdict.redact_result)


def _obliged(call: Invocation) -> bool:
    verdict = call.verdict
    if _redacts(call) or call.redaction_state is RedactionState.FAILED:
        return True
    return verdict is not None and (verdict.persistence is not None or verdict.max_inline_chars is not None)


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
