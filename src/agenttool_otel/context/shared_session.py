"""A session that several processes serve: each takes up what the others count, read and decide.

A process publishes records when a call ends, before the caller has its result, and takes up the
records of the others when its next call begins. Records hold keyed digests, ids of tools and words
of closed vocabularies, sealed under the key that the processes share. While a call's end is not
published, the others treat what they have as incomplete.
"""

from __future__ import annotations

import base64
import contextlib
import logging
import os
import secrets
from array import array
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any, ClassVar, Final

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from agenttool_otel.context.session_store import SessionStore
from agenttool_otel.context.session_totals import LOST, USED_UP, Change, digest
from agenttool_otel.context.sessions import HistoryEntry, Session, SessionBook, SessionKey
from agenttool_otel.errors import SessionStoreError
from agenttool_otel.values.forks import new_lock
from agenttool_otel.values.inspection import short_name

_logger = logging.getLogger("agenttool_otel.context")
_COUNTED: Final = ("calls", "asks", "denials", "result_bytes", "open")
_MAX_RECORD: Final = 65_536
_NONCE: Final = 12


class SharedSessionBook(SessionBook):
    """The sessions of one Governor that other processes serve, too.

    Args:
        store: where they are shared.
        limit: most sessions that this process holds at once.
        max_bytes: most bytes that all of them together may remember here.
    """

    def __init__(
        self, store: SessionStore, limit: int = 10_000, *, max_bytes: int = 64 * 2**20
    ) -> None:
        super().__init__(limit, max_bytes=max_bytes)
        self._store = store

    def _new(self, key: SessionKey) -> Session:
        return SharedSession(self.exempt, self._store, key)

    def close(self) -> None:
        """Release the store."""
        self._store.close()


