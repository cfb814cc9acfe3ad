"""A remote agent as a governed tool, by the Agent2Agent protocol (A2A 1.0).

A call sends one message to the agent, and follows the task that it becomes until the agent has ended it or
asks for more. The message goes out by the program's own client of the SDK, which has the address of the
agent and its credentials; neither is an argument that a model gives.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, cast
from uuid import uuid4

from a2a.client import Client, ClientCallContext
from a2a.types import (
    AgentCard,
    Artifact,
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    Task,
    TaskState,
)
from google.protobuf.json_format import MessageToDict, ParseDict
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from agenttool_otel.call.running.handle import current_call
from agenttool_otel.call.runtime import Runtime
from agenttool_otel.catalog import GovernOptions
from agenttool_otel.errors import AgentToolError, ConfigurationError
from agenttool_otel.integrations.facts import options_for
from agenttool_otel.integrations.foreign import ForeignTool, foreign_tool
from agenttool_otel.names import ToolKind
from agenttool_otel.records import A2aMapping

MESSAGE_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "message": {"type": "string", "description": "What the agent is asked to do."},
        "task_id": {
            "type": "string",
            "description": "The task that this message goes on with, where the agent asked for more.",
        },
    },
    "required": ["message"],
    "additionalProperties": False,
}
"""JSON Schema of the arguments of an agent that takes texts."""

_RUNNING: Final = (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING)
_DONE: Final = (TaskState.TASK_STATE_COMPLETED, TaskState.TASK_STATE_INPUT_REQUIRED)
_PREFIX: Final = "TASK_STATE_"
_NO_LETTERS: Final = re.compile(r"[^A-Za-z0-9-]+")
_CANCEL_SECONDS: Final = 5.0
"""How long a call that is canceled waits for the agent to take note of it."""


class A2aTaskFailed(AgentToolError):
    """A remote agent ended a task without a result: it failed, was rejected or was canceled.

    Attributes:
        state: ``failed``, ``rejected``, ``canceled`` or ``auth_required``.
        task_id: the id that the agent gave the task.
    """

    def __init__(self, state: str, text: str, task_id: str) -> None:
        super().__init__(f"the agent's task is {state}: {text}" if text else f"it is {state}")
        self.state = state
        self.task_id = task_id


class A2aAuthRequired(A2aTaskFailed, PermissionError):
    """A remote agent goes on with a task only for a client that has other credentials."""


def a2a_tool(
    card: AgentCard,
    client: Client,
    *,
    governor: Runtime | None = None,
    facts: GovernOptions | None = None,
    name: str = "",
    description: str = "",
    schema: Mapping[str, Any] | None = None,
    poll_seconds: float = 1.0,
) -> ForeignTool:
    """Declare a remote agent as an asynchronous tool.

    Args:
        card: The agent's card, which the client was made of.
        client: What sends the messages: ``await create_client(card)`` of the SDK.
        governor: The Governor; ``None`` for the default one.
        facts: Facts of the tool, as the keywords of ``govern``; they come before those that a remote agent
            implies.
        name: The tool's name for the model; where not given, the card's, in letters that models accept.
        description: Its description for the model; where not given, that of the card and of its skills,
            which the agent wrote.
        schema: JSON Schema of the arguments of an agent that takes data and no texts: they are sent as one
            data part. MESSAGE_SCHEMA where not given.
        poll_seconds: How often an agent is asked about a task that goes on after its answer.

    Raises:
        ConfigurationError: The card has no name, or the facts contradict each other.
    """
    name = name or _NO_LETTERS.sub("_", card.name).strip("_")
    if not name:
        raise ConfigurationError("the agent's card has no name")
    agent = _Agent(client, is_data=schema is not None, poll_seconds=poll_seconds)
    options = {
        "tool_kind": ToolKind.PEER_AGENT_TOOL.value,
        "access_kinds": ["network", "external_send"],
        "write_effects": ["remote_mutation"],
        "read_only": False,
        # what an agent answers others may have written
        "open_world": True,
        "result_trust": "free_text",
        "external_mappings": _mappings(card),
        **options_for({name: facts or GovernOptions()}, name),
    }
    tool = foreign_tool(
        name,
        MESSAGE_SCHEMA if schema is None else schema,
        source="a2a",
        description=description or _described(card),
        facts={name: cast(GovernOptions, options)},
        body=agent.ask,
        is_async=True,
        governor=governor,
    )
    tool.register()
    return tool


def _described(card: AgentCard) -> str:
    lines = [card.description or card.name]
    lines += [f"- {skill.name}: {skill.description}" for skill in card.skills]
    return "\n".join(lines)


def _mappings(card: AgentCard) -> list[dict[str, Any]]:
    """Return the agent's ids as the records have them: one mapping a skill, or one without a skill."""
    url = card.supported_interfaces[0].url if card.supported_interfaces else None
    skills: Sequence[str | None] = [skill.id for skill in card.skills] or [None]
    mappings = [A2aMapping(agent_card_url=url, agent_skill_id=skill) for skill in skills]
    return [mapping.model_dump(mode="json", exclude_none=True) for mapping in mappings]


