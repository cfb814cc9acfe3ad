"""The places of a command: each word that names one, with the fact of a path argument.

Globs are expanded in the file system, links are followed, and a directory that is read with all
that it holds is walked. Where a bound ends the work, the places are not complete, and the fact
states that.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase

from agenttool_otel.readers.paths.fact import clean, path_fact, real_root, real_roots, within
from agenttool_otel.readers.paths.sensitive import names_a_secret, sensitive_class
from agenttool_otel.readers.shell.devices import (
    SYSTEM_FACTS,
    climbs,
    is_harmless_device,
    simple_glob,
)
from agenttool_otel.readers.shell.directories import WorkingDirectory, home_of
from agenttool_otel.readers.shell.ignored import IgnoreFiles
from agenttool_otel.readers.shell.verdict import FileAccess, Follow, Tree
from agenttool_otel.readers.types import PathFact, ShellPlace, Surroundings
from agenttool_otel.readers.vocabulary import PathAccess, PathClass

_MAX_PLACES = 100
_MAX_ENTRIES = 20_000
_DELETES = frozenset({"delete", "delete_tree"})
_WRITES = _DELETES | {"create", "append", "overwrite"}
_SECRETS = (PathClass.KEY, PathClass.CREDENTIAL, PathClass.APPROVAL)
# where a name is taken apart, or is a glob again
_SPLITS_NAME = re.compile(r"[\s'\"\\*?\[]")
_GLOB = str.maketrans("", "", "*?[]{}")  # {} stands for a name


class Places:
    """Establishes the places of one line; a place that several commands name is looked up once."""

    def __init__(self, argument: str, env: Surroundings) -> None:
        self._argument = argument
        self._env = replace(env, real_roots=real_roots(env)) if env.read_file_system else env
        self._roots = [clean(root) for root in env.roots]
        self._ignored = IgnoreFiles(env.roots)
        self._facts: dict[tuple[str, str, str], PathFact] = {}
        self._surroundings: dict[str, Surroundings] = {}
        self._entries = 0
        self._count = 0
        self._found: list[ShellPlace] = []
        self._complete = True
        self.secret = False
        """A tree that is read holds a key or a credential."""

    def of(
        self, accesses: Iterable[FileAccess], current: WorkingDirectory
    ) -> tuple[list[ShellPlace], bool]:
        """Return the places of one command, and whether these are all."""
        self._found = []
        self._complete = True
        done: set[tuple[str, str, str]] = set()
        for access in dict.fromkeys(accesses):
            if _is_no_place(access):
                continue
            absolute = access.path.startswith("/")
            if not absolute and not current.known:
                self._complete = False
            for directory in ("/",) if absolute else current.paths:
                key = (directory, access.path, access.operation)
                if key not in done or access.tree is not None:
                    done.add(key)
                    self._access(access, directory)
        return self._found, self._complete

    def _access(self, access: FileAccess, directory: str) -> None:
        if access.needs_directory:
            folder = posixpath.dirname(access.path) or "."
            if not os.path.isdir(posixpath.join(directory, folder)):
                return
        self._add(access.path, access.operation, directory)
        self._check_split(access, directory + access.path.translate(_GLOB))
        if not self._env.read_file_system:
            if access.glob or access.tree is not None:
                self._complete = False
            return
        matches = [access.path]
        if access.glob:
            matches = self._matches(access, directory)
        if access.tree is None:
            return
        for match in matches:
            top = posixpath.join(directory, match)
            self._walk(top, access, access.tree)

    def _check_split(self, access: FileAccess, name: str) -> None:
        # xargs makes two names of "a b"
        if access.splits_names and _SPLITS_NAME.search(name):
            self._complete = False

    def _matches(self, access: FileAccess, directory: str) -> list[str]:
        """Return the names that a glob matches, and add those that may be no plain file."""
        # older shells let ".*" and ".?" match ".."
        if any(map(climbs, access.path.split("/"))):
            self._complete = False
        matches = []
        for match, noteworthy in self._expanded(access, directory):
            matches.append(match)
            # an option of whatever is given it, or an assignment for awk
            if match[:1] == "-" or "=" in match.partition("/")[0]:
                self._complete = False
            if access.only_files and os.path.isdir(posixpath.join(directory, match)):
                self._complete = False
            if noteworthy or access.operation in _WRITES:
                self._add(match, access.operation, directory)
        return matches

    def _add(self, word: str, operation: str, directory: str) -> None:
        if self._count >= _MAX_PLACES:
            self._complete = False
            return
        self._count += 1
        fact = self._fact(word, operation, directory)
        covers = self._covers(fact) if operation in _DELETES else []
        place: ShellPlace = {
            "word": word,
            "operation": operation,
            "covers": covers,
            "path": fact,
        }
        self._found.append(place)

    def _fact(self, word: str, operation: str, directory: str) -> PathFact:
        access = PathAccess.WRITE if operation in _WRITES else PathAccess.READ
        key = (directory, word, access.value)
        known = self._facts.get(key)
        if known is not None:
            return known
        if directory not in self._surroundings:
            self._surroundings[directory] = replace(self._env, cwd=directory)
        fact = path_fact(
            word,
            argument=self._argument,
            access=access.value,
            surroundings=self._surroundings[directory],
        )
        self._facts[key] = fact
        return fact

    def _covers(self, fact: PathFact) -> list[str]:
        """Return which of the session's roots and the home directory lie at or below a place."""
        found = []
        if any(_lies_at_or_below(root, fact) for root in self._env.roots):
            found.append("root")
        if _lies_at_or_below(home_of(self._env), fact):
            found.append("home")
        return found

    def _expanded(self, access: FileAccess, directory: str) -> Iterator[tuple[str, bool]]:
        """Yield the names that a glob stands for.

        With each comes whether a link or a sensitive name is among its parts.
        """
        frontier = [("/" if access.path.startswith("/") else "", False)]
        parts = [part for part in access.path.split("/") if part not in ("", ".")]
        if parts[-1:] == ["**"]:
            parts.append("*")
        for part in parts:
            following: list[tuple[str, bool]] = []
            for prefix, noteworthy in frontier:
                if part == "**":
                    following.extend(self._below(prefix, noteworthy, directory))
                elif not any(char in part for char in "*?["):
                    following.append((posixpath.join(prefix, part), noteworthy))
                else:
                    following.extend(self._matching(part, prefix, noteworthy, access, directory))
            frontier = following
        yield from frontier

    def _matching(
        self, part: str, prefix: str, noteworthy: bool, access: FileAccess, directory: str
    ) -> Iterator[tuple[str, bool]]:
        """Yield the names in one directory that a component with a glob matches."""
        pattern = simple_glob(part)
        for entry in self._listed(posixpath.join(directory, prefix)):
            if entry.name.startswith(".") != part.startswith("."):
                continue
            if not fnmatchcase(entry.name, pattern):
                continue
            self._check_split(access, entry.name)
            special = noteworthy or not _is_plain(entry) or names_a_secret(entry.name)
            yield posixpath.join(prefix, entry.name), special

    def _below(self, prefix: str, noteworthy: bool, directory: str) -> Iterator[tuple[str, bool]]:
        """Yield a directory and those below it, as some shells read ``**``.

        Links are yielded, but not followed.
        """
        yield prefix, noteworthy
        for entry in self._listed(posixpath.join(directory, prefix)):
            if entry.name.startswith(".") or not _is_directory(entry):
                continue
            below = posixpath.join(prefix, entry.name)
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

    def _walk(self, top: str, access: FileAccess, tree: Tree) -> None:
        """Look at all that a recursive read reaches, for credentials and links."""
        waiting = [top]
        seen: set[str] = set()
        while waiting:
            directory = waiting.pop()
            for entry in self._listed(directory):
                self._check_split(access, entry.name)
                if tree.bare_names and entry.name[0] == "-" and directory == top:
                    self._complete = False
                if self._leads_on(entry, directory, top, access, tree, seen):
                    waiting.append(entry.path)
            if len(waiting) > _MAX_ENTRIES:
                self._complete = False
                return

    def _leads_on(
        self,
        entry: os.DirEntry[str],
        directory: str,
        top: str,
        access: FileAccess,
        tree: Tree,
        seen: set[str],
    ) -> bool:
        """Take in one entry below a tree; returns whether it is walked in turn."""
        if entry.name == ".git" and os.path.normpath(directory) in self._roots:
            self._check_repository(entry)
            return False
        if self._is_passed_over(entry, tree):
            return False
        if entry.is_symlink():
            if not self._link(entry, directory, top, access, tree):
                return False
            real = os.path.realpath(entry.path)
            is_new = real not in seen
            seen.add(real)
            return is_new
        if entry.is_dir(follow_symlinks=False):
            return True
        self._file(entry, top, access, tree)
        return False

    def _check_repository(self, entry: os.DirEntry[str]) -> None:
        if not _is_directory(entry):
            return
        for part in self._listed(entry.path):
            if part.is_symlink() and part.name != "hooks":
                self._complete = False

    def _is_passed_over(self, entry: os.DirEntry[str], tree: Tree) -> bool:
        if tree.hidden or not entry.name.startswith("."):
            return False
        return not self._ignored.lets_in(entry.path)

    def _link(
        self, entry: os.DirEntry[str], directory: str, top: str, access: FileAccess, tree: Tree
    ) -> bool:
        """Take in a link below a tree; returns whether what it leads to is walked."""
        absent = False
        if tree.tracked:
            absent = not self._ignored.may_be_tracked(entry.path, top)
            # git listed what lay behind it when it was a directory
            if _is_directory(entry) and self._ignored.may_be_tracked(f"{entry.path}/", top):
                self._complete = False
        deep = tree.follow is Follow.ALL and _is_directory(entry)
        opened = tree.follow is not Follow.NONE and _is_named(entry, tree) and not absent
        if deep or opened:
            self._add(entry.path, access.operation, directory)
        return deep

    def _file(self, entry: os.DirEntry[str], top: str, access: FileAccess, tree: Tree) -> None:
        if tree.follow is Follow.NAMED and not os.path.isfile(entry.path):
            self._complete = False  # a pipe, for which a reader would wait
            return
        if access.operation != "read" or not names_a_secret(entry.name):
            return
        if not self._is_secret(entry, tree):
            return
        if tree.tracked:
            read = self._ignored.may_be_tracked(entry.path, top)
        else:
            read = tree.hidden or not self._ignored.surely_ignored(entry.path, top)
        if read:
            self.secret = True

    def _is_secret(self, entry: os.DirEntry[str], tree: Tree) -> bool:
        if not _is_named(entry, tree):
            return False
        root = None
        for candidate in self._env.roots:
            if within(entry.path, clean(candidate)):
                root = candidate
                break
        return sensitive_class(entry.path, root) in _SECRETS


def _is_no_place(access: FileAccess) -> bool:
    """Whether it is a device, or shows no more of the system than ``uname`` does."""
    if access.path in SYSTEM_FACTS and access.operation in ("read", "list"):
        return True
    return is_harmless_device(access.path) and access.operation not in _DELETES


def _is_directory(entry: os.DirEntry[str]) -> bool:
    """Whether it is a directory or leads to one; ``DirEntry.is_dir`` raises at a loop of links."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_plain(entry: os.DirEntry[str]) -> bool:
    return entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)


def _is_named(entry: os.DirEntry[str], tree: Tree) -> bool:
    """Whether a name is among those that are read."""
    if not tree.names:
        return True
    return any(fnmatchcase(entry.name, pattern) for pattern in tree.names)


def _lies_at_or_below(place: str, fact: PathFact) -> bool:
    lexical = fact["lexical"]
    resolved = fact["resolved"]
    if lexical and within(clean(place), lexical):
        return True
    return resolved is not None and within(real_root(place), resolved)
