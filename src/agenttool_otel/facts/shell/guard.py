"""The lexical guard: reads the small part of shell whose meaning is the same in every reading, and refuses the rest.

The guard is a strict parser of its own rather than a filter in front of another one: public shell parsers each hide
some command that bash runs, so a proof must rest on text that leaves
no room for two readings. What it reads: simple commands of literal words, joined by ``&& || ; |`` and newlines,
grouped by ``( )``, fed by ``< file``, ``<<< word``, ``<<'QUOTED'`` and ``<(commands)``, with redirections to literal
targets and comments. Every other character raises ``Unproven`` with the construct's name.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field

from agenttool_otel.facts.shell.tables import programs
from agenttool_otel.facts.shell.words import WORD_END, Unclosed, Unproven, Word, WordReader

MAX_LENGTH = 8192
"""Characters; a longer command line is not read at all."""

MAX_COMMANDS = 50
"""Simple commands in one line; more than a person would check are not read (a public tool skipped its rules there)."""

_MAX_DEPTH = 8
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_REDIRECT = re.compile(r"([0-9]*)(<<<|<<-|<<|<>|<&|<(?!\()|>>|>\||>&|>(?!\())|()(&>>|&>)")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=")
_SUBSCRIPT_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\[[^\n]*\]\+?=")
_DELIMITER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_BEFORE_SUBSTITUTION = ("", " ", "\t", "\n", ";", "|", "&", "(")
# Letters and symbols that draw nothing or look like a space, although their category says otherwise.
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\u17b4\u17b5")


@dataclass(slots=True)
class Redirect:
    """One redirection: ``fd`` as written (may be empty), operator, target word (delimiter of a heredoc)."""

    fd: str
    operator: str
    target: Word


@dataclass(slots=True)
class Simple:
    """One simple command, with the names that it assigns before its first word, and ``name=value`` as written."""

    words: list[Word] = field(default_factory=list)
    assignments: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    joint: str = ""  # what stands before it: && || ; | or <( for the first command of a substitution
    group: tuple[int, ...] = ()  # numbers of the subshells that it stands in, outermost first


def read(text: str) -> list[Simple]:
    """Reads a command line into its simple commands, in the order of their text."""
    if not text.strip(" \t\n"):
        raise Unproven("empty")
    if len(text) > MAX_LENGTH:
        raise Unproven("too_long")
    if _CONTROL.search(text):
        raise Unproven("control_character")
    if not text.isascii():
        _check_visible(text)
    reader = _Reader(text)
    reader.statements(closing=False, depth=0)
    return reader.commands


def read_uncommented(text: str) -> list[Simple]:
    """Reads a line that holds comments as an interactive zsh does, where ``#`` begins an ordinary word."""
    if "#" not in text:
        return []
    reader = _Reader(text, comments=False)
    try:
        reader.statements(closing=False, depth=0)
    except Unclosed:
        return reader.commands[:-1]  # the last one was not read to its end, and no shell runs it
    return reader.commands


def _check_visible(text: str) -> None:
    for char in text:
        if char.isascii():
            continue
        category = unicodedata.category(char)
        # Letters, numbers, punctuation and symbols draw something; marks, formats, separators and the rest may not.
        if category[0] not in "LNPS" or char in _BLANK_LETTERS:
            raise Unproven("invisible_character")


