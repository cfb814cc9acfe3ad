"""Who may run now: the order within a turn, exclusive calls, and locks that the whole Governor shares.

All of it is one state behind one mutex, so that a call gets everything it needs at once and never holds one thing while
it waits for another. Waiting calls are let in in the order in which they came.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import weakref
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from agenttool_otel.call.running.handle import CallHandle, CancelState, current_call
from agenttool_otel.values.forks import in_child, new_lock

if TYPE_CHECKING:  # a call knows its place
    from agenttool_otel.call.invocation import Invocation

Key = tuple[str, str]
"""A lock's name, and the call around this one that holds it itself: what it calls shares it among each other only."""


class Turn:
    """The calls of one batch, or of one message of a model, in their order."""

    def __init__(self, expected: Iterable[int] = (), patience: float = 0.0, *, serial: bool = False) -> None:
        self.expected = set(expected)  # who has not come yet, and may never come
        self.until = time.monotonic() + patience  # how long an exclusive call waits for those before it
        self.serial = serial
        self.open: dict[int, bool] = {}  # who came and has not ended, and whether it has to be alone
        self.active: set[int] = set()

    def arrive(self, index: int) -> None:
        """Note that a call is here; until more is known of it, it has to be alone."""
        self.expected.discard(index)
        self.open[index] = True

    def admits(self, index: int, exclusive: bool, after: Iterable[int]) -> bool:
        """Tell whether a call may go on now."""
        if any(earlier in self.open for earlier in after):
            return False
        if not exclusive:
            return not any(alone and other < index for other, alone in self.open.items()) and not any(
                self.open.get(other) for other in self.active if other != index
            )
        if self.active - {index} or any(other < index for other in self.open):
            return False
        return self.until <= time.monotonic() or not any(other < index for other in self.expected)


class Owner(Protocol):
    """Who put the calls of a turn together."""

    def stopped(self, place: Place, call: Invocation) -> CancelState | None:
        """Tell whether a call is not to run any more, and why."""

    def ended(self, place: Place, call: Invocation) -> None:
        """Note how a call ended, before anybody goes on because of it."""


@dataclass(slots=True, eq=False)
class Place:
    """A call's place in a turn."""

    turn: Turn
    index: int
    after: tuple[int, ...] = ()  # whose end it waits for
    owner: Owner | None = None
    locks: frozenset[str] = frozenset()  # what the turn's policy has it hold beside the tool's own
    policy: str | None = None  # id of the turn's policy
    entered: bool = False
    taken: bool = False


next_place: ContextVar[tuple[Place, CallHandle | None] | None] = ContextVar("agenttool_place", default=None)
"""The place that the next call takes which is made in this very body, and in none that it calls."""


def take_place() -> Place | None:
    """Return the place that waits for a call made here."""
    waiting = next_place.get()
    if waiting is None or waiting[1] is not current_call() or waiting[0].taken:
        return None
    waiting[0].taken = True
    return waiting[0]


@dataclass(slots=True, eq=False)
class _Waiter:
    handle: CallHandle
    place: Place | None
    exclusive: bool
    keys: frozenset[Key]
    future: Future[None] = field(default_factory=Future)


