"""Who may run now: the order within a turn, exclusive calls, and locks that the whole Governor shares.

All of it is one state behind one mutex, so that a call gets everything it needs at once. Waiting
calls are let in in the order in which they came.

A call made in another's body may wait while that one holds a lock, so waiting can close a circle:
each of two calls holds the other's lock. Whenever a call begins to wait, the gate looks for such a
circle, and the youngest call in it fails. A wait for locks has a limit, too: a circle through
threads that carry no context can't be seen.
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
from typing import Final, Protocol

from agenttool_otel.call.running.handle import CallHandle, CancelState, current_call
from agenttool_otel.values.forks import in_child, new_lock

DEFAULT_LOCK_TIMEOUT: Final = 300.0
"""Seconds that a call waits for its locks where nothing else is set."""

Key = tuple[str, str]
"""A lock's name, and the call around this one that holds it itself: what it calls shares it among
each other only.
"""


class Turn:
    """The calls of one batch, or of one message of a model, in their order."""

    def __init__(
        self, expected: Iterable[int] = (), patience: float = 0.0, *, serial: bool = False
    ) -> None:
        self.expected = set(expected)  # who has not come yet, and may never come
        # how long an exclusive call waits for those before it
        self.until = time.monotonic() + patience
        self.serial = serial
        # who came and has not ended, and whether it has to be alone
        self.open: dict[int, bool] = {}
        self.calls: dict[int, CallHandle] = {}  # those of them that are being run
        self.active: set[int] = set()

    def arrive(self, index: int) -> None:
        """Note that a call is here; until more is known of it, it has to be alone."""
        self.expected.discard(index)
        self.open[index] = True

    def admits(self, index: int, exclusive: bool, after: Iterable[int]) -> bool:
        """Return whether a call may go on now."""
        if self.before(index, exclusive, after):
            return False
        if not exclusive or self.until <= time.monotonic():
            return True
        return not any(other < index for other in self.expected)

    def before(self, index: int, exclusive: bool, after: Iterable[int]) -> set[int]:
        """Return the calls that have to end before one may go on."""
        named = {earlier for earlier in after if earlier in self.open}
        if exclusive:
            return named | self.active - {index} | {other for other in self.open if other < index}
        alone = {other for other, is_alone in self.open.items() if is_alone}
        return named | {
            other for other in alone if other < index or (other in self.active and other != index)
        }


class Owner(Protocol):
    """Who put the calls of a turn together."""

    def stopped(self, place: Place, invocation_id: str) -> CancelState | None:
        """Return why a call is not to run any more; ``None`` where it may."""

    def ended(self, place: Place) -> None:
        """Take a call's end into account, before another call goes on because of it."""


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


next_place: ContextVar[tuple[Place, CallHandle | None] | None] = ContextVar(
    "agenttool_place", default=None
)
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
    since: float = field(default_factory=time.monotonic)
    future: Future[None] = field(default_factory=Future)


class LocksNotHad(Exception):
    """A call did not get its locks and never ran: it closed a circle, or waited for as long
    as it may.
    """


