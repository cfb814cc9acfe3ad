"""The hooks of coding agents: a payload in, what the agent's hook prints out.

An event before a call decides it, the event after it hands in its result. What ties the two together
is kept here, bounded, and lost with the process: then results are not recorded, and calls are decided
as before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from cachetools import LRUCache
from pydantic import ValidationError

from agenttool_otel.approvals.identity import args_digest
from agenttool_otel.approvals.types import ApprovalAnswer
from agenttool_otel.call.sandbox import host_holds
from agenttool_otel.coding_agents.answers import (
    SILENCE,
    HookOutput,
    allowed,
    asked,
    changed,
    denied,
)
from agenttool_otel.coding_agents.dialects import Dialect, dialect_of
from agenttool_otel.coding_agents.held_commands import held, profiles_of, words_of
from agenttool_otel.coding_agents.payloads import ABSENT, HookCall, read_payload
from agenttool_otel.errors import AgentToolError
from agenttool_otel.govern.governor import Governor
from agenttool_otel.names import AnswerWay, HookPart, ProblemType, RemoteState, SandboxProfile
from agenttool_otel.serve.agent_tools import AgentTools
from agenttool_otel.serve.calls import RemoteCalls
from agenttool_otel.serve.messages import (
    Action,
    CallContext,
    EvaluationRequest,
    RemoteCall,
    Resource,
    ResultRequest,
    StatedDelegator,
    Subject,
)
from agenttool_otel.serve.problems import Refusal, bad_request
from agenttool_otel.serve.rehearsals import AgentRehearsals, Order
from agenttool_otel.values.ids import new_id

_MOST_KEPT: Final = 10_000
_MAX_ERROR_CHARS: Final = 10_000
_ANSWERED: Final = frozenset({RemoteState.PERMITTED, RemoteState.REFUSED})
_AT_THE_DIALOG: Final = "user:dialog"
_CHANGED: Final = "the policy changes the arguments, and this agent takes no others"
_TWICE: Final = "a person is asked about the same call already"
_ENDED: Final = "the agent's session has ended"
_NOT_RUN: Final = "the command ended without asking about its changes"

Key = tuple[str, ...]


@dataclass
class _Begun:
    """A call that the agent may be running."""

    invocation_id: str
    digest: str  # of the arguments that the agent runs it with
    request_id: str = ""  # of the question that the agent's own dialog shows
    agreed: bool = False  # whether a person has agreed to it elsewhere
    on_layer: bool = False  # whether the command asks about its changes by itself


class HookCalls:
    """Answers the hooks of coding agents.

    Args:
        governor: who decides.
        calls: the calls of the decision point.
        agents: the agents whose hooks are answered, of ``AGENTS``.
        rehearsals: the commands that agents run on a layer.

    Raises:
        ConfigurationError: there is no such agent.
    """

    def __init__(
        self,
        governor: Governor,
        calls: RemoteCalls,
        agents: Iterable[str],
        rehearsals: AgentRehearsals,
    ) -> None:
        self._governor = governor
        self._calls = calls
        self._rehearsals = rehearsals
        self._tools = AgentTools(governor)
        self._dialects = {agent: dialect_of(agent) for agent in agents}
        for dialect in self._dialects.values():
            self._tools.declare(dialect)
        self._begun: LRUCache[Key, list[_Begun]] = LRUCache(_MOST_KEPT)
        self._asked: LRUCache[Key, str] = LRUCache(_MOST_KEPT)
        self._projects: LRUCache[Key, str] = LRUCache(_MOST_KEPT)

    async def answer(
        self, agent: str, event: str, payload: Mapping[str, Any], project: str
    ) -> HookOutput:
        """Answer one hook.

        Args:
            agent: the agent, as the installed command names it.
            event: the event, likewise.
            payload: what the agent sent.
            project: the project's folder, where the agent passes it; else empty.

        Raises:
            Refusal: this process answers no such agent, or the call can't be decided.
            PayloadInvalid: the payload is not what the dialect describes.
        """
        dialect = self._dialects.get(agent)
        if dialect is None:
            raise Refusal(ProblemType.NOT_FOUND, "the hooks of this agent are not answered here")
        call = read_payload(dialect, event, payload)
        if call.part is HookPart.DECIDE:
            return await self._decide(agent, dialect, call, project)
        if call.part is HookPart.PERMIT:
            return await self._permit(agent, dialect, call, project)
        # fails silent: the call has run
        with suppress(AgentToolError, Refusal):
            if call.part is HookPart.COMPLETE:
                await self._complete(agent, call)
            else:
                await self._end(agent, call)
        return SILENCE

    # --- before a call ----------------------------------------------------------------------------

    async def _decide(
        self, agent: str, dialect: Dialect, call: HookCall, project: str
    ) -> HookOutput:
        tool = self._tools.name_of(dialect, call)
        same = (agent, call.session, tool, call.cwd, call.sub_agent, _digest(call.arguments))
        order = await self._rehearsals.approved(self._asked.get(same, ""))
        if order is not None:
            self._asked.pop(same, None)
            return await self._rehearsed(agent, dialect, call, order, agreed=True)
        profiles = profiles_of(dialect, call)
        if not self._rehearsals.offered:
            profiles -= {SandboxProfile.REHEARSE}
        with host_holds(profiles):
            view = await self._answered(same)
        agreed = view is not None
        if view is None:
            request = self._request(agent, call, tool, project)
            view = await self._calls.decide(request, profiles)
        if view.state is RemoteState.PERMITTED:
            return await self._permitted(agent, dialect, call, view, same, agreed=agreed)
        if view.state is RemoteState.WAITING:
            return await self._waiting(agent, dialect, call, view, same)
        return denied(dialect, call, _reason(view))

    async def _permit(
        self, agent: str, dialect: Dialect, call: HookCall, project: str
    ) -> HookOutput:
        """Answer an agent that is about to ask a person."""
        begun = self._running(agent, dialect, call)
        if begun is None:
            # the hook before the call is not in place, or another process answered it
            return await self._decide(agent, dialect, call, project)
        # more than the call itself: outside of Codex' sandbox, which is another question
        is_same = begun.digest == _digest(call.arguments)
        if not begun.agreed or not is_same:
            return SILENCE
        begun.agreed = False  # once
        return allowed(dialect, call)

    def _running(self, agent: str, dialect: Dialect, call: HookCall) -> _Begun | None:
        """Return the call that was permitted with these arguments: the agent gives no id here."""
        request = dialect.answers.request
        added = request.adds if request is not None else ()
        arguments = dict(call.arguments or {})
        digests = {_digest(arguments)}
        for name in added:
            arguments.pop(name, None)
        digests.add(_digest(arguments))
        tool = (agent, call.session, call.tool)
        for place in [key for key in self._begun if key[:3] == tool]:
            for begun in self._begun[place]:
                if begun.digest in digests:
                    return begun
        return None

    async def _answered(self, same: Key) -> RemoteCall | None:
        """Return how the same call is that was asked about before; ``None`` where there is none."""
        known = self._asked.get(same)
        if known is None:
            return None
        try:
            view = await self._calls.wait(known, 0.0)
        except (AgentToolError, Refusal):
            view = None
        if view is not None and view.state is RemoteState.WAITING:
            return view
        # an answer is used once, also where the call is made twice at the same time
        if self._asked.pop(same, None) != known or view is None:
            return None
        # one whose time is over is asked for again
        return view if view.state in _ANSWERED else None

    def _request(self, agent: str, call: HookCall, tool: str, project: str) -> EvaluationRequest:
        labels = {"agent": agent, "turn": call.turn, "permission_mode": call.mode}
        call_id = call.call_id or new_id("call")
        arguments = dict(call.decided or {})
        roots = [self._project(agent, call, project)]
        try:
            started_by = [StatedDelegator(id=f"agent:{agent}", roots=roots)]
            context = CallContext(
                session_id=call.session,
                agent_name=call.sub_agent or agent,
                roots=roots,
                cwd=call.cwd,
                labels={name: word for name, word in labels.items() if word},
                chain=started_by if call.sub_agent else None,
            )
            # claude-code/Explore
            named = f"{agent}/{call.sub_agent}" if call.sub_agent else agent
            return EvaluationRequest(
                subject=Subject(type="agent", id=named),
                action=Action(name=tool),
                resource=Resource(type="tool_call", id=call_id, properties=arguments),
                context=context,
            )
        except ValidationError as error:
            # a directory that is not absolute, an id of 300 characters
            raise bad_request(error) from None

    def _project(self, agent: str, call: HookCall, project: str) -> str:
        """Return the root of a session: it does not widen when the agent changes its directory."""
        return self._projects.setdefault((agent, call.session), project or call.cwd)

    async def _permitted(
        self,
        agent: str,
        dialect: Dialect,
        call: HookCall,
        view: RemoteCall,
        same: Key,
        *,
        agreed: bool,
    ) -> HookOutput:
        arguments = view.arguments or {}
        profile = _profile(view)
        root = self._project(agent, call, "")
        if profile == SandboxProfile.REHEARSE:
            words = words_of(dialect, call, arguments)
            asked = partial(self._asked.setdefault, same, view.invocation_id)
            order = Order(view.invocation_id, words, (root,), arguments, asked)
            return await self._rehearsed(agent, dialect, call, order, agreed=agreed)
        if profile:
            arguments = held(dialect, call, arguments, profile, root)
        begun = _Begun(view.invocation_id, _digest(arguments), agreed=agreed)
        return await self._run_with(agent, dialect, call, arguments, begun)

    async def _rehearsed(
        self, agent: str, dialect: Dialect, call: HookCall, order: Order, *, agreed: bool
    ) -> HookOutput:
        """Let the agent run a command that asks again, with what it would change."""
        reference = self._rehearsals.reference(order)
        profile, root = SandboxProfile.REHEARSE.value, order.roots[0]
        arguments = held(dialect, call, order.arguments, profile, root, reference)
        begun = _Begun(order.invocation_id, _digest(arguments), agreed=agreed, on_layer=True)
        return await self._run_with(agent, dialect, call, arguments, begun)

    async def _run_with(
        self,
        agent: str,
        dialect: Dialect,
        call: HookCall,
        arguments: Mapping[str, Any],
        begun: _Begun,
    ) -> HookOutput:
        """Let the agent run a call with these arguments, or deny it where it takes no others."""
        output: HookOutput | None = SILENCE
        if arguments != call.decided:
            output = changed(dialect, call, arguments)
        if output is None:
            await self._cancel(begun.invocation_id, _CHANGED)
            return denied(dialect, call, _CHANGED)
        self._begin(agent, call, begun)
        return output

    async def _waiting(
        self, agent: str, dialect: Dialect, call: HookCall, view: RemoteCall, same: Key
    ) -> HookOutput:
        shown = asked(dialect, call, _reason(view))
        # a yes in the dialog would run the call as it was sent, held by nothing
        in_dialog = shown is not None and not _profile(view)
        if shown is not None and in_dialog and not await self._needs_a_role(view):
            request_id = view.request_id or ""
            begun = _Begun(view.invocation_id, _digest(call.arguments), request_id)
            self._begin(agent, call, begun)
            return shown
        if self._asked.setdefault(same, view.invocation_id) != view.invocation_id:
            # made twice at once: one question is enough
            await self._cancel(view.invocation_id, _TWICE)
            return denied(dialect, call, _TWICE)
        return denied(
            dialect,
            call,
            f"{_reason(view)}: a person is asked (request {view.request_id}); make the same call "
            "again when it is approved",
        )

    async def _needs_a_role(self, view: RemoteCall) -> bool:
        """Return whether not any one person may answer: who sits at the agent's dialog is not known."""
        store = self._governor.approvals.store
        request = await asyncio.to_thread(store.get, view.request_id or "")
        return bool(request.approver_roles) or request.needs_several

    # --- after a call -----------------------------------------------------------------------------

    async def _complete(self, agent: str, call: HookCall) -> None:
        begun = self._taken(agent, call)
        if begun is None:
            return
        if begun.on_layer:
            # the command itself has handed in its result
            await self._rehearsals.abandon(begun.invocation_id, _NOT_RUN)
            return
        if begun.request_id:
            await self._agreed(begun)
        await self._calls.complete(begun.invocation_id, _result(call))

    def _taken(self, agent: str, call: HookCall) -> _Begun | None:
        """Return the call that has ended, and forget it."""
        tool = (agent, call.session, call.tool)
        # without an id where it was decided: by its arguments
        for last in (call.call_id, _digest(call.arguments)):
            waiting = self._begun.get((*tool, last))
            if waiting:
                return waiting.pop(0)
        return None

    async def _agreed(self, begun: _Begun) -> None:
        """Record that a person agreed in the agent's dialog: the agent has run the call."""
        answer = ApprovalAnswer(
            approved=True, answered_by=_AT_THE_DIALOG, way=AnswerWay.AGENT_DIALOG
        )
        store = self._governor.approvals.store
        # it may have been answered on the approvals page while the dialog was open
        with suppress(AgentToolError):
            await asyncio.to_thread(store.answer, begun.request_id, answer)
        await self._calls.wait(begun.invocation_id, 0.0)

    async def _end(self, agent: str, call: HookCall) -> None:
        """Cancel what waits in a session that has ended."""
        session = (agent, call.session)
        self._projects.pop(session, None)
        for place in [key for key in self._begun if key[:2] == session]:
            for begun in self._begun.pop(place):
                await self._cancel(begun.invocation_id, _ENDED)
        for same in [key for key in self._asked if key[:2] == session]:
            await self._cancel(self._asked.pop(same), _ENDED)

    async def _cancel(self, invocation_id: str, reason: str) -> None:
        with suppress(AgentToolError, Refusal):
            await self._calls.cancel(invocation_id, reason)

    def _begin(self, agent: str, call: HookCall, begun: _Begun) -> None:
        """Note by what the end of a call is found: its id, or where it has none its arguments."""
        place = (agent, call.session, call.tool, call.call_id or begun.digest)
        self._begun.setdefault(place, []).append(begun)


def _profile(view: RemoteCall) -> str:
    """Return the profile that whoever runs a call has to hold it by; empty for none."""
    action = view.result.get("requires_action")
    if not isinstance(action, dict):
        # from another process: what was obliged is not known
        raise Refusal(ProblemType.CONFLICT, "the call was permitted elsewhere")
    return str(action.get("sandbox", ""))


def _digest(arguments: Mapping[str, Any] | None) -> str:
    return args_digest(dict(arguments or {}))


def _reason(view: RemoteCall) -> str:
    reason = view.reason or "not permitted"
    return f"{reason} ({view.rule})" if view.rule else reason


def _result(call: HookCall) -> ResultRequest:
    if call.error:
        return ResultRequest(error=call.error[:_MAX_ERROR_CHARS])
    return ResultRequest(result=None if call.result is ABSENT else call.result)