# --- one call -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Answer:
    """What an agent has answered so far.

    Attributes:
        message: a message in place of a task, of an agent that keeps no tasks.
        task: the task, as it was reported last; without what came after it.
        task_id: its id; empty where there is no task.
        context_id: the conversation that it belongs to.
        is_stale: whether the agent has reported changes of the task since.
    """

    message: Message | None = None
    task: Task | None = None
    task_id: str = ""
    context_id: str = ""
    is_stale: bool = False

    def take(self, response: StreamResponse) -> None:
        """Add what a response reports."""
        kind = response.WhichOneof("payload")
        if kind is None:
            return
        reported = getattr(response, kind)
        self.context_id = reported.context_id
        if kind == "message":
            self.message = reported
            return
        self.task_id = reported.id if kind == "task" else reported.task_id
        self.is_stale = kind != "task"
        if kind == "task":
            self.task = reported


@dataclass(frozen=True, slots=True)
class _Agent:
    """What calls a remote agent: the body of its tool."""

    client: Client
    is_data: bool
    poll_seconds: float

    async def ask(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Send the arguments as a message, and return what the agent answers.

        Raises:
            A2aTaskFailed: The agent ended the task without a result.
        """
        message = self._message(arguments)
        answer = _Answer(task_id=message.task_id)
        try:
            await self._send(message, answer)
            return await self._result(answer)
        except asyncio.CancelledError:
            await self._cancel(answer.task_id)
            raise

    def _message(self, arguments: Mapping[str, Any]) -> Message:
        call = current_call()
        part = Part()
        if self.is_data:
            ParseDict(arguments, part.data)
        else:
            part.text = arguments["message"]
        return Message(
            # the same in each attempt of a call, so that an agent can know a repetition
            message_id=call.invocation_id if call is not None else str(uuid4()),
            role=Role.ROLE_USER,
            parts=[part],
            task_id="" if self.is_data else arguments.get("task_id", ""),
        )

    async def _send(self, message: Message, answer: _Answer) -> None:
        request = SendMessageRequest(message=message)
        responses: AsyncIterator[StreamResponse]
        responses = self.client.send_message(request, context=_context())
        async for response in responses:
            answer.take(response)

    async def _result(self, answer: _Answer) -> dict[str, Any]:
        if answer.message is not None:
            return _shown(answer.message.parts, [])
        while answer.task is None or answer.is_stale or answer.task.status.state in _RUNNING:
            if not answer.task_id:
                raise A2aTaskFailed("unknown", "the agent answered with no task and no message", "")
            if answer.task is not None and not answer.is_stale:
                await asyncio.sleep(self.poll_seconds)
            request = GetTaskRequest(id=answer.task_id)
            answer.task = await self.client.get_task(request, context=_context())
            answer.is_stale = False
        _map(answer)
        return _ended(answer.task)

    async def _cancel(self, task_id: str) -> None:
        """Cancel a task whose call is canceled; the agent need not agree."""
        if not task_id:
            return
        with suppress(Exception):
            async with asyncio.timeout(_CANCEL_SECONDS):
                await self.client.cancel_task(CancelTaskRequest(id=task_id), context=_context())


def _context() -> ClientCallContext:
    """Return the headers of a request: those of the trace, and no baggage, which is the program's own."""
    headers: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(headers)
    return ClientCallContext(service_parameters=headers)


def _map(answer: _Answer) -> None:
    call = current_call()
    if call is not None:
        call.map(A2aMapping(task_id=answer.task_id, context_id=answer.context_id or None))


# --- what a task holds --------------------------------------------------------------------------------


def _ended(task: Task) -> dict[str, Any]:
    """Return what a model sees of a task that has ended, or that waits for another message."""
    state = TaskState.Name(task.status.state).removeprefix(_PREFIX).lower()
    if task.status.state not in _DONE:
        kind = A2aAuthRequired if state == "auth_required" else A2aTaskFailed
        raise kind(state, _text(task.status.message.parts), task.id)
    shown = _shown(task.status.message.parts, task.artifacts)
    return {"state": state, "task_id": task.id, **shown}


def _shown(parts: Sequence[Part], artifacts: Sequence[Artifact]) -> dict[str, Any]:
    """Return texts, data and the names of files; the bytes of a file are left out."""
    every = [*parts, *(part for artifact in artifacts for part in artifact.parts)]
    shown: dict[str, Any] = {"text": _text(every)}
    data = [MessageToDict(part.data) for part in every if part.HasField("data")]
    files = [_file(part) for part in every if part.HasField("raw") or part.HasField("url")]
    if data:
        shown["data"] = data
    if files:
        shown["files"] = files
    return shown


def _text(parts: Sequence[Part]) -> str:
    return "\n".join(part.text for part in parts if part.HasField("text"))


def _file(part: Part) -> dict[str, Any]:
    described = {"name": part.filename, "media_type": part.media_type, "url": part.url}
    return {name: value for name, value in described.items() if value}