class SharedSession(Session):
    """One session of many processes, as far as this one has taken it up."""

    shared = True

    def __init__(
        self, exempt: Container[str], store: SessionStore, session_key: tuple[str, ...]
    ) -> None:
        super().__init__(exempt)
        self.key = digest(store.key, ("digests",))
        self._ledger_options = {"key": self.key, "publish": self._publish_digests}
        self._store = store
        self._cipher = AESGCM(digest(store.key, ("records",)))
        self._name = self._named(*session_key)
        self._gate = new_lock()  # one change at a time, so that each is published once
        self._me = secrets.token_hex(8)
        # calls by process, for a child runs none of its parent's
        self._open: dict[int, set[str]] = {}
        self._taken = 0
        self._gap_published = False
        self._lost = False
        self._begin_writing()

    def _begin_writing(self) -> None:
        """Number changes anew: at first, and in a child, whose parent sends what it owes itself."""
        self._writer_pid = os.getpid()
        self._writer = f"{self._me}.{self._writer_pid}"
        self._number = 0
        self._owed: Counter[str] = Counter()
        self._news: list[bytes] = []
        self._unsure: tuple[Change, list[bytes]] | None = None  # was sent, and may have been added

    def admit(
        self, tool_id: str, call_id: str = "", history_entry: HistoryEntry | None = None
    ) -> dict[str, int]:
        """Count a call in all processes at once, and take up what they published; raises where
        that can't be done.
        """
        spent = 0 if tool_id in self.exempt else 1
        tool = self._named("tool", tool_id)
        began: tuple[Any, ...] = ()
        if history_entry is not None:
            history_entry.id = call_id
            targets = [target.hex() for target in history_entry.targets]
            began = ("began", call_id, tool_id, targets)
        elif spent and not self._gap_published:
            began = ("unkept",)
        with self._gate:
            if self._writer_pid != os.getpid():
                self._begin_writing()
            running = self._open.setdefault(os.getpid(), set())
            opened = 0 if call_id in running else 1
            counted = Counter({"calls": spent, tool: spent, "open": opened})
            number = self._number
            try:
                after = self._send(counted, _COUNTED, began)
                self._take(after["told"])
            except Exception:
                if self._number != number:  # it was sent, and is counted by now or will be
                    self._owed.subtract(counted)
                raise
            running.add(call_id)
            if history_entry is None:
                self._gap_published = True
            behind = after["open"] > len(running)
            if behind or self.ledger is not None:
                self.open_ledger().behind = behind
        seen = {
            "calls": after["calls"] - spent,
            "tool_calls": after[tool] - spent,
            "asks": after["asks"],
            "denials": after["denials"],
            "result_bytes": after["result_bytes"],
        }
        if after[LOST]:
            self._mark_lost()
            seen = dict.fromkeys(seen, USED_UP)
        with self._lock:
            self._tools[tool_id] = seen["tool_calls"]
            self.calls = seen["calls"]
            self.asks = seen["asks"]
            self.denials = seen["denials"]
            self.result_bytes = seen["result_bytes"]
        return seen

    def _mark_lost(self) -> None:
        """Mark a session whose store forgot something as incomplete, and log it once."""
        self.mark_incomplete()
        if not self._lost:
            self._lost = True
            _logger.warning(
                "the session store lost data of a session; the session's budgets count as used up"
            )

    def give_back(self, tool_id: str) -> None:
        """Take back the count of a call that does not run."""
        if tool_id in self.exempt:
            return
        tool = self._named("tool", tool_id)
        with self._gate:
            self._owed.update({"calls": -1, tool: -1})

    def settle(self, call_id: str, history_entry: HistoryEntry | None) -> None:
        """Publish how a call ended."""
        with self._gate:
            if history_entry is not None and history_entry.id:
                self._publish("ended", call_id, history_entry.outcome)
            running = self._open.get(os.getpid(), set())
            if call_id in running:
                self._owed["open"] -= 1
                running.discard(call_id)
            self._try()

    def count(self, name: str, n: int = 1) -> None:
        """Count at the end of the call; an ask at once, for its answer may take a day."""
        with self._gate:
            self._owed[name] += n
            if name == "asks":
                self._try()

    def _try(self) -> None:
        """Send what is owed; what can't be sent now goes with the next call, which needs the store
        anyway.
        """
        if self._unsure is None and not self._news and not any(self._owed.values()):
            return
        with contextlib.suppress(Exception):
            self._send(Counter())

    def _send(
        self, changes: Counter[str], read: tuple[str, ...] = (), began: tuple[Any, ...] = ()
    ) -> dict[str, int]:
        """Add to the counters and publish what is new, in one step; the gate is held."""
        if self._writer_pid != os.getpid():
            self._begin_writing()
        if self._unsure is not None:
            self._store_change(*self._unsure)
        # an entry that is published meanwhile, by another thread, goes with the next change
        count = len(self._news)
        entries = self._news[:count]
        if began:
            entries.append(orjson.dumps(began))
        records = [self._seal(group) for group in _grouped(entries)]
        names = {*changes, *self._owed, *read}
        added = {name: changes[name] + self._owed[name] for name in names}
        self._number += 1
        change = Change(added, self._writer, self._number)
        self._unsure = (change, records)
        self._owed.clear()
        del self._news[:count]
        return self._store_change(change, records)

    def _seal(self, entries: list[bytes]) -> bytes:
        """Return a record of some entries, which no other reads than those that have the key."""
        publisher = f"{self._me}.{os.getpid()}"
        fragments = [orjson.Fragment(entry) for entry in entries]
        plain = orjson.dumps([publisher, fragments])
        nonce = secrets.token_bytes(_NONCE)
        return nonce + self._cipher.encrypt(nonce, plain, self._name.encode())

    def _unseal(self, record: bytes) -> Any:
        """Return the publisher and the entries of a record."""
        nonce = record[:_NONCE]
        plain = self._cipher.decrypt(nonce, record[_NONCE:], self._name.encode())
        return orjson.loads(plain)

    def _store_change(self, change: Change, records: list[bytes]) -> dict[str, int]:
        """Send a change until it is known to be stored; it has an id, so that it is added once."""
        with _failing():
            after = self._store.add(self._name, change, records)
        self._unsure = None
        if after["told"] == self._taken + len(records):
            self._taken = after["told"]
        return after

    def _take(self, until: int) -> None:
        """Take up what other processes published."""
        if until == self._taken:
            return
        with _failing():
            records = self._store.records(self._name, self._taken, until)
        complete = len(records) == until - self._taken
        for record in records:
            try:
                publisher, news = self._unseal(record)
                if publisher != f"{self._me}.{os.getpid()}":
                    for name, *values in news:
                        self._TAKERS[name](self, *values)
            except (InvalidTag, ValueError, TypeError, AttributeError, KeyError):
                complete = False  # of another key or version
        self._taken = until
        if not complete:
            self.mark_incomplete()

    def _publish(self, name: str, *values: Any) -> None:
        self._news.append(orjson.dumps([name, *values]))

    def _publish_digests(self, name: str, *values: Any) -> None:
        packed: list[Any] = []
        for value in values:
            if isinstance(value, list):
                value = base64.b64encode(array("q", value)).decode()
            packed.append(value)
        self._publish(name, *packed)

    def _take_kept(self, tool_id: str, trust: str, private: bool, digests: str) -> None:
        self.open_ledger().take(
            tool_id, trust, private, array("q", base64.b64decode(digests)).tolist()
        )

    def _take_fed(self, family: str, tool: str) -> None:
        self.open_ledger().take_fed(family, tool)

    def _take_unread(self) -> None:
        self.open_ledger().mark_incomplete()

    def _take_unkept(self) -> None:
        self._forgot = True

    def _take_began(self, call_id: str, tool_id: str, targets: list[str]) -> None:
        entry = HistoryEntry(tool_id, tuple(map(bytes.fromhex, targets)), id=call_id)
        for known in self.history:
            if known.id == call_id:
                known.targets = entry.targets
                return
        self.begin(entry)

    def _take_ended(self, call_id: str, outcome: str) -> None:
        for known in self.history:
            if known.id == call_id:
                known.outcome = outcome

    def _named(self, *parts: str) -> str:
        return digest(self._store.key, parts)[:24].hex()

    # by the name that stands in a record: older versions read it, so it stays as it is
    _TAKERS: ClassVar[Mapping[str, Callable[..., None]]] = {
        "began": _take_began,
        "ended": _take_ended,
        "fed": _take_fed,
        "heard": Session._take_user_words,
        "kept": _take_kept,
        "known": Session._take_approved,
        "unkept": _take_unkept,
        "unread": _take_unread,
    }


@contextlib.contextmanager
def _failing() -> Iterator[None]:
    try:
        yield
    except SessionStoreError:
        raise
    except Exception as error:
        raise SessionStoreError(
            f"the session's counters can't be reached: {short_name(error)}"
        ) from error


def _grouped(news: list[bytes]) -> list[list[bytes]]:
    """Return entries in groups of a bounded size, one group a record."""
    groups: list[list[bytes]] = []
    size = _MAX_RECORD
    for entry in news:
        size += len(entry)
        if size > _MAX_RECORD:
            groups.append([])
            size = len(entry)
        groups[-1].append(entry)
    return groups
