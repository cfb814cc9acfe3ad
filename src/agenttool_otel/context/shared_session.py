"""A session that several processes serve: what one of them counts, hears, sees and decides, each takes up.

A process tells of it when a call ends, before the caller has what it gave, and takes up what others told when its next
call begins. Told are keyed digests, ids of tools and words of closed vocabularies, sealed under the key that the
processes share. A call whose end was not told yet makes the others uncertain of what they do not know.
"""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
from array import array
from collections import Counter
from collections.abc import Container
from typing import Any, Final

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from agenttool_otel.context.session_store import SessionStore
from agenttool_otel.context.sessions import Happened, Session
from agenttool_otel.values.forks import new_lock

_COUNTED: Final = ("calls", "asks", "denials", "result_bytes", "open")
_MAX_RECORD: Final = 65_536
_NONCE: Final = 12


class SharedSession(Session):
    """One session of many processes, as this one knows it."""

    shared = True

    def __init__(self, exempt: Container[str], store: SessionStore, session_key: tuple[str, ...]) -> None:
        super().__init__(exempt)
        self.key = _digest(store.key, ("digests",))
        self._ledger_options = {"key": self.key, "tell": self._tell_seen}
        self._store = store
        self._cipher = AESGCM(_digest(store.key, ("records",)))
        self._name = self._named(*session_key)
        self._gate = new_lock()  # one change at a time, so that each is told once
        self._me = secrets.token_hex(8)
        self._open: dict[int, set[str]] = {}  # calls by process, for a child runs none of its parent's
        self._owed: Counter[str] = Counter()
        self._news: list[bytes] = []
        self._taken = 0
        self._past_told = False

    def admit(self, tool_id: str, call_id: str = "", happened: Happened | None = None) -> dict[str, int]:
        """Count a call in all processes at once, and take up what they told; raises where that can't be done."""
        spent, tool = 0 if tool_id in self.exempt else 1, self._named("tool", tool_id)
        began: tuple[Any, ...] = () if self._past_told or not spent else ("unkept",)
        if happened is not None:
            happened.id = call_id
            began = ("began", call_id, tool_id, [digest.hex() for digest in happened.targets])
        with self._gate:
            running = self._open.setdefault(os.getpid(), set())
            opened = int(call_id not in running)
            after = self._send(Counter({"calls": spent, tool: spent, "open": opened}), _COUNTED, began)
            running.add(call_id)
            self._past_told |= happened is None
            try:
                self._take(after["told"])
            except Exception:
                self._owed.update({"calls": -spent, tool: -spent})
                raise
            behind = after["open"] > len(running)
            if behind or self.ledger is not None:
                self.open_ledger().behind = behind
        seen = {**{name: after[name] for name in _COUNTED[1:-1]}, "calls": after["calls"] - spent}
        seen["tool_calls"] = after[tool] - spent
        with self._lock:
            self.calls, self._tools[tool_id] = seen["calls"], seen["tool_calls"]
            self.asks, self.denials, self.result_bytes = seen["asks"], seen["denials"], seen["result_bytes"]
        return seen

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
        """Count at the end of the call; an ask at once, for somebody may take a day to answer it."""
        with self._gate:
            self._owed[name] += n
            if name == "asks":
                self._try()

    def _try(self) -> None:
        """Send what is owed; what can't be sent now goes with the next call, which needs the store anyway."""
        try:
            if self._news or any(self._owed.values()):
                self._send(Counter())
        except Exception:
            return

    def _send(self, changes: Counter[str], read: tuple[str, ...] = (), began: tuple[Any, ...] = ()) -> dict[str, int]:
        """Add to the counters and tell what is new, in one step; the gate is held."""
        count, records = len(self._news), []
        for news in _grouped(self._news[:count] + [orjson.dumps(began)] * bool(began)):
            nonce = secrets.token_bytes(_NONCE)
            plain = orjson.dumps([f"{self._me}.{os.getpid()}", [orjson.Fragment(one) for one in news]])
            records.append(nonce + self._cipher.encrypt(nonce, plain, self._name.encode()))
        sent = {name: changes[name] + self._owed[name] for name in {*changes, *self._owed, *read}}
        after = self._store.add(self._name, sent, records)
        self._owed.clear()
        del self._news[:count]
        if after["told"] == self._taken + len(records):
            self._taken = after["told"]
        return after

    def _take(self, until: int) -> None:
        """Take up what other processes told."""
        if until == self._taken:
            return
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
        packed = (base64.b64encode(array("q", one)).decode() if isinstance(one, list) else one for one in told)
        self._tell(name, *packed)

    def _take_kept(self, tool_id: str, trust: str, private: bool, digests: str) -> None:
        self.open_ledger().take(tool_id, trust, private, array("q", base64.b64decode(digests)).tolist())

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
        return _digest(self._store.key, parts)[:24].hex()


def _digest(key: bytes, parts: tuple[str, ...]) -> bytes:
    text = "\0".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32, key=key, person=b"session").digest()


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