class _Reader(WordReader):
    def __init__(self, text: str, *, comments: bool = True) -> None:
        super().__init__(text, comments=comments)
        self.commands: list[Simple] = []
        self._joint = ""
        self._group: tuple[int, ...] = ()
        self._groups = 0

    def _blanks(self) -> None:
        while True:
            if self._peek() in (" ", "\t"):
                self.pos += 1
            elif (
                self.text.startswith("\\\n", self.pos)
                and self.text[self.pos - 1 : self.pos] in (" ", "\t")
                and not self.heredocs
            ):
                self.pos += 2  # the line goes on; between words no shell reads it otherwise
            else:
                return

    def statements(self, *, closing: bool, depth: int) -> None:
        """Reads a list up to the end, or up to the ``)`` that closes it."""
        if depth > _MAX_DEPTH:
            raise Unproven("too_deep")
        seen = need = any_command = False
        while True:
            self._blanks()
            char = self._peek()
            if not char:
                if need or closing or self.heredocs:
                    raise Unproven("syntax")
                if not any_command:
                    raise Unproven("empty")
                return
            if char == self.comment:
                end = self.text.find("\n", self.pos)
                self.pos = len(self.text) if end < 0 else end
            elif char == "\n":
                self.pos += 1
                self._read_heredocs()
                seen = False
                if not need:
                    self._joint = ";"
            elif char == ")":
                if not closing or need or not any_command or self.heredocs:
                    raise Unproven("syntax")
                self.pos += 1
                return
            elif self.text.startswith(("&&", "||"), self.pos):
                if not seen:
                    raise Unproven("syntax")
                self._joint = self.text[self.pos : self.pos + 2]
                self.pos += 2
                seen, need = False, True
            elif char == "|":
                if self.text.startswith("|&", self.pos):
                    raise Unproven("pipe_all")
                if not seen:
                    raise Unproven("syntax")
                self.pos += 1
                self._joint = "|"
                seen, need = False, True
            elif char == ";":
                if not seen or self.text.startswith((";;", ";&"), self.pos):
                    raise Unproven("syntax")
                self.pos += 1
                self._joint = ";"
                seen = False
            elif char == "&" and not self.text.startswith("&>", self.pos):
                raise Unproven("background")
            else:
                if seen:  # text behind ")": a function body, a redirected group, or nonsense
                    raise Unproven("group_suffix")
                self._command(depth)
                seen, need, any_command = True, False, True

    def _command(self, depth: int) -> None:
        if self._peek() == "(":
            if self.text.startswith("((", self.pos):
                raise Unproven("arithmetic")
            self.pos += 1
            self._subshell(depth)
            return
        if len(self.commands) >= MAX_COMMANDS:
            raise Unproven("too_many_commands")
        command = Simple(joint=self._joint, group=self._group)
        negated = False
        self.commands.append(command)
        while True:
            self._blanks()
            char = self._peek()
            if not char or char in "\n;|)" or char == self.comment:
                break
            if char == "&" and not self.text.startswith("&>", self.pos):
                break
            if char == "(":
                raise Unproven("function")
            if char in "<>" and self.text.startswith("(", self.pos + 1):
                if char == ">":
                    raise Unproven("process_substitution")
                if self.text[self.pos - 1 : self.pos] not in _BEFORE_SUBSTITUTION:
                    raise Unproven("process_substitution")  # x<(ls) is one word
                command.words.append(self._process_substitution(depth))
                continue
            match = _REDIRECT.match(self.text, self.pos)
            if match:
                self._redirect(command, match)
                continue
            if not command.words:
                if _SUBSCRIPT_ASSIGNMENT.match(self.text, self.pos):
                    raise Unproven("assignment")
                assignment = _ASSIGNMENT.match(self.text, self.pos)
                if assignment:
                    command.values.append(self._word().text)
                    command.assignments.append(assignment[1])
                    continue
            word = self._word()
            if word.text == "!" and not word.quoted and not (negated or command.words or command.assignments):
                negated = True  # only turns the status round
                if command.redirects or self._peek() not in (" ", "\t"):
                    raise Unproven("negation")
                continue
            if not command.words and not word.quoted and word.text in programs()["shell"]["keywords"]:
                raise Unproven("negation" if word.text == "!" else "keyword")
            command.words.append(word)
        if not command.words and not command.assignments and not command.redirects:
            raise Unproven("syntax")

    def _subshell(self, depth: int) -> None:
        outer = self._group
        self._groups += 1
        self._group = (*outer, self._groups)
        self.statements(closing=True, depth=depth + 1)
        self._group = outer

    def _process_substitution(self, depth: int) -> Word:
        start = self.pos
        self.pos += 2
        self._joint = "<("
        self._subshell(depth)
        if self._peek() not in ("", " ", "\t", "\n", ";", "|", ")"):
            raise Unproven("process_substitution")
        return Word("/dev/fd/63", start, self.pos, quoted=True, substitution=True)

    def _redirect(self, command: Simple, match: re.Match[str]) -> None:
        fd, operator = (match[1] or "", match[2]) if match[2] else ("", match[4])
        if len(fd) > 1 or operator == "<<-":
            raise Unproven("redirection" if operator != "<<-" else "heredoc")
        self.pos = match.end()
        self._blanks()
        if self._peek() in WORD_END or not self._peek():
            raise Unproven("process_substitution" if self._peek() in ("<", ">") else "syntax")
        target = self._word()
        if target.glob:
            raise Unproven("redirection")
        if operator == "<<":
            raw = self.text[target.start : target.end]
            if raw[0] not in "'\"" or raw[1:-1] != target.text or not _DELIMITER.match(target.text):
                raise Unproven("heredoc")  # an unquoted delimiter lets the body expand
            self.heredocs.append(target.text)
        command.redirects.append(Redirect(fd, operator, target))

    def _read_heredocs(self) -> None:
        for delimiter in self.heredocs:
            while True:
                if self.pos >= len(self.text):
                    raise Unproven("heredoc")
                end = self.text.find("\n", self.pos)
                end = len(self.text) if end < 0 else end
                line = self.text[self.pos : end]
                self.pos = min(end + 1, len(self.text))
                if line == delimiter:
                    break
        self.heredocs.clear()
