"""A session that several processes serve: what one of them counts, hears, sees and decides, each
takes up.

A process tells of it when a call ends, before the caller has what it gave, and takes up what others
told when its next call begins. Told are keyed digests, ids of tools and words of closed
vocabularies, sealed under the key that the processes share. A call whose end was not told yet makes
the others uncertain of what they do not know.
"""

from __future__ import annotations

import base64
import contextlib
import logging
import os
import secrets
from array import array
from collections import Counter
from collections.abc import Container, Iterator
from typing import Any, Final

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from agenttool_otel.context.session_store import SessionStore
from agenttool_otel.context.session_totals import LOST, USED_UP, Change, digest
from agenttool_otel.context.sessions import Happened, Session, SessionBook, SessionKey
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
        limit: most sessions that this process knows at once.
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
    """One session of many processes, as this one knows it."""

    shared = True

    def __init__(
        self, exempt: Container[str], store: SessionStore, session_key: tuple[str, ...]
    ) -> None:
        super().__init__(exempt)
        self.key = digest(store.key, ("digests",))
        self._ledger_options = {"key": self.key, "tell": self._tell_seen}
        self._store = store
        self._cipher = AESGCM(digest(store.key, ("records",)))
        self._name = self._named(*session_key)
        self._gate = new_lock()  # one change at a time, so that each is told once
        self._me = secrets.token_hex(8)
        # calls by process, for a child runs none of its parent's
        self._open: dict[int, set[str]] = {}
        self._taken = 0
        self._past_told = False
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
        self, tool_id: str, call_id: str = "", happened: Happened | None = None
    ) -> dict[str, int]:
        """Count a call in all processes at once, and take up what they told; raises where that
        can't be done.
        """
        spent, tool = 0 if tool_id in self.exempt else 1, self._named("tool", tool_id)
        began: tuple[Any, ...] = () if self._past_told or not spent else ("unkept",)
        if happened is not None:
            happened.id = call_id
            began = ("began", call_id, tool_id, [digest.hex() for digest in happened.targets])
        with self._gate:
            if self._writer_pid != os.getpid():
                self._begin_writing()
            running = self._open.setdefault(os.getpid(), set())
            opened = int(call_id not in running)
            counted, number = Counter({"calls": spent, tool: spent, "open": opened}), self._number
            try:
                after = self._send(counted, _COUNTED, began)
                self._take(after["told"])
            except Exception:
                if self._number != number:  # it was sent, and is counted by now or will be
                    self._owed.subtract(counted)
                raise
            running.add(call_id)
            self._past_told |= happened is None
            behind = after["open"] > len(running)
            if behind or self.ledger is not None:
                self.open_ledger().behind = behind
        seen = {**{name: after[name] for name in _COUNTED[1:-1]}, "calls": after["calls"] - spent}
        seen["tool_calls"] = after[tool] - spent
        if after[LOST]:
            self._know_lost()
            seen = dict.fromkeys(seen, USED_UP)
        with self._lock:
            self.calls, self._tools[tool_id] = seen["calls"], seen["tool_calls"]
            self.asks, self.denials, self.result_bytes = (
                seen["asks"],
                seen["denials"],
                seen["result_bytes"],
            )
        return seen

    def _know_lost(self) -> None:
        """Doubt what is known of a session whose store forgot something, and say so once."""
        self.doubt()
        if not self._lost:
            self._lost = True
            _logger.warning(
                "the session store lost what it knew of a session; the session's budgets count as used up"
            )

    def give_back(self, tool_id: str) -> None:
        """Take back the count of a call that does not run."""
        if tool_id not in self.exempt:
            with self._gate:
                self._owed.update({"calls": -1, self._named("tool", tool_id): -1})

    def settle(self, call_id: str, happened: Happened | None) -> None:
        """Tell the others how a call ended."""
        with self._gate:
            if happened is not None and happened.id:
                self._tell("ended", call_id, happened.outcome)
            running = self._open.get(os.getpid(), set())
            self._owed["open"] -= call_id in running
            running.discard(call_id)
            self._try()

    def count(self, name: str, n: int = 1) -> None:
        """Count at the end of the call; an ask at once, for somebody may take a day to
        answer it.
        """
        with self._gate:
            self._owed[name] += n
            if name == "asks":
                self._try()

    def _try(self) -> None:
        """Send what is owed; what can't be sent now goes with the next call, which needs the store
        anyway.
        """
        try:
            if self._unsure is not None or self._news or any(self._owed.values()):
                self._send(Counter())
        except Exception:
            return

    def _send(
        self, changes: Counter[str], read: tuple[str, ...] = (), began: tuple[Any, ...] = ()
    ) -> dict[str, int]:
        """Add to the counters and tell what is new, in one step; the gate is held."""
        if self._writer_pid != os.getpid():
            self._begin_writing()
        if self._unsure is not None:
            self._store_change(*self._unsure)
        count, records = len(self._news), []
        for news in _grouped(self._news[:count] + [orjson.dumps(began)] * bool(began)):
            nonce = secrets.token_bytes(_NONCE)
            plain = orjson.dumps(
                [f"{self._me}.{os.getpid()}", [orjson.Fragment(one) for one in news]]
            )
            records.append(nonce + self._cipher.encrypt(nonce, plain, self._name.encode()))
        added = {name: changes[name] + self._owed[name] for name in {*changes, *self._owed, *read}}
        self._number += 1
        self._unsure = Change(added, self._writer, self._number), records
        self._owed.clear()
        del self._news[:count]
        return self._store_change(*self._unsure)

    def _store_change(self, change: Change, records: list[bytes]) -> dict[str, int]:
        """Send a change until it is known to be stored; it has an id, so that it is added once."""
        with _failing():
            after = self._store.add(self._name, change, records)
        self._unsure = None
        if after["told"] == self._taken + len(records):
            self._taken = after["told"]
        return after

    def _take(self, until: int) -> None:
        """Take up what other processes told."""
        if until == self._taken:
            return
        with _failing():
            records = self._store.told(self._name, self._taken, until)
        complete = len(records) == until - self._taken
        for record in records:
            try:
                plain = self._cipher.decrypt(record[:_NONCE], record[_NONCE:], self._name.encode())
                teller, news = orjson.loads(plain)
                if teller != f"{self._me}.{os.getpid()}":
                    for name, *told in news:
                        getattr(self, f"_take_{name}")(*told)
            except (InvalidTag, ValueError, TypeError, AttributeError):
                complete = False  # of another key or version
        self._taken = until
        if not complete:
            self.doubt()

    def _tell(self, name: str, *told: Any) -> None:
        self._news.append(orjson.dumps([name, *told]))

    def _tell_seen(self, name: str, *told: Any) -> None:
        packed = (
            base64.b64encode(array("q", one)).decode() if isinstance(one, list) else one
            for one in told
        )
        self._tell(name, *packed)

    def _take_kept(self, tool_id: str, trust: str, private: bool, digests: str) -> None:
        self.open_ledger().take(
            tool_id, trust, private, array("q", base64.b64decode(digests)).tolist()
        )

    def _take_fed(self, family: str, tool: str) -> None:
        self.open_ledger().take_fed(family, tool)

    def _take_unread(self) -> None:
        self.open_ledger().doubt()

    def _take_unkept(self) -> None:
        self._forgot = True

    def _take_began(self, call_id: str, tool_id: str, targets: list[str]) -> None:
        entry = Happened(tool_id, tuple(map(bytes.fromhex, targets)), id=call_id)
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
    """Return what is told in records of a bounded size."""
    groups: list[list[bytes]] = []
    size = _MAX_RECORD
    for one in news:
        size += len(one)
        if size > _MAX_RECORD:
            groups.append([])
            size = len(one)
        groups[-1].append(one)
    return groups
