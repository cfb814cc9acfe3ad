"""The lexical guard: reads the small part of shell whose meaning is the same in every reading, and
refuses the rest.

The guard is a strict parser of its own rather than a filter in front of another one: public shell
parsers each hide some command that bash runs, so a proof must rest on text that leaves no room for
two readings. What it reads: simple commands of literal words, joined by ``&& || ; |`` and newlines,
grouped by ``( )`` and ``{ }``, fed by ``< file``, ``<<< word``, ``<<'QUOTED'`` and ``<(commands)``,
with redirections to literal targets and comments; ``if``, ``case``, ``for x in words`` and ``while
read x``, variables and arrays that the line itself has set (also by ``read`` and ``mapfile`` from
what it gives them), ``$( )``, arithmetic over numbers, and braces, which are read both expanded and
as they stand. The commands of a loop over words stand once for each word, those of a function once
for each call. Every other character raises ``Unproven`` with the construct's name.
"""

from __future__ import annotations

import re
import unicodedata

from agenttool_otel.readers.shell.compounds import (
    MOVES,
    OPENS,
    REDIRECT,
    CompoundReader,
    Redirect,
    Simple,
)
from agenttool_otel.readers.shell.tables import programs
from agenttool_otel.readers.shell.words import WORD_ENDS, Heredoc, Unproven, Word, unproven_if

MAX_LENGTH = 8192
"""Characters; a longer command line is not read at all."""

_MAX_DEPTH = 8
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_BLANKS = re.compile(r"[ \t]*")
# between words no shell reads a broken line otherwise
_BLANKS_AND_BREAKS = re.compile(r"(?:[ \t]|(?<=[ \t])\\\n)*")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=")
_SUBSCRIPT_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\[[^\n]*\]\+?=")
_DELIMITER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_LINE = re.compile(r"[^\n]*")
_PLAIN_TEXT = re.compile(r"[^\n$`\\]*")
_BREAK = re.compile(r"\n")
_BEFORE_SUBSTITUTION = ("", " ", "\t", "\n", ";", "|", "&", "(")
# Letters and symbols that draw nothing or look like a space, although their category says
# otherwise.
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\u17b4\u17b5")
_TOKEN = re.compile(
    r"&&|\|\||\|&|;;|;&|&(?!>)|[;|\n)]|\Z|(?:then|elif|else|fi|do|done|esac|\})(?=[ \t\n;|&)<>]|\Z)"
)
_JOINTS = {"\n": ";", ";": ";", "&&": "&&", "||": "||", "|": "|"}


def read(text: str) -> list[Simple]:
    """Reads a command line into its simple commands, in the order of their text."""
    unproven_if(not text.strip(" \t\n"), "empty")
    unproven_if(len(text) > MAX_LENGTH, "too_long")
    unproven_if(_CONTROL.search(text), "control_character")
    # Letters, numbers, punctuation and symbols draw something; marks, formats, separators and the
    # rest may not.
    beyond = set() if text.isascii() else {char for char in text if not char.isascii()}
    if any(
        unicodedata.category(char)[0] not in "LNPS" or char in _BLANK_LETTERS for char in beyond
    ):
        raise Unproven("invisible_character")
    reader = _Reader(text)
    reader.statements("")
    unproven_if(not reader.commands, "function")
    reader.commands[0].construct = reader.construct
    return reader.commands