class Gate:
    """Lets calls in, one Governor's all.

    Args:
        patience: seconds that a call waits for its locks at most.
    """

    def __init__(self, patience: float = DEFAULT_LOCK_TIMEOUT) -> None:
        self._limit = patience
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

    def enter(
        self, handle: CallHandle, place: Place | None, exclusive: bool, locks: frozenset[str]
    ) -> bool:
        """Wait until a call may go on, and return whether it had to; a canceled one goes on without
        its locks.

        Raises:
            LocksNotHad: it would wait for ever, or has waited too long.
        """
        if (waiter := self._ask(handle, place, exclusive, locks)) is None:
            return False
        try:
            while True:
                try:
                    waiter.future.result(self._patience(waiter))
                    return True
                except TimeoutError:
                    self._look_again(waiter)
        except BaseException:
            self._forget(waiter)
            raise
        finally:
            handle.stop_with(None)

    async def aenter(
        self, handle: CallHandle, place: Place | None, exclusive: bool, locks: frozenset[str]
    ) -> bool:
        """The same without blocking the event loop."""
        if (waiter := self._ask(handle, place, exclusive, locks)) is None:
            return False
        try:
            let_in = asyncio.wrap_future(waiter.future)
            while not (await asyncio.wait((let_in,), timeout=self._patience(waiter)))[0]:
                self._look_again(waiter)
            let_in.result()
            return True
        finally:
            self._forget(waiter)
            handle.stop_with(None)

    def leave(self, handle: CallHandle, place: Place | None) -> None:
        """Give back what a call holds."""
        with self._mutex:
            for key in (
                [key for key, holder in self._held.items() if holder is handle]
                if handle.locks
                else ()
            ):
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
            place.turn.calls.pop(place.index, None)
            place.turn.active.discard(place.index)
        self._wake()

    def _ask(
        self, handle: CallHandle, place: Place | None, exclusive: bool, locks: frozenset[str]
    ) -> _Waiter | None:
        """Let a call in at once, or let it wait."""
        waiter = _Waiter(
            handle, place, exclusive, frozenset(_key(handle, name) for name in locks - handle.locks)
        )
        with self._mutex:
            if place is not None:
                place.turn.calls[place.index] = handle
            if place is not None and (exclusive or not place.entered):
                place.turn.open[place.index] = exclusive
                place.turn.active.discard(place.index)
            self._waiting.append(waiter)
        self._wake()
        if waiter.future.done():
            return None
        handle.stop_with(lambda: self._forget(waiter))
        self._break_circle(waiter)
        return waiter

    def _patience(self, waiter: _Waiter) -> float | None:
        """Return the seconds until a waiting call has to be looked at again."""
        now = time.monotonic()
        limits = [waiter.since + self._limit] if waiter.keys else []
        if waiter.place is not None and waiter.place.turn.until > now:
            limits.append(waiter.place.turn.until)
        return max(0.001, min(limits) - now) if limits else None

    def _look_again(self, waiter: _Waiter) -> None:
        self._wake()
        if waiter.keys and time.monotonic() >= waiter.since + self._limit:
            self._refuse(waiter, f"after {self._limit:g} s another call still held the lock")

    # --- calls that wait for each other -----------------------------------------------------------

    def _break_circle(self, waiter: _Waiter) -> None:
        """Let the youngest call fail of those that would wait for each other for ever."""
        if waiter.place is None and not any(handle.locks for handle in ancestors(waiter.handle)):
            return  # nobody waits for it
        with self._mutex:
            if waiter not in self._waiting:  # it was let in meanwhile
                return
            circle = [other for other in self._awaited(waiter) if waiter in self._awaited(other)]
        if circle:
            # ids sort by their time
            youngest = max(circle, key=lambda member: member.handle.invocation_id)
            self._refuse(youngest, "this call and another would wait for each other for ever")

    def _awaited(self, waiter: _Waiter) -> list[_Waiter]:
        """Return the waiting calls that have to go on before one may, directly or through
        others.
        """
        found: list[_Waiter] = []
        left = [waiter]
        while left:
            blockers = self._blockers(left.pop())
            for other in self._waiting:
                if other not in found and not blockers.isdisjoint(ancestors(other.handle)):
                    found.append(other)
                    left.append(other)
        return found

    def _blockers(self, waiter: _Waiter) -> set[CallHandle]:
        """Return the calls that keep one waiting."""
        place = waiter.place
        if place is not None and (
            before := place.turn.before(place.index, waiter.exclusive, place.after)
        ):
            return {place.turn.calls[index] for index in before if index in place.turn.calls}
        blockers = {self._held[key] for key in waiter.keys if key in self._held}
        for earlier in self._waiting[: self._waiting.index(waiter)]:
            if self._goes_first(earlier, waiter):
                blockers.add(earlier.handle)
        return blockers

    def _goes_first(self, earlier: _Waiter, waiter: _Waiter) -> bool:
        """Return whether a call that came earlier and wants one of the same locks is let in first."""
        if earlier.keys.isdisjoint(waiter.keys):
            return False
        holders = {self._held[key] for key in earlier.keys if key in self._held}
        # else it waits for the very call that made this one
        return holders.isdisjoint(ancestors(waiter.handle))

    def _refuse(self, waiter: _Waiter, why: str) -> None:
        """Let a waiting call fail."""
        with self._mutex:
            if waiter not in self._waiting:
                return
            self._waiting.remove(waiter)
        names = ", ".join(sorted(name for name, _ in waiter.keys))
        with contextlib.suppress(InvalidStateError):
            waiter.future.set_exception(
                LocksNotHad(f"{names or 'its turn'}: {why}; it did not run")
            )
        self._wake()

    def _forget(self, waiter: _Waiter) -> None:
        """Let a call wait no more; what it got meanwhile goes back when it leaves."""
        with self._mutex:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
        with contextlib.suppress(InvalidStateError):
            waiter.future.set_result(None)
        self._wake()

    def _wake(self) -> None:
        """Let in the calls that may go on, in the order in which they came."""
        with self._mutex:
            reserved: list[_Waiter] = []
            entered = []
            for waiter in self._waiting:
                place = waiter.place
                if place is not None and not place.turn.admits(
                    place.index, waiter.exclusive, place.after
                ):
                    continue
                if not waiter.keys.isdisjoint(self._held) or any(
                    self._goes_first(earlier, waiter) for earlier in reserved
                ):
                    reserved.append(waiter)
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
