"""The places of a command: each word that names one, with the path fact that a path argument of
that text has.

Globs are expanded in the file system, links are followed, and a directory that is read with all
that it holds is walked. Where a bound ends the work, the places are not complete, and the fact says
so.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache

from agenttool_otel.readers.paths.fact import clean, path_fact, real_root, real_roots, within
from agenttool_otel.readers.paths.sensitive import names_a_secret, sensitive_class
from agenttool_otel.readers.shell.devices import (
    SYSTEM_FACTS,
    climbs,
    is_harmless_device,
    simple_glob,
)
from agenttool_otel.readers.shell.directories import Where
from agenttool_otel.readers.shell.effects import Touch
from agenttool_otel.readers.types import PathFact, ShellPlace, Surroundings
from agenttool_otel.readers.vocabulary import PathAccess, PathClass

_MAX_PLACES = 100
_MAX_ENTRIES = 20_000
_PLAIN_IGNORED = re.compile(rb"[\w.*/-]+[ \t\r]*", re.ASCII)
_MAX_IGNORE_BYTES = 65536
_MAX_INDEX_BYTES = 8 << 20
_WRITES = frozenset({"create", "append", "overwrite", "delete", "delete_tree"})
_DELETES = frozenset({"delete", "delete_tree"})
_SECRETS = (PathClass.KEY, PathClass.CREDENTIAL, PathClass.APPROVAL)
_SPLITS = re.compile(r"[\s'\"\\*?\[]")
_GLOB = str.maketrans("", "", "*?[]{}")  # {} is what stands for a name


class Places:
    """Establishes the places of one line; a place that several commands name is looked up once."""

    def __init__(self, argument: str, env: Surroundings) -> None:
        self._argument = argument
        self._env = replace(env, real_roots=real_roots(env)) if env.touch_file_system else env
        self._facts: dict[tuple[str, str, str], PathFact] = {}
        self._surroundings: dict[str, Surroundings] = {}
        self._let_in = cache(_let_in)
        self._index_of = cache(_index_of)
        self._entries = 0
        self._count = 0
        self._found: list[ShellPlace] = []
        self._complete = True
        self.secret = False  # whether a tree that is read holds a key or a credential

    def of(self, touches: Iterable[Touch], where: Where) -> tuple[list[ShellPlace], bool]:
        """Returns the places of one command, and whether these are all."""
        self._found, self._complete = [], True
        done: set[tuple[str, str, str]] = set()
        for touch in dict.fromkeys(touches):
            told = touch.word in SYSTEM_FACTS and touch.operation in ("read", "list")
            if told or (is_harmless_device(touch.word) and touch.operation not in _DELETES):
                continue
            absolute = touch.word.startswith("/")
            self._complete &= not (not where.known and not absolute)
            for directory in ("/",) if absolute else where.paths:
                if (directory, touch.word, touch.operation) in done and not touch.recursive:
                    continue
                done.add((directory, touch.word, touch.operation))
                self._touch(touch, directory)
        return self._found, self._complete

    def _touch(self, touch: Touch, directory: str) -> None:
        if touch.below and not os.path.isdir(
            posixpath.join(directory, posixpath.dirname(touch.word) or ".")
        ):
            return
        self._add(touch.word, touch.operation, directory)
        self._complete &= not (
            touch.split and _SPLITS.search(directory + touch.word.translate(_GLOB))
        )
        if not self._env.touch_file_system:
            self._complete = self._complete and not (touch.glob or touch.recursive)
            return
        matches = [touch.word]
        if touch.glob:
            # older shells let ".*" and ".?" match ".."
            self._complete &= not any(map(climbs, touch.word.split("/")))
            matches = []
            for match, noteworthy in self._expanded(touch, directory):
                matches.append(match)
                # an option of whatever is given it, or an assignment for awk
                self._complete &= match[:1] != "-" and "=" not in match.partition("/")[0]
                self._complete &= not (
                    touch.flat and os.path.isdir(posixpath.join(directory, match))
                )
                if noteworthy or touch.operation in _WRITES:
                    self._add(match, touch.operation, directory)
        if touch.recursive:
            for match in matches:
                self._walk(posixpath.join(directory, match), touch)

    def _add(self, word: str, operation: str, directory: str) -> None:
        if self._count >= _MAX_PLACES:
            self._complete = False
            return
        self._count += 1
        access = (PathAccess.WRITE if operation in _WRITES else PathAccess.READ).value
        key = (directory, word, access)
        if (fact := self._facts.get(key)) is None:
            if directory not in self._surroundings:
                self._surroundings[directory] = replace(self._env, cwd=directory)
            around = self._surroundings[directory]
            fact = self._facts[key] = path_fact(
                word, argument=self._argument, access=access, surroundings=around
            )
        covers = self._covers(fact) if operation in _DELETES else []
        self._found.append({"word": word, "operation": operation, "covers": covers, "path": fact})

    def _covers(self, fact: PathFact) -> list[str]:
        """Which of the session's roots and the home directory lie at or below a place."""
        home = self._env.home if self._env.home is not None else os.path.expanduser("~")
        named = [("root", root) for root in self._env.roots] + [("home", home)]
        found = []
        for kind, place in named:
            by_text = bool(fact["lexical"]) and within(clean(place), fact["lexical"])
            resolved = fact["resolved"]
            if by_text or (resolved is not None and within(real_root(place), resolved)):
                found.append(kind)
        return list(dict.fromkeys(found))

    def _expanded(self, touch: Touch, directory: str) -> Iterator[tuple[str, bool]]:
        """Yields the names that a glob stands for, and whether a link or a sensitive name is among
        its parts.
        """
        frontier = [("/" if touch.word.startswith("/") else "", False)]
        parts = [part for part in touch.word.split("/") if part not in ("", ".")]
        parts += ["*"] if parts[-1:] == ["**"] else []
        for part in parts:
            following: list[tuple[str, bool]] = []
            for prefix, noteworthy in frontier:
                if part == "**":
                    following.extend(self._below(prefix, noteworthy, directory))
                    continue
                if not any(char in part for char in "*?["):
                    following.append((posixpath.join(prefix, part), noteworthy))
                    continue
                pattern = simple_glob(part)
                for entry in self._listed(posixpath.join(directory, prefix)):
                    if entry.name.startswith(".") != part.startswith("."):
                        continue
                    if fnmatchcase(entry.name, pattern):
                        self._complete &= not (touch.split and _SPLITS.search(entry.name))
                        special = noteworthy or not _is_plain(entry) or names_a_secret(entry.name)
                        following.append((posixpath.join(prefix, entry.name), special))
            frontier = following
        yield from frontier

    def _below(self, prefix: str, noteworthy: bool, directory: str) -> Iterator[tuple[str, bool]]:
        """Yields a directory and those below it, as some shells read ``**``; links are told, but
        not followed.
        """
        yield prefix, noteworthy
        for entry in self._listed(posixpath.join(directory, prefix)):
            below = posixpath.join(prefix, entry.name)
            if entry.name.startswith(".") or not entry.is_dir():
                continue
            if entry.is_symlink():
                yield below, True
            else:
                yield from self._below(below, noteworthy, directory)

    def _listed(self, directory: str) -> list[os.DirEntry[str]]:
        entries: list[os.DirEntry[str]] = []
        try:
            with os.scandir(directory) as listing:
                for entry in listing:
                    self._entries += 1
                    if self._entries > _MAX_ENTRIES:
                        self._complete = False
                        break
                    entries.append(entry)
        except OSError:
            pass  # what cannot be listed here is not there, or not for the command either
        return entries

    def _walk(self, top: str, touch: Touch) -> None:
        """Looks for credentials among the files that a recursive read reaches, and where links lead
        that it follows.
        """
        waiting, roots = [top], [clean(root) for root in self._env.roots]
        seen: set[str] = set()
        while waiting:
            directory = waiting.pop()
            for entry in self._listed(directory):
                self._complete &= not (touch.split and _SPLITS.search(entry.name))
                self._complete &= not (touch.bare and entry.name[0] == "-" and directory == top)
                if entry.name == ".git" and os.path.normpath(directory) in roots:
                    inner = self._listed(entry.path) if entry.is_dir() else []
                    self._complete &= not any(
                        one.is_symlink() and one.name != "hooks" for one in inner
                    )
                    continue
                if entry.name.startswith(".") and not (touch.hidden or self._lets_in(entry)):
                    continue
                if entry.is_symlink():
                    named = not touch.names or any(
                        fnmatchcase(entry.name, pattern) for pattern in touch.names
                    )
                    deep = touch.follow is True and entry.is_dir()
                    absent = touch.tracked and not self._may_be_tracked(entry.path, top)
                    # git lists what lay behind it
                    through = (
                        touch.tracked
                        and entry.is_dir()
                        and self._may_be_tracked(f"{entry.path}/", top)
                    )
                    self._complete &= not through
                    if deep or (touch.follow and named and not absent):
                        self._add(entry.path, touch.operation, directory)
                        if deep and (real := os.path.realpath(entry.path)) not in seen:
                            seen.add(real)
                            waiting.append(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif touch.follow == "named" and not entry.is_file():
                    self._complete = False  # a pipe, for which a reader would wait
                elif (
                    touch.operation == "read"
                    and names_a_secret(entry.name)
                    and self._is_read(entry, touch)
                ):
                    self.secret |= (
                        self._may_be_tracked(entry.path, top)
                        if touch.tracked
                        else (touch.hidden or not self._is_left_out(entry.path, top))
                    )
            if len(waiting) > _MAX_ENTRIES:
                self._complete = False
                return

    def _lets_in(self, entry: os.DirEntry[str]) -> bool:
        """Whether an ignore file beside or above a hidden name says that it is looked at, as
        ripgrep reads them.
        """
        above, patterns = os.path.dirname(entry.path), list[str]()
        while any(within(above, clean(root)) for root in self._env.roots):
            patterns += self._let_in(above)
            if (above := os.path.dirname(above)) == "/":
                break
        return any(fnmatchcase(entry.name, pattern) for pattern in patterns)

    def _may_be_tracked(self, path: str, top: str) -> bool:
        """Whether the index of a directory's repository may hold a name, or with a slash at its end
        some below it.
        """
        repository = os.path.realpath(top)
        while not os.path.lexists(f"{repository}/.git") and repository != "/":
            repository = os.path.dirname(repository)
        content = self._index_of(repository)
        folder, name = os.path.split(path.rstrip("/"))
        name = os.path.relpath(os.path.join(os.path.realpath(folder), name), repository)
        return (
            content is None
            or os.fsencode(name) + (b"/" if path.endswith("/") else b"\0") in content
        )

    def _is_left_out(self, path: str, top: str) -> bool:
        """Whether git's ignore files surely leave out a path below a directory, as ripgrep
        reads them.
        """
        root = next((clean(root) for root in self._env.roots if within(path, clean(root))), "")
        parts = os.path.relpath(path, root).split("/")
        above = [os.path.join(root, *parts[:size]) for size in range(len(parts))]
        names = [(os.path.join(root, *parts[: size + 1]), size) for size in range(len(parts))]
        # in a repository of its own, nothing counts that stands above it
        inner = any(os.path.lexists(f"{folder}/.git") for folder in above[1:])
        if inner or not os.path.isdir(f"{root}/.git"):
            return False
        excepted = [pattern for folder in above for pattern in self._let_in(folder)]
        if any(fnmatchcase(part, pattern) for part in parts for pattern in excepted):
            return False
        below = [
            (name, size) for name, size in names if within(name, clean(top)) and name != clean(top)
        ]
        return any(
            _ignores(above[upper], name) for name, size in below for upper in range(size + 1)
        )

    def _is_read(self, entry: os.DirEntry[str], touch: Touch) -> bool:
        if touch.names and not any(fnmatchcase(entry.name, pattern) for pattern in touch.names):
            return False
        root = next((root for root in self._env.roots if within(entry.path, clean(root))), None)
        return sensitive_class(entry.path, root) in _SECRETS


def _is_plain(entry: os.DirEntry[str]) -> bool:
    return entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)


