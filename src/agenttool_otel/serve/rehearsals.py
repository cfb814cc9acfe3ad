"""Commands that coding agents run on a layer: each is decided a second time, by what it would change.

The hook gives the agent another command, ``agenttool run --profile rehearse --ticket ...``. That one asks
here twice: before it runs, and with the sealed layer. This process reads the layer itself, and commits it
where that is permitted. Tickets are kept here alone: after a restart none is known, and nothing runs.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from cachetools import LRUCache

from agenttool_otel.call.sandbox import host_holds
from agenttool_otel.enforcement import CommandResult
from agenttool_otel.errors import AgentToolError
from agenttool_otel.govern.governor import Governor
from agenttool_otel.names import (
    ApprovalStatus,
    ProblemType,
    RehearsalState,
    RemoteState,
    SandboxProfile,
)
from agenttool_otel.serve.calls import RemoteCalls
from agenttool_otel.serve.messages import (
    RehearsalAnswer,
    RehearsalEnd,
    RehearsalStart,
    RemoteCall,
)
from agenttool_otel.serve.problems import Refusal

_MOST_KEPT: Final = 10_000
_HELD_BY: Final = frozenset({SandboxProfile.READ, SandboxProfile.REHEARSE})
_UNKNOWN: Final = "no command was decided under this ticket, or it was used before"
_OTHER: Final = "the command or its directories are not those that were decided"


@dataclass(frozen=True)
class Order:
    """A command that was decided to run on a layer.

    Attributes:
        invocation_id: its call.
        command: the program and its arguments.
        roots: the directories of the layer.
        arguments: the arguments of the call that were permitted.
        asked: is called once a person is asked about its changes.
        request_id: that question; empty before there is one.
        layer: the layer with the changes that the question is about.
    """

    invocation_id: str
    command: tuple[str, ...]
    roots: tuple[str, ...]
    arguments: dict[str, object]
    asked: Callable[[], object]
    request_id: str = ""
    layer: str = ""


class AgentRehearsals:
    """The commands on layers of one decision point.

    Args:
        governor: who decides.
        calls: the calls of the decision point.
        socket_path: the Unix socket, by which the commands ask; ``None`` where there is none.
    """

    def __init__(self, governor: Governor, calls: RemoteCalls, socket_path: Path | None) -> None:
        self._governor = governor
        self._calls = calls
        self._socket = socket_path
        self._tickets: LRUCache[str, Order] = LRUCache(_MOST_KEPT)
        self._running: LRUCache[str, Order] = LRUCache(_MOST_KEPT)
        self._waiting: LRUCache[str, Order] = LRUCache(_MOST_KEPT)  # by the call's id

    @property
    def offered(self) -> bool:
        """Whether there is a socket by which the commands can ask."""
        return self._socket is not None

    def reference(self, order: Order) -> tuple[str, ...]:
        """Return the options by which a command refers to what was decided: a secret for one use.

        Args:
            order: what was decided.
        """
        ticket = secrets.token_urlsafe(32)
        self._tickets[ticket] = order
        return ("--ticket", ticket, "--socket", str(self._socket))

    async def approved(self, invocation_id: str) -> Order | None:
        """Return the command whose changes a person has approved, and forget it; ``None`` for none.

        Args:
            invocation_id: its call.
        """
        order = self._waiting.get(invocation_id)
        if order is None:
            return None
        store = self._governor.approvals.store
        try:
            request = await asyncio.to_thread(store.get, order.request_id)
        except AgentToolError:
            return None
        if request.status is not ApprovalStatus.APPROVED:
            return None
        return self._waiting.pop(invocation_id, None)

    async def abandon(self, invocation_id: str, reason: str) -> None:
        """End a call whose command has ended without asking; one whose changes wait goes on waiting.

        Args:
            invocation_id: the call.
            reason: why.
        """
        with suppress(AgentToolError, Refusal):
            view = await self._calls.look(invocation_id)
            if view.state is RemoteState.PERMITTED:
                await self._calls.cancel(invocation_id, reason)

    # --- what the command asks --------------------------------------------------------------------

    async def begin(self, start: RehearsalStart) -> RehearsalAnswer:
        """Let a command run on a layer, or commit the changes of one that a person has approved.

        Args:
            start: the command, as the runner has it.

        Raises:
            Refusal: it is not the command that was decided, or has run, or its call has ended.
        """
        order = self._tickets.pop(start.ticket, None)
        if order is None:
            raise Refusal(ProblemType.NOT_FOUND, _UNKNOWN)
        if (order.command, order.roots) != (tuple(start.command), tuple(start.roots)):
            await self.abandon(order.invocation_id, _OTHER)
            raise Refusal(ProblemType.CONFLICT, _OTHER)
        if order.layer:
            return await self._commit(order)
        view = await self._calls.look(order.invocation_id)
        if view.state is not RemoteState.PERMITTED:
            raise Refusal(ProblemType.CONFLICT, f"the call is {view.state.value}")
        from agenttool_otel.call.rehearsal import directory_of

        self._running[start.ticket] = order
        place = self._governor.layers
        return RehearsalAnswer(
            state=RehearsalState.RUN,
            directory=str(directory_of(place)),
            keep_seconds=place.keep_seconds,
        )

    async def settle(self, end: RehearsalEnd) -> RehearsalAnswer:
        """Decide what a command would change, and commit that, let it wait, or throw it away.

        Args:
            end: the sealed layer, and how the command ended.

        Raises:
            Refusal: no such command runs, or its layer can't be used.
        """
        order = self._running.pop(end.ticket, None)
        if order is None:
            raise Refusal(ProblemType.NOT_FOUND, _UNKNOWN)
        if end.failure:
            await self.abandon(order.invocation_id, end.failure)
            return RehearsalAnswer(state=RehearsalState.REFUSED, reason=end.failure)
        try:
            with host_holds(_HELD_BY):
                view = await self._calls.rehearsed(
                    order.invocation_id, end.layer, end.digest, _result(end)
                )
        except (AgentToolError, Refusal):
            await self.abandon(order.invocation_id, "its layer could not be used")
            raise
        if view.state is RemoteState.WAITING:
            request_id = view.request_id or ""
            self._waiting[order.invocation_id] = replace(
                order, request_id=request_id, layer=end.layer
            )
            order.asked()
        return _answer(view)

    async def _commit(self, order: Order) -> RehearsalAnswer:
        """Let a call go on whose changes were approved: that commits them."""
        from agenttool_otel.call.rehearsal import result_beside

        kept = await asyncio.to_thread(result_beside, self._governor.layers, order.layer)
        with host_holds(_HELD_BY):
            view = await self._calls.wait(order.invocation_id, 0.0)
        answer = _answer(view)
        if answer.state is not RehearsalState.COMMITTED or type(kept) is not CommandResult:
            return answer
        return answer.model_copy(
            update={
                "exit_code": kept.status,
                "stdout": base64.b64encode(kept.stdout).decode("ascii"),
                "stderr": base64.b64encode(kept.stderr).decode("ascii"),
            }
        )


_STATES: Final = {
    RemoteState.COMPLETED: RehearsalState.COMMITTED,
    RemoteState.WAITING: RehearsalState.WAITING,
}


def _answer(view: RemoteCall) -> RehearsalAnswer:
    state = _STATES.get(view.state, RehearsalState.REFUSED)
    reason = f"{view.reason} ({view.rule})" if view.rule else view.reason
    if state is RehearsalState.WAITING:
        reason = f"{reason}: a person is asked (request {view.request_id})"
    return RehearsalAnswer(state=state, reason=reason)


def _result(end: RehearsalEnd) -> CommandResult:
    return CommandResult(
        status=end.exit_code,
        signal=None,
        stdout=_bytes(end.stdout),
        stderr=_bytes(end.stderr),
        stdout_omitted=end.stdout_omitted,
        stderr_omitted=end.stderr_omitted,
        seconds=end.seconds,
        timed_out=False,
        profile=SandboxProfile.REHEARSE.value,
        left=0,
        violations=(),
    )


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise Refusal(ProblemType.BAD_REQUEST, "an output is not in base64") from None
