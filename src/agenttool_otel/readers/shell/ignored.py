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
        """Whether an ignore file beside or above a hidden name says that ripgrep looks at it."""
        folder, name = os.path.split(path)
        while any(within(folder, root) for root in self._roots):
            if any(fnmatchcase(name, pattern) for pattern in self._excepted(folder)):
                return True
            if os.path.dirname(folder) == "/":
                break
            folder = os.path.dirname(folder)
        return False

    def surely_ignored(self, path: str, top: str) -> bool:
        """Whether git's ignore files surely leave out a path below a directory, for ripgrep."""
        root = next((root for root in self._roots if within(path, root)), "")
        parts = os.path.relpath(path, root).split("/")
        folders = [os.path.join(root, *parts[:size]) for size in range(len(parts))]
        # in a repository of its own, nothing counts that stands above it
        inner = any(os.path.lexists(f"{folder}/.git") for folder in folders[1:])
        if inner or not os.path.isdir(f"{root}/.git"):
            return False
        excepted = [pattern for folder in folders for pattern in self._excepted(folder)]
        if any(fnmatchcase(part, pattern) for part in parts for pattern in excepted):
            return False
        start = clean(top)
        for size in range(len(parts)):
            # each folder above the file, and the file itself, may be left out
            name = os.path.join(root, *parts[: size + 1])
            if name == start or not within(name, start):
                continue
            if any(_ignores(folder, name) for folder in folders[: size + 1]):
                return True
        return False

    def may_be_tracked(self, path: str, top: str) -> bool:
        """Whether the index of a directory's repository may hold a name.

        With a slash at the end of the path: some name below it.
        """
        repository = os.path.realpath(top)
        while not os.path.lexists(f"{repository}/.git") and repository != "/":
            repository = os.path.dirname(repository)
        content = self._index(repository)
        if content is None:
            return True
        folder, name = os.path.split(path.rstrip("/"))
        real = os.path.join(os.path.realpath(folder), name)
        end = b"/" if path.endswith("/") else b"\0"
        return os.fsencode(os.path.relpath(real, repository)) + end in content


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
        if not line.startswith("!"):
            continue
        pattern = line.strip()[1:].strip("/").rpartition("/")[2]
        # !.[^x]nv: character classes are not the same for git and fnmatch
        patterns.append(_ANYTHING if set(pattern) & set("{\\[") else pattern)
    return patterns


def _index_of(top: str) -> bytes | None:
    """Return a repository's index, where it is one file that holds each name in full."""
    with suppress(OSError), open(f"{top}/.git/index", "rb") as file:
        content = file.read(_MAX_INDEX_BYTES + 1)
        if content[:8] not in _INDEX_VERSIONS or len(content) > _MAX_INDEX_BYTES:
            return None
        # a split index, or one with whole directories in it
        split = any(name.startswith("sharedindex") for name in os.listdir(f"{top}/.git"))
        return None if split or b"sdir" in content else content
    return None


def _ignores(directory: str, path: str) -> bool:
    """Whether a plain line of a directory's own ignore file leaves a path out."""
    lines: list[bytes] = []
    with suppress(OSError), open(f"{directory}/.gitignore", "rb") as file:
        lines += file.read(_MAX_IGNORE_BYTES).split(b"\n")
    parts = os.path.relpath(path, directory).split("/")
    is_folder = os.path.isdir(path)
    for line in lines:
        plain = _PLAIN_LINE.fullmatch(line)
        if plain is None:
            continue
        pattern = plain[0].decode().rstrip()
        if is_folder:
            pattern = pattern.removesuffix("/")
        # "config/x" and "/x" begin at the directory, "x" is a name anywhere below it
        pieces = pattern.removeprefix("/").split("/")
        named = parts if "/" in pattern else parts[-1:]
        if "**" in pieces or len(pieces) != len(named):
            continue
        if all(map(fnmatchcase, named, pieces)):
            return True
    return False
