"""The words of one command, read by the reviewed table of its program (data/options.toml).

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
        return self.valued.union(
            self.named,
            self.makes,
            self.sends,
            self.places,
            self.kinds,
            self.loads,
        )


@dataclass(slots=True)
class Review:
    """What a program's table has for a command's words."""

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
        text = f"{self.name} {shlex.join(self.exact)}"
        return text.rstrip()


@cache
def rows() -> dict[str, Row]:
    """Return the reviewed tables, by program and sub-command."""
    raw = load_table(__package__, "data/options.toml")
    found: dict[str, Row] = {}
    for names, row in raw.items():
        values = row
        if "same_as" in row:
            values = {**raw[row["same_as"]], **row}
        for name in names.split("|"):
            found[name] = row_of(Row, values)
    return found


def family(program: str) -> str:
    """Return a program's name without its directory and version, as the tables have it.

    Args:
        program: the first word of a command.
    """
    name = posixpath.basename(program) or program
    for pattern, plain in _FAMILIES:
        if pattern.fullmatch(name):
            return plain
    return name


def review(words: Sequence[str]) -> Review:
    """Read a command's words by its program's table.

    Args:
        words: the command behind its wrappers, the program first.
    """
    name, row, rest = _row_of(words)
    if row is not None:
        found = Review(name, operands=row.operands)
        _Reader(row, rest, found).read()
        return found
    found = Review(name, operands="exact")
    # a script's words are its own: ./build.sh --force
    if "/" not in words[0]:
        _Reader(Row(operands="exact"), rest, found).read()
    found.exact = list(rest)
    return found


def _row_of(words: Sequence[str]) -> tuple[str, Row | None, Sequence[str]]:
    """Return the row with the longest name that the words begin with, its name, and the words
    behind.
    """
    words = [family(words[0]), *words[1:]]
    if words[0] == "python":
        words = _module_of(words)
    for size in range(min(_MAX_NAME_WORDS, len(words)), 0, -1):
        name = " ".join(words[:size])
        row = rows().get(name)
        if row is not None:
            return name, row, words[size:]
    return words[0], None, words[1:]


def _module_of(words: list[str]) -> list[str]:
    """Return the words from a reviewed module on, where Python runs one: ``python -m pytest -q`` is
    ``pytest -q``.
    """
    flags = rows()["python"].inert
    start = 1
    while start < len(words) and words[start] in flags:
        start += 1
    behind = words[start + 1 :]
    if words[start : start + 1] != ["-m"] or not behind:
        return words
    for name, row in rows().items():
        if row.module and name.split(" ")[0] == behind[0]:
            return behind
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
                self._behind()
                return
            if word.startswith("-") and word != "-":
                self._option(word)
                continue
            self._operand(word)
            # what follows is the script's: python x.py --force
            if self._operands == "script":
                return
        # python alone reads its code from its input
        if self._operands == "script" and not self._seen and not self._found.unreviewed:
            self._unreviewed(STANDARD_INPUT)

    def _behind(self) -> None:
        """Account for the words behind ``--``: operands to most programs, words for another one to
        others.
        """
        rest = self._words[self._index :]
        pattern = self._row.behind
        if pattern is not None:
            if not all(map(pattern.fullmatch, rest)):
                self._unreviewed("--", *rest)
            return
        has_options = any(word.startswith("-") for word in rest)
        if has_options or self._operands not in ("paths", "modules", "free"):
            self._unreviewed("--", *rest)
            return
        for word in rest:
            self._operand(word)

    def _option(self, word: str) -> None:
        row = self._row
        option, equals, value = word.partition("=")
        if option in row.optional:
            return
        if option in row.inert and not equals:
            return
        if row.pattern is not None and row.pattern.fullmatch(word):
            return
        if option in row.with_value:
            self._valued(option, word, value if equals else None)
            return
        # -xvf
        has_letters = not word.startswith("--") and not row.long_dash
        if has_letters and self._cluster(word):
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
        """Account for an option that takes a value.

        Args:
            option: its name.
            word: the word that it stands in.
            value: the value in the same word; without one, it is the next word.
        """
        row = self._row
        found = self._found
        taken = [word]
        if value is None:
            following = self._words[self._index : self._index + 1]
            # its value is missing, or an option
            if not following or following[0].startswith("-"):
                self._unreviewed(word)
                return
            value = following[0]
            taken.append(value)
            self._index += 1
        # --cov-report xml:out.xml
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
        if option in row.sends:
            found.sends = True
        is_elsewhere = option in row.places and "://" in value
        if option in row.loads or option in row.sends or is_elsewhere:
            self._unreviewed(*taken)

    def _unknown(self, word: str) -> None:
        """Account for an option of no table: the words behind it may be its values."""
        self._unreviewed(word)
        for following in self._words[self._index :]:
            if following.startswith("-"):
                break
            self._unreviewed(following)
            self._index += 1

    def _operand(self, word: str) -> None:
        """Account for an operand, by what the program's row has for operands."""
        mode = self._operands
        found = self._found
        self._seen += 1
        is_odd = self._is_odd(word)
        if mode == "free" and not is_odd:
            return
        if mode == "script":
            found.exact.append(word)
            # python - reads its code from its input
            if word == STANDARD_INPUT:
                found.unreviewed.append(STANDARD_INPUT)
            return
        # npm run build extra: what follows the target is not reviewed
        is_second = mode == "target" and self._seen > 1
        if mode == "none" or is_odd or is_second:
            self._unreviewed(word)
        elif mode == "packages":
            found.packages.append(word)
        elif mode == "modules" and "/" not in word and not word.endswith(".py"):
            found.modules.append(word)
        elif mode in ("paths", "modules") and self._fits(word):
            # pytest's file::test, and go's folder/... for all below it
            path = word.partition("::")[0]
            found.places.append((path.removesuffix("/..."), "list"))
        else:
            found.exact.append(word)

    def _is_odd(self, word: str) -> bool:
        """Whether an operand may stand for more than itself."""
        if word.startswith(_TAKEN_FOR_MORE):
            return True
        # pip install name@https://host/x is judged as a package
        if self._operands in ("free", "packages"):
            return False
        return _elsewhere(word)

    def _fits(self, word: str) -> bool:
        """Whether an operand is of the form that the row demands, if any."""
        pattern = self._row.operand
        return pattern is None or pattern.fullmatch(word) is not None

    def _unreviewed(self, *words: str) -> None:
        self._found.exact.extend(words)
        self._found.unreviewed.extend(words)


def _elsewhere(word: str) -> bool:
    """Whether an operand is a URL, or sets a variable, as ``make CC=x`` does."""
    return "://" in word or _SETS.match(word) is not None
