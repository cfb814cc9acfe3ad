"""The calls of a decision point's clients: decided here, run there, and ended here by a result.

A permitted call is one of a custom tool, which waits for its result in the Governor
(``call/pending/required.py``); what is kept here is what a client may ask for again: its answer, by
its own call id. All of it is bounded, and lost with the process: a client that has no answer runs
nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from cachetools import LRUCache

from agenttool_otel.approvals.identity import args_digest
from agenttool_otel.approvals.types import ApprovalRequest, StoredCall
from agenttool_otel.call.complete import arehearsed_call
from agenttool_otel.call.pending.required_action import RequiredAction
from agenttool_otel.call.sandbox import host_holds
from agenttool_otel.enforcement import CommandResult
from agenttool_otel.errors import AgentToolError, ApprovalNotFound, InvocationNotFound
from agenttool_otel.govern.governor import Governor
from agenttool_otel.names import (
    ApprovalStatus,
    ProblemType,
    RemoteState,
    ResultStatus,
    SandboxProfile,
)
from agenttool_otel.records import ToolResult
from agenttool_otel.serve.caller import caller
from agenttool_otel.serve.evaluations import tool_of
from agenttool_otel.serve.limits import Limits
from agenttool_otel.serve.messages import EvaluationRequest, RemoteCall, ResultRequest
from agenttool_otel.serve.problems import Refusal

POLL_SECONDS: Final = 0.25
"""How often a waiting request looks for a person's answer."""
_SUCCEEDED: Final = frozenset({ResultStatus.SUCCEEDED, ResultStatus.PARTIAL_SUCCEEDED})
_OPEN: Final = frozenset({RemoteState.PERMITTED, RemoteState.WAITING})

Key = tuple[str, ...]


@dataclass(eq=False)
class _Entry:
    """One call that a client may ask about again."""

    digest: str  # of what was asked for
    size: int  # bytes of what was asked for
    since: float  # since when it waits as it does, in seconds of the monotonic clock
    key: Key | None = None  # of the client's own id; ``None`` where another process was asked
    deciding: asyncio.Task[RemoteCall] | None = None
    view: RemoteCall | None = None  # how it is; ``None`` until it is decided
    result_digest: str = ""  # of the result that was handed in
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_open(self) -> bool:
        """Whether it is not over."""
        return self.view is None or self.view.state in _OPEN


