"""A session's counters as a store keeps them: sealed, numbered, and changed once by each change.

A store may forget: it is emptied, an old copy is put back, it is edited, or a replica that lags
becomes the server. So the counters stand in one sealed value with the number of the write that made
it and an epoch, which is drawn when the session begins. A process that finds another epoch or a
lower number than it has seen, or no value though it has seen a number, sets the counter ``lost``,
which stays set for every process.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

import orjson

KEPT_SECONDS: Final = 30 * 86_400
"""How long a session is kept that is not used."""

LOST: Final = "lost"
"""The counter that is 1 where a store forgot something of the session."""

USED_UP: Final = 2**53 - 1
"""What the counters of such a session are to a policy: more than any budget."""

_MAC_BYTES: Final = 32
_MAX_WRITERS: Final = 256
_MAX_SEEN: Final = 100_000


class Change(dict[str, int]):
    """What is added to counters, with the id by which a store adds it once, however often it is sent.

    Args:
        added: what is added, by counter.
        writer: names the process that adds; its changes are numbered 1, 2, 3 ..., the next after
          the last is stored.
        number: the number of this one.
    """

    def __init__(self, added: Mapping[str, int], writer: str, number: int) -> None:
        super().__init__(added)
        self.writer = writer
        self.number = number


class Totals(NamedTuple):
    """The counters of a session after one of its writes."""

    epoch: str  # drawn when the session began
    number: int  # of the write
    counts: dict[str, int]  # the counters
    # the number of each writer's last change, whoever wrote last at the end
    writers: dict[str, int]


class Seen(NamedTuple):
    """The latest totals of a session that this process has seen."""

    epoch: str
    number: int
    at: float  # when, on the monotonic clock


class SeenTotals:
    """What this process has seen of the sessions of one store; the longest unused are
    forgotten first.
    """

    def __init__(self) -> None:
        self._seen: dict[str, Seen] = {}

    def get(self, session: str) -> Seen | None:
        """Return what was seen of a session, unless the store may have forgotten it by now."""
        seen = self._seen.get(session)
        if seen is None or time.monotonic() - seen.at > KEPT_SECONDS:
            return None
        return seen

    def note(self, session: str, totals: Totals) -> None:
        """Remember totals that the store has; of two threads the later one wins."""
        known = self._seen.pop(session, None)
        number = totals.number
        if known is not None and known.epoch == totals.epoch:
            number = max(number, known.number)
        self._seen[session] = Seen(totals.epoch, number, time.monotonic())
        if len(self._seen) > _MAX_SEEN:
            self._seen.pop(next(iter(self._seen)), None)


_STORES: Final[WeakValueDictionary[str, SeenTotals]] = WeakValueDictionary()


def seen_totals(url: str) -> SeenTotals:
    """Return what this process has seen of a store, the same for all who have it open."""
    seen = _STORES.get(url)
    return seen if seen is not None else _STORES.setdefault(url, SeenTotals())


class Sealed:
    """Seals the totals of one session under the key that its processes share."""

    def __init__(self, key: bytes, session: str) -> None:
        self._key = digest(key, ("totals", session))

    def seal(self, totals: Totals) -> bytes:
        """Return totals as a store keeps them: their MAC, then JSON."""
        body = orjson.dumps([*totals])
        return self._mac(body) + body

    def open(self, stored: bytes) -> Totals | None:
        """Return the totals of a stored value, ``None`` where it is not as one of these processes
        wrote it.
        """
        mac = stored[:_MAC_BYTES]
        body = stored[_MAC_BYTES:]
        if not hmac.compare_digest(self._mac(body), mac):
            return None
        epoch, number, counts, writers = orjson.loads(body)
        return Totals(epoch, number, counts, writers)

    def _mac(self, body: bytes) -> bytes:
        return hashlib.blake2b(body, digest_size=_MAC_BYTES, key=self._key).digest()


class Stored(NamedTuple):
    """What a store has of a session's counters."""

    value: bytes | None  # the sealed totals
    remains: bool = False  # there are none, and still something else of the session


class Changed(NamedTuple):
    """What a change makes of a session's totals."""

    totals: Totals  # the totals after it
    added: bool  # it was added; one that the store has already is not
    written: bool  # the totals have to be stored


def changed(sealed: Sealed, stored: Stored, change: Change, seen: Seen | None) -> Changed:
    """Add a change to what a store has, and note whether the store forgot something.

    Args:
        sealed: opens the session's totals.
        stored: what the store has.
        change: what is to be added.
        seen: the latest totals that this process has seen.
    """
    totals = None
    if stored.value is not None:
        totals = sealed.open(stored.value)
    is_lost = _is_lost(totals, stored, change, seen)
    if totals is None:
        totals = Totals(epoch=secrets.token_hex(8), number=0, counts={}, writers={})
    if is_lost:
        totals.counts[LOST] = 1
    last_of_writer = totals.writers.get(change.writer, 0)
    is_new = last_of_writer < change.number
    if is_new:
        _add(totals, change)
    elif not is_lost:
        return Changed(totals, added=False, written=False)
    last = totals.number
    if seen is not None:
        last = max(last, seen.number)
    return Changed(totals._replace(number=last + 1), added=is_new, written=True)


def _is_lost(found: Totals | None, stored: Stored, change: Change, seen: Seen | None) -> bool:
    """Return whether the store forgot something of the session."""
    if found is None:
        # edited, emptied in part, or emptied as a whole
        return stored.value is not None or stored.remains or seen is not None
    if seen is None:
        return False
    if found.epoch != seen.epoch:
        return True  # begun anew by another process
    if found.number < seen.number:
        return True  # an old copy was put back
    last = found.writers.get(change.writer)
    if last is None:
        return change.number > 1 and len(found.writers) < _MAX_WRITERS
    return last < change.number - 1


def _add(totals: Totals, change: Change) -> None:
    known = _has_writer(totals, change)
    for name, added in change.items():
        # of a writer that is not known any more the change may be there already: then it only
        # counts up
        if known or added > 0:
            totals.counts[name] = totals.counts.get(name, 0) + added
        else:
            totals.counts.setdefault(name, 0)
    # whoever wrote last stands at the end
    totals.writers.pop(change.writer, None)
    totals.writers[change.writer] = change.number
    if len(totals.writers) > _MAX_WRITERS:
        oldest = next(iter(totals.writers))
        del totals.writers[oldest]


def _has_writer(totals: Totals, change: Change) -> bool:
    """Return whether a change that the store has already would be noticed."""
    if change.number == 1 or change.writer in totals.writers:
        return True
    return len(totals.writers) < _MAX_WRITERS


def counters(totals: Totals, change: Change) -> dict[str, int]:
    """Return the counters that a change names, with those that every process reads."""
    names = {*change, "told", LOST}
    return {name: totals.counts.get(name, 0) for name in names}


def digest(key: bytes, parts: tuple[str, ...]) -> bytes:
    """Return a keyed digest of some texts."""
    # lengths, so that ("a", "b") is no ("a\0b",)
    text = "\0".join(f"{len(part)}:{part}" for part in parts)
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=32, key=key, person=b"session").digest()
