"""What a governed LangChain tool gives back: its own result, or a refusal in LangChain's idiom."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langchain_core.messages import ToolMessage
from langchain_core.messages.tool import ToolOutputMixin
from langchain_core.tools import BaseTool, ToolException

from agenttool_otel.call.envelope import outcome_of, to_result
from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.recording.argument_secrets import mask_of, plain
from agenttool_otel.errors import ToolDenied
from agenttool_otel.names import ErrorClass, Outcome, PersistenceStrategy, RedactionState

if TYPE_CHECKING:
    from agenttool_otel.call.runtime import Runtime


class LangChainToolDenied(ToolException, ToolDenied):
    """A refusal of a tool that was called without a tool call id, so that no ToolMessage can carry it.

    It is a ToolException, so ``handle_tool_error`` sees it, and a ToolDenied, so that it is as
    typed as elsewhere.
    """


def content_of(value: Any) -> Any:
    """Return what a model sees of a value: a message's content, or the value."""
    return value.content if isinstance(value, ToolMessage) else value


def deliver(call: Invocation, tool: BaseTool, runtime: Runtime, response: str | None) -> Any:
    """Return what LangChain makes the tool's answer of."""
    if call.exception is not None:
        raise call.exception
    if not call.ran:
        return _refuse(call, tool, response)
    value = call.value
    if (
        tool.response_format == "content_and_artifact"
        and isinstance(value, tuple)
        and len(value) == 2
    ):
        content, artifact = value
        return _noted(call, _visible(call, runtime, content)), _companion(
            call, runtime, artifact, content
        )
    return _noted(call, _visible(call, runtime, value))


def deliver_answer(call: Invocation, runtime: Runtime, response: str | None) -> Any:
    """Return what an agent gets of a call that its guard decided."""
    if call.exception is not None:
        raise call.exception
    if not call.ran:
        return refusal(call, call.spec.name, response)
    value = call.value
    if isinstance(value, ToolMessage):
        return _noted(call, _visible(call, runtime, value))
    if call.model_value is value or not _has_obligations(call):
        return _noted(call, value)
    # a command can't be carried out in part: what of it may be seen takes its place
    shown = call.model_value
    return ToolMessage(
        content=_with_note(call, shown if isinstance(shown, str) else json.dumps(plain(shown))),
        tool_call_id=call.native_call_id or "",
        name=call.spec.name,
        status="error",
    )


def _noted(call: Invocation, value: Any) -> Any:
    """Return what becomes a model's tool message, with a note where a person changed the call's
    arguments.
    """
    if call.inputs.edit_note is None or call.native_call_id is None:
        return value  # a direct call gets what the tool returned
    if isinstance(value, ToolMessage):
        return value.model_copy(update={"content": _with_note(call, value.content)})
    if isinstance(value, ToolOutputMixin):
        return _noted_command(call, value)
    if isinstance(value, list) and value and all(isinstance(one, ToolOutputMixin) for one in value):
        return [_noted(call, one) if _answers(call, one) else one for one in value]
    return _with_note(call, value)


def _with_note(call: Invocation, content: Any) -> Any:
    if call.inputs.edit_note is None:
        return content
    if isinstance(content, list) and all(isinstance(part, (str, dict)) for part in content):
        return [*content, {"type": "text", "text": call.inputs.edit_note}]
    return f"{_text_of(content)}\n\n{call.inputs.edit_note}"


def _text_of(content: Any) -> str:
    """Return a value as LangChain writes it into a tool message."""
    if isinstance(content, str):
        return content
    try:
        return json.dumps(content, ensure_ascii=False)
    except Exception:
        return str(content)


def _noted_command(call: Invocation, command: Any) -> Any:
    """Put the note into the call's own message, which a command of LangGraph brings along."""
    update = getattr(command, "update", None)
    if not isinstance(update, dict) or not isinstance(update.get("messages"), list):
        return command
    messages = [_noted(call, one) if _answers(call, one) else one for one in update["messages"]]
    return replace(command, update={**update, "messages": messages})


