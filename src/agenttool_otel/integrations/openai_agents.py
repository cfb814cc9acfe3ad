"""The door of the OpenAI Agents SDK: function tools of which each call is governed.

A denied call is answered with the reason. A call that a person is asked about interrupts the run;
``RunState.approve`` and ``reject`` are recorded as answers to the approval request, in this process
or another.
"""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn

from agents import Agent, FunctionTool, RunContextWrapper
from agents.tool import maybe_invoke_function_tool_failure_error_function
from agents.tool_context import ToolContext

from agenttool_otel.approvals.types import ApprovalAnswer, StoredCall
from agenttool_otel.call.runtime import Runtime
from agenttool_otel.catalog import GovernOptions
from agenttool_otel.errors import AgentToolError, ApprovalError, ConfigurationError
from agenttool_otel.integrations.facts import options_for
from agenttool_otel.integrations.foreign import (
    ForeignCall,
    ForeignTool,
    declare_foreign,
    read_arguments,
)
from agenttool_otel.names import ApprovalStatus, Behavior

_SOURCE: Final = "openai_agents"
_ANSWERED_BY: Final = "openai_agents:run_state"
"""Who answered: the framework keeps no name."""

# a rejected call goes on to its refusal, and is not asked about again
_MAY_GO_ON: Final = (ApprovalStatus.PENDING, ApprovalStatus.APPROVED, ApprovalStatus.REJECTED)
_MOST_REQUESTS: Final = 1_000
_MARK: Final = "_agenttool_handle"
"""Attribute of a governed tool with what is declared of it."""


def govern_agent(
    agent: Agent[Any],
    governor: Runtime | None = None,
    *,
    facts: Mapping[str, GovernOptions] | None = None,
) -> Agent[Any]:
    """Return a copy of an agent of which all tools are governed, and those of its handoffs.

    Args:
        agent: The agent.
        governor: The Governor; ``None`` for the default one.
        facts: Facts of its tools by name or glob.

    Raises:
        ConfigurationError: It has tools that don't pass this door: a provider's, an MCP server's, or
            of an agent behind a ``Handoff`` object.
    """
    return _governed_agent(agent, governor, facts or {}, {})


def _governed_agent(
    agent: Agent[Any],
    governor: Runtime | None,
    facts: Mapping[str, GovernOptions],
    made: dict[int, Agent[Any]],
) -> Agent[Any]:
    known = made.get(id(agent))
    if known is not None:
        return known
    _refuse_unseen(agent)
    # first made, then filled: two agents may hand over to each other
    governed = made[id(agent)] = agent.clone()
    governed.tools = []
    for tool in agent.tools:
        if not isinstance(tool, FunctionTool):
            continue
        if not is_governed(tool):
            tool = govern_function_tool(tool, governor, options_for(facts, tool.name))
        governed.tools.append(tool)
    governed.handoffs = []
    for other in agent.handoffs:
        if isinstance(other, Agent):
            governed.handoffs.append(_governed_agent(other, governor, facts, made))
    return governed


def _refuse_unseen(agent: Agent[Any]) -> None:
    """Raise for what an agent calls that does not pass this door."""
    unseen = _foreign_to(agent)
    if unseen:
        raise ConfigurationError(f"of the agent {agent.name} nothing governs {', '.join(unseen)}")


def _foreign_to(agent: Agent[Any]) -> list[str]:
    unseen = [f"the MCP server {server.name}" for server in agent.mcp_servers]
    for tool in agent.tools:
        if not isinstance(tool, FunctionTool):
            unseen.append(f"the tool {tool.name}")
        elif tool._is_agent_tool and not is_governed(tool):
            unseen.append(f"the agent behind the tool {tool.name}")
    for other in agent.handoffs:
        if not isinstance(other, Agent):
            unseen.append(f"the handoff {other.tool_name}")
    return unseen


def unseen_behind(agent: Agent[Any]) -> list[str]:
    """Return what nothing governs of an agent and of those that it hands over to.

    Args:
        agent: The agent.
    """
    unseen: list[str] = []
    seen: set[int] = set()
    waiting = [agent]
    while waiting:
        found = waiting.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        unseen.extend(_foreign_to(found))
        for tool in found.tools:
            if isinstance(tool, FunctionTool) and not is_governed(tool) and not tool._is_agent_tool:
                unseen.append(tool.name)
        waiting.extend(other for other in found.handoffs if isinstance(other, Agent))
    return unseen


def is_governed(tool: Any) -> bool:
    """Return whether the calls of a tool are governed.

    Args:
        tool: A tool of an agent.
    """
    return isinstance(getattr(tool, "__dict__", {}).get(_MARK), ForeignTool)


def govern_function_tool(
    tool: FunctionTool, governor: Runtime | None, options: GovernOptions
) -> FunctionTool:
    """Return a governed copy of a tool; ``govern(tool)`` calls this.

    Args:
        tool: The tool.
        governor: The Governor; ``None`` for the default one.
        options: Facts of the tool.
    """
    handle = declare_foreign(
        _SOURCE,
        tool.name,
        description=tool.description or tool.name,
        schema=tool.params_json_schema,
        body=_only_in_a_run,
        is_async=True,
        governor=governor,
        options=options,
    )
    handle.register()
    governed = copy.copy(tool)
    setattr(governed, _MARK, handle)
    door = _Door(handle, tool, governed)
    governed.on_invoke_tool = door.invoke
    governed.needs_approval = door.needs_approval
    governed.is_enabled = door.is_enabled
    return governed