class Gate:
    """Lets calls in, one Governor's all."""

    def __init__(self) -> None:
        self._mutex = new_lock()
        self._held: dict[Key, CallHandle] = {}
        self._waiting: list[_Waiter] = []
        _gates.add(self)

    def keep_own(self) -> None:
        """Free what calls of other threads hold: in a forked child they never end."""
        own = set(ancestors(current_call()))
        self._held = {key: holder for key, holder in self._held.items() if holder in own}
        self._waiting = []

    def arrive(self, place: Place) -> None:
        """Take a call's place in its turn."""
        with self._mutex:
            place.turn.arrive(place.index)

    def enter(self, handle: CallHandle, place: Place | None, exclusive: bool, locks: frozenset[str]) -> bool:
        """Wait until a call may go on, and tell whether it had to; a canceled one goes on without its locks."""
        if (waiter := self._ask(handle, place, exclusive, locks)) is None:
            return False
        try:
            while True:
                try:
                    waiter.future.result(self._patience(waiter))
                    return True
                except TimeoutError:
                    self._wake()
        except BaseException:
            self._forget(waiter)
            raise
        finally:
            handle.stop_with(None)

    async def aenter(self, handle: CallHandle, place: Place | None, exclusive: bool, locks: frozenset[str]) -> bool:
        """The same without blocking the event loop."""
        if (waiter := self._ask(handle, place, exclusive, locks)) is None:
            return False
        try:
            told = asyncio.wrap_future(waiter.future)
            while not (await asyncio.wait((told,), timeout=self._patience(waiter)))[0]:
                self._wake()
            return True
        finally:
            self._forget(waiter)
            handle.stop_with(None)

    def leave(self, handle: CallHandle, place: Place | None) -> None:
        """Give back what a call holds."""
        with self._mutex:
            for key in [key for key, holder in self._held.items() if holder is handle] if handle.locks else ():
                del self._held[key]
            handle.locks = frozenset()
        if place is not None:
            self.give_up(place)
        else:
            self._wake()

    def give_up(self, place: Place) -> None:
        """Leave a place, also one that no call has come to."""
        with self._mutex:
            place.turn.open.pop(place.index, None)
            place.turn.active.discard(place.index)
        self._wake()

    def _ask(self, handle: CallHandle, place: Place | None, exclusive: bool, locks: frozenset[str]) -> _Waiter | None:
        """Let a call in at once, or let it wait."""
        waiter = _Waiter(handle, place, exclusive, frozenset(_key(handle, name) for name in locks - handle.locks))
        with self._mutex:
            if place is not None and (exclusive or not place.entered):
                place.turn.open[place.index] = exclusive
                place.turn.active.discard(place.index)
            self._waiting.append(waiter)
        self._wake()
        if waiter.future.done():
            return None
        handle.stop_with(lambda: self._forget(waiter))
        return waiter

    def _patience(self, waiter: _Waiter) -> float | None:
        turn = waiter.place.turn if waiter.place is not None else None
        return max(0.001, turn.until - time.monotonic()) if turn and turn.until > time.monotonic() else None

    def _forget(self, waiter: _Waiter) -> None:
        """Let a call wait no more; what it got meanwhile goes back when it leaves."""
        with self._mutex:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
        with contextlib.suppress(InvalidStateError):
            waiter.future.set_result(None)
        self._wake()

    def _wake(self) -> None:
        """Let in whoever may go on, in the order in which they came."""
        with self._mutex:
            reserved: set[Key] = set()
            entered = []
            for waiter in self._waiting:
                place = waiter.place
                if place is not None and not place.turn.admits(place.index, waiter.exclusive, place.after):
                    continue
                if not waiter.keys.isdisjoint(self._held.keys() | reserved):
                    reserved |= waiter.keys  # nobody who came later overtakes it
                    continue
                entered.append(waiter)
                self._held.update(dict.fromkeys(waiter.keys, waiter.handle))
                waiter.handle.locks |= {name for name, _ in waiter.keys}
                if place is not None:
                    place.entered = True
                    place.turn.active.add(place.index)
            self._waiting = [waiter for waiter in self._waiting if waiter not in entered]
        for waiter in entered:
            with contextlib.suppress(InvalidStateError):
                waiter.future.set_result(None)


def ancestors(handle: CallHandle | None) -> Iterator[CallHandle]:
    """Yield a call, and the calls in whose bodies it was made."""
    while handle is not None:
        yield handle
        handle = handle.parent


_gates: weakref.WeakSet[Gate] = weakref.WeakSet()


def _keep_own() -> None:
    for gate in list(_gates):
        gate.keep_own()


in_child(_keep_own)


def _key(handle: CallHandle, name: str) -> Key:
    holder = handle.parent
    while holder is not None and name not in holder.locks:
        holder = holder.parent
    return name, "" if holder is None else holder.invocation_id
