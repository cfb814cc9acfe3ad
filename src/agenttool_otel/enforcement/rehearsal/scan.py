"""What a layer changes, found by comparing its upper directory with the directory below.

An overlay leaves in its upper directory: whole copies of what was changed, a character device 0/0 for what was
deleted, and a mark on a directory that hides all that was below. A deleted tree is *one* device: it is expanded.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from agenttool_otel.enforcement.rehearsal.git_index import is_refreshed
from agenttool_otel.enforcement.rehearsal.manifest import (
    Entry,
    Made,
    Seen,
    kind_of,
    look_at,
    sha256_of,
)
from agenttool_otel.enforcement.rehearsal.types import Kind, Operation

OVERLAY_ATTRIBUTES: Final = ("user.overlay.", "trusted.overlay.")
"""How the extended attributes of an overlay's own begin."""
_IGNORED_ATTRIBUTES: Final = (*OVERLAY_ATTRIBUTES, "security.selinux")
_NOT_COMMITTED: Final = {
    "redirect": "a renamed directory is stored as a reference",
    "metacopy": "a file's content is stored as a reference",
    "overlay": "it has attributes of an overlay of its own",
}
"""Marks that an overlay of this package never makes, by the last part of their names."""


class LayerTooLarge(Exception):
    """A layer touches more paths than are looked at."""