class RemoteCalls:
    """The calls of one decision point.

    Args:
        governor: who decides.
        limits: how much there may be of everything.
    """

    def __init__(self, governor: Governor, limits: Limits) -> None:
        self._governor = governor
        self._limits = limits
        self._open: dict[Key | str, _Entry] = {}
        self._open_bytes = 0
        # those that have ended, by the client's own id and by ours
        self._ended: LRUCache[str, _Entry] = LRUCache(limits.remembered)
        self._sessions: dict[tuple[str, str, str], float] = {}
        self._ids: dict[Key, str] = {}
        self.closing = asyncio.Event()

    # --- deciding ---------------------------------------------------------------------------------

    async def decide(
        self, request: EvaluationRequest, holds: Iterable[SandboxProfile] = ()
    ) -> RemoteCall:
        """Decide a call; the same call, sent again under the same id, has the same answer.

        Args:
            request: the call.
            holds: the profiles by which whoever runs it can hold it.

        Raises:
            Refusal: the id was used for another call, or there are too many calls or sessions.
        """
        with caller(request, self._governor.settings.roots) as context, host_holds(holds):
            filled = self._governor.effective(context)
            key = (*filled.session_key, filled.actor, request.resource.id)
            digest = args_digest(request.model_dump(mode="json"))
            entry = self._known(key)
            if entry is None:
                self._admit_session(filled.session_key)
                entry = self._admit(key, digest, len(request.model_dump_json()))
                entry.deciding = asyncio.create_task(self._decide(entry, request))
        if entry.digest != digest:
            raise Refusal(ProblemType.CONFLICT, "this call id was used for another call")
        if entry.view is None and entry.deciding is not None:
            # a client that leaves does not end the decision: it will ask again
            return await asyncio.shield(entry.deciding)
        return _view_of(entry)

    async def _decide(self, entry: _Entry, request: EvaluationRequest) -> RemoteCall:
        tool = tool_of(self._governor, request.action.name)
        try:
            result = await tool.ainvoke(request.resource.properties)
        except BaseException:
            self._forget(entry)
            raise
        return self._take(entry, _view(request.resource.id, tool.spec.tool_id, result))

    def _known(self, key: Key) -> _Entry | None:
        open_entry = self._open.get(key)
        if open_entry is not None:
            return open_entry
        return self._ended.get(self._ids.get(key, ""))

    def _admit(self, key: Key, digest: str, size: int) -> _Entry:
        limits = self._limits
        # each is there by the client's id and by ours
        is_full = len(self._open) >= 2 * limits.open_calls
        if is_full or self._open_bytes + size > limits.open_bytes:
            raise Refusal(ProblemType.BUSY, "too many calls wait for an answer or a result")
        entry = self._open[key] = _Entry(digest, size, time.monotonic(), key)
        self._open_bytes += size
        return entry

    def _admit_session(self, session: tuple[str, str, str]) -> None:
        """Refuse a session beyond the limit: to forget another one would give it a new budget."""
        now = time.monotonic()
        self._sessions.pop(session, None)
        oldest_first = list(self._sessions.items())
        for other, used in oldest_first:
            if now - used < self._limits.session_seconds:
                break
            del self._sessions[other]
        if len(self._sessions) >= self._limits.sessions:
            raise Refusal(ProblemType.BUSY, "too many sessions")
        self._sessions[session] = now

    def _take(self, entry: _Entry, view: RemoteCall) -> RemoteCall:
        """Note how a call is now."""
        entry.view = view
        if entry.is_open:
            entry.since = time.monotonic()
            self._open[view.invocation_id] = entry
            return view
        self._forget(entry)
        self._ended[view.invocation_id] = entry
        if entry.key is not None:
            self._ids[entry.key] = view.invocation_id
            self._drop_ids()
        return view

    def _drop_ids(self) -> None:
        """Forget the clients' ids of calls that are remembered no more."""
        if len(self._ids) > 2 * self._limits.remembered:
            self._ids = {key: known for key, known in self._ids.items() if known in self._ended}

    def _forget(self, entry: _Entry) -> None:
        known = None if entry.view is None else entry.view.invocation_id
        removed = [self._open.pop(key, None) for key in (entry.key, known) if key is not None]
        if any(removed):
            self._open_bytes -= entry.size

    # --- waiting for a person ---------------------------------------------------------------------

    async def wait(self, invocation_id: str, seconds: float) -> RemoteCall:
        """Return how a call is; one that waits for a person when it is answered, or after a time.

        Args:
            invocation_id: the call.
            seconds: how long to wait at most.

        Raises:
            Refusal: the approval store has another answer than one to this call.
        """
        entry = await self._find(invocation_id)
        until = time.monotonic() + min(seconds, self._limits.wait_seconds)
        while _view_of(entry).state is RemoteState.WAITING:
            async with entry.lock:
                await self._go_on(entry)
            left = until - time.monotonic()
            if left <= 0 or self.closing.is_set():
                break
            if _view_of(entry).state is RemoteState.WAITING:
                await self._pause(min(POLL_SECONDS, left))
        return _view_of(entry)

    async def look(self, invocation_id: str) -> RemoteCall:
        """Return how a call is; one that a person has answered does not go on by that.

        Args:
            invocation_id: the call.
        """
        return _view_of(await self._find(invocation_id))

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self.closing.wait(), seconds)

    async def _go_on(self, entry: _Entry) -> None:
        """Decide a call again that a person has answered."""
        view = _view_of(entry)
        if view.state is not RemoteState.WAITING or not await self._is_answered(view):
            return
        result = await self._governor.aresume(view.invocation_id)
        self._take(entry, _view(view.call_id, view.tool_id, result))

    async def _is_answered(self, view: RemoteCall) -> bool:
        if not view.request_id:
            return False
        approvals = self._governor.approvals
        request: ApprovalRequest = await asyncio.to_thread(
            lambda: approvals.store.get(view.request_id or "")
        )
        return request.status is not ApprovalStatus.PENDING

    # --- ending -----------------------------------------------------------------------------------

    async def complete(self, invocation_id: str, request: ResultRequest) -> RemoteCall:
        """Take the result of a permitted call; the same result, sent again, has the same answer.

        Args:
            invocation_id: the call.
            request: its result, or what went wrong.

        Raises:
            Refusal: neither was given, or both; or the call may not run, or has another result.
        """
        fields = request.model_fields_set
        # {"error": null} states neither
        if fields != {"result"} and (fields != {"error"} or request.error is None):
            raise Refusal(ProblemType.BAD_REQUEST, "a call ends with a result or with an error")
        digest = args_digest(request.model_dump(mode="json", exclude_unset=True))
        entry = await self._find(invocation_id)
        async with entry.lock:
            view = _view_of(entry)
            if view.state is RemoteState.COMPLETED and entry.result_digest == digest:
                return view
            if view.state is not RemoteState.PERMITTED:
                raise Refusal(ProblemType.CONFLICT, f"the call is {view.state.value}")
            # the whole of it, also for a client that leaves meanwhile
            ended = await _finished(self._governor.acomplete(invocation_id, **_outcome(request)))
            entry.result_digest = digest
            done = _view(view.call_id, view.tool_id, ended, RemoteState.COMPLETED)
            return self._take(entry, done)

    async def rehearsed(
        self, invocation_id: str, layer: str, digest: str, result: CommandResult
    ) -> RemoteCall:
        """Take the layer on which a permitted command has run; what it would change is decided.

        Args:
            invocation_id: the call.
            layer: the sealed layer.
            digest: the layer's digest.
            result: how the command ended.

        Raises:
            Refusal: the call does not wait for its result.
            ResultInvalid: the layer is not one of this call.
        """
        entry = await self._find(invocation_id)
        async with entry.lock:
            view = _view_of(entry)
            if view.state is not RemoteState.PERMITTED:
                raise Refusal(ProblemType.CONFLICT, f"the call is {view.state.value}")
            work = arehearsed_call(self._governor, invocation_id, layer, digest, result)
            settled = await _finished(work)
            return self._take(entry, _view(view.call_id, view.tool_id, settled))

    async def cancel(self, invocation_id: str, reason: str) -> RemoteCall:
        """End a call that waits for a person or for its result.

        Args:
            invocation_id: the call.
            reason: why.

        Raises:
            Refusal: it has ended already.
        """
        entry = await self._find(invocation_id)
        async with entry.lock:
            view = _view_of(entry)
            if view.state not in _OPEN:
                if view.state is RemoteState.CANCELED:
                    return view
                raise Refusal(ProblemType.CONFLICT, f"the call is {view.state.value}")
            ended = await _finished(self._governor.ainterrupt(invocation_id, reason))
            canceled = _view(view.call_id, view.tool_id, ended, RemoteState.CANCELED)
            return self._take(entry, canceled)

    async def sweep(self) -> None:
        """End the calls whose time is over, so that nothing is kept for a client that is gone."""
        now = time.monotonic()
        for entry in set(self._open.values()):
            view = entry.view
            if view is None:
                continue
            waits = view.state is RemoteState.WAITING
            most = self._governor.settings.approvals_ttl if waits else self._limits.result_seconds
            if now - entry.since > most:
                with suppress(AgentToolError, Refusal):
                    await self.cancel(view.invocation_id, "no result came in time")

    # --- calls of another process -----------------------------------------------------------------

    async def _find(self, invocation_id: str) -> _Entry:
        """Return a call; one that this process does not know may be in the approval store."""
        entry = self._open.get(invocation_id) or self._ended.get(invocation_id)
        if entry is not None:
            return entry
        view = await asyncio.to_thread(self._stored, invocation_id)
        entry = self._open.get(invocation_id)
        if entry is None:
            entry = self._open[invocation_id] = _Entry("", 0, time.monotonic(), view=view)
        return entry

    def _stored(self, invocation_id: str) -> RemoteCall:
        for action in self._governor.required_actions:
            if action.invocation_id == invocation_id:
                return _permitted_elsewhere(action)
        try:
            return _asked_elsewhere(self._governor.approvals.waiting(invocation_id))
        except ApprovalNotFound:
            raise InvocationNotFound("no call of that id is known here") from None


