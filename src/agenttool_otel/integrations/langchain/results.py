"""What a governed LangChain tool gives back: its own result, or a refusal in LangChain's idiom."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

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


_WAITS: Final = (
    "It did not run: the approval can't be waited for here. Do not call it again until it is given."
)


class LangChainToolDenied(ToolException, ToolDenied):
    """A refusal of a tool that was called without a tool call id, so that no ToolMessage can have it.

    It is a ToolException, so that ``handle_tool_error`` gets it, and a ToolDenied, so that it has
    the type that it has elsewhere.
    """


def content_of(value: Any) -> Any:
    """Return what a model sees of a value: a message's content, or the value."""
    if isinstance(value, ToolMessage):
        return value.content
    return value


def content_and_artifact(tool: BaseTool, value: Any) -> tuple[Any, Any] | None:
    """Return the two parts of a result; ``None`` where the tool's result has only one.

    Args:
        tool: the tool.
        value: what its body returned.
    """
    if tool.response_format != "content_and_artifact":
        return None
    if not isinstance(value, tuple) or len(value) != 2:
        return None
    return value


def deliver(call: Invocation, tool: BaseTool, runtime: Runtime, response: str | None) -> Any:
    """Return what LangChain takes as the return value of the tool's body.

    Args:
        call: the ended call.
        tool: the tool.
        runtime: its Governor.
        response: a text that a person gave in place of the result.
    """
    if call.exception is not None:
        raise call.exception
    if not call.ran:
        return _refuse(call, tool, response)
    pair = content_and_artifact(tool, call.value)
    if pair is None:
        return _noted(call, _visible(call, runtime, call.value))
    content, artifact = pair
    shown = _noted(call, _visible(call, runtime, content))
    return shown, _companion(call, runtime, artifact, content)


def deliver_answer(call: Invocation, runtime: Runtime, response: str | None) -> Any:
    """Return what an agent gets of a call that its guard decided.

    Args:
        call: the ended call.
        runtime: its Governor.
        response: a text that a person gave in place of the result.
    """
    if call.exception is not None:
        raise call.exception
    if not call.ran:
        return refusal(call, call.spec.name, response)
    value = call.value
    if isinstance(value, ToolMessage):
        return _noted(call, _visible(call, runtime, value))
    if call.model_value is value or not _has_obligations(call):
        return _noted(call, value)
    # Command(update={"messages": [...], "notes": ...}) can't be carried out in part: the redacted
    # value takes its place
    shown = call.model_value
    if not isinstance(shown, str):
        shown = json.dumps(plain(shown))
    return ToolMessage(
        content=_with_note(call, shown),
        tool_call_id=call.native_call_id or "",
        name=call.spec.name,
        status="error",
    )


def _noted(call: Invocation, value: Any) -> Any:
    """Return what becomes a model's tool message, with a note where a person changed the call's
    arguments.
    """
    # a direct call, tool.invoke({"path": "a"}), gets what the tool returned
    if call.inputs.edit_note is None or call.native_call_id is None:
        return value
    if isinstance(value, ToolMessage):
        return value.model_copy(update={"content": _with_note(call, value.content)})
    if isinstance(value, ToolOutputMixin):
        return _noted_command(call, value)
    if _is_list_of_outputs(value):
        return _noted_messages(call, value)
    return _with_note(call, value)


def _is_list_of_outputs(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(item, ToolOutputMixin) for item in value)


def _noted_messages(call: Invocation, messages: list[Any]) -> list[Any]:
    """Put the note into the message that answers the call; the others are as they were."""
    noted = []
    for message in messages:
        if isinstance(message, ToolMessage) and message.tool_call_id == call.native_call_id:
            noted.append(_noted(call, message))
        else:
            noted.append(message)
    return noted


def _with_note(call: Invocation, content: Any) -> Any:
    if call.inputs.edit_note is None:
        return content
    # [{"type": "text", "text": "..."}, {"type": "image", ...}]: the note is one more block
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
    messages = _noted_messages(call, update["messages"])
    return replace(command, update={**update, "messages": messages})


def _visible(call: Invocation, runtime: Runtime, content: Any) -> Any:
    """Return a value with the content that the policy lets a model see.

    The other parts of a message, such as its artifact, go to no model.
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
    # an artifact would stay in the agent's state, although the policy chose how results are kept
    if not _is_kept_inline(call):
        return None
    if not call.must_redact:
        # a preview took the place of a long content: its companion may be as long
        if call.model_value is not content_of(content):
            return None
        return value
    try:
        return _redacted(call, runtime, value)
    except Exception as error:
        runtime.telemetry.losses.note("result", error)
        return None


def _is_kept_inline(call: Invocation) -> bool:
    if call.decision.verdict is None or call.decision.verdict.persistence is None:
        return True
    return call.decision.verdict.persistence == PersistenceStrategy.INLINE


def _redacted(call: Invocation, runtime: Runtime, value: Any) -> Any:
    """Return a value redacted, the very object where nothing in it is; ``None`` where that fails."""
    data = plain(value)
    mask = mask_of(call, runtime.redactor)
    masked = data if mask is None else mask.value(data)
    redacted = runtime.redactor.redact(masked, pointers=call.result_pointers)
    if redacted.state is RedactionState.FAILED:
        return None
    # a DataFrame is no plain data: it can't be changed, and its cells were not searched, so its
    # plain form takes its place
    if redacted.redactions or not bool(masked == data == value):
        return redacted.value
    return value


def _has_obligations(call: Invocation) -> bool:
    if call.must_redact or call.outcome.redaction_state is RedactionState.FAILED:
        return True
    verdict = call.decision.verdict
    if verdict is None:
        return False
    return verdict.persistence is not None or verdict.max_inline_chars is not None


def _refuse(call: Invocation, tool: BaseTool, response: str | None) -> Any:
    if call.native_call_id is None:
        raise _exception_of(call)
    message = refusal(call, tool.name, response)
    if tool.response_format == "content_and_artifact":
        return message, None
    return message


def _exception_of(call: Invocation) -> Exception:
    outcome = outcome_of(call)
    # ApprovalRequired and ResultRequired are no denials: the call may still run
    if not isinstance(outcome, ToolDenied):
        return outcome
    return LangChainToolDenied(
        str(outcome),
        records=lambda: (outcome.result, outcome.decision),
        error_class=outcome.error_class,
        invocation_id=call.id,
    )


def refusal(call: Invocation, name: str, response: str | None = None) -> ToolMessage:
    """Make the message with the reason why a call did not run; its artifact is the result record.

    Args:
        call: the call.
        name: the tool's name.
        response: a text that a person gave in place of the result.
    """
    result = to_result(call)
    if response is not None:
        lines = [response]
    else:
        lines = [result.summary or f"{name} did not run"]
        if call.outcome.execution is Outcome.PENDING:
            lines.append(_WAITS)
        elif _is_invalid(call):
            lines.append("Fix the arguments and try again.")
    if call.decision.verdict is not None:
        for alternative in call.decision.verdict.alternatives:
            tool = alternative.get("tool")
            lines.append(f"Call {tool} with {alternative.get('arguments')} instead.")
    if response is None and call.inputs.edit_note is not None:
        lines.append(call.inputs.edit_note)
    return ToolMessage(
        content="\n".join(lines),
        tool_call_id=call.native_call_id or "",
        name=name,
        status="error" if response is None else "success",
        artifact=result.to_json_object(),
    )


def _is_invalid(call: Invocation) -> bool:
    if call.outcome.error is None:
        return False
    return call.outcome.error.error_class is ErrorClass.SCHEMA_VALIDATION_FAILED