class Scan:
    """Compares the layers over roots with what is below them.

    Args:
        opened_ns: the file system's time when the layer was opened; what is below and younger was
            changed by somebody else meanwhile.
        limit: most paths that are looked at, those of deleted trees counted.
        masked: absolute paths that the commands could not reach.
    """

    def __init__(self, opened_ns: int, limit: int, masked: frozenset[str] = frozenset()) -> None:
        self.entries: list[Entry] = []
        self.reasons: list[str] = []
        self._opened_ns = opened_ns
        self._limit = limit
        self._masked = masked
        self._names: dict[tuple[int, int], str] = {}  # of files with several, by device and inode
        self._root = 0
        self._lower = ""
        self._upper = ""

    def add_root(self, index: int, lower: str, upper: str) -> None:
        """Compare a root.

        Args:
            index: its number among the layer's roots.
            lower: the root.
            upper: the upper directory of the overlay over it.

        Raises:
            LayerTooLarge: the limit is passed.
        """
        self._root, self._lower, self._upper = index, lower, upper
        self._names = {}
        first = len(self.entries)
        self._directory("", look_at(lower), hides=False)
        self.entries[first:] = list(_with_links(self.entries[first:]))

    def _directory(self, top: str, before: Seen | None, *, hides: bool) -> None:
        """Compare a directory of the layer, and all below, without recursion: a tree may be deeper
        than Python's stack.
        """
        pending: list[tuple[str, Seen | None, bool]] = [(top, before, hides)]
        while pending:
            name, below, hidden = pending.pop()
            upper = self._in_layer(name)
            marks = _marks(upper)
            opaque = hidden or "opaque" in marks
            self._refuse_marks(name, marks)
            self._add_directory(name, below)
            merged = below is not None and below.kind is Kind.DIRECTORY
            there = set()
            for child in sorted(_listed(upper)):
                path = _joined(name, child)
                there.add(child)
                deeper = self._child(path, merged)
                if deeper is not None:
                    # the children of a hiding directory hide what is below, too
                    pending.append((path, deeper[0], opaque))
            if merged and opaque:
                self._add_hidden(name, there)

    def _child(self, name: str, merged: bool) -> tuple[Seen | None] | None:
        """Compare an entry of the layer; of a directory return what is below, to go on there."""
        if self._is_masked(name):
            return None
        status = os.lstat(self._in_layer(name))
        before = look_at(self._below(name)) if merged else None
        if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
            if before is not None:
                self._add_deleted(name, before)
            return None
        if (
            before is not None
            and before.kind is Kind.DIRECTORY
            and not stat.S_ISDIR(status.st_mode)
        ):
            self._add_deleted_below(name)
        if stat.S_ISDIR(status.st_mode):
            return (before,)
        self._add_file(name, before, status)
        return None

    def _add_directory(self, name: str, before: Seen | None) -> None:
        path = self._in_layer(name)
        status = os.lstat(path)
        after = Made(
            kind=Kind.DIRECTORY,
            mode=stat.S_IMODE(status.st_mode),
            uid=status.st_uid,
            gid=status.st_gid,
            attributes=_attributes(path),
        )
        _let_in(path, status)
        operations: tuple[Operation, ...] = (Operation.CREATED,)
        if before is not None:
            operations = (Operation.CHANGED,)
            if before.kind is Kind.DIRECTORY:
                same = _attributes(self._below(name)) == after.attributes
                operations = _changed(before, after, same=same)
        self._add(Entry(self._root, name, before, after, operations))

    def _add_file(self, name: str, before: Seen | None, status: os.stat_result) -> None:
        path = self._in_layer(name)
        kind = kind_of(status.st_mode)
        if kind is Kind.OTHER:
            self._refuse(name, "it is a pipe, a socket or a device")
        self._refuse_marks(name, _marks(path))
        after = Made(
            kind=kind,
            mode=stat.S_IMODE(status.st_mode),
            uid=status.st_uid,
            gid=status.st_gid,
            size=status.st_size,
            mtime_ns=status.st_mtime_ns,
            attributes=_attributes(path),
        )
        if kind is Kind.SYMLINK:
            after = replace(after, target=os.readlink(path))
        elif kind is Kind.FILE:
            _let_in(path, status)
            after = replace(after, sha256=sha256_of(path))
        if status.st_nlink > 1 and kind is not Kind.OTHER:
            key = (status.st_dev, status.st_ino)
            after = replace(after, first=self._names.setdefault(key, name))
        self._add(
            Entry(self._root, name, before, after, self._file_operations(name, before, after))
        )

    def _file_operations(
        self, name: str, before: Seen | None, after: Made
    ) -> tuple[Operation, ...]:
        if before is None:
            return (Operation.CREATED,)
        if before.kind is not after.kind:
            return (Operation.CHANGED,)
        same = self._same_content(name, before, after)
        if not same and after.kind is Kind.FILE:
            # git diff looks at files anew: the index stays as it is
            same = is_refreshed(name, self._below(name), self._in_layer(name))
        operations = _changed(before, after, same=same)
        if operations and before.kind is Kind.FILE and before.names > 1:
            # cp -l a b; echo x >> a: both change, and in the layer only the copy of a did
            self._refuse(
                name, f"the file has {before.names} names, and another name stays as it was"
            )
        return operations

    def _same_content(self, name: str, before: Seen, after: Made) -> bool:
        if after.kind is Kind.SYMLINK:
            return before.target == after.target
        if (before.size, before.mtime_ns) != (after.size, after.mtime_ns):
            return False
        below = self._below(name)
        try:
            return sha256_of(below) == after.sha256 and _attributes(below) == after.attributes
        except OSError:
            return False

    def _add_hidden(self, name: str, kept: set[str]) -> None:
        """Add what a directory of the layer hides of the one below, and does not have itself."""
        for child in sorted(_listed(self._below(name))):
            path = _joined(name, child)
            if child in kept or self._is_masked(path):
                continue
            before = look_at(self._below(path))
            if before is not None:
                self._add_deleted(path, before)

    def _add_deleted(self, name: str, before: Seen) -> None:
        place = len(self.entries)
        self._add(Entry(self._root, name, before, None, (Operation.DELETED,)))
        if before.kind is Kind.DIRECTORY:
            count = self._add_deleted_below(name)
            self.entries[place] = replace(self.entries[place], below=count)

    def _add_deleted_below(self, top: str) -> int:
        """Add all below a directory that is deleted, each with what is below it, and count it."""
        first = len(self.entries)
        pending = [top]
        while pending:
            name = pending.pop()
            for child in sorted(_listed(self._below(name))):
                path = _joined(name, child)
                before = look_at(self._below(path))
                if before is None:
                    continue
                self._add(Entry(self._root, path, before, None, (Operation.DELETED,)))
                if before.kind is Kind.DIRECTORY:
                    pending.append(path)
        return len(self.entries) - first

    def _add(self, entry: Entry) -> None:
        if len(self.entries) >= self._limit:
            raise LayerTooLarge
        before = entry.before
        # while the commands ran, somebody else wrote: what they read is not known
        if before is not None and entry.operations and before.ctime_ns > self._opened_ns:
            self._refuse(entry.name, "somebody else changed it meanwhile")
        self.entries.append(entry)

    def _refuse_marks(self, name: str, marks: Mapping[str, bytes]) -> None:
        for mark, reason in _NOT_COMMITTED.items():
            if mark in marks:
                self._refuse(name, reason)

    def _refuse(self, name: str, reason: str) -> None:
        self.reasons.append(f"{self._below(name)}: {reason}")

    def _below(self, name: str) -> str:
        return os.path.join(self._lower, name) if name else self._lower

    def _in_layer(self, name: str) -> str:
        return os.path.join(self._upper, name) if name else self._upper

    def _is_masked(self, name: str) -> bool:
        return self._below(name) in self._masked


