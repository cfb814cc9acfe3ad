"""The words of a command line: quotes, escapes and globs, as far as every shell reads them in one way."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PLAIN = re.compile(r"[A-Za-z0-9_./,:@%+=-]+")
_EQUALS = re.compile(r"==?")
_ESCAPABLE = frozenset("().*;?[]!|+$/- {}^\"'<>&#~,:=@%")
WORD_END = frozenset(" \t\n;&|()<>")


class Unproven(Exception):
    """The text holds a construct outside the part that can be read in only one way."""

    def __init__(self, construct: str) -> None:
        super().__init__(construct)
        self.construct = construct


class Unclosed(Unproven):
    """A quote is still open at the end of the text: a shell that reads it so runs nothing from there on."""


@dataclass(slots=True)
class Word:
    """One literal word."""

    text: str  # value after quote removal
    start: int  # offset of the first character in the command line
    end: int  # offset behind the last one
    quoted: bool = False  # some part was quoted or escaped
    glob: bool = False  # has unquoted ``* ? [``, so the shell may replace it by any number of file names
    glob_first: bool = False  # begins with such a character, so a replacement may begin with ``-``
    substitution: bool = False  # stands for the output of ``<( )``


class WordReader:
    """Reads one word after the other."""

    def __init__(self, text: str, *, comments: bool = True) -> None:
        self.text = text
        self.comment = "#" if comments else "\0"
        self.pos = 0
        self.heredocs: list[str] = []

    def _peek(self) -> str:
        return self.text[self.pos : self.pos + 1]

    def _word(self) -> Word:
        text, start = self.text, self.pos
        word = Word("", start, start)
        parts: list[str] = []
        while True:
            plain = _PLAIN.match(text, self.pos)
            if plain:
                if self.pos == start and plain[0][0] == "=" and not self._equals_alone():
                    raise Unproven("zsh_equals")
                parts.append(plain[0])
                self.pos = plain.end()
                continue
            char = self._peek()
            if not char or char in WORD_END:
                break
            self.pos += 1
            if char == "'":
                end = text.find("'", self.pos)
                if end < 0:
                    raise Unclosed("syntax")
                parts.append(text[self.pos : end])
                self.pos = end + 1
                word.quoted = True
            elif char == '"':
                parts.append(self._double_quoted())
                word.quoted = True
            elif char == "\\":
                following = self._peek()
                if following not in _ESCAPABLE or not following:
                    raise Unproven("backslash")
                parts.append(following)
                self.pos += 1
                word.quoted = True
            elif char in "*?[]":
                self._glob(word, char, start)
                parts.append(char)
            elif not char.isascii() or (self.pos - 1 == start and self._harmless(char)):
                parts.append(char)
            elif char == "~" and text[self.pos - 2].isalnum() and self.pos - 1 > start and self._ends_revision():
                parts.append(char)  # HEAD~1
            elif char == "$" and (not self._peek() or self._peek() in " \t\n;|&)"):
                parts.append(char)  # nothing behind it to expand
            elif char == "{" and self.pos - 1 == start and self._empty_braces():
                parts.append("{}")  # what find replaces; without a comma or dots no shell expands it
                self.pos += 1
            else:
                raise Unproven(_CONSTRUCTS.get(char, "character"))
        word.text = "".join(parts)
        word.end = self.pos
        if self.heredocs and "\n" in word.text:
            raise Unproven("heredoc")  # where its body begins is not the same for every reader
        return word

    def _equals_alone(self) -> bool:
        """``=`` or ``==``, as tests use them; a name behind it would be a path for zsh."""
        match = _EQUALS.match(self.text, self.pos)
        return match is not None and (match.end() == len(self.text) or self.text[match.end()] in WORD_END)

    def _empty_braces(self) -> bool:
        following = self.text[self.pos : self.pos + 2]
        return following[:1] == "}" and (len(following) == 1 or following[1] in WORD_END)

    def _ends_revision(self) -> bool:
        """Whether a tilde is followed as in git's names of revisions; no shell expands it there."""
        following = self._peek()
        return not following or following.isdigit() or following in WORD_END

    def _harmless(self, char: str) -> bool:
        """A tilde for the home directory, an exclamation mark that stands alone, a hash that begins no comment."""
        following = self._peek()
        if char == "#":
            return self.comment != "#"
        if char == "~":
            return not following or following == "/" or following in WORD_END
        return char == "!" and (not following or following in " \t\n")

    def _glob(self, word: Word, char: str, start: int) -> None:
        alone = self.pos - 1 == start and (not self._peek() or self._peek() in WORD_END)
        if char in "[]" and (alone or self.text[start : start + 2] in ("[[", "]]")):
            doubled = self.text[start : start + 3]
            if alone or doubled in ("[[", "]]") or doubled[2] in WORD_END:
                return  # the commands [ and [[ and what closes them
        word.glob = True
        word.glob_first = word.glob_first or self.pos - 1 == start

    def _double_quoted(self) -> str:
        text = self.text
        parts: list[str] = []
        while True:
            char = self._peek()
            self.pos += 1
            if not char:
                raise Unclosed("syntax")
            following = self._peek()
            if char == '"':
                return "".join(parts)
            if char == "\\":
                if following == "\n" or not following:
                    raise Unproven("line_continuation")
                if following in '"\\$`':
                    parts.append(following)
                    self.pos += 1
                    continue
            elif char == "`" or (char == "$" and following != '"'):
                raise Unproven("substitution" if char == "`" or following == "(" else "expansion")
            elif char == "!" and following not in (" ", "\t", "\n", "=", '"'):
                raise Unproven("history")
            # Take the run of characters that mean themselves in one go.
            end = self.pos
            while end < len(text) and text[end] not in '"\\$`!':
                end += 1
            parts.append(char + text[self.pos : end])
            self.pos = end


_CONSTRUCTS = {
    "$": "expansion",
    "`": "substitution",
    "{": "brace",
    "}": "brace",
    "!": "history",
    "~": "tilde",
    "^": "caret",
    "#": "hash",
}
