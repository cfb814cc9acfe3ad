"""A session's counters as a store keeps them: sealed, numbered, and changed once by each change.

A store may forget: it is emptied, an old copy is put back, it is edited, or a replica that lags
becomes the server. So the counters stand in one sealed value with the number of the write that made
it and an epoch, which is drawn when the session begins. Whoever finds another epoch or a lower
number than it has seen, or none where one was, knows that something was lost: the counter ``lost``
is set, and stays set for every process.
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
"""How long a session is kept that nobody uses."""

LOST: Final = "lost"
"""The counter that says that a store forgot something of the session."""

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
        """Return totals as a store keeps them."""
        body = orjson.dumps([*totals])
        return self._mac(body) + body

    def open(self, stored: bytes) -> Totals | None:
        """Return the totals of a stored value, ``None`` where it is not as one of these processes
        wrote it.
        """
        body = stored[_MAC_BYTES:]
        if not hmac.compare_digest(self._mac(body), stored[:_MAC_BYTES]):
            return None
        return Totals(*orjson.loads(body))

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
    found = sealed.open(stored.value) if stored.value is not None else None
    lost = _is_lost(found, stored, change, seen)
    totals = found or Totals(secrets.token_hex(8), 0, {}, {})
    if lost:
        totals.counts[LOST] = 1
    added = totals.writers.get(change.writer, 0) < change.number
    if added:
        _add(totals, change)
    if not added and not lost:
        return Changed(totals, added=False, written=False)
    last = max(totals.number, seen.number if seen is not None else 0)
    return Changed(totals._replace(number=last + 1), added, written=True)


def _is_lost(found: Totals | None, stored: Stored, change: Change, seen: Seen | None) -> bool:
    if found is None:
        return stored.value is not None or stored.remains or seen is not None
    if seen is None:
        return False
    if found.epoch != seen.epoch or found.number < seen.number:
        return True
    last = found.writers.get(change.writer)
    if last is None:
        return change.number > 1 and len(found.writers) < _MAX_WRITERS
    return last < change.number - 1


def _add(totals: Totals, change: Change) -> None:
    # of a writer that is not known any more the change may be there already: then it only counts up
    known = (
        change.number == 1 or change.writer in totals.writers or len(totals.writers) < _MAX_WRITERS
    )
    for name, n in change.items():
        totals.counts[name] = totals.counts.get(name, 0) + (n if known else max(n, 0))
    totals.writers.pop(change.writer, None)
    totals.writers[change.writer] = change.number
    if len(totals.writers) > _MAX_WRITERS:
        del totals.writers[next(iter(totals.writers))]


def counters(totals: Totals, change: Change) -> dict[str, int]:
    """Return the counters that a change names, with those that every process reads."""
    return {name: totals.counts.get(name, 0) for name in {*change, "told", LOST}}


def digest(key: bytes, parts: tuple[str, ...]) -> bytes:
    """Return a keyed digest of some texts."""
    text = "\0".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.blake2b(
        text.encode("utf-8", "surrogatepass"), digest_size=32, key=key, person=b"session"
    ).digest()