def _changed(before: Seen, after: Made, *, same: bool) -> tuple[Operation, ...]:
    operations = []
    if not same:
        operations.append(Operation.CHANGED)
    # the mode of a symbolic link means nothing
    if before.mode != after.mode and after.kind is not Kind.SYMLINK:
        operations.append(Operation.MODE)
    if (before.uid, before.gid) != (after.uid, after.gid):
        operations.append(Operation.OWNER)
    return tuple(operations)


def _with_links(entries: list[Entry]) -> Iterator[Entry]:
    """Yield the entries of a root, with the second names of files marked as such.

    The first name of a file is one that was there before, if any was: ``ln a b`` makes ``b``.
    """
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.after is not None and entry.after.first:
            groups.setdefault(entry.after.first, []).append(entry)
    for entry in entries:
        if entry.after is None or not entry.after.first:
            yield entry
            continue
        group = groups[entry.after.first]
        old = [member for member in group if member.before is not None]
        first = (old or group)[0]
        operations = entry.operations
        if Operation.CREATED in operations and entry is not first:
            operations = (Operation.LINKED,)
        # a copy in the layer whose other names were deleted again
        shared = first.name if len(group) > 1 else ""
        yield replace(entry, operations=operations, after=replace(entry.after, first=shared))


def _marks(path: str) -> dict[str, bytes]:
    """Return an overlay's own attributes of a path, by the last part of their names."""
    marks = {}
    for name in _attribute_names(path):
        for start in OVERLAY_ATTRIBUTES:
            if name.startswith(start):
                mark = name.removeprefix(start).partition(".")[0]
                marks[mark] = os.getxattr(path, name, follow_symlinks=False)
    return marks


def _attributes(path: str) -> tuple[tuple[str, str], ...]:
    """Return the extended attributes of a path that are not an overlay's own."""
    found = []
    for name in sorted(_attribute_names(path)):
        if not name.startswith(_IGNORED_ATTRIBUTES):
            value = os.getxattr(path, name, follow_symlinks=False)
            found.append((name, value.hex()))
    return tuple(found)


def _attribute_names(path: str) -> list[str]:
    try:
        return os.listxattr(path, follow_symlinks=False)
    except OSError:  # a file system without them
        return []


def _let_in(path: str, status: os.stat_result) -> None:
    """Let the owner of the layer read a file or directory that a command has closed to all.

    The mode that a command gave stands in the manifest, from which a commit takes it.
    """
    needed = 0o700 if stat.S_ISDIR(status.st_mode) else 0o400
    mode = stat.S_IMODE(status.st_mode)
    if os.geteuid() != 0 and mode & needed != needed:
        os.chmod(path, mode | needed)


def _listed(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _joined(name: str, child: str) -> str:
    return f"{name}/{child}" if name else child
