"""A layer's entries: what was at each touched path before, and what the layer has there; their canonical form."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agenttool_otel.enforcement.rehearsal.types import Change, Connection, Effects, Kind, Operation

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Seen:
    """What was at a path in the directory itself; a commit compares with it."""

    kind: Kind
    mode: int
    uid: int
    gid: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    names: int
    target: str = ""

    def is_still(self, now: Seen) -> bool:
        """Return whether nothing has changed, as far as inode, times and size show it."""
        if self.kind is not now.kind or self.inode != now.inode:
            return False
        return (self.size, self.mtime_ns, self.ctime_ns) == (now.size, now.mtime_ns, now.ctime_ns)

    def may_be_replaced(self, now: Seen) -> bool:
        """Return whether it is the same while a commit goes on, whose own steps change times.

        ``rm a b`` of two names of a file: the first step changes the ctime of the second.
        """
        if self.kind is not now.kind or self.inode != now.inode:
            return False
        if self.kind is Kind.DIRECTORY:
            return True
        return (self.size, self.mtime_ns) == (now.size, now.mtime_ns)


@dataclass(frozen=True, slots=True)
class Made:
    """What a layer has at a path."""

    kind: Kind
    mode: int
    uid: int
    gid: int
    size: int = 0
    mtime_ns: int = 0
    sha256: str = ""
    target: str = ""
    first: str = ""  # of a file with several names in the layer: the first of them
    attributes: tuple[tuple[str, str], ...] = ()  # extended ones, values in hexadecimal


@dataclass(frozen=True, slots=True)
class Entry:
    """A path that a layer has, or hides."""

    root: int
    name: str  # below the root; "" is the root itself
    before: Seen | None
    after: Made | None
    operations: tuple[Operation, ...] = ()
    below: int = 0

    @property
    def seen(self) -> Seen:
        """What was there, of an entry that had something below."""
        if self.before is None:
            raise ValueError(f"nothing was at {self.name}")
        return self.before

    @property
    def made(self) -> Made:
        """What the layer has, of an entry that is not deleted."""
        if self.after is None:
            raise ValueError(f"{self.name} is deleted")
        return self.after

    @property
    def is_put(self) -> bool:
        """Whether a commit moves a file or a symbolic link to the path."""
        if self.after is None or self.after.kind is Kind.DIRECTORY:
            return False
        return bool(self.operations or self.after.first)


@dataclass(frozen=True, slots=True)
class Manifest:
    """All of a layer, as it is sealed."""

    roots: tuple[str, ...]
    entries: tuple[Entry, ...]
    connections: tuple[Connection, ...] = ()
    reasons: tuple[str, ...] = ()
    connections_counted: bool = True
    noise: frozenset[str] = field(default=frozenset())  # paths of the reviewed list

    def path(self, entry: Entry) -> str:
        """Return the absolute path of an entry."""
        return os.path.join(self.roots[entry.root], entry.name).rstrip("/")

    def effects(self) -> Effects:
        """Return what a policy and a person are shown."""
        changes: list[Change] = []
        for entry in self.entries:
            changes.extend(self._changes(entry))
        changes.sort(key=lambda change: (change.path, change.operation))
        return Effects(
            changes=tuple(changes),
            connections=self.connections,
            complete=not self.reasons,
            reasons=self.reasons,
            connections_counted=self.connections_counted,
        )

    def _changes(self, entry: Entry) -> Iterable[Change]:
        path = self.path(entry)
        there = entry.after or entry.before
        if there is None:
            return
        for operation in entry.operations:
            target = there.target
            if operation is Operation.LINKED and entry.after is not None:
                target = os.path.join(self.roots[entry.root], entry.after.first)
            yield Change(
                operation=operation,
                path=path,
                kind=there.kind,
                size=there.size if there.kind is Kind.FILE else 0,
                mode=there.mode,
                below=entry.below,
                target=target,
                noise=path in self.noise,
            )

    def document(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "roots": list(self.roots),
            "entries": [_row(entry) for entry in self.entries],
            "connections": [_row(connection) for connection in self.connections],
            "reasons": list(self.reasons),
            "connections_counted": self.connections_counted,
            "noise": sorted(self.noise),
        }

    def digest(self) -> str:
        """Return the SHA-256 of its canonical form: effects, contents, and what they were seen on."""
        return hashlib.sha256(canonical_bytes(self.document())).hexdigest()


def _row(record: Entry | Seen | Made | Connection) -> dict[str, Any]:
    """Return a record as JSON; ``dataclasses.asdict`` copies each value, and takes ten times as long."""
    row = {}
    for name in record.__slots__:
        value = getattr(record, name)
        if isinstance(value, (Seen, Made)):
            value = _row(value)
        row[name] = value
    return row


def canonical_bytes(document: Any) -> bytes:
    """Return a document as JSON with sorted keys and no blanks.

    Names of files that are no UTF-8 have halves of surrogate pairs, which RFC 8785 refuses: they
    are escaped as all that is not ASCII.
    """
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return text.encode("ascii")


def manifest_from(document: dict[str, Any]) -> Manifest:
    """Return the manifest that a document was made of."""
    return Manifest(
        roots=tuple(document["roots"]),
        entries=tuple(_entry_from(row) for row in document["entries"]),
        connections=tuple(Connection(**row) for row in document["connections"]),
        reasons=tuple(document["reasons"]),
        connections_counted=document["connections_counted"],
        noise=frozenset(document["noise"]),
    )


def _entry_from(row: dict[str, Any]) -> Entry:
    before = row["before"]
    after = row["after"]
    if before is not None:
        before = Seen(**{**before, "kind": Kind(before["kind"])})
    if after is not None:
        pairs = tuple((name, value) for name, value in after["attributes"])
        after = Made(**{**after, "kind": Kind(after["kind"]), "attributes": pairs})
    operations = tuple(Operation(word) for word in row["operations"])
    return Entry(row["root"], row["name"], before, after, operations, row["below"])


def kind_of(mode: int) -> Kind:
    """Return what a mode of ``lstat`` is of."""
    if stat.S_ISREG(mode):
        return Kind.FILE
    if stat.S_ISDIR(mode):
        return Kind.DIRECTORY
    if stat.S_ISLNK(mode):
        return Kind.SYMLINK
    return Kind.OTHER


def seen_from(status: os.stat_result, target: str = "") -> Seen:
    """Return what ``lstat`` found, for a commit to compare with."""
    return Seen(
        kind=kind_of(status.st_mode),
        mode=stat.S_IMODE(status.st_mode),
        uid=status.st_uid,
        gid=status.st_gid,
        inode=status.st_ino,
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        ctime_ns=status.st_ctime_ns,
        names=status.st_nlink,
        target=target,
    )


def look_at(path: str, *, dir_fd: int | None = None) -> Seen | None:
    """Return what is at a path, itself, or ``None`` if nothing is."""
    try:
        status = os.stat(path, dir_fd=dir_fd, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    target = ""
    if stat.S_ISLNK(status.st_mode):
        target = os.readlink(path, dir_fd=dir_fd)
    return seen_from(status, target)


def sha256_of(path: str, *, dir_fd: int | None = None) -> str:
    """Return the SHA-256 of a regular file's content."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    with open(descriptor, "rb") as file:
        digest = hashlib.sha256()
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def first_names(entries: Sequence[Entry]) -> dict[tuple[int, str], int]:
    """Return how many names of the layer each shared file has, by root and first name."""
    counts: dict[tuple[int, str], int] = {}
    for entry in entries:
        if entry.after is not None and entry.after.first:
            key = (entry.root, entry.after.first)
            counts[key] = counts.get(key, 0) + 1
    return counts
