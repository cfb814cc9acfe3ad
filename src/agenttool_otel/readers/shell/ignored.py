"""What ignore files and git's index hold, as far as a search by ripgrep or git depends on it.

These are not git's rules as a whole, which a library could apply: a name counts as left out, or as
let in, only where the plain lines that every version reads alike leave no other reading.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cache
from itertools import product

from agenttool_otel.readers.paths.fact import clean, within

_MAX_IGNORE_BYTES = 65536
_MAX_INDEX_BYTES = 8 << 20
_INDEX_VERSIONS = (b"DIRC\0\0\0\2", b"DIRC\0\0\0\3")
_IGNORE_FILES = (".ignore", ".rgignore", ".gitignore", ".git/info/exclude")
_PLAIN_LINE = re.compile(rb"[\w.*/-]+[ \t\r]*", re.ASCII)
_ANYTHING = "*"


class IgnoreFiles:
    """The ignore files and indexes below some roots, each of which is read once."""

    def __init__(self, roots: tuple[str, ...]) -> None:
        self._roots = [clean(root) for root in roots]
        self._excepted = cache(_excepted_by)
        self._index = cache(_index_of)

    def lets_in(self, path: str) -> bool:
        """Whether an ignore file beside or above a hidden name makes ripgrep look at it."""
        folder, name = os.path.split(path)
        while any(within(folder, root) for root in self._roots):
            if self._excepts(folder, [name]):
                return True
            parent = os.path.dirname(folder)
            if parent == "/":
                break
            folder = parent
        return False

    def surely_ignored(self, path: str, top: str) -> bool:
        """Whether git's ignore files surely leave out a path below a directory, for ripgrep."""
        root = self._root_of(path)
        parts = os.path.relpath(path, root).split("/")
        folders = []
        for size in range(len(parts)):
            folders.append(os.path.join(root, *parts[:size]))
        # in a repository of its own, nothing counts that stands above it
        inner = any(os.path.lexists(f"{folder}/.git") for folder in folders[1:])
        if inner or not os.path.isdir(f"{root}/.git"):
            return False
        for folder in folders:
            if self._excepts(folder, parts):
                return False
        start = clean(top)
        for size in range(1, len(parts) + 1):
            # each folder above the file, and the file itself, may be left out
            name = os.path.join(root, *parts[:size])
            if name == start or not within(name, start):
                continue
            if any(_ignores(folder, name) for folder in folders[:size]):
                return True
        return False

    def _root_of(self, path: str) -> str:
        """Return the first root that a path lies in."""
        for root in self._roots:
            if within(path, root):
                return root
        return ""

    def _excepts(self, folder: str, names: list[str]) -> bool:
        """Whether a directory's ignore files let in one of some names."""
        pairs = product(names, self._excepted(folder))
        return any(fnmatchcase(name, pattern) for name, pattern in pairs)

    def may_be_tracked(self, path: str, top: str) -> bool:
        """Whether the index of a directory's repository may hold a name.

        Args:
            path: the name; with a slash at its end, some name below it.
            top: the directory.
        """
        repository = os.path.realpath(top)
        while repository != "/" and not os.path.lexists(f"{repository}/.git"):
            repository = os.path.dirname(repository)
        content = self._index(repository)
        if content is None:
            return True
        folder, name = os.path.split(path.rstrip("/"))
        real = os.path.join(os.path.realpath(folder), name)
        written = os.fsencode(os.path.relpath(real, repository))
        if path.endswith("/"):
            return written + b"/" in content
        # the index ends each name with a zero
        return written + b"\0" in content


def _excepted_by(directory: str) -> list[str]:
    """Return the patterns of names that a directory's ignore files except.

    That is all, where a file is too long or no plain one.
    """
    lines: list[str] = []
    for name in _IGNORE_FILES:
        path = os.path.join(directory, name)
        if not os.path.lexists(path):
            continue
        # a pipe, for which the reader would wait
        if not os.path.isfile(path) or os.path.getsize(path) > _MAX_IGNORE_BYTES:
            return [_ANYTHING]
        with suppress(OSError), open(path, encoding="utf-8-sig", errors="replace") as file:
            lines += file.read(_MAX_IGNORE_BYTES).splitlines()
    patterns = []
    for line in lines:
        if line.startswith("!"):
            patterns.append(_excepted_name(line))
    return patterns


def _excepted_name(line: str) -> str:
    """Return the pattern of the name that a line such as ``!/docs/.env`` excepts."""
    path = line.strip().removeprefix("!").strip("/")
    name = path.rpartition("/")[2]
    # !.[^x]nv: character classes are not the same for git and fnmatch
    if any(char in name for char in "{\\["):
        return _ANYTHING
    return name


def _index_of(top: str) -> bytes | None:
    """Return a repository's index, where it is one file that holds each name in full."""
    with suppress(OSError), open(f"{top}/.git/index", "rb") as file:
        content = file.read(_MAX_INDEX_BYTES + 1)
        if len(content) > _MAX_INDEX_BYTES or content[:8] not in _INDEX_VERSIONS:
            return None
        # an index in two files
        for name in os.listdir(f"{top}/.git"):
            if name.startswith("sharedindex"):
                return None
        # the extension of an index that has whole directories in it
        if b"sdir" in content:
            return None
        return content
    return None


def _ignores(directory: str, path: str) -> bool:
    """Whether a plain line of a directory's own ignore file leaves a path out."""
    lines: list[bytes] = []
    with suppress(OSError), open(f"{directory}/.gitignore", "rb") as file:
        content = file.read(_MAX_IGNORE_BYTES)
        lines = content.split(b"\n")
    parts = os.path.relpath(path, directory).split("/")
    is_folder = os.path.isdir(path)
    for line in lines:
        plain = _PLAIN_LINE.fullmatch(line)
        if plain is None:
            continue
        pattern = plain[0].decode().rstrip()
        # "build/" names no file
        if is_folder:
            pattern = pattern.removesuffix("/")
        if _matches_line(pattern, parts):
            return True
    return False


def _matches_line(pattern: str, parts: list[str]) -> bool:
    """Whether a line of an ignore file names a path, which it has from its own directory."""
    # "config/x" and "/x" begin at the directory, "x" is a name anywhere below it
    if "/" not in pattern:
        parts = parts[-1:]
    pieces = pattern.removeprefix("/").split("/")
    if "**" in pieces or len(pieces) != len(parts):
        return False
    return all(map(fnmatchcase, parts, pieces))
