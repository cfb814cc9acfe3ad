"""The strict check of words: quotes, escapes and globs that every shell reads alike.

Bash, dash, ksh and zsh differ in many small things. A word is read only where they do not; any
other character ends the proof with the name of the construct.
"""

from __future__ import annotations

import re

from agenttool_otel.readers.shell.syntax import Unproven, Word

WORD_ENDS = frozenset((*" \t\n;&|()<>", ""))
"""What stands behind a word; the empty text is the end of the line."""

_PLAIN = re.compile(r"[A-Za-z0-9_./,:@%+=-]+")
_ESCAPABLE = frozenset("().*;?[]!|+$/- {}^\"'<>&#~,:=@%")
_ESCAPABLE_IN_DOUBLE_QUOTES = frozenset('"\\$`')
_LITERAL_IN_DOUBLE_QUOTES = re.compile(r'[^"\\$`!]+')
_GLOB_CHARACTERS = frozenset("*?[]")

# HEAD^, HEAD^2, HEAD^{tree}
_CARET = r"(?<=[\w^}])\^(?:\{[a-z]*\})?"
# stash@{0}, main@{yesterday}
_REFLOG = r"(?<=@)\{[\w-]+\}"
_BEHIND_REVISION = r"(?=[0-9^~:.\s;&|)]|\Z)"
_REVISION = re.compile(f"(?:{_CARET}|{_REFLOG}){_BEHIND_REVISION}", re.ASCII)

_CONSTRUCTS = {
    "`": "substitution",
    "{": "brace",
    "}": "brace",
    "!": "history",
    "~": "tilde",
    "^": "caret",
    "#": "hash",
}


def read_word(text: str, start: int, *, of_git: bool = False) -> Word:
    """Read the word that begins at an offset.

    Args:
        text: the command line.
        start: the offset of the word's first character.
        of_git: it is an argument of git, where ``^main`` leaves out commits.

    Raises:
        Unproven: some shell may read the word otherwise.
    """
    reader = _WordReader(text, start, of_git)
    return reader.read()


class _WordReader:
    """Reads one word."""

    def __init__(self, text: str, start: int, of_git: bool) -> None:
        self._text = text
        self._start = start
        self._pos = start
        self._of_git = of_git
        self._parts: list[str] = []
        self._word = Word("", start)

    def read(self) -> Word:
        self._refuse_zsh_equals()
        while True:
            if plain := _PLAIN.match(self._text, self._pos):
                self._parts.append(plain[0])
                self._pos = plain.end()
            if self._peek() in WORD_ENDS:
                break
            self._part()
        self._word.text = "".join(self._parts)
        self._word.end = self._pos
        return self._word

    def _peek(self, distance: int = 0) -> str:
        at = self._pos + distance
        return self._text[at : at + 1]

    def _refuse_zsh_equals(self) -> None:
        # zsh puts the path of the program for "=ls"; in "a == b" and "a = b" it can find none
        if self._peek() != "=":
            return
        length = 2 if self._peek(1) == "=" else 1
        if self._peek(length) not in WORD_ENDS:
            raise Unproven("zsh_equals")

    def _part(self) -> None:
        """Read a quoted part, or one character that is not plain."""
        char = self._peek()
        if char == "'":
            self._single_quoted()
        elif char == '"':
            self._double_quoted()
        elif char == "\\":
            self._escaped()
        elif char in _GLOB_CHARACTERS:
            self._glob(char)
        elif self._is_literal(char):
            self._append(char)
        elif revision := _REVISION.match(self._text, self._pos):
            self._append(revision[0])
        elif char == "{" and self._is_placeholder():
            self._append("{}")
        elif char == "$":
            raise Unproven(self._expansion())
        else:
            raise Unproven(_CONSTRUCTS.get(char, "character"))

    def _append(self, text: str) -> None:
        self._parts.append(text)
        self._pos += len(text)

    def _single_quoted(self) -> None:
        end = self._text.find("'", self._pos + 1)
        if end < 0:
            raise Unproven("syntax")
        self._parts.append(self._text[self._pos + 1 : end])
        self._pos = end + 1
        self._word.quoted = True

    def _double_quoted(self) -> None:
        self._word.quoted = True
        self._pos += 1
        while (char := self._peek()) != '"':
            if literal := _LITERAL_IN_DOUBLE_QUOTES.match(self._text, self._pos):
                self._append(literal[0])
            elif char == "\\":
                self._escaped_in_double_quotes()
            elif char == "!":
                # bash puts a line of its history for "!x", even in double quotes
                if self._peek(1) not in (" ", "\t", "\n", "=", '"'):
                    raise Unproven("history")
                self._append(char)
            elif char == "$" and self._peek(1) == '"':
                self._append(char)  # "costs 5$": nothing behind it to expand
            elif char == "$":
                raise Unproven(self._expansion())
            elif char == "`":
                raise Unproven("substitution")
            else:
                raise Unproven("syntax")  # the line ends within the quotes
        self._pos += 1

    def _escaped_in_double_quotes(self) -> None:
        following = self._peek(1)
        if following in ("\n", ""):
            raise Unproven("line_continuation")
        if following in _ESCAPABLE_IN_DOUBLE_QUOTES:
            self._pos += 1
            self._append(following)
        else:
            self._append("\\")  # "\d" holds both characters

    def _escaped(self) -> None:
        following = self._peek(1)
        if following not in _ESCAPABLE:
            raise Unproven("backslash")
        self._pos += 1
        self._append(following)
        self._word.quoted = True

    def _glob(self, char: str) -> None:
        if not self._is_bracket_command(char):
            self._word.glob = True
            self._word.glob_first = self._word.glob_first or self._pos == self._start
        self._append(char)

    def _is_bracket_command(self, char: str) -> bool:
        """Whether a bracket belongs to ``[``, ``]``, ``[[`` or ``]]`` as a word of its own."""
        if char not in "[]":
            return False
        if self._pos == self._start and self._peek(1) in WORD_ENDS:
            return True
        start = self._start
        doubled = self._text[start : start + 2]
        return doubled in ("[[", "]]") and self._text[start + 2 : start + 3] in WORD_ENDS

    def _is_literal(self, char: str) -> bool:
        """Whether a character means itself where it stands."""
        if not char.isascii():
            return True
        following = self._peek(1)
        first = self._pos == self._start
        if char == "~":
            if first:
                return following == "/" or following in WORD_ENDS  # the home directory
            behind_name = self._text[self._pos - 1].isalnum()
            return behind_name and (following.isdigit() or following in WORD_ENDS)  # HEAD~1
        if char == "!":
            return first and following in (" ", "\t", "\n", "")
        if char == "^":
            return first and self._of_git and following.isalnum()
        # grep 'x'$ file: nothing behind it to expand
        return char == "$" and (following == "" or following in " \t\n;|&)")

    def _is_placeholder(self) -> bool:
        """Whether ``{}`` stands here, which find and xargs replace and no shell expands."""
        before = self._text[self._start : self._pos]
        return before in ("", "-I") and self._peek(1) == "}" and self._peek(2) in WORD_ENDS

    def _expansion(self) -> str:
        """Name what stands behind a dollar."""
        if self._text.startswith("$((", self._pos):
            return "arithmetic"
        return "substitution" if self._peek(1) == "(" else "expansion"
