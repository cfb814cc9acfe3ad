"""Which directories a command may run in, behind every ``cd`` of its line.

A ``cd`` may fail, be skipped or stand in a subshell, so a command can have several directories.
Behind ``cd x &&`` there is only ``x``; behind ``cd x;`` there is ``x`` and the one before.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import NamedTuple

from agenttool_otel.readers.paths.resolve import resolve
from agenttool_otel.readers.paths.text import normalize_path
from agenttool_otel.readers.shell.syntax import Simple, Word
from agenttool_otel.readers.types import Surroundings

_MAX_DIRECTORIES = 16
_MOVING = frozenset({"cd", "pushd", "popd", "source", ".", "eval"})


class WorkingDirectory(NamedTuple):
    """The directories that a command may run in."""

    paths: tuple[str, ...]
    """Absolute and normalised."""
    known: bool = True
    """It can run in no other one."""

    def __or__(self, other: WorkingDirectory) -> WorkingDirectory:
        paths = tuple(dict.fromkeys(self.paths + other.paths))
        known = self.known and other.known
        if len(paths) > _MAX_DIRECTORIES:
            known = False
        return WorkingDirectory(paths[:_MAX_DIRECTORIES], known)


UNKNOWN = WorkingDirectory((), known=False)
"""Any directory."""


def home_of(env: Surroundings) -> str:
    """Return the directory that ``~`` stands for."""
    if env.home is not None:
        return env.home
    return os.path.expanduser("~")


def start_of(env: Surroundings) -> WorkingDirectory:
    """Return the directory that a line is started in."""
    cwd = env.cwd
    if cwd is None:
        try:
            cwd = os.getcwd()
        except OSError:
            # it was removed
            return UNKNOWN
    if not cwd.startswith("/"):
        return UNKNOWN
    path = normalize_path([], start=cwd)
    return WorkingDirectory((path,))


@dataclass(slots=True)
class _Shell:
    """The directories of one shell or subshell."""

    now: WorkingDirectory
    """Of the command at hand."""
    later: WorkingDirectory
    """Of a command that runs whatever happened before."""
    pipeline: WorkingDirectory
    """Of the first command of the pipeline at hand."""
    piped: bool = False
    """The command at hand is fed by another one."""

    def step(self, joint: str) -> None:
        """Go on to the next command."""
        self.piped = joint == "|"
        if self.piped:
            self.now = self.pipeline  # its own subshell
            return
        if joint != "&&":
            self.now = self.later
        self.pipeline = self.now


class Directories:
    """Follows a line from command to command."""

    def __init__(self, start: WorkingDirectory, env: Surroundings) -> None:
        self._env = env
        self._current = _Shell(start, start, start)
        self._shells: dict[tuple[int, ...], _Shell] = {(): self._current}

    def enter(self, command: Simple) -> WorkingDirectory:
        """Return where the next command of the line runs."""
        here = self._enter_shell(command)
        texts = command.texts
        if len(texts) < 3 or texts[1] != "-C":
            return here
        # git -C src log
        if texts[0].rpartition("/")[2] == "git":
            return self._target(command.words[2:3], here)
        return here

    def _enter_shell(self, command: Simple) -> WorkingDirectory:
        """Find the subshell of a command, and make those that begin with it."""
        group = command.group
        depth = 0
        while depth < len(group) and group[: depth + 1] in self._shells:
            depth += 1
        self._current = self._shells[group[:depth]]
        self._current.step(command.joint)
        start = self._current.now
        for size in range(depth + 1, len(group) + 1):
            self._current = _Shell(start, start, start)
            self._shells[group[:size]] = self._current
        return start

    def changed(self, command: Simple) -> None:
        """Take in what a command does to its shell's directory."""
        texts = command.texts
        if not texts:
            return
        name = texts[0]
        # pushd without a name swaps the two directories that it was in last
        if name == "cd" or (name == "pushd" and len(texts) == 2):
            words = _without_options(command.words[1:])
            self._move(self._target(words, self._current.now))
            return
        # command cd src
        runs_builtin = name in ("command", "builtin") and not _MOVING.isdisjoint(texts[1:])
        if name in _MOVING or runs_builtin:
            self._move(UNKNOWN)

    def _move(self, target: WorkingDirectory) -> None:
        shell = self._current
        shell.later = shell.later | target
        # echo src | cd src: whether the last command of a pipeline runs in the shell itself is not
        # the same in all shells
        if shell.piped:
            shell.now = shell.now | target
        else:
            shell.now = target

    def _target(self, words: list[Word], here: WorkingDirectory) -> WorkingDirectory:
        """Return where the operands of a ``cd`` lead."""
        if len(words) > 1 or not all(map(_names_one_directory, words)):
            return UNKNOWN
        # cd alone goes home
        text = "~"
        if words:
            text = words[0].text
        if text == "~" or text.startswith("~/"):
            return self._below_home(text)
        parts = [part for part in text.split("/") if part not in ("", ".")]
        if text.startswith("/"):
            return WorkingDirectory(self._readings("/", parts))
        known = here.known and not _is_looked_for(text)
        found = WorkingDirectory((), known=known)
        for directory in here.paths:
            found = found | WorkingDirectory(self._readings(directory, parts))
        return found

    def _below_home(self, text: str) -> WorkingDirectory:
        home = home_of(self._env)
        _, *parts = text.split("/")
        path = normalize_path(parts, start=home)
        return WorkingDirectory((path,), known=home.startswith("/"))

    def _readings(self, start: str, parts: list[str]) -> tuple[str, ...]:
        """Return where a ``cd`` leads.

        That is by the text, as shells go, and where ``..`` behind a link leads in the file system.
        """
        by_text = normalize_path(parts, start=start)
        if ".." not in parts or not self._env.read_file_system:
            return (by_text,)
        real = resolve(parts, start=start).path
        if real is None or real == by_text:
            return (by_text,)
        return by_text, real


def _without_options(words: list[Word]) -> list[Word]:
    """Return the words behind the options of ``cd``."""
    for index, word in enumerate(words):
        if word.text == "--":
            return words[index + 1 :]
        # cd - goes back
        if word.text == "-" or not word.text.startswith("-"):
            return words[index:]
    return []


def _names_one_directory(word: Word) -> bool:
    """Whether a word names one directory, as far as its text shows."""
    if word.glob or word.text == "-":
        return False
    if "$" in word.text or "`" in word.text:
        return False
    # cd '~' is a directory of that name
    return not (word.quoted and word.text.startswith("~"))


def _is_looked_for(text: str) -> bool:
    """Whether a relative name is looked for in the directories of CDPATH first."""
    if text in (".", "..") or text.startswith(("./", "../")):
        return False
    return bool(os.environ.get("CDPATH"))
