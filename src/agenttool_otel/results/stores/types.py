"""What a payload store promises, and the reference that it gives out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple, Protocol, runtime_checkable

from pydantic import TypeAdapter

from agenttool_otel.errors import PersistenceError
from agenttool_otel.records.base import JsonObject, utc_now
from agenttool_otel.values.canonical import keyed_digest


class PayloadNotFound(PersistenceError, LookupError):
    """No payload of that reference was ever stored here, or its memory is gone too."""


class PayloadExpired(PersistenceError):
    """The payload was there and its time is over; what it was is still known.

    Attributes:
        ref: the reference, with digest, size and the time of expiry.
    """

    def __init__(self, message: str, ref: PersistedRef) -> None:
        super().__init__(message)
        self.ref = ref


class QuotaExceeded(PersistenceError):
    """The payload is larger than allowed, or the store is full."""


@dataclass(frozen=True, slots=True)
class PersistedRef:
    """A reference to persisted bytes: it describes them, and is no permission to read them."""

    uri: str  # ``agent-runtime://session/tool-results/...``
    media_type: str  # media type of the bytes
    # ``sha256:`` and the SHA-256 of the bytes as they are read back (before encryption)
    digest: str
    size_bytes: int  # how many there are
    created_at: datetime = field(default_factory=utc_now)  # when they were stored
    expires_at: datetime | None = None  # when they may be gone; ``None``: kept until deleted
    # whose they are: ``session_id``, ``tenant``, ``invocation_id``; checked before they are served
    owner: dict[str, str] = field(default_factory=dict)
    redaction_state: str = "none"  # what redaction did to them before they were stored

    def to_json(self) -> JsonObject:
        """Return the ``persisted_ref`` of a record: keyed, and without the owner, which is nobody
        else's business.
        """
        own = {"owner", "created_at"}
        known = {**self.to_index(), "digest": keyed_digest(self.digest)}
        return {
            name: value for name, value in known.items() if name not in own and value is not None
        }

    def to_index(self) -> JsonObject:
        """Return everything, for the store's own index."""
        data: JsonObject = _reference().dump_python(self, mode="json")
        return data

    @classmethod
    def from_index(cls, data: Any) -> PersistedRef:
        """Read what ``to_index`` wrote."""
        return _reference().validate_python(data)


@cache
def _reference() -> TypeAdapter[PersistedRef]:
    return TypeAdapter(PersistedRef)


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What a cleaning removed."""

    expired: int = 0  # references whose time was over; they stay as tombstones for a while
    removed_objects: int = 0  # payloads that no reference needs any more
    removed_bytes: int = 0  # their bytes
    kept_bytes: int = 0  # bytes that remain


class BlobInfo(NamedTuple):
    """One stored blob."""

    key: str  # its key
    size: int  # bytes
    modified: float  # when it was written, seconds since the epoch


@runtime_checkable
class PayloadStore(Protocol):
    """Keeps payloads. Every failure is a PersistenceError; every call may block, so callers bring a
    deadline.
    """

    @property
    def name(self) -> str:
        """Short word for metrics (``local``, ``s3``)."""

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
        """Store bytes and return the reference to them."""

    def resolve(self, uri: str) -> PersistedRef:
        """Return what is known of a URI, even after its payload expired. Raises PayloadNotFound."""

    def read(self, uri: str, offset: int = 0, limit: int | None = None) -> bytes:
        """Return ``limit`` bytes from ``offset``. Raises PayloadNotFound or PayloadExpired."""

    def open(self, uri: str) -> Iterator[bytes]:
        """Yield all bytes in pieces, and raise at the end if they are not the ones that
        were stored.
        """

    def delete(self, uri: str) -> None:
        """Remove a payload's reference; the bytes go when nothing else refers to them."""

    def sweep(self) -> SweepReport:
        """Remove what expired and what nothing refers to."""


class Backend(Protocol):
    """Blobs under keys (``objects/ab/...``); what a ResultStore builds on."""

    @property
    def name(self) -> str:
        """Short word for metrics."""

    def put(self, key: str, chunks: Iterable[bytes]) -> None:
        """Write a blob whole or not at all: a reader sees the old one, the new one or none."""

    def get(self, key: str, start: int, length: int) -> bytes:
        """Return up to ``length`` bytes from ``start``. Raises KeyError if there is no such
        blob.
        """

    def size(self, key: str) -> int | None:
        """Return the blob's size, or ``None`` if there is none."""

    def move(self, source: str, target: str) -> None:
        """Rename a blob, replacing the target."""

    def touch(self, key: str) -> None:
        """Make a blob count as just written, where the backend can."""

    def delete(self, key: str) -> None:
        """Remove a blob; no error if there is none."""

    def list(self, prefix: str) -> Iterator[BlobInfo]:
        """Yield the blobs under a prefix."""

    def free_bytes(self) -> int | None:
        """Return how much room is left, or ``None`` where that is unknown."""
