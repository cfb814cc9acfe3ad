"""The payload store: content-addressed objects, references to them with an end, quota, retention,
optional encryption.

Keys: ``objects/<2 hex>/<hash>`` holds bytes, ``refs/<2 hex>/<name>`` the object that a URI
leads to and its end, ``incoming/<random>`` is being written. Two writers of the same content end
with one object and two references.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final
from uuid import uuid4

from agenttool_otel.errors import PersistenceError
from agenttool_otel.records.base import utc_now
from agenttool_otel.results.content.media import extension_of
from agenttool_otel.results.stores.cipher import Cipher
from agenttool_otel.results.stores.types import (
    Backend,
    PayloadExpired,
    PayloadNotFound,
    PersistedRef,
    QuotaExceeded,
    SweepReport,
)
from agenttool_otel.values.forks import new_lock

URI_PREFIX: Final = "agent-runtime://session/tool-results/"
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._\-]{0,150}")
_READ_BYTES: Final = 1 << 18
_MAX_REF_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """What a store may take, and for how long.

    Attributes:
        max_object_bytes: largest payload.
        max_total_bytes: all payloads together.
        min_free_bytes: room that must stay free on the disk.
        ttl_s: seconds that a payload is kept; ``None``: until it is deleted.
        tombstone_ttl_s: seconds that an expired reference is still answered as expired.
        grace_s: age in seconds below which an object without reference is left alone: its writer
          may be at work.
        sweep_every_s: seconds between the cleanings that writing starts; ``None``: only ``sweep()``
          cleans.
    """

    max_object_bytes: int = 4 << 30
    max_total_bytes: int = 16 << 30
    min_free_bytes: int = 64 << 20
    ttl_s: float | None = 7 * 86_400.0
    tombstone_ttl_s: float = 90 * 86_400.0
    grace_s: float = 3600.0
    sweep_every_s: float | None = 600.0


class ResultStore:
    """A PayloadStore over a backend.

    Args:
        backend: where blobs go.
        limits: quota and retention.
        cipher: encrypts what is stored, if given; references (names, digests, sizes) stay readable.
        clock: source of the current time, in UTC.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        limits: StoreLimits | None = None,
        cipher: Cipher | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._backend = backend
        self._limits = limits or StoreLimits()
        self._cipher = cipher
        self._clock = clock
        self._lock = new_lock()
        self._used: int | None = None
        self._used_at = 0.0
        self._swept_at = time.monotonic()

    @property
    def name(self) -> str:
        """The backend's word for metrics."""
        return self._backend.name

    def put_stream(
        self,
        chunks: Iterable[bytes],
        media_type: str,
        *,
        name: str | None = None,
        owner: dict[str, str] | None = None,
        ttl_s: float | None = None,
        redaction_state: str = "none",
    ) -> PersistedRef:
        """Store bytes; see PayloadStore.

        Raises:
            QuotaExceeded: the payload or the store would be too large; nothing of it is kept.
            PersistenceError: the backend failed.
        """
        self._sweep_if_due()
        meter = _Meter(chunks, self._room())
        incoming = f"incoming/{uuid4().hex}"
        try:
            self._backend.put(incoming, self._cipher.encrypt(meter) if self._cipher else meter)
            digest = f"sha256:{meter.hasher.hexdigest()}"
            self._publish(incoming, self._object_key(digest))
        except BaseException:
            self._discard(incoming)
            raise
        now = self._clock()
        keep = self._limits.ttl_s if ttl_s is None else ttl_s
        ref_name = self._free_name(name, media_type)
        ref = PersistedRef(
            uri=URI_PREFIX + ref_name,
            media_type=media_type,
            digest=digest,
            size_bytes=meter.size,
            created_at=now,
            expires_at=None if keep is None else now + timedelta(seconds=keep),
            owner={key: value for key, value in (owner or {}).items() if value},
            redaction_state=redaction_state,
        )
        self._write_ref(ref_name, ref)
        with self._lock:
            if self._used is not None:
                self._used += meter.size
        return ref

    def resolve(self, uri: str) -> PersistedRef:
        """Return what is known of a URI; see PayloadStore."""
        name = uri.removeprefix(URI_PREFIX)
        if name == uri or _NAME.fullmatch(name) is None:
            raise PayloadNotFound("not a URI of this store")
        try:
            raw = self._backend.get(_ref_key(name), 0, _MAX_REF_BYTES)
        except KeyError:
            raise PayloadNotFound("no payload of that URI") from None
        ref = _parse(raw)
        if ref is None or ref.uri != uri:
            raise PersistenceError("the reference can't be read")
        return ref

    def read(self, uri: str, offset: int = 0, limit: int | None = None) -> bytes:
        """Return a range of a payload; see PayloadStore."""
        ref = self._live(uri)
        start = max(0, offset)
        length = (
            ref.size_bytes - start if limit is None else min(max(0, limit), ref.size_bytes - start)
        )
        if length <= 0:
            return b""
        key = self._object_key(ref.digest)
        try:
            if self._cipher is None:
                return self._backend.get(key, start, length)
            return self._cipher.decrypt_range(
                lambda begin, size: self._backend.get(key, begin, size),
                ref.size_bytes,
                start,
                length,
            )
        except KeyError:
            raise PayloadExpired("the payload is gone", ref) from None

    def open(self, uri: str) -> Iterator[bytes]:
        """Yield a payload in pieces and check its digest at the end; see PayloadStore."""
        ref = self._live(uri)
        hasher = hashlib.sha256()
        position = 0
        while position < ref.size_bytes:
            if not (piece := self.read(uri, position, _READ_BYTES)):
                break
            hasher.update(piece)
            position += len(piece)
            yield piece
        if f"sha256:{hasher.hexdigest()}" != ref.digest:
            raise PersistenceError("the stored payload is not the one that was written")

    def delete(self, uri: str) -> None:
        """Remove a reference at once; the next sweep removes bytes that nothing else needs."""
        ref, now = self.resolve(uri), self._clock()
        self._write_ref(
            uri.removeprefix(URI_PREFIX), replace(ref, expires_at=min(now, ref.expires_at or now))
        )

    def sweep(self) -> SweepReport:
        """Remove expired references' bytes, old tombstones, orphans and what crashed writers left
        behind.
        """
        now = self._clock()
        wall = now.timestamp()
        live: set[str] = set()
        expired = 0
        for blob in self._backend.list("refs"):
            if (ref := self._read_ref(blob.key)) is None:
                # unreadable or just replaced: never a reason to delete bytes, and none to keep them
                continue
            if ref.expires_at is None or ref.expires_at > now:
                live.add(self._object_key(ref.digest))
            elif (now - ref.expires_at).total_seconds() > self._limits.tombstone_ttl_s:
                self._backend.delete(blob.key)
            else:
                expired += 1
        removed = removed_bytes = kept = 0
        for prefix in ("objects", "incoming"):
            for blob in self._backend.list(prefix):
                if blob.key in live or wall - blob.modified < self._limits.grace_s:
                    kept += blob.size
                    continue
                self._backend.delete(blob.key)
                removed += 1
                removed_bytes += blob.size
        with self._lock:
            self._used, self._used_at = kept, time.monotonic()
        return SweepReport(expired, removed, removed_bytes, kept)

    def _live(self, uri: str) -> PersistedRef:
        ref = self.resolve(uri)
        if ref.expires_at is not None and ref.expires_at <= self._clock():
            raise PayloadExpired(f"expired at {ref.expires_at.isoformat()}", ref)
        return ref

    def _object_key(self, digest: str) -> str:
        plain = digest.removeprefix("sha256:")
        name = self._cipher.object_name(digest) if self._cipher else plain
        if re.fullmatch(r"[0-9a-f]{64}", name) is None:
            raise PersistenceError("the reference can't be read")
        return f"objects/{name[:2]}/{name}"

    def _publish(self, incoming: str, key: str) -> None:
        if self._backend.size(key) is not None:
            # Same content: the object stays, and counts as new so that a cleaner that runs now
            # leaves it alone.
            try:
                self._backend.touch(key)
            except PersistenceError:
                pass
            else:
                if self._backend.size(key) is not None:
                    self._discard(incoming)
                    return
        self._backend.move(incoming, key)

    def _free_name(self, name: str | None, media_type: str) -> str:
        extension = extension_of(media_type)
        if name is None or _NAME.fullmatch(name) is None:
            return f"result_{uuid4().hex}{extension}"
        candidate = f"{name[:100]}{extension}"
        # A second result of the same call gets a name of its own; a stored reference is never
        # replaced.
        if self._backend.size(_ref_key(candidate)) is not None:
            return f"{name[:100]}.{uuid4().hex[:12]}{extension}"
        return candidate

    def _write_ref(self, name: str, ref: PersistedRef) -> None:
        self._backend.put(_ref_key(name), [json.dumps(ref.to_index()).encode()])

    def _read_ref(self, key: str) -> PersistedRef | None:
        try:
            return _parse(self._backend.get(key, 0, _MAX_REF_BYTES))
        except (KeyError, PersistenceError):
            return None

    def _discard(self, key: str) -> None:
        with suppress(PersistenceError):  # the sweep takes it later
            self._backend.delete(key)

    def _room(self) -> int:
        """Return how many bytes the next payload may have."""
        room = min(self._limits.max_object_bytes, self._limits.max_total_bytes - self._used_bytes())
        if (free := self._backend.free_bytes()) is not None:
            room = min(room, free - self._limits.min_free_bytes)
        return room

    def _used_bytes(self) -> int:
        with self._lock:
            fresh = self._used is not None and time.monotonic() - self._used_at < 60
            if fresh and self._used is not None and self._used < self._limits.max_total_bytes:
                return self._used
        used = sum(
            blob.size for prefix in ("objects", "incoming") for blob in self._backend.list(prefix)
        )
        if used >= self._limits.max_total_bytes:
            used = self.sweep().kept_bytes
        with self._lock:
            self._used, self._used_at = used, time.monotonic()
        return used

    def _sweep_if_due(self) -> None:
        every = self._limits.sweep_every_s
        with self._lock:
            if due := every is not None and time.monotonic() - self._swept_at >= every:
                self._swept_at = time.monotonic()
        if due:
            # a failing cleaner does not stop a writer; a store that is down fails the write itself
            with suppress(PersistenceError):
                self.sweep()


class _Meter:
    """Hashes and counts what passes, and stops what is too much."""

    def __init__(self, chunks: Iterable[bytes], room: int) -> None:
        self._chunks = chunks
        self._room = room
        self.hasher = hashlib.sha256()
        self.size = 0

    def __iter__(self) -> Iterator[bytes]:
        if self._room <= 0:
            raise QuotaExceeded("the store is full")
        for chunk in self._chunks:
            self.size += len(chunk)
            if self.size > self._room:
                raise QuotaExceeded(f"more than {self._room} bytes")
            self.hasher.update(chunk)
            yield chunk


def _ref_key(name: str) -> str:
    return f"refs/{hashlib.sha256(name.encode()).hexdigest()[:2]}/{name}"


def _parse(raw: bytes) -> PersistedRef | None:
    try:
        return PersistedRef.from_index(json.loads(raw))
    except (ValueError, RecursionError):
        return None
