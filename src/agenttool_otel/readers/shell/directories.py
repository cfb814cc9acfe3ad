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
from agenttool_otel.readers.shell.compounds import Simple
from agenttool_otel.readers.shell.words import Word
from agenttool_otel.readers.types import Surroundings

_MAX_DIRECTORIES = 16
_MOVING = frozenset({"cd", "pushd", "popd", "source", ".", "eval"})


class Where(NamedTuple):
    """The directories that a command may run in."""

    paths: tuple[str, ...]  # absolute and normalised
    known: bool = True  # whether it can run in no other one

    def __or__(self, other: Where) -> Where:
        paths = tuple(dict.fromkeys((*self.paths, *other.paths)))
        return Where(
            paths[:_MAX_DIRECTORIES], self.known and other.known and len(paths) <= _MAX_DIRECTORIES
        )


def start_of(env: Surroundings) -> Where:
    """The directory that a line is started in."""
    if (cwd := env.cwd) is None:
        try:
            cwd = os.getcwd()
        except OSError:
            return Where((), known=False)
    return (
        Where((normalize_path([], start=cwd),)) if cwd.startswith("/") else Where((), known=False)
    )


def _is_plain(word: Word) -> bool:
    """Whether a word names one directory, as far as its text tells."""
    doubtful = (
        word.glob
        or word.substitution
        or word.unknown
        or word.text == "-"
        or "$" in word.text
        or "`" in word.text
    )
    return not doubtful and not (word.quoted and word.text.startswith("~"))


@dataclass(slots=True)
class _Shell:
    """The directories of one shell or subshell."""

    now: Where  # of the command at hand
    later: Where  # of a command that runs whatever happened before
    pipeline: Where  # of the first command of the pipeline at hand
    piped: bool = False  # the command at hand is fed by another one

    def step(self, joint: str) -> None:
        """Goes on to the next command."""
        self.piped = joint == "|"
        if self.piped:
            self.now = self.pipeline  # its own subshell
            return
        if joint != "&&":
            self.now = self.later
        self.pipeline = self.now


class Directories:
    """Follows a line from command to command."""

    def __init__(self, start: Where, env: Surroundings) -> None:
        self._env = env
        self._shells: dict[tuple[int, ...], _Shell] = {(): _Shell(start, start, start)}
        self._current = self._shells[()]

    def enter(self, command: Simple) -> Where:
        """Where the next command of the line runs."""
        here, words = self._entered(command), command.words
        goes = (
            len(words) > 2 and words[1].text == "-C" and words[0].text.rpartition("/")[2] == "git"
        )
        return self._target(words[2:3], here) if goes else here

    def _entered(self, command: Simple) -> Where:
        first = next(
            (n for n in range(len(command.group) + 1) if command.group[:n] not in self._shells),
            None,
        )
        if first is None:
            self._current = self._shells[command.group]
            self._current.step(command.joint)
            return self._current.now
        outer = self._shells[command.group[: first - 1]]
        if command.joint != "<(":
            outer.step(command.joint)
        for size in range(first, len(command.group) + 1):
            self._shells[command.group[:size]] = _Shell(outer.now, outer.now, outer.now)
        self._current = self._shells[command.group]
        return self._current.now

    def changed(self, command: Simple) -> None:
        """Takes in what a command does to its shell's directory."""
        texts = [word.text for word in command.words]
        name = texts[0] if texts else ""
        if name == "cd" or (name == "pushd" and len(texts) == 2):
            words = command.words[1:]
            while words and words[0].text.startswith("-") and words[0].text != "-":
                option = words.pop(0).text
                if option == "--":
                    break
            self._move(self._target(words, self._current.now))
        elif name in _MOVING or (name in ("command", "builtin") and _MOVING & set(texts[1:])):
            self._move(Where((), known=False))

    def _move(self, target: Where) -> None:
        shell = self._current
        # Whether the last command of a pipeline runs in the shell itself is not the same in all
        # shells.
        shell.now = shell.now | target if shell.piped else target
        shell.later = shell.later | target

    def _target(self, words: list[Word], here: Where) -> Where:
        if len(words) > 1 or not all(map(_is_plain, words)):
            return Where((), known=False)
        word = words[0].text if words else "~"
        if word == "~" or word.startswith("~/"):
            home = self._env.home if self._env.home is not None else os.path.expanduser("~")
            return Where((normalize_path(word.split("/")[1:], start=home),), home.startswith("/"))
        parts = [part for part in word.split("/") if part not in ("", ".")]
        if word.startswith("/"):
            return Where(self._readings("/", parts))
        # A relative name is looked for in the directories of CDPATH first.
        elsewhere = (
            bool(os.environ.get("CDPATH"))
            and not word.startswith(("./", "../"))
            and word not in (".", "..")
        )
        found = Where((), known=here.known and not elsewhere)
        for directory in here.paths:
            found = found | Where(self._readings(directory, parts))
        return found

    def _readings(self, start: str, parts: list[str]) -> tuple[str, ...]:
        """Where a ``cd`` leads: by the text, as shells go, and where ``..`` behind a link leads in
        the file system.
        """
        by_text = normalize_path(parts, start=start)
        if ".." not in parts or not self._env.touch_file_system:
            return (by_text,)
        real = resolve(parts, start=start).path
        return tuple(dict.fromkeys((by_text, real))) if real is not None else (by_text,)