def _let_in(directory: str) -> list[str]:
    """The patterns of names that a directory's ignore files except; all, where a file is too long
    or no plain one.
    """
    lines = list[str]()
    for name in (".ignore", ".rgignore", ".gitignore", ".git/info/exclude"):
        path = os.path.join(directory, name)
        if os.path.lexists(path) and not (
            os.path.isfile(path) and os.path.getsize(path) <= _MAX_IGNORE_BYTES
        ):
            return ["*"]
        with suppress(OSError), open(path, encoding="utf-8-sig", errors="replace") as file:
            lines += file.read(_MAX_IGNORE_BYTES).splitlines()
    found = (
        line.strip()[1:].strip("/").rpartition("/")[2] for line in lines if line.startswith("!")
    )
    return ["*" if set(name) & set("{\\[") else name for name in found]


def _index_of(top: str) -> bytes | None:
    """A repository's index, where it is one file that holds each name in full (of version 2
    or 3).
    """
    with suppress(OSError), open(f"{top}/.git/index", "rb") as file:
        content = file.read(_MAX_INDEX_BYTES + 1)
        shared = any(name.startswith("sharedindex") for name in os.listdir(f"{top}/.git"))
        whole = len(content) <= _MAX_INDEX_BYTES and not (shared or b"sdir" in content)
        if content[:8] in (b"DIRC\0\0\0\2", b"DIRC\0\0\0\3") and whole:
            return content
    return None


def _ignores(directory: str, path: str) -> bool:
    """Whether a plain line of a directory's own ignore file leaves a path out."""
    lines: list[bytes] = []
    with suppress(OSError), open(f"{directory}/.gitignore", "rb") as file:
        lines += file.read(_MAX_IGNORE_BYTES).split(b"\n")
    parts = os.path.relpath(path, directory).split("/")
    for line in lines:
        if (plain := _PLAIN_IGNORED.fullmatch(line)) is None:
            continue
        pattern = plain[0].decode().rstrip().removesuffix("/" if os.path.isdir(path) else "")
        pieces = pattern.removeprefix("/").split("/")
        named = parts if "/" in pattern else parts[-1:]
        if (
            "**" not in pieces
            and len(pieces) == len(named)
            and all(map(fnmatchcase, named, pieces))
        ):
            return True
    return False