def _only_in_a_run(arguments: Any) -> NoReturn:
    raise TypeError("the Agents SDK runs this tool, in a run of its agent")


class _Door:
    """What the SDK calls of a governed tool."""

    def __init__(self, handle: ForeignTool, tool: FunctionTool, governed: FunctionTool) -> None:
        self._handle = handle
        self._author = tool
        self._governed = governed
        # an error has to reach the Governor before the SDK makes a text of it
        self._inner = copy.copy(tool)
        self._inner._failure_error_function = None
        self._inner._use_default_failure_error_function = False

    async def invoke(self, context: ToolContext[Any], arguments: str) -> Any:
        """Decide a call, and run it if it may run."""
        call = AgentsCall(self._handle, arguments, context.tool_call_id)
        if context.is_tool_approved(self._handle.spec.name, context.tool_call_id) is True:
            call.continue_asked()

        async def body(read: dict[str, Any]) -> Any:
            return await self._inner.on_invoke_tool(context, json.dumps(read))

        try:
            return await call.arun(body)
        except AgentToolError:
            raise
        except Exception as error:
            text = await maybe_invoke_function_tool_failure_error_function(
                function_tool=self._governed, context=context, error=error
            )
            if text is None:
                raise
            return text

    async def needs_approval(
        self, context: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str
    ) -> bool:
        """Return whether the run has to stop for a person; the request is stored here."""
        if self._handle.governor.approvals.approver is not None:
            # it is asked while the call runs, and the run goes on
            pass
        elif self._handle.check(arguments).behavior is Behavior.ASK:
            await AgentsCall(self._handle, arguments, call_id).arun(_not_yet)
            return True
        stated = self._author.needs_approval
        if callable(stated):
            return bool(await stated(context, arguments, call_id))
        return bool(stated)

    async def is_enabled(self, context: RunContextWrapper[Any], agent: Any) -> bool:
        """Return whether the tool is a part of the next request.

        The SDK calls this at the start of each turn: rejections are seen here, for a rejected call
        does not reach its tool any more.
        """
        self._record_rejections(context)
        stated = self._author.is_enabled
        if not callable(stated):
            return bool(stated)
        answer = stated(context, agent)
        return bool(await answer if inspect.isawaitable(answer) else answer)

    def _record_rejections(self, context: RunContextWrapper[Any]) -> None:
        name = self._handle.spec.name
        for stored in _waiting(self._handle, ApprovalStatus.PENDING):
            call_id = str(stored.context.get("native_call_id") or "")
            if not call_id or context.is_tool_approved(name, call_id) is not False:
                continue
            reason = context.get_rejection_message(name, call_id) or ""
            answer = ApprovalAnswer(approved=False, answered_by=_ANSWERED_BY, reason=reason)
            try:
                self._handle.answer(stored.request.invocation_id, answer)
            except ApprovalError:
                # answered on the approval page in the meantime: nothing runs in either case
                continue


async def _not_yet(arguments: Any) -> NoReturn:
    # the policy changed between two decisions: a person is asked, and nothing runs
    raise TypeError("a person has to be asked first")


class AgentsCall(ForeignCall):
    """One call of a function tool.

    Args:
        handle: The tool, as it is declared.
        arguments: What the model sent, as JSON text or read.
        call_id: The model's id of the call.
    """

    def __init__(
        self, handle: ForeignTool, arguments: Mapping[str, Any] | str, call_id: str
    ) -> None:
        super().__init__(handle, arguments, call_id)
        self._handle = handle

    def continue_asked(self) -> None:
        """Go on with the request that the run's approval is for, if there is one; else the call is
        decided as a new one.
        """
        stored = self._asked()
        if stored is None:
            return
        if stored.answer is None:
            answer = ApprovalAnswer(approved=True, answered_by=_ANSWERED_BY)
            self.runtime.approvals.store.answer(stored.request.request_id, answer)
        self._arguments = None
        self.resume(stored.request.invocation_id)

    def _asked(self) -> StoredCall | None:
        try:
            arguments = read_arguments(str(self._arguments))
        except TypeError:
            # such a call is refused when it runs, with a span
            return None
        for status in _MAY_GO_ON:
            for stored in _waiting(self._handle, status):
                same = stored.original_arguments == arguments
                if same and stored.context.get("native_call_id") == self.call.native_call_id:
                    return stored
        return None

    def refusal(self) -> Any:
        """Return what the model reads of a call that did not run."""
        return self.result.summary or f"{self.call.spec.name} did not run"


def _waiting(handle: ForeignTool, status: ApprovalStatus) -> Iterator[StoredCall]:
    store = handle.governor.approvals.store
    for request in store.list(status, limit=_MOST_REQUESTS):
        if request.tool_id == handle.spec.tool_id:
            yield store.stored_call(request.invocation_id)
