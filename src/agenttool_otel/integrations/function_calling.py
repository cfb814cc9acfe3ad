"""The door of a plain loop: the tool calls in a model's response, run as one batch and answered in
the form that the next request takes.

It reads OpenAI's Chat Completions and Responses and Anthropic's Messages, as plain dictionaries or
as objects of their SDKs, none of which is needed. The tools are the Governor's own; a call of a
name that none has, or with arguments that are no JSON object, leaves a span and gets an answer with
the reason, as every other call that does not run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NoReturn

from agenttool_otel.call.batch import BatchCall
from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.runtime import Runtime
from agenttool_otel.call.target import Target
from agenttool_otel.call.tool import GovernedTool, unknown_tool
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.govern.governor import Governor
from agenttool_otel.integrations.foreign import read_arguments
from agenttool_otel.names import ResultStatus
from agenttool_otel.records import ExternalMapping, SchedulerPolicy, ToolResult
from agenttool_otel.records.base import JsonObject


class AnswerForm(StrEnum):
    """What a request takes as the answer to a call."""

    CHAT = "tool"
    """A message of the role ``tool``, of Chat Completions."""
    RESPONSES = "function_call_output"
    """An input item of the Responses API."""
    RESPONSES_CUSTOM = "custom_tool_call_output"
    """The input item that answers a custom tool of the Responses API, which takes free text."""
    ANTHROPIC = "tool_result"
    """A block of the one user message that answers all calls of an Anthropic response."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A call in a model's response.

    Attributes:
        form: the form of its answer.
        call_id: the model's id of the call.
        name: the name that the model gave.
        arguments: what the model sent: JSON text, or an object.
    """

    form: AnswerForm
    call_id: str
    name: str
    arguments: Any


@dataclass(frozen=True, slots=True)
class AnsweredCalls:
    """The calls of a response and their results, in the response's order.

    Attributes:
        calls: the calls.
        results: a result for each, also for one that did not run.
    """

    calls: tuple[ModelCall, ...]
    results: tuple[ToolResult, ...]

    @property
    def messages(self) -> list[JsonObject]:
        """What is appended to the conversation: an answer to each call, those that wait for an
        approval included.
        """
        return answer_messages(self.calls, self.results)

    @property
    def waiting(self) -> tuple[ToolResult, ...]:
        """The results of calls that wait for a person; ``requires_action`` names their request."""
        return tuple(result for result in self.results if _waits(result))

    def resume(self, governor: Governor) -> AnsweredCalls:
        """Go on with the calls that wait; those that still do wait on.

        Args:
            governor: the Governor that ran the others.
        """
        results = [
            governor.resume(result.invocation_id) if _waits(result) else result
            for result in self.results
        ]
        return AnsweredCalls(self.calls, tuple(results))

    async def aresume(self, governor: Governor) -> AnsweredCalls:
        """The same without blocking the event loop.

        Args:
            governor: the Governor that ran the others.
        """
        results = []
        for result in self.results:
            if _waits(result):
                result = await governor.aresume(result.invocation_id)
            results.append(result)
        return AnsweredCalls(self.calls, tuple(results))


def _waits(result: ToolResult) -> bool:
    return result.status == ResultStatus.PENDING


def answer_calls(
    governor: Governor, response: Any, *, policy: SchedulerPolicy | None = None
) -> AnsweredCalls:
    """Run the tool calls of a response as one batch.

    Args:
        governor: the Governor of the tools.
        response: a Chat Completion or its message, a response of the Responses API or its output
            items, or a message of Anthropic.
        policy: how the calls run together; see ``Governor.batch``.

    Returns:
        The calls with their results, none where the response has no call.

    Raises:
        ConfigurationError: the response has none of these forms.
        TypeError: a tool is asynchronous.
    """
    calls = read_calls(response)
    results = governor.batch(_batch(governor, calls), policy=policy)
    return AnsweredCalls(calls, tuple(results))


async def aanswer_calls(
    governor: Governor, response: Any, *, policy: SchedulerPolicy | None = None
) -> AnsweredCalls:
    """The same without blocking the event loop.

    Args:
        governor: the Governor of the tools.
        response: the response.
        policy: how the calls run together.
    """
    calls = read_calls(response)
    results = await governor.abatch(_batch(governor, calls), policy=policy)
    return AnsweredCalls(calls, tuple(results))


# --- reading --------------------------------------------------------------------------------------


def read_calls(response: Any) -> tuple[ModelCall, ...]:
    """Return the calls of a response, in its order; calls that the provider runs are none.

    Args:
        response: see ``answer_calls``.

    Raises:
        ConfigurationError: it has none of the known forms.
    """
    if isinstance(response, (list, tuple)):
        return _responses_calls(response)
    choices = _member(response, "choices")
    if choices:
        response = _member(choices[0], "message")
    output = _member(response, "output")
    if isinstance(output, (list, tuple)):
        return _responses_calls(output)
    if _member(response, "tool_calls"):
        return tuple(map(_chat_call, _member(response, "tool_calls")))
    content = _member(response, "content")
    if isinstance(content, (list, tuple)):
        return _anthropic_calls(content)
    if _member(response, "role") is None:
        raise ConfigurationError(
            f"{type(response).__name__} is no response of Chat Completions, Responses or Messages"
        )
    return ()


def _member(holder: Any, name: str) -> Any:
    """Return a member of a dictionary, or of an SDK's object."""
    if isinstance(holder, Mapping):
        return holder.get(name)
    return getattr(holder, name, None)