def _answers(call: Invocation, message: Any) -> bool:
    return isinstance(message, ToolMessage) and message.tool_call_id == call.native_call_id


def _visible(call: Invocation, runtime: Runtime, content: Any) -> Any:
    """Return a value with what may be seen of its content; the other parts of a message are seen by
    no model.
    """
    if not isinstance(content, ToolMessage):
        return call.model_value
    if call.model_value is content.content and not _has_obligations(call):
        return content
    parts: dict[str, Any] = {
        "content": call.model_value,
        "artifact": _companion(call, runtime, content.artifact, content),
    }
    for name in ("additional_kwargs", "response_metadata"):
        part = _companion(call, runtime, getattr(content, name), content)
        parts[name] = part if isinstance(part, dict) else {}
    return content.model_copy(update=parts)


def _companion(call: Invocation, runtime: Runtime, value: Any, content: Any) -> Any:
    """Return what may go along with a content: an obligation is about the whole result, not about
    its content alone.
    """
    if value is None or value == {} or not _has_obligations(call):
        return value
    if call.outcome.redaction_state is RedactionState.FAILED:
        return None
    if call.decision.verdict is not None and call.decision.verdict.persistence not in (
        None,
        PersistenceStrategy.INLINE,
    ):
        # it would be kept in the state of an agent, where the policy chose how results are kept
        return None
    if not call.must_redact:
        return value if call.model_value is content_of(content) else None
    try:
        data = plain(value)
        mask = mask_of(call, runtime.redactor)
        masked = data if mask is None else mask.value(data)
        redacted = runtime.redactor.redact(masked, pointers=call.result_pointers)
        # an object that is no plain data can't be changed, nor was it looked into: its plain form
        # takes its place
        untouched = not redacted.redactions and bool(masked == data == value)
    except Exception as error:
        runtime.telemetry.losses.note("result", error)
        return None
    if redacted.state is RedactionState.FAILED:
        return None
    return value if untouched else redacted.value


def _has_obligations(call: Invocation) -> bool:
    verdict = call.decision.verdict
    if call.must_redact or call.outcome.redaction_state is RedactionState.FAILED:
        return True
    return verdict is not None and (
        verdict.persistence is not None or verdict.max_inline_chars is not None
    )


def _refuse(call: Invocation, tool: BaseTool, response: str | None) -> Any:
    if call.native_call_id is None:
        outcome = outcome_of(call)
        denied = LangChainToolDenied(
            str(outcome),
            records=lambda: (outcome.result, outcome.decision),
            error_class=outcome.error_class,
            invocation_id=call.id,
        )
        raise outcome if not isinstance(outcome, ToolDenied) else denied
    message = refusal(call, tool.name, response)
    return (message, None) if tool.response_format == "content_and_artifact" else message


def refusal(call: Invocation, name: str, response: str | None = None) -> ToolMessage:
    """Make the message that tells a model why its call did not run; the envelope travels as its
    artifact.
    """
    result = to_result(call)
    lines = [result.summary or f"{name} did not run"]
    if response is not None:
        lines = [response]
    elif call.outcome.execution is Outcome.PENDING:
        lines.append(
            "It did not run: the approval can't be waited for here. Do not call it again until it is given."
        )
    elif (
        call.outcome.error is not None
        and call.outcome.error.error_class is ErrorClass.SCHEMA_VALIDATION_FAILED
    ):
        lines.append("Fix the arguments and try again.")
    for alternative in (
        call.decision.verdict.alternatives if call.decision.verdict is not None else ()
    ):
        lines.append(f"Call {alternative.get('tool')} with {alternative.get('arguments')} instead.")
    if response is None and call.inputs.edit_note is not None:
        lines.append(call.inputs.edit_note)
    return ToolMessage(
        content="\n".join(lines),
        tool_call_id=call.native_call_id or "",
        name=name,
        status="error" if response is None else "success",
        artifact=result.to_json_object(),
    )
