"""A command line cut into words and operators, before any structure is given to it."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from agenttool_otel.readers.shell.syntax import Unproven, Word
from agenttool_otel.readers.shell.words import read_word

MAX_LENGTH = 8192
"""Characters; a longer command line is not read at all."""

MAX_COMMANDS = 50
"""Simple commands in one line; more than a person would check are not read."""

MAX_DEPTH = 8
"""Subshells within each other."""

NEWLINE = "\n"

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Letters and symbols that draw nothing or look like a space, although their category says
# otherwise.
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\u17b4\u17b5")

_BLANKS = re.compile(r"[ \t]+")
# "ls \<newline> -l" is one line to every shell; "l\<newline>s" is not read
_BROKEN_LINE = re.compile(r"(?<=[ \t])\\\n")
_OPERATOR = re.compile(r"&&|\|\||\|&|;;|;&|&(?!>)|[;|()]")
_REDIRECT = re.compile(r"(?P<fd>[0-9]*)(?P<operator><<<|<<-|<<|<>|<&|<|>>|>\||>&|>)|&>>|&>")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=", re.ASCII)
_DELIMITER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# in a here-document whose delimiter is not quoted
_EXPANDED = re.compile(r"[$`\\]")
_UNREAD_OPERATORS = {
    "&": "background",
    "|&": "pipe_all",
    ";;": "syntax",
    ";&": "syntax",
}


class Token(NamedTuple):
    """A word, an operator or the end of a line."""

    start: int
    """Offset of its first character."""
    text: str
    """The operator; for a redirection with its descriptor: ``2>&``."""
    word: Word | None = None
    fd: str | None = None
    """The descriptor of a redirection, which may be empty; ``None``: it is none."""


def scan(text: str) -> list[Token]:
    """Cut a line into tokens, without its comments and the bodies of here-documents.

    Raises:
        Unproven: the line is empty or too long, or some shell may read it otherwise.
    """
    if not text.strip(" \t\n"):
        raise Unproven("empty")
    if len(text) > MAX_LENGTH:
        raise Unproven("too_long")
    if _CONTROL.search(text):
        raise Unproven("control_character")
    if _has_invisible(text):
        raise Unproven("invisible_character")
    scanner = _Scanner(text)
    scanner.scan()
    return scanner.tokens


def _has_invisible(text: str) -> bool:
    """Whether a character may draw nothing: marks, formats and separators of Unicode."""
    if text.isascii():
        return False
    for char in set(text):
        visible = char.isascii() or unicodedata.category(char)[0] in "LNPS"
        if not visible or char in _BLANK_LETTERS:
            return True
    return False


class _Heredoc(NamedTuple):
    """A here-document whose body begins on the next line."""

    delimiter: str
    quoted: bool


class _Scanner:
    """Cuts a line into tokens."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._pos = 0
        self.tokens: list[Token] = []
        self._heredoc: _Heredoc | None = None
        self._command_name = ""
        self._commands = 1
        self._depth = 0

    def scan(self) -> None:
        while self._pos < len(self._text):
            char = self._text[self._pos]
            if self._skip_blanks():
                continue
            if char == NEWLINE:
                self._newline()
            elif char == "#":
                end = self._text.find(NEWLINE, self._pos)
                self._pos = end if end >= 0 else len(self._text)
            elif redirect := _REDIRECT.match(self._text, self._pos):
                self._redirect(redirect)
            elif operator := _OPERATOR.match(self._text, self._pos):
                self._operator(operator[0])
            else:
                self._word()
        if self._heredoc is not None:
            raise Unproven("heredoc")

    def _skip_blanks(self) -> bool:
        blanks = _BLANKS.match(self._text, self._pos)
        if blanks is None and self._heredoc is None:
            blanks = _BROKEN_LINE.match(self._text, self._pos)
        if blanks is None:
            return False
        self._pos = blanks.end()
        return True

    def _add(self, text: str, word: Word | None = None, fd: str | None = None) -> None:
        self.tokens.append(Token(self._pos, text, word, fd))
        self._pos += len(text)

    def _newline(self) -> None:
        self._add(NEWLINE)
        self._end_command()
        if self._heredoc is not None:
            self._skip_body(self._heredoc)
            self._heredoc = None

    def _operator(self, operator: str) -> None:
        if operator in _UNREAD_OPERATORS:
            raise Unproven(_UNREAD_OPERATORS[operator])
        if self._text.startswith("((", self._pos):
            raise Unproven("arithmetic")
        if operator == "(":
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise Unproven("too_deep")
        elif operator == ")":
            self._depth -= 1
        self._add(operator)
        self._end_command()

    def _end_command(self) -> None:
        self._command_name = ""
        self._commands += 1
        # a comment of many lines has as many line ends
        if self._commands > 4 * MAX_COMMANDS:
            raise Unproven("too_many_commands")

    def _redirect(self, match: re.Match[str]) -> None:
        fd, operator = match["fd"] or "", match["operator"] or match[0]
        if operator in ("<", ">") and self._text.startswith("(", match.end()):
            raise Unproven("process_substitution")
        if len(fd) > 1:
            raise Unproven("redirection")
        if operator == "<<-" or (operator == "<<" and (self._heredoc or self._depth)):
            raise Unproven("heredoc")
        self._add(match[0], fd=fd)

    def _refuse_group(self) -> None:
        """Refuse ``{ ls; }`` and ``f() { ls; }``."""
        following = self._text[self._pos + 1 : self._pos + 2]
        if self._command_name or following not in (" ", "\t", NEWLINE):
            return
        before = [token.text for token in self.tokens if token.text != NEWLINE]
        raise Unproven("function" if before[-2:] == ["(", ")"] else "keyword")

    def _word(self) -> None:
        if self._text[self._pos] == "{":
            self._refuse_group()
        word = read_word(self._text, self._pos, of_git=self._command_name == "git")
        if self._heredoc is not None and NEWLINE in word.text:
            raise Unproven("heredoc")  # where its body begins is not the same for every reader
        before = self.tokens[-1] if self.tokens else None
        if before is not None and before.fd is not None:
            self._target(word, before)
        elif not self._command_name and not _ASSIGNMENT.match(word.text):
            self._command_name = word.text
        self.tokens.append(Token(word.start, word.text, word))
        self._pos = word.end

    def _target(self, word: Word, redirect: Token) -> None:
        if word.glob:
            raise Unproven("redirection")
        if not redirect.text.endswith("<<") or redirect.text.endswith("<<<"):
            return
        raw = self._text[word.start : word.end]
        quoted = raw[0] in "'\"" and raw[1:-1] == word.text
        if not (quoted or raw == word.text) or not _DELIMITER.fullmatch(word.text):
            raise Unproven("heredoc")
        self._heredoc = _Heredoc(word.text, quoted)

    def _skip_body(self, heredoc: _Heredoc) -> None:
        """Skip the body of a here-document, which is data where nothing in it is expanded."""
        while self._pos < len(self._text):
            end = self._text.find(NEWLINE, self._pos)
            end = end if end >= 0 else len(self._text)
            line = self._text[self._pos : end]
            if line == heredoc.delimiter:
                self._pos = end  # the line end behind it ends the command
                return
            if not heredoc.quoted and _EXPANDED.search(line):
                raise Unproven("heredoc")
            self._pos = end + 1
        raise Unproven("heredoc")