def _call(form: AnswerForm, call_id: Any, holder: Any, arguments: str) -> ModelCall:
    name = _member(holder, "name")
    return ModelCall(form, str(call_id or ""), str(name or ""), _member(holder, arguments))


def _chat_call(item: Any) -> ModelCall:
    call_id = _member(item, "id")
    custom = _member(item, "custom")
    # {"type": "custom", "custom": {"name": "run", "input": "any text"}}
    if custom is not None:
        return _call(AnswerForm.CHAT, call_id, custom, "input")
    return _call(AnswerForm.CHAT, call_id, _member(item, "function"), "arguments")


def _responses_calls(items: Iterable[Any]) -> tuple[ModelCall, ...]:
    calls = []
    for item in items:
        kind = _member(item, "type")
        call_id = _member(item, "call_id")
        if kind == "function_call":
            calls.append(_call(AnswerForm.RESPONSES, call_id, item, "arguments"))
        elif kind == "custom_tool_call":
            calls.append(_call(AnswerForm.RESPONSES_CUSTOM, call_id, item, "input"))
    return tuple(calls)


def _anthropic_calls(blocks: Iterable[Any]) -> tuple[ModelCall, ...]:
    # server_tool_use is not among them: Anthropic has run it
    return tuple(
        _call(AnswerForm.ANTHROPIC, _member(block, "id"), block, "input")
        for block in blocks
        if _member(block, "type") == "tool_use"
    )


# --- running --------------------------------------------------------------------------------------


def _batch(governor: Governor, calls: Iterable[ModelCall]) -> list[BatchCall]:
    return [_batch_call(governor, call) for call in calls]


def _batch_call(governor: Governor, call: ModelCall) -> BatchCall:
    tool: Any = call.name
    arguments: Mapping[str, Any] = {}
    try:
        arguments = _arguments_of(call)
    except TypeError as error:
        # the policy of the batch is for it, too: it has its place, its span and its answer
        tool = _Unreadable(
            governor.find(call.name) or unknown_tool(call.name, governor), str(error)
        )
    mapping = ExternalMapping.model_validate(
        {"source": "function_calling", "tool_name": call.name, "tool_call_id": call.call_id}
    )
    return BatchCall(tool, arguments, call.call_id or None, mappings=(mapping,))


def _arguments_of(call: ModelCall) -> Mapping[str, Any]:
    given = call.arguments
    if isinstance(given, str):
        return read_arguments(given)
    if isinstance(given, Mapping):
        return given
    raise TypeError("the arguments are no JSON object")


class _Unreadable(GovernedTool):
    """A tool that was called with arguments that can't be read: the call ends where they are bound."""

    __slots__ = ("_why",)

    def __init__(self, tool: GovernedTool, why: str) -> None:
        governor: Runtime = tool.governor
        super().__init__(tool.spec, _not_read, governor=governor, is_async=False, streams=False)
        self._why = why

    def json_target(self, *, preflight: bool = False) -> Target:
        """Return what refuses the call, and runs nothing."""
        why = self._why

        def bind(call: Invocation) -> NoReturn:
            raise TypeError(why)

        return Target(_not_read, bind, _not_read)


def _not_read(*arguments: Any) -> NoReturn:
    raise TypeError("the arguments can't be read")


# --- answering ------------------------------------------------------------------------------------


def answer_messages(calls: Sequence[ModelCall], results: Sequence[ToolResult]) -> list[JsonObject]:
    """Return what is appended to the conversation, or to the Responses API's input.

    Args:
        calls: the calls.
        results: their results, in the same order.
    """
    blocks: list[JsonObject] = []
    messages: list[JsonObject] = []
    for call, result in zip(calls, results, strict=True):
        place = blocks if call.form is AnswerForm.ANTHROPIC else messages
        place.append(_ANSWERS[call.form](call, result))
    # Anthropic refuses a request in which the answers to one message are in several
    if blocks:
        messages.append({"role": "user", "content": blocks})
    return messages


def _chat_answer(call: ModelCall, result: ToolResult) -> JsonObject:
    return {"role": "tool", "tool_call_id": call.call_id, "content": _text(result)}


def _responses_answer(call: ModelCall, result: ToolResult) -> JsonObject:
    return {"type": call.form.value, "call_id": call.call_id, "output": _text(result)}


def _anthropic_answer(call: ModelCall, result: ToolResult) -> JsonObject:
    return {
        "type": "tool_result",
        "tool_use_id": call.call_id,
        "content": _text(result),
        "is_error": result.is_error,
    }


_ANSWERS: Final[Mapping[AnswerForm, Callable[[ModelCall, ToolResult], JsonObject]]] = {
    AnswerForm.CHAT: _chat_answer,
    AnswerForm.RESPONSES: _responses_answer,
    AnswerForm.RESPONSES_CUSTOM: _responses_answer,
    AnswerForm.ANTHROPIC: _anthropic_answer,
}


def _text(result: ToolResult) -> str:
    """Return what a model receives, as the text that each of the APIs takes."""
    return "\n".join(map(_text_of_block, result.model_facing_content))


def _text_of_block(block: JsonObject) -> str:
    text = block.get("text")
    if isinstance(text, str):
        return text
    # {"type": "structured_content", "data": {...}}
    return json.dumps(block.get("data", block), ensure_ascii=False)
