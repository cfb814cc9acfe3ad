"""The words of find: where it starts, what it looks for, and what it runs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from agenttool_otel.readers.shell.syntax import Word
from agenttool_otel.readers.shell.tables import programs
from agenttool_otel.readers.shell.verdict import Refused

# -size -3, -mtime -1, -perm -u+x
_DASHED_VALUE = re.compile(r"-[0-9]|-[ugoa]*[=+][rwxXst]+\Z")
_PLAIN_NAME = re.compile(r"(?:[\w.*-]|\[\w+\])+", re.ASCII)
_NEWER = re.compile(r"-newer[aBcm][aBcmt]\Z")
_ACTIONS = frozenset(("-exec", "-print", "-print0", "-printf", "-ls"))
_OR = ("-o", "-or")
_NOT = ("!", "-not")
_LINK_OPTIONS = ("-H", "-L", "-P")


@dataclass(slots=True)
class FindWords:
    """What the words behind ``find`` are."""

    starts: list[Word] = field(default_factory=list)
    """The directories that it starts from."""
    names: list[Word] = field(default_factory=list)
    """Patterns of names and paths."""
    compared: list[Word] = field(default_factory=list)
    """Files that others are compared with."""
    commands: list[list[Word]] = field(default_factory=list)
    """What ``-exec`` runs, with ``{}`` for the files."""
    file_names: tuple[str, ...] = ()
    """Patterns that the name of every file matches; none where it may have any name."""


def find_words(words: list[Word]) -> FindWords:
    """Read the words behind ``find``.

    Raises:
        Refused: it may do more than read, or look for something else in another shell.
    """
    reader = _FindReader(words)
    reader.read()
    reader.found.file_names = _file_names(reader.tests, reader.all_texts)
    return reader.found


def narrowing(names: Iterable[str]) -> tuple[str, ...]:
    """Return patterns of names, where every program and ``fnmatch`` read each of them alike.

    Else there is none, which stands for all names.
    """
    found = tuple(names)
    for name in found:
        if not _PLAIN_NAME.fullmatch(name) or "**" in name:
            return ()
    return found


class _FindReader:
    """Reads the words behind ``find``."""

    def __init__(self, words: list[Word]) -> None:
        self._words = words
        self._index = 0
        self._nested = any(word.text == "(" for word in words)
        self.found = FindWords()
        self.all_texts: list[str] = []
        """All words but those of the commands that it runs."""

    @property
    def tests(self) -> list[str]:
        """The words in front of the first action: what stands behind it narrows nothing."""
        found = []
        for text in self.all_texts:
            if text in _ACTIONS:
                break
            found.append(text)
        return found

    def read(self) -> None:
        while self._index < len(self._words) and self._peek().text in _LINK_OPTIONS:
            self._next()
        self._read_starts()
        negated = False
        while self._index < len(self._words):
            negated = self._read_expression(negated)

    def _peek(self) -> Word:
        return self._words[self._index]

    def _next(self) -> Word:
        word = self._words[self._index]
        self._index += 1
        self.all_texts.append(word.text)
        return word

    def _read_starts(self) -> None:
        flags = programs()["find"]["flags"]
        while self._index < len(self._words):
            text = self._peek().text
            if text.startswith("-") or text in flags:
                return
            if self._peek().glob_first:
                raise Refused("find with an unquoted glob")
            self.found.starts.append(self._next())

    def _read_expression(self, negated: bool) -> bool:
        """Read one test or action; returns whether the next one is negated."""
        table = programs()["find"]
        word = self._next()
        text = word.text
        if word.glob:
            raise Refused("find with an unquoted glob")
        if text in table["flags"]:
            return text in _NOT and not negated
        if text == "-exec":
            self._read_command()
            return False
        compares = text in table["files"] or _NEWER.match(text) is not None
        if not (text in table["names"] or compares or text in table["values"]):
            raise Refused(f"find {text[:40]}")
        value = self._read_value(text)
        # what is left out is not looked for
        if text in table["names"] and (self._nested or not negated):
            self.found.names.append(value)
        elif compares:
            self.found.compared.append(value)
        return False

    def _read_value(self, test: str) -> Word:
        if self._index >= len(self._words):
            raise Refused(f"find {test} without its value")
        value = self._next()
        if value.glob or (value.text.startswith("-") and not _DASHED_VALUE.match(value.text)):
            raise Refused(f"find {test} with {value.text[:40]}")
        return value

    def _read_command(self) -> None:
        start = self._index
        while self._index < len(self._words):
            text = self._words[self._index].text
            before = self._words[self._index - 1].text
            if text == ";" or (before == "{}" and text == "+"):
                break
            self._index += 1
        if self._index == start or self._index == len(self._words):
            raise Refused("find -exec without its end")
        self.found.commands.append(self._words[start : self._index])
        self._next()


def _file_names(tests: list[str], texts: list[str]) -> tuple[str, ...]:
    """Return patterns of which every file that is found matches one.

    Whatever is true of a file, all that stands between two "or" is, and one of its names.

    Args:
        tests: the words in front of the first action.
        texts: all words but those of the commands that are run.
    """
    narrowed = _tests_of_action(tests, texts)
    if narrowed is None:
        return ()
    alternatives = [list[str]()]
    before = ""
    for index, text in enumerate(narrowed):
        following = narrowed[index + 1] if index + 1 < len(narrowed) else ""
        if text in _NOT and following == "(":
            return ()
        if text in _OR:
            alternatives.append([])
        elif text == "-name" and before not in _NOT:
            alternatives[-1].append(following)
        before = text
    if not all(alternatives):
        return ()
    return narrowing(name for names in alternatives for name in names)


def _tests_of_action(tests: list[str], texts: list[str]) -> list[str] | None:
    """Return the tests that every file passes which an action is done with.

    ``None``: some files may be found by other tests.
    """
    if "," in texts:
        return None
    acts = len(tests) < len(texts)
    last_or = -1
    for index, text in enumerate(texts):
        if text in _OR:
            last_or = index
    if acts and 0 <= last_or < len(tests) and not {"(", ")"} & set(texts[last_or:]):
        # -path ./docs -prune -o -name '*.py' -print: the only action stands behind the last "or"
        return tests[last_or + 1 :]
    if last_or > len(tests) or (acts and not _surrounds_all(tests)):
        return None
    return tests


def _surrounds_all(tests: list[str]) -> bool:
    """Whether parentheses hold every "or" of tests.

    Then what follows is done with the files of all of them.
    """
    depth = 0
    for text in tests:
        if text == "(":
            depth += 1
        elif text == ")":
            depth -= 1
        elif text in _OR and depth == 0:
            return False
    return depth == 0
