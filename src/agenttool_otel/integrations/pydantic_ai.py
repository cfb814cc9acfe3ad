"""The door of Pydantic AI: a toolset of which each call is governed, and a capability that puts it
around all tools of an agent.

A denied call raises ``ToolFailed``, which the model reads; a call that a person is asked about
raises the framework's ``ApprovalRequired``, so that the run ends with ``DeferredToolRequests``. The
answers that the next run is given are recorded as those of the approval request, rejections
included, in this process or another.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic_ai import RunContext
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ApprovalRequired, ToolFailed
from pydantic_ai.messages import ModelMessage, ToolReturn, ToolReturnPart
from pydantic_ai.toolsets import (
    AbstractToolset,
    CombinedToolset,
    FunctionToolset,
    ToolsetTool,
    WrapperToolset,
)
from pydantic_core import to_jsonable_python

from agenttool_otel.approvals.types import ApprovalAnswer, StoredCall
from agenttool_otel.call.binding import PlainArguments, json_values
from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.runtime import Runtime
from agenttool_otel.call.tool import GovernedTool
from agenttool_otel.catalog import GovernOptions
from agenttool_otel.errors import ApprovalError
from agenttool_otel.govern.governed import governed_inside
from agenttool_otel.integrations.facts import options_for
from agenttool_otel.integrations.foreign import ForeignCall, ForeignTool, foreign_tool
from agenttool_otel.names import ApprovalStatus, ResultStatus
from agenttool_otel.values.snapshot import snapshot

_SOURCE = "pydantic_ai"
_ANSWERED_BY = "pydantic_ai:deferred_tool_results"
"""Who answered, where the program does not state it: the framework keeps no name."""

# a rejected call goes on to its refusal, and is not asked about again
_MAY_GO_ON: Final = (ApprovalStatus.PENDING, ApprovalStatus.APPROVED, ApprovalStatus.REJECTED)
_MOST_REQUESTS = 1_000


def govern_toolset(
    toolset: AbstractToolset[Any], governor: Runtime | None, options: GovernOptions
) -> GovernedToolset:
    """Return a governed toolset; ``govern(toolset, ...)`` calls this.

    Args:
        toolset: Any toolset of Pydantic AI, one of an MCP server included.
        governor: The Governor; ``None`` for the default one.
        options: Facts that all its tools have.
    """
    return GovernedToolset(toolset, governor, {"*": options})


@dataclass
class GovernedToolset(WrapperToolset[Any]):
    """A toolset of which each call is decided before it runs.

    Attributes:
        governor: The Governor; ``None`` for the default one.
        facts: Facts of tools by name or glob.
        hides: Whether a model is not shown what the surface policy hides (docs/surfaces.md).
    """

    governor: Runtime | None = None
    facts: Mapping[str, GovernOptions] = field(default_factory=dict)
    hides: bool = False
    _handles: dict[str, tuple[str, ForeignTool]] = field(default_factory=dict, repr=False)

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the tools that a model is shown, each as it is without governance."""
        tools = await super().get_tools(ctx)
        handles = {name: self._handle(name, tool) for name, tool in tools.items()}
        _record_rejections(handles, ctx.messages)
        if not self.hides:
            return tools
        return {name: tool for name, tool in tools.items() if handles[name].visible()}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Decide one call, and run it if it may run.

        Raises:
            ToolFailed: It did not run; the message is for the model.
            ApprovalRequired: A person is asked about it.
        """
        call = PydanticCall(self._handle(name, tool), tool_args, ctx, tool)
        if ctx.tool_call_approved:
            await asyncio.to_thread(call.continue_asked)

        async def body(arguments: dict[str, Any]) -> Any:
            await call.check_changed(arguments)
            return await super(GovernedToolset, self).call_tool(name, arguments, ctx, tool)

        return await call.arun(body)

    def _handle(self, name: str, tool: ToolsetTool[Any]) -> ForeignTool:
        definition = tool.tool_def
        schema = definition.parameters_json_schema
        # a tool's prepare function may give another schema in each step
        key = json.dumps([schema, definition.description], sort_keys=True, default=str)
        known = self._handles.get(name)
        if known is not None and known[0] == key:
            return known[1]
        handle = foreign_tool(
            name,
            schema,
            source=_SOURCE,
            description=definition.description or "",
            facts={name: options_for(self.facts, name)},
            is_async=True,
            governor=self.governor,
        )
        handle.register()
        self._handles[name] = (key, handle)
        return handle


@dataclass
class Governance(AbstractCapability[Any]):
    """A capability that governs all tools of an agent: its own functions and its toolsets.

    Attributes:
        governor: The Governor; ``None`` for the default one.
        facts: Facts of tools by name or glob.
        hides: Whether a model is not shown what the surface policy hides (docs/surfaces.md).
    """

    governor: Runtime | None = None
    facts: Mapping[str, GovernOptions] = field(default_factory=dict)
    hides: bool = False
    # a run makes a toolset of its own: what was declared for another one stays
    _handles: dict[str, tuple[str, ForeignTool]] = field(default_factory=dict, repr=False)

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        """Return the agent's assembled toolset, governed."""
        return GovernedToolset(toolset, self.governor, self.facts, self.hides, self._handles)


