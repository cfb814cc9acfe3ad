"""Commits: a sealed layer's entries put into their roots, step by step, so that a killed commit can be finished.

All is compared first; while nothing was changed, nothing is changed if anything differs. Then each step looks at what
is there: as before, and it is done; as afterwards, and it was done; else it is left and reported. Paths are walked
from the root by descriptors that follow no symbolic link: a directory that became a link leads nowhere else.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from agenttool_otel.enforcement.rehearsal.failures import CommitConflict, CommitRefused
from agenttool_otel.enforcement.rehearsal.manifest import Entry, Made, Manifest, look_at, sha256_of
from agenttool_otel.enforcement.rehearsal.scan import OVERLAY_ATTRIBUTES
from agenttool_otel.enforcement.rehearsal.types import Kind, Unfinished

_DIRECTORY: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_WRITABLE: Final = 0o300


class _Differs(Exception):
    """What is at a path is neither what was nor what is to be there."""


class Tree:
    """A root, or an upper directory, of which no path leads outside.

    Args:
        path: the directory.
        inode: its inode, if another is a conflict.
    """

    def __init__(self, path: str, inode: int | None = None) -> None:
        self.path = path
        self._fd = os.open(path, _DIRECTORY)
        if inode is not None and os.fstat(self._fd).st_ino != inode:
            os.close(self._fd)
            raise CommitConflict([path])
        self._last: tuple[str, int] = ("", self._fd)

    def close(self) -> None:
        """Close what is open."""
        self._forget()
        os.close(self._fd)

    def parent(self, name: str) -> tuple[int, str]:
        """Return the descriptor of the directory that a path lies in, and its name there.

        Raises:
            OSError: a component is missing, or is no directory.
        """
        folder, _, base = name.rpartition("/")
        if folder != self._last[0]:
            self._forget()
            if folder:
                self._last = (folder, self._walk(folder))
        return self._last[1], base or "."

    @contextmanager
    def directory(self, name: str) -> Iterator[str]:
        """Yield a path by which the mode and owner of a directory can be set."""
        parent, base = self.parent(name)
        descriptor = os.open(base, _DIRECTORY, dir_fd=parent)
        try:
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)

    def _walk(self, folder: str) -> int:
        descriptor = os.dup(self._fd)
        for component in folder.split("/"):
            try:
                deeper = os.open(component, _DIRECTORY, dir_fd=descriptor)
            finally:
                os.close(descriptor)
            descriptor = deeper
        return descriptor

    def _forget(self) -> None:
        if self._last[1] != self._fd:
            os.close(self._last[1])
        self._last = ("", self._fd)


@dataclass(slots=True)
class Commit:
    """The commit of one layer.

    Attributes:
        layer_id: the layer's id.
        manifest: what is committed.
        uppers: the upper directories of the layer, in the order of the roots.
        inodes: the inodes that the roots had.
    """

    layer_id: str
    manifest: Manifest
    uppers: tuple[str, ...]
    inodes: tuple[int, ...]

    def check(self) -> None:
        """Compare everything with what was seen and sealed; nothing is changed.

        Raises:
            CommitConflict: a directory or file that the layer was made on is another by now.
            CommitRefused: the layer's own content is another than was sealed.
        """
        with self._trees() as (roots, uppers):
            conflicts = []
            for entry in self.manifest.entries:
                if not _is_still(roots[entry.root], entry):
                    conflicts.append(self.manifest.path(entry))
            if conflicts:
                raise CommitConflict(conflicts)
            for entry in self.manifest.entries:
                if entry.is_put and not _is_sealed(uppers[entry.root], entry):
                    path = self.manifest.path(entry)
                    raise CommitRefused(f"the layer has another content than was sealed: {path}")

    def apply(self) -> tuple[int, tuple[Unfinished, ...]]:
        """Do all steps that were not done yet; return how many there are, and what is left."""
        unfinished = []
        steps = list(self._steps())
        with self._trees() as (roots, uppers):
            for step, entry in steps:
                try:
                    step(self, roots[entry.root], uppers[entry.root], entry)
                except _Differs:
                    path = self.manifest.path(entry)
                    unfinished.append(Unfinished(path, "somebody else changed it meanwhile"))
                except OSError as error:
                    path = self.manifest.path(entry)
                    unfinished.append(Unfinished(path, error.strerror or type(error).__name__))
        return len(steps), tuple(unfinished)

    def _steps(self) -> Iterator[tuple[_Step, Entry]]:
        """Yield the steps: room is made from the leaves, filled from the root, and closed from the
        leaves.
        """
        entries = self.manifest.entries
        downwards = sorted(entries, key=_order)
        for entry in downwards:
            if _must_be_opened(entry):
                yield Commit._open, entry
        for entry in reversed(downwards):
            if _is_removed(entry):
                yield Commit._remove, entry
        for entry in downwards:
            if _is_made(entry):
                yield Commit._make, entry
        for entry in downwards:
            if entry.is_put:
                yield Commit._put, entry
        for entry in reversed(downwards):
            if entry.after is not None and entry.after.kind is Kind.DIRECTORY:
                yield Commit._close, entry

    def _open(self, root: Tree, upper: Tree, entry: Entry) -> None:
        """Let this user write into a directory whose mode forbids it; ``_close`` takes it back."""
        with root.directory(entry.name) as path:
            os.chmod(path, entry.seen.mode | _WRITABLE)

    def _remove(self, root: Tree, upper: Tree, entry: Entry) -> None:
        try:
            parent, base = root.parent(entry.name)
        except FileNotFoundError:  # with all around it
            return
        now = look_at(base, dir_fd=parent)
        before, after = entry.before, entry.after
        if now is None or before is None:
            return
        if not before.may_be_replaced(now):
            if after is not None and now.kind is after.kind:
                return
            raise _Differs
        if before.kind is Kind.DIRECTORY:
            os.rmdir(base, dir_fd=parent)
        else:
            os.unlink(base, dir_fd=parent)

    def _make(self, root: Tree, upper: Tree, entry: Entry) -> None:
        parent, base = root.parent(entry.name)
        now = look_at(base, dir_fd=parent)
        if now is None:
            os.mkdir(base, 0o700, dir_fd=parent)
        elif now.kind is not Kind.DIRECTORY:
            raise _Differs

    def _put(self, root: Tree, upper: Tree, entry: Entry) -> None:
        after = entry.made
        source, name = upper.parent(entry.name)
        if look_at(name, dir_fd=source) is None:  # moved already
            return
        target, base = root.parent(entry.name)
        now = look_at(base, dir_fd=target)
        before = entry.before
        if before is not None and before.kind is Kind.DIRECTORY:
            before = None  # removed by a step before
        if now is None or before is None:
            if now is not before and not _is_copied(after, target, base):
                raise _Differs
        elif not before.may_be_replaced(now) and not _is_copied(after, target, base):
            raise _Differs
        _prepare(after, source, name)
        try:
            os.rename(name, base, src_dir_fd=source, dst_dir_fd=target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            self._copy(root, upper, entry)

    def _copy(self, root: Tree, upper: Tree, entry: Entry) -> None:
        """Put a file that lies on another file system: a copy beside its place, renamed to it."""
        after = entry.made
        source, name = upper.parent(entry.name)
        target, base = root.parent(entry.name)
        beside = f".{self.layer_id}.part"
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=target)
        if after.kind is Kind.SYMLINK:
            os.symlink(after.target, beside, dir_fd=target)
            os.chown(beside, after.uid, after.gid, dir_fd=target, follow_symlinks=False)
        elif after.first and after.first != entry.name:
            folder, first = root.parent(after.first)
            # `parent` keeps one directory open: it is looked up again
            folder = os.dup(folder)
            try:
                target, base = root.parent(entry.name)
                os.link(first, beside, src_dir_fd=folder, dst_dir_fd=target, follow_symlinks=False)
            finally:
                os.close(folder)
        else:
            _copy_file(after, (source, name), (target, beside))
        os.rename(beside, base, src_dir_fd=target, dst_dir_fd=target)
        os.unlink(name, dir_fd=source)

    def _close(self, root: Tree, upper: Tree, entry: Entry) -> None:
        """Give a directory its mode, owner and attributes."""
        after = entry.made
        with root.directory(entry.name) as path:
            now = os.stat(path)
            if (now.st_uid, now.st_gid) != (after.uid, after.gid):
                os.chown(path, after.uid, after.gid)
            if stat.S_IMODE(now.st_mode) != after.mode:
                os.chmod(path, after.mode)
            if entry.operations:
                _set_attributes(after, path)

    @contextmanager
    def _trees(self) -> Iterator[tuple[list[Tree], list[Tree]]]:
        opened: list[Tree] = []
        try:
            for path, inode in zip(self.manifest.roots, self.inodes, strict=True):
                opened.append(Tree(path, inode))
            for path in self.uppers:
                opened.append(Tree(path))
            yield opened[: len(self.inodes)], opened[len(self.inodes) :]
        except FileNotFoundError as error:
            raise CommitConflict([str(error.filename)]) from error
        finally:
            for tree in opened:
                tree.close()


_Step = Callable[[Commit, Tree, Tree, Entry], None]


def _order(entry: Entry) -> tuple[int, list[str]]:
    return entry.root, entry.name.split("/") if entry.name else []


def _must_be_opened(entry: Entry) -> bool:
    before = entry.before
    if before is None or before.kind is not Kind.DIRECTORY or os.geteuid() == 0:
        return False
    return before.mode & _WRITABLE != _WRITABLE


def _is_removed(entry: Entry) -> bool:
    if entry.before is None or not entry.operations:
        return False
    if entry.after is None:
        return True
    # a file that becomes a file is renamed over; a directory that becomes a file is not
    return (entry.before.kind is Kind.DIRECTORY) != (entry.after.kind is Kind.DIRECTORY)


def _is_made(entry: Entry) -> bool:
    if entry.after is None or entry.after.kind is not Kind.DIRECTORY:
        return False
    return entry.before is None or entry.before.kind is not Kind.DIRECTORY


def _is_still(root: Tree, entry: Entry) -> bool:
    """Return whether what is below an entry is what the layer was made on."""
    try:
        parent, base = root.parent(entry.name)
        now = look_at(base, dir_fd=parent)
    except OSError:
        now = None
    before = entry.before
    if before is None or now is None:
        return now is before
    stays = entry.after is not None and entry.after.kind is Kind.DIRECTORY
    if before.kind is Kind.DIRECTORY and stays:
        # others may write into a directory that stays; it has to be the same
        return before.may_be_replaced(now)
    return before.is_still(now)


def _is_sealed(upper: Tree, entry: Entry) -> bool:
    after = entry.made
    try:
        parent, name = upper.parent(entry.name)
        now = look_at(name, dir_fd=parent)
        if now is None or now.kind is not after.kind:
            return False
        if after.kind is Kind.SYMLINK:
            return now.target == after.target
        return sha256_of(name, dir_fd=parent) == after.sha256
    except OSError:
        return False


def _is_copied(after: Made, parent: int, name: str) -> bool:
    """Return whether a commit that was killed has put a copy here already."""
    now = look_at(name, dir_fd=parent)
    if now is None or now.kind is not after.kind:
        return False
    if after.kind is Kind.SYMLINK:
        return now.target == after.target
    same = (now.size, now.mtime_ns) == (after.size, after.mtime_ns)
    return same and sha256_of(name, dir_fd=parent) == after.sha256


def _prepare(after: Made, parent: int, name: str) -> None:
    """Give a file in the layer its mode, and take the overlay's own marks off it."""
    if after.kind is not Kind.FILE:
        return
    descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        path = f"/proc/self/fd/{descriptor}"
        for mark in os.listxattr(path):
            if mark.startswith(OVERLAY_ATTRIBUTES):
                os.removexattr(path, mark)
        if stat.S_IMODE(os.fstat(descriptor).st_mode) != after.mode:
            os.chmod(path, after.mode)
    finally:
        os.close(descriptor)


def _copy_file(after: Made, source: tuple[int, str], target: tuple[int, str]) -> None:
    reads = os.open(source[1], os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=source[0])
    with open(reads, "rb") as content:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        writes = os.open(target[1], flags, 0o600, dir_fd=target[0])
        with open(writes, "wb") as copy:
            shutil.copyfileobj(content, copy)
            copy.flush()
            path = f"/proc/self/fd/{writes}"
            os.fchown(writes, after.uid, after.gid)
            _set_attributes(after, path)
            os.fchmod(writes, after.mode)
            os.utime(writes, ns=(after.mtime_ns, after.mtime_ns))
            os.fsync(writes)


def _set_attributes(after: Made, path: str) -> None:
    for name, value in after.attributes:
        os.setxattr(path, name, bytes.fromhex(value))
