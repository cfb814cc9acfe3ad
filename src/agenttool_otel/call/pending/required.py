"""Calls that wait for a result: a custom tool is permitted here and runs elsewhere (openboa,
"Custom tools").

They wait in the memory of this process, with the very objects they were called with. Where an
approval store is configured that outlives the process they wait there, too: then any process that
opens it can complete or interrupt them, and the store decides who was first. What the store could not
keep waits in memory alone and ends with the process; a claimed approval among these is then
reported as interrupted by the approval store.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from agenttool_otel.approvals.service import Approvals
from agenttool_otel.approvals.types import RequiredCall
from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.pending.required_action import RequiredAction, action_of, stored_action_of
from agenttool_otel.call.pending.serialized import pack
from agenttool_otel.call.records import call_input
from agenttool_otel.errors import InvocationConflict, InvocationNotFound
from agenttool_otel.names import RequiredStatus
from agenttool_otel.values.forks import new_lock
from agenttool_otel.values.run_to_completion import run_to_completion

if TYPE_CHECKING:  # SQLAlchemy is imported when a store is opened
    from agenttool_otel.approvals.store.store import ApprovalStore


class RequiredActions:
    """The waiting calls of one Governor; each is taken once, by a result or by an interrupt."""

    def __init__(
        self,
        limit: int = 10_000,
        remembered: int = 10_000,
        *,
        approvals: Approvals | None = None,
        lost: Callable[[Exception], None] | None = None,
    ) -> None:
        self._waiting: dict[str, Invocation] = {}
        # those of them that the store keeps too: it decides who takes them
        self._stored: set[str] = set()
        self._ended: OrderedDict[str, str] = OrderedDict()
        self._reserved = 0
        self._limit = limit
        self._remembered = remembered
        self._approvals = approvals if approvals is not None and approvals.configured else None
        self._lost = lost
        self._lock = new_lock()

    @property
    def blocks(self) -> bool:
        """Whether these methods may open or wait for a database."""
        return self._approvals is not None

    # --- letting a call wait ----------------------------------------------------------------------

    def keep(self, call: Invocation) -> bool:
        """Let a call wait, in the store if that is possible, in memory in any case."""
        if not self._reserve():
            self._forget_ended()
            if not self._reserve():
                return False
        stored: bool | None = None
        try:
            stored = self._store_call(call)
        finally:
            with self._lock:
                self._reserved -= 1
                if stored is not None:
                    self._waiting[call.id] = call
                    (self._stored.add if stored else self._stored.discard)(call.id)
        return True

    async def akeep(self, call: Invocation) -> bool:
        """The same without blocking the event loop; a call whose task is canceled meanwhile does
        not wait.
        """
        if not self.blocks:
            return self.keep(call)
        kept, canceled = await run_to_completion(partial(self.keep, call))
        if canceled is None:
            return kept
        if kept:
            # another process may have been faster, or the store is gone
            with contextlib.suppress(Exception):
                await asyncio.to_thread(self.take, call.id, RequiredStatus.INTERRUPTED)
        raise canceled

    def _reserve(self) -> bool:
        with self._lock:
            room = len(self._waiting) + self._reserved < self._limit
            self._reserved += room
            return room

    def _store_call(self, call: Invocation) -> bool:
        """Put a call into the store; whatever fails there costs no more than what the store would
        have given.
        """
        try:
            if (store := self._lasting()) is None:
                return False
            spec = call.spec
            store.keep_required(
                call.id,
                spec.tool_id,
                call_input(call),
                pack(call),
                declaration_digest=spec.digest,
                claim=call.claim,
            )
            if call.claim is not None and self._approvals is not None:
                self._approvals.stop_renewing(call.claim)
        except Exception as error:
            self._note(error)
            return False
        return True

    # --- taking it --------------------------------------------------------------------------------

    def look(self, invocation_id: str) -> Invocation | RequiredCall:
        """Return a waiting call and let it wait on."""
        with self._lock:
            call = self._waiting.get(invocation_id)
        if call is not None:
            return call
        if (store := self._lasting()) is not None:
            with contextlib.suppress(InvocationNotFound):
                return store.required(invocation_id)
        raise self._missing(invocation_id)

    def take(self, invocation_id: str, how: RequiredStatus) -> Invocation | RequiredCall:
        """Return a waiting call and end its waiting; of several takers, in whatever processes, one
        gets it.
        """
        taken = self._take_stored(invocation_id, how)
        with self._lock:
            call = self._waiting.pop(invocation_id, None)
            self._stored.discard(invocation_id)
            if call is not None or taken is not None:
                self._ended[invocation_id] = how.value
                self._ended.move_to_end(invocation_id)
                if len(self._ended) > self._remembered:
                    self._ended.popitem(last=False)
        found = taken if call is None else call
        if found is None:
            raise self._missing(invocation_id)
        return found

    def _take_stored(self, invocation_id: str, how: RequiredStatus) -> RequiredCall | None:
        """Take a call in the store; ``None`` where only memory may hold it."""
        try:
            store = self._lasting()
            return None if store is None else store.take_required(invocation_id, how)
        except InvocationNotFound:
            return None
        except InvocationConflict:
            with self._lock:
                self._waiting.pop(invocation_id, None)
                self._stored.discard(invocation_id)
            raise
        except Exception as error:
            with self._lock:
                alone = invocation_id in self._waiting and invocation_id not in self._stored
            if not alone:
                raise
            # the store failed when the call came to wait, too: no other process has it
            self._note(error)
            return None

    def _missing(self, invocation_id: str) -> InvocationConflict | InvocationNotFound:
        with self._lock:
            ended = self._ended.get(invocation_id)
        if ended is not None:
            return InvocationConflict(f"the call was {ended} already")
        return InvocationNotFound("no call of that id waits for a result here")

    # --- what waits -------------------------------------------------------------------------------

    def __iter__(self) -> Any:
        return iter(self.list())

    def list(self) -> Sequence[RequiredAction]:
        """Return what waits, oldest first: of this process, and of all that share its store.

        While the store can't be read, only what this process permitted is known.
        """
        self._forget_ended()
        with self._lock:
            here = dict(self._waiting)
        actions = [action_of(call) for call in here.values()]
        try:
            store = self._lasting()
            elsewhere = [] if store is None else store.list_required()
            actions += [
                stored_action_of(call) for call in elsewhere if call.invocation_id not in here
            ]
        except Exception as error:
            self._note(error)
        return sorted(actions, key=lambda action: action.since)

    def _forget_ended(self) -> None:
        """Forget the calls that another process has ended, as far as the store has recorded."""
        with self._lock:
            # before the store is asked: what comes to wait meanwhile is not forgotten
            stored = set(self._stored)
        if not stored:
            return
        try:
            if (store := self._lasting()) is not None:
                self._forget(stored - store.required_ids())
        except Exception as error:
            self._note(error)

    def _forget(self, ids: set[str]) -> None:
        with self._lock:
            for invocation_id in ids & self._stored:
                self._stored.discard(invocation_id)
                self._waiting.pop(invocation_id, None)

    def _lasting(self) -> ApprovalStore | None:
        return None if self._approvals is None else self._approvals.lasting()

    def _note(self, error: Exception) -> None:
        if self._lost is not None:
            self._lost(error)