class _Reader(CompoundReader):
    def _blanks(self) -> None:
        if self._peek() in (" ", "\t", "\\"):
            self._try(_BLANKS if self.heredocs else _BLANKS_AND_BREAKS)

    def statements(self, *ends: str) -> str:
        unproven_if(len(self.group) > _MAX_DEPTH, "too_deep")
        seen = need = read = False
        while True:
            self._blanks()
            token = _TOKEN.match(self.text, self.pos)
            found = token[0] if token else None
            keyword = token is not None and token[0][:1] not in "&|;\n)"
            if token and found in ends and not (seen and keyword):
                unproven_if(
                    need or not read or self.heredocs,
                    "syntax" if found or need or read else "empty",
                )
                self.pos = token.end()
                self.join(";")
                return token[0]
            if token and found in _JOINTS:
                unproven_if(not (seen or found == "\n"), "syntax")
                self.pos = token.end()
                if found == "\n":
                    self._read_heredocs()
                elif (
                    found != "|"
                ):  # a body is expanded before what stands behind these, and read after it here
                    self.heredocs = [heredoc._replace(expands=False) for heredoc in self.heredocs]
                if not need:
                    self.join(_JOINTS[token[0]])
                seen, need = False, need or found in ("&&", "||", "|")
            elif token and not keyword:
                raise Unproven({"|&": "pipe_all", "&": "background"}.get(token[0], "syntax"))
            elif self._peek() == "#":
                end = self.text.find("\n", self.pos)
                self.pos = len(self.text) if end < 0 else end
            elif seen:  # text behind ")": a function body, a redirected group, or nonsense
                raise Unproven("group_suffix")
            else:
                self._command()
                seen, need, read = True, False, True

    def _command(self) -> None:
        unproven_if(self.text.startswith("((", self.pos), "arithmetic")
        if opens := OPENS.match(self.text, self.pos):
            self.compound(opens[0])
            return
        command = self.simple()
        assigned: dict[str, Word] = {}
        negated = False
        while True:
            self._blanks()
            char = self._peek()
            joint = self.text[self.pos : self.pos + 2]
            inside = (
                command.words and command.words[0].text == "[[" and command.words[-1].text != "]]"
            )
            if inside and (
                joint in ("&&", "||")
                or (joint == "=~" and self.text[self.pos + 2 : self.pos + 3] == " ")
            ):
                command.words.append(Word(joint, self.pos, self.pos + 2))
                self.pos += 2
                continue
            if not char or char in "\n;|)" or char == "#":
                break
            if char == "&" and not self.text.startswith("&>", self.pos):
                break
            if char == "(":
                self.define(command)
                return
            if char in "<>" and self.text.startswith("(", self.pos + 1):
                unproven_if(char == ">", "process_substitution")
                # x<(ls) is one word
                unproven_if(
                    self.text[self.pos - 1 : self.pos] not in _BEFORE_SUBSTITUTION,
                    "process_substitution",
                )
                command.words.append(self._process_substitution())
                continue
            if match := REDIRECT.match(self.text, self.pos):
                self.redirect(command, match)
                continue
            if not command.words:
                unproven_if(_SUBSCRIPT_ASSIGNMENT.match(self.text, self.pos), "assignment")
                if assignment := _ASSIGNMENT.match(self.text, self.pos):
                    assigned[assignment[0][:-1]] = self.value(command, assignment)
                    continue
            # nothing is split
            self.assigning = bool(inside) and "$PWD" not in self.text[self.pos : self.pos + 5]
            self.of_git = bool(command.words) and command.words[0].text == "git"
            words = self._words() if command.words else [self._word()]
            word, self.assigning, self.of_git = words[0], False, False
            if (
                word.text == "!"
                and not word.quoted
                and not (negated or command.words or command.assignments)
            ):
                negated = True  # only turns the status round
                unproven_if(command.redirects or self._peek() not in (" ", "\t"), "negation")
                continue
            if (
                not command.words
                and not word.quoted
                and word.text in programs()["shell"]["keywords"]
            ):
                raise Unproven("negation" if word.text == "!" else "keyword")
            unproven_if(not command.words and word.expanded, "expansion")
            command.words += words
        unproven_if(
            not command.words and not command.assignments and not command.redirects, "syntax"
        )
        self.sets(command)
        name = command.words[0] if command.words else Word("", 0, 0)
        unproven_if(name.text in self.barred and not command.local, "keyword")
        self.last = command
        self.moves += name.text in MOVES
        if name.text in self._functions and not name.quoted:
            self.call(command)
        if not (command.words or command.redirects):
            self.assign(command, assigned)

    def _process_substitution(self) -> Word:
        start = self.pos
        source = self._substitution(skip=2)
        unproven_if(
            self._peek() not in ("", " ", "\t", "\n", ";", "|", ")"), "process_substitution"
        )
        return Word("/dev/fd/63", start, self.pos, quoted=True, substitution=True, source=source)

    def redirect(self, command: Simple, match: re.Match[str]) -> list[Simple]:
        fd, operator = (match[1] or "", match[2]) if match[2] else ("", match[4])
        unproven_if(
            len(fd) > 1 or operator == "<<-", "redirection" if operator != "<<-" else "heredoc"
        )
        self.pos = match.end()
        self._blanks()
        if operator == "<" and fd in ("", "0") and self.text.startswith("<(", self.pos):
            command.redirects.append(Redirect(fd, operator, self._process_substitution()))
            return command.redirects[-1].target.source or []
        unproven_if(
            self._peek() in WORD_ENDS,
            "process_substitution" if self._peek() in ("<", ">") else "syntax",
        )
        target = self._word()
        unproven_if(target.glob and not target.one, "redirection")
        if operator == "<<":
            raw = self.text[target.start : target.end]
            quoted = raw[0] in "'\"" and raw[1:-1] == target.text
            unproven_if(
                not (quoted or raw == target.text) or not _DELIMITER.match(target.text), "heredoc"
            )
            end = re.compile(rf"{target.text}(?:\n|\Z)")
            self.heredocs.append(Heredoc(end, _LINE if quoted else _PLAIN_TEXT, not quoted))
        command.redirects.append(Redirect(fd, operator, target))
        return []

    def _read_heredocs(self) -> None:
        bodies, self.heredocs = self.heredocs, []
        for end, line, expands in bodies:
            begins = self.pos
            while not self._try(end):
                self._take(line, "heredoc")
                while expands and self._peek() == "$":
                    start = self.pos = self.pos + 1
                    self._expand(Word("", 0, 0), [], quoted=True)
                    # shells end a body at its first end
                    unproven_if("\n" in self.text[start : self.pos], "heredoc")
                    self._take(line, "heredoc")
                self._take(_BREAK, "heredoc")
            # older shells end $( ) at a parenthesis in there
            unproven_if(self.group and ")" in self.text[begins : self.pos], "heredoc")
