"""The words of one command, read as the reviewed table of its program says (data/options.toml).

Each word is inert (it chooses what is looked at or shown), names a place, sends, or is not
reviewed: an option that no table lists, a value that names code or settings, inline code. What is
not reviewed is never agreed to by a program's name, only word by word.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from agenttool_otel.values.tables import load_table, row_of

STANDARD_INPUT: Final = "-"
"""Stands among the words that are not reviewed for code that an interpreter reads from its input.
"""

_FAMILIES: Final = (
    (re.compile(r"(?:python|pypy)[0-9.]*"), "python"),
    (re.compile(r"pip[0-9.]*"), "pip"),
    (re.compile(r"g?make"), "make"),
)
_MAX_NAME_WORDS: Final = 3
_SETS: Final = re.compile(r"[A-Za-z_][\w.]*[:+?]*=")
_TAKEN_FOR_MORE: Final = ("@", "*", "?", "[")
"""Begin an operand that a program may read further words from, or that the shell may replace by an
option.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """What is known of one program's words (data/options.toml explains the keys)."""

    inert: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()
    makes: frozenset[str] = frozenset()
    places: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    loads: dict[str, str] = field(default_factory=dict)
    sends: frozenset[str] = frozenset()
    pattern: re.Pattern[str] | None = None
    operands: str = "none"
    operand: re.Pattern[str] | None = None
    behind: re.Pattern[str] | None = None
    long_dash: bool = False
    module: bool = False

    @property
    def with_value(self) -> frozenset[str]:
        """The options that take a value, attached or as the next word."""
        return (
            self.valued
            | self.named
            | self.makes
            | self.sends
            | {*self.places, *self.kinds, *self.loads}
        )


@dataclass(slots=True)
class Review:
    """What a program's table says of a command's words."""

    name: str = ""  # the program, with the sub-command that has a table of its own
    # the words that a grant has to name, in their order
    exact: list[str] = field(default_factory=list)
    unreviewed: list[str] = field(default_factory=list)  # those of them that no table accounts for
    modules: list[str] = field(default_factory=list)  # names of modules among the operands
    packages: list[str] = field(default_factory=list)  # names of packages among the operands
    places: list[tuple[str, str]] = field(default_factory=list)  # word and operation
    sends: bool = False  # whether an option sends something
    operands: str = "exact"  # what the program's operands are (data/options.toml)

    @property
    def words(self) -> str:
        """What a person agrees to: the name, and each word that is not inert."""
        return " ".join([self.name, shlex.join(self.exact)]).rstrip()


@cache
def rows() -> dict[str, Row]:
    """The reviewed tables, by program and sub-command."""
    raw = load_table(__package__, "data/options.toml")
    found: dict[str, Row] = {}
    for names, row in raw.items():
        own = {**raw[row["same_as"]], **row} if "same_as" in row else row
        found.update((name, row_of(Row, own)) for name in names.split("|"))
    return found


def family(program: str) -> str:
    """Return a program's name without its directory and version, as the tables have it.

    Args:
        program: the first word of a command.
    """
    name = posixpath.basename(program) or program
    return next((plain for pattern, plain in _FAMILIES if pattern.fullmatch(name)), name)


def review(words: Sequence[str]) -> Review:
    """Read a command's words as its program's table says.

    Args:
        words: the command behind its wrappers, the program first.
    """
    name, row, rest = _row_of(words)
    found = Review(name, operands=row.operands if row is not None else "exact")
    if row is None and "/" in words[0]:
        found.exact = list(rest)  # a script's words are its own
        return found
    _Reader(row or Row(operands="exact"), rest, found).read()
    if row is None:
        found.exact = list(rest)
    return found


def _row_of(words: Sequence[str]) -> tuple[str, Row | None, Sequence[str]]:
    """The row with the longest name that the words begin with, its name, and the words behind."""
    words = [family(words[0]), *words[1:]]
    if words[0] == "python":
        words = _module_of(words)
    for size in range(min(_MAX_NAME_WORDS, len(words)), 0, -1):
        name = " ".join(words[:size])
        if (row := rows().get(name)) is not None:
            return name, row, words[size:]
    return words[0], None, words[1:]


def _module_of(words: list[str]) -> list[str]:
    """The words from a reviewed module on, where Python runs one: ``python -m pytest -q`` is
    ``pytest -q``.
    """
    flags = rows()["python"].inert
    start = next(
        (index for index, word in enumerate(words[1:], 1) if word not in flags), len(words)
    )
    module = words[start + 1 : start + 2]
    if words[start : start + 1] == ["-m"] and any(
        name.split(" ")[0] in module for name, row in rows().items() if row.module
    ):
        return words[start + 1 :]
    return words