def _view_of(entry: _Entry) -> RemoteCall:
    if entry.view is None:
        raise Refusal(ProblemType.CONFLICT, "the call is not decided yet")
    return entry.view


async def _finished(work: Coroutine[Any, Any, ToolResult]) -> ToolResult:
    return await asyncio.shield(asyncio.ensure_future(work))


def _outcome(request: ResultRequest) -> dict[str, Any]:
    if request.error is not None:
        return {"error": request.error}
    return {"result": request.result}


def _view(
    call_id: str, tool_id: str, result: ToolResult, ended: RemoteState | None = None
) -> RemoteCall:
    """Describe a call by its envelope; what is not known to be permitted is refused."""
    action = result.requires_action or {}
    state = RemoteState.REFUSED if ended is None else ended
    arguments = None
    if ended is None and action.get("type") == "tool_result":
        state, arguments = RemoteState.PERMITTED, action["arguments"]
    if ended is None and action.get("type") == "tool_confirmation":
        state = RemoteState.WAITING
    # nothing but the commit of rehearsed changes runs here
    if ended is None and result.status in _SUCCEEDED:
        state = RemoteState.COMPLETED
    reason = (result.permission or {}).get("reason") or {}
    return RemoteCall(
        invocation_id=result.invocation_id,
        call_id=call_id,
        state=state,
        tool_id=tool_id,
        arguments=arguments,
        reason=reason.get("message") or result.summary or "",
        rule=reason.get("rule_ref"),
        request_id=action.get("request_id"),
        result=result.to_json_object(),
    )


def _permitted_elsewhere(action: RequiredAction) -> RemoteCall:
    return RemoteCall(
        invocation_id=action.invocation_id,
        call_id=action.native_call_id or "",
        state=RemoteState.PERMITTED,
        tool_id=action.tool_id,
        arguments=action.arguments,
    )


def _asked_elsewhere(stored: StoredCall) -> RemoteCall:
    return RemoteCall(
        invocation_id=stored.request.invocation_id,
        call_id=stored.context.get("native_call_id") or "",
        state=RemoteState.WAITING,
        tool_id=stored.request.tool_id,
        request_id=stored.request.request_id,
    )