def unseen_behind(agent: AbstractAgent[Any, Any]) -> list[str]:
    """Return what nothing governs of an agent.

    Args:
        agent: The agent; what a run of it adds is not seen.
    """
    guards: list[AbstractCapability[Any]] = []

    def note(capability: AbstractCapability[Any]) -> None:
        if isinstance(capability, Governance):
            guards.append(capability)

    agent.root_capability.apply(note)
    if guards:
        return []
    unseen: list[str] = []
    for toolset in agent.toolsets:
        unseen.extend(_unseen_of(toolset))
    return unseen


def _unseen_of(toolset: AbstractToolset[Any]) -> list[str]:
    if isinstance(toolset, GovernedToolset):
        return []
    if isinstance(toolset, FunctionToolset):
        return [name for name, tool in toolset.tools.items() if not _is_governed(tool.function)]
    if isinstance(toolset, WrapperToolset):
        return _unseen_of(toolset.wrapped)
    if isinstance(toolset, CombinedToolset):
        return [name for inner in toolset.toolsets for name in _unseen_of(inner)]
    # its tools are known in a run only, as those of an MCP server
    return [f"the tools of {toolset.label}"]


def _is_governed(function: Any) -> bool:
    return governed_inside(function) is not None


class PydanticCall(ForeignCall):
    """One call of a tool of Pydantic AI.

    Its body takes the arguments as Pydantic has validated them; a policy and a person see them as
    JSON.

    Args:
        handle: The tool, as it is declared.
        arguments: The validated arguments.
        ctx: The run's context.
        tool: The tool.
    """

    def __init__(
        self,
        handle: GovernedTool,
        arguments: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],
    ) -> None:
        super().__init__(handle, arguments, ctx.tool_call_id)
        self._values: dict[str, Any] | None = arguments
        self._ctx = ctx
        self._tool = tool
        self._changed = False

    def bind(self, call: Invocation) -> None:
        """Show the policy the arguments as JSON; the body gets a copy of the validated ones."""
        if self._values is None:
            super().bind(call)
            self._use_json(call, call.inputs.model_input)
            return
        values = snapshot(self._values)
        call.inputs.model_input = self._as_json(values)
        _use(call, values)

    def plain_arguments(self) -> PlainArguments | None:
        """Return the validated arguments and their JSON, where that is plain."""
        if self._values is None:
            return None
        values = snapshot(self._values)
        shown = self._as_json(values)
        read = json_values(shown)
        return None if read is None else read._replace(bound=values, shown=shown)

    def rebind(self, call: Invocation, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Validate changed arguments as the framework validates those of a model."""
        self._changed = True
        self._use_json(call, after)

    def _use_json(self, call: Invocation, arguments: Mapping[str, Any]) -> None:
        read = self._tool.args_validator.validate_json(
            json.dumps(arguments), context=self._ctx.validation_context
        )
        _use(call, read)

    def _as_json(self, values: dict[str, Any]) -> dict[str, Any]:
        shown = to_jsonable_python(values)
        tool: Any = self._tool
        # a toolset of several keeps the tool as its own toolset made it
        while (inner := getattr(tool, "source_tool", None)) is not None:
            tool = inner
        function_schema = getattr(getattr(tool, "call_func", None), "__self__", None)
        # def search(query: Query): a model sends the fields of Query, the body gets {"query": Query}
        envelope = getattr(function_schema, "single_arg_name", None)
        if envelope is not None:
            shown = shown[envelope]
        if not isinstance(shown, dict):
            raise TypeError("the arguments are no JSON object")
        return shown

    async def check_changed(self, arguments: dict[str, Any]) -> None:
        """Have the tool's own validator look at arguments that a person, a hook or a policy changed.

        Args:
            arguments: What is about to run.
        """
        check = self._tool.args_validator_func
        if check is None or not self._changed:
            return
        checked = check(self._ctx, **arguments)
        if inspect.isawaitable(checked):
            await checked

    def continue_asked(self) -> None:
        """Go on with the request that the framework's answer is for, if there is one; else the call
        is decided as a new one.
        """
        arguments = self._as_json(self._values or {})
        stored = _asked(self.call.spec.tool_id, self.runtime, self._ctx, arguments)
        if stored is None:
            return
        if stored.answer is None:
            edited = None if arguments == stored.original_arguments else arguments
            _answer(self.runtime, stored, edited_input=edited, approved=True)
        self._values = None
        self._arguments = None
        self.resume(stored.request.invocation_id)

    def unwrap(self, value: Any) -> Any:
        """Return what a model sees: of a ``ToolReturn``, its value and its content."""
        if not isinstance(value, ToolReturn):
            return value
        if value.content is None:
            return value.return_value
        return {"return_value": value.return_value, "content": value.content}

    def put(self, value: Any, shown: Any) -> Any:
        """Return the result with another content; what else a ``ToolReturn`` has for the program stays."""
        if not isinstance(value, ToolReturn):
            return shown
        if value.content is None or not isinstance(shown, Mapping):
            return ToolReturn(return_value=shown, metadata=value.metadata)
        return ToolReturn(
            return_value=shown.get("return_value"),
            content=shown.get("content"),
            metadata=value.metadata,
        )

    def refusal(self) -> Any:
        """Raise what the framework makes an answer to its model of, or a deferred request."""
        result = self.result
        request = self.call.decision.request
        if result.status is ResultStatus.PENDING and request is not None:
            raise ApprovalRequired(
                {
                    "invocation_id": self.call.id,
                    "request_id": request.request_id,
                    "message": request.message,
                }
            )
        raise ToolFailed(result.summary or f"{self.call.spec.name} did not run")


def _use(call: Invocation, values: dict[str, Any]) -> None:
    call.inputs.bound = values
    call.call_args = (values,)
    call.call_kwargs = {}


# --- answers --------------------------------------------------------------------------------------


def _asked(
    tool_id: str, runtime: Runtime, ctx: RunContext[Any], arguments: Mapping[str, Any]
) -> StoredCall | None:
    """Return the request that waits for the call that the framework goes on with."""
    metadata = ctx.tool_call_metadata
    if isinstance(metadata, Mapping) and "invocation_id" in metadata:
        return runtime.approvals.waiting(str(metadata["invocation_id"]))
    found = list(_waiting(tool_id, runtime, {ctx.tool_call_id or ""}))
    same = [stored for stored in found if stored.original_arguments == arguments]
    # a model may use an id twice: then only the arguments make sure which call it is
    for candidates in (same, found):
        if len(candidates) == 1:
            return candidates[0]
    return None


def _waiting(tool_id: str, runtime: Runtime, call_ids: Iterable[str]) -> Iterator[StoredCall]:
    store = runtime.approvals.store
    wanted = set(call_ids)
    for status in _MAY_GO_ON:
        for request in store.list(status, limit=_MOST_REQUESTS):
            if request.tool_id != tool_id:
                continue
            stored = store.stored_call(request.invocation_id)
            if stored.context.get("native_call_id") in wanted:
                yield stored


def _answer(runtime: Runtime, stored: StoredCall, **answer: Any) -> None:
    given = ApprovalAnswer(answered_by=_ANSWERED_BY, **answer)
    runtime.approvals.store.answer(stored.request.request_id, given)


def _record_rejections(handles: Mapping[str, ForeignTool], messages: list[ModelMessage]) -> None:
    """Record what a person rejected in the framework: ``ToolDenied`` calls no tool any more."""
    for part in _denied(messages):
        handle = handles.get(part.tool_name)
        if handle is None:
            continue
        for stored in _waiting(handle.spec.tool_id, handle.governor, {part.tool_call_id}):
            if stored.answer is not None:
                continue
            reason = part.content if isinstance(part.content, str) else ""
            answer = ApprovalAnswer(approved=False, answered_by=_ANSWERED_BY, reason=reason)
            try:
                handle.answer(stored.request.invocation_id, answer)
            except ApprovalError:
                # answered on the approval page in the meantime: nothing runs in either case
                continue


def _denied(messages: list[ModelMessage]) -> list[ToolReturnPart]:
    parts = messages[-1].parts if messages else ()
    denied = []
    for part in parts:
        if isinstance(part, ToolReturnPart) and part.outcome == "denied":
            denied.append(part)
    return denied