class _Reader:
    """Reads the words behind a row's name."""

    def __init__(self, row: Row, words: Sequence[str], found: Review) -> None:
        self._row = row
        self._words = words
        self._found = found
        self._operands = row.operands
        self._index = 0
        self._seen = 0  # operands

    def read(self) -> None:
        """Account for each word."""
        while self._index < len(self._words):
            word = self._words[self._index]
            self._index += 1
            if word == "--":
                return self._behind()
            if word[:1] == "-" and word != "-":
                self._option(word)
                continue
            self._operand(word)
            if self._operands == "script":
                return None  # what follows is the script's
        if self._operands == "script" and not self._seen and not self._found.unreviewed:
            self._unreviewed(STANDARD_INPUT)
        return None

    def _behind(self) -> None:
        """Account for the words behind ``--``: operands to most programs, words for another one to
        others.
        """
        rest = self._words[self._index :]
        pattern = self._row.behind
        if pattern is not None:
            for word in ("--", *rest) if not all(map(pattern.fullmatch, rest)) else ():
                self._unreviewed(word)
            return
        if self._operands not in ("paths", "modules", "free") or any(
            word[:1] == "-" for word in rest
        ):
            self._unreviewed("--", *rest)
            return
        for word in rest:
            self._operand(word)

    def _option(self, word: str) -> None:
        row = self._row
        option, equals, value = word.partition("=")
        if not equals and option in row.inert | row.optional:
            return
        if equals and option in row.optional:
            return
        if row.pattern is not None and row.pattern.fullmatch(word):
            return
        if option in row.with_value:
            self._valued(option, word, value if equals else None)
            return
        if not (word.startswith("--") or row.long_dash) and self._cluster(word):
            return
        self._unknown(word)

    def _cluster(self, word: str) -> bool:
        """Account for several letters behind one dash, the last of which may take a value;
        ``False``: it can't be.
        """
        row = self._row
        for position, letter in enumerate(word[1:], start=1):
            option = f"-{letter}"
            if option in row.inert:
                continue
            if option in row.with_value:
                rest = word[position + 1 :]
                self._valued(option, word, rest.removeprefix("=") or None)
                return True
            return option in row.optional and position == len(word) - 1
        return True

    def _valued(self, option: str, word: str, value: str | None) -> None:
        """Account for an option that takes a value, which is the next word where it isn't
        attached.
        """
        row, found = self._row, self._found
        taken = [word]
        if value is None:
            following = self._words[self._index : self._index + 1]
            if not following or following[0][:1] == "-":
                self._unreviewed(word)  # its value is missing, or an option
                return
            value = following[0]
            taken.append(value)
            self._index += 1
        if option in row.kinds:
            value = value.partition(":")[2]
        operation = row.places.get(option) or row.kinds.get(option) or row.loads.get(option)
        if operation and value:
            found.places.append((value, operation))
        if option in row.named:
            found.exact += [option, value]
        if option in row.makes:
            found.exact.append(option)
            self._operands = "free"
        found.sends |= option in row.sends
        elsewhere = option in row.places and "://" in value
        if option in row.loads or option in row.sends or elsewhere:
            self._unreviewed(*taken)

    def _unknown(self, word: str) -> None:
        """Account for an option of no table: the words behind it may be its values."""
        self._unreviewed(word)
        while self._index < len(self._words) and self._words[self._index][:1] != "-":
            self._unreviewed(self._words[self._index])
            self._index += 1

    def _operand(self, word: str) -> None:
        mode, found = self._operands, self._found
        self._seen += 1
        odd = word.startswith(_TAKEN_FOR_MORE) or (
            mode not in ("free", "packages") and _elsewhere(word)
        )
        fits = self._row.operand is None or self._row.operand.fullmatch(word) is not None
        if mode == "free" and not odd:
            return
        if mode == "script":
            found.exact.append(word)
            found.unreviewed.extend(["-"] if word == "-" else [])
        elif mode == "none" or odd or (mode == "target" and self._seen > 1):
            self._unreviewed(word)
        elif mode == "packages":
            found.packages.append(word)
        elif mode == "modules" and "/" not in word and not word.endswith(".py"):
            found.modules.append(word)
        elif mode in ("paths", "modules") and fits:
            # pytest's file::test, and go's folder/... for all below it
            found.places.append((word.partition("::")[0].removesuffix("/..."), "list"))
        else:
            found.exact.append(word)

    def _unreviewed(self, *words: str) -> None:
        self._found.exact.extend(words)
        self._found.unreviewed.extend(words)


def _elsewhere(word: str) -> bool:
    """Whether an operand is a URL, or sets a variable, as ``make CC=x`` does."""
    return "://" in word or _SETS.match(word) is not None
