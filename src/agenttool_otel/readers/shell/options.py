"""The words of a command, read as its table describes: options and operands."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from agenttool_otel.readers.shell.syntax import Word
from agenttool_otel.readers.shell.tables import OptionSyntax, Spec
from agenttool_otel.readers.shell.verdict import Refused

SIGNED: Final = ("format", "pretty", "sort")
"""Options of git by whose value it may check signatures, which runs a program."""

AMOUNT: Final = re.compile(r"[+-]?[0-9]+[A-Za-z]{0,3}\Z")
"""A number, which may have a unit behind it: ``-n +5``, ``-c 10k``."""

BEHIND_OPERAND: Final = ""
"""Stands for the option of a word that some programs take for a file."""

_DIGITS = re.compile(r"[0-9]+")
_LEGACY_NUMBER = re.compile(r"-[0-9]+\Z")
_NO_OPTION = re.compile(r"-(?:[^A-Za-z0-9-]|\Z)")  # of any program, as in -e '->x'
_TYPED = re.compile(r"\*\.\w+\Z")


class Option(NamedTuple):
    """One option, without its dashes, and its value."""

    name: str
    value: Word | None = None


def read_words(spec: Spec, arguments: list[Word]) -> tuple[list[Option], list[Word]]:
    """Read a command's words as its table describes.

    Returns:
        The options with their values, and the operands.

    Raises:
        Refused: the table lacks a word, or some version of the program reads it otherwise.
    """
    reader = _OptionReader(spec, arguments)
    reader.read()
    return reader.options, reader.operands


class _OptionReader:
    """Reads the words behind a command's name."""

    def __init__(self, spec: Spec, arguments: list[Word]) -> None:
        self._spec = spec
        self._syntax: OptionSyntax = spec.syntax
        self._arguments = arguments
        self._index = 0
        self._ended = False
        self.options: list[Option] = []
        self.operands: list[Word] = []

    def read(self) -> None:
        while self._index < len(self._arguments):
            word = self._arguments[self._index]
            self._index += 1
            if word.glob_first and not self._may_begin_with_glob(word):
                raise Refused("unquoted glob that may become an option")
            if self._ended or not word.text.startswith("-") or word.text == "-":
                self._operand(word)
            else:
                self._option(word)

    def _may_begin_with_glob(self, word: Word) -> bool:
        if self._ended or self._spec.glob_first:
            return True
        # *.py is looked for on the disk: whether a name begins with a dash is seen there
        return self._spec.takes_files and _TYPED.search(word.text) is not None

    def _operand(self, word: Word) -> None:
        keeps_order = self._spec.max_operands is not None or not self._spec.permute
        if self.operands and word.text.startswith("-") and keeps_order:
            raise Refused("option behind an operand")
        self.operands.append(word)
        if not self._spec.permute:
            self._ended = True

    def _option(self, word: Word) -> None:
        text = word.text
        most = self._spec.max_operands
        # where options end at the first operand, "-l" behind it names a file
        if most is not None and len(self.operands) >= most:
            raise Refused("option behind the last operand")
        if word.glob and not self._globs_value(text):
            raise Refused("glob in an option")
        if text == "--":
            self._ended = True
            return
        if text.startswith("--"):
            option = self._long(text)
        elif self._syntax.number and _LEGACY_NUMBER.match(text):
            return
        else:
            option = self._short(text)
        # With POSIXLY_CORRECT, and in BSD, options end here and the first operand is the program.
        if self.operands and self._spec.program and option.name in self._spec.pattern_options:
            raise Refused("program behind an operand")
        self.options.append(option)

    def _globs_value(self, text: str) -> bool:
        """Whether a glob stands only in a long option's value: each match is that option, too.

        ``--include=*.py`` may become ``--include=a.py --include=b.py``.
        """
        option, equals, _value = text.partition("=")
        if not equals or self._spec.sensitive_value or option[:2] != "--":
            return False
        name = option[2:]
        bound = {*self._spec.pattern_options, *self._spec.path_options, *SIGNED}
        return name in self._syntax.long_value and name not in bound

    def _long(self, text: str) -> Option:
        name, equals, value = text[2:].partition("=")
        if name in self._syntax.long and not equals:
            return Option(name)
        if name in self._syntax.long_pair and not equals:
            self._index += 2
            if self._index > len(self._arguments):
                raise Refused(f"option --{name} without its values")
            return Option(name)
        only_attached = self._syntax.long_value.get(name)
        if only_attached is None:
            raise Refused(self._unknown_long(name))
        if equals:
            return Option(name, Word(value, quoted=True))
        if only_attached:
            return Option(name)
        return Option(name, self._next_value(f"--{name}"))

    def _unknown_long(self, name: str) -> str:
        # --out is enough for --output
        for unsafe in self._syntax.unsafe_long:
            if name and unsafe.startswith(name):
                return f"option --{unsafe}"
        return f"unknown option --{name[:40]}"

    def _short(self, text: str) -> Option:
        syntax = self._syntax
        if not syntax.cluster and len(text) > 2 and text[1] not in syntax.value:
            raise Refused("several letters in one option")
        for position, letter in enumerate(text[1:], start=1):
            rest = text[position + 1 :]
            if letter in syntax.short:
                self.options.append(Option(letter))
            elif letter in syntax.value:
                return self._short_value(letter, rest)
            elif letter in syntax.optional:
                return Option(letter, Word(rest, quoted=True))
            else:
                raise Refused(f"unknown option -{letter}")
        return Option(text[-1])

    def _short_value(self, letter: str, rest: str) -> Option:
        if rest and self._syntax.value_apart and not _DIGITS.fullmatch(rest):
            raise Refused(f"letters behind -{letter}, which takes the next word")
        if rest:
            return Option(letter, Word(rest, quoted=True))
        return Option(letter, self._next_value(f"-{letter}"))

    def _next_value(self, option: str) -> Word:
        if self._index >= len(self._arguments):
            raise Refused(f"option {option} without its value")
        value = self._arguments[self._index]
        self._index += 1
        if value.glob:
            raise Refused("glob as an option's value")
        text = value.text
        dashed = text.startswith("-")
        if dashed and not (_NO_OPTION.match(text) or AMOUNT.match(text)):
            raise Refused("option's value that looks like an option")
        if self._may_be_operand():
            self.options.append(Option(BEHIND_OPERAND, value))
        return value

    def _may_be_operand(self) -> bool:
        """Whether some programs take what follows an operand for a file, whatever it is."""
        if not self.operands:
            return False
        return self._spec.operands != "revisions" and self._spec.permute != "always"
