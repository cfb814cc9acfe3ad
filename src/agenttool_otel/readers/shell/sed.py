"""Scripts of sed: whether they do more than print.

A script is read as ``[address[,address]][!]command``, joined by ``;`` or line ends, of commands
that print, delete or substitute.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

ACTING: Final = frozenset("wWerR")
"""The letters of commands and flags that write, run or read something."""

_PLAIN_COMMANDS: Final = "pdqQnNgGhHxP=l"
_DELIMITERS: Final = "/|,#:@!%+~_-"
# sed '{3..5p': no command begins with a dot, so every sed refuses the script
_REFUSED_BY_SED = re.compile(r"\{[0-9]+\.\.")

_LINE = r"(?:[0-9]+|\$|/(?:[^/\\]|\\.)*/)"
_LINES = rf"(?:{_LINE}(?:,{_LINE})?)?"
# a text\ or "a text": the rest of the line is text
_TEXT = re.compile(rf"\s*{_LINES}\s*!?\s*[aic](?:\\|\s)")


def _up_to(end: str) -> str:
    """Return a pattern of all up to the next delimiter that is not escaped, with it."""
    return rf"(?:\\.|[^\\{end}])*{end}"


def _regex_up_to(end: str, *, loose: bool) -> str:
    """Return a pattern of a regular expression and the delimiter behind it.

    A bracket expression must not hold the delimiter, unless ``loose``: sed's versions differ in
    where ``s/[/]/x/`` ends.
    """
    named = []
    for kind in ":.=":
        if f"\\{kind}" != end:
            named.append(rf"\[\{kind}(?:(?!\{kind}\])[^{end}])*\{kind}\]")  # [[:alpha:]]
    excluded = "" if loose else end
    member = rf"(?:\\.|{'|'.join(named)}|\[(?![:.=])|[^\]\\\[{excluded}])*"
    bracket = rf"\[(?:\^|(?!\^))(?:\]|(?!\])){member}\]"
    return rf"(?:\\.|[^\\\[{end}]|{bracket})*{end}"


@cache
def _command(*, loose: bool) -> re.Pattern[str]:
    """Return the pattern of one command with its addresses."""
    regex = _regex_up_to(r"\/", loose=loose)
    address = rf"(?:\s*(?:[0-9]+(?:~[0-9]+)?|\$|\+[0-9]+)|/{regex}I*)"
    commands = ["(?P<opens>{)", "[qQ][0-9]*", f"[{re.escape(_PLAIN_COMMANDS)}]"]
    for delimiter in _DELIMITERS:
        end = "\\" + delimiter
        # In the letters of y and in a replacement a bracket is an ordinary character.
        rest = _up_to(end)
        commands.append(f"s{end}{_regex_up_to(end, loose=loose)}{rest}[gpIi0-9]*")
        commands.append(f"y{end}{rest}{rest}")
    either = "|".join(commands)
    return re.compile(rf"(?:{address}(?:,{address})?)?[! ]*(?:{either}) *", re.DOTALL)


def sed_program(script: str) -> str:
    """Return why a sed script may do more than print, or an empty text."""
    if "\n" in script:
        return "sed script with line breaks"
    if _REFUSED_BY_SED.match(script):
        return ""
    # Where no letter acts in any reading, it does not matter where a bracket ends.
    command = _command(loose=not ACTING & set(script))
    position = depth = 0
    while True:
        position, depth = _skip_ends(script, position, depth)
        if position == len(script):
            return "sed block" if depth else ""
        match = command.match(script, position)
        if match is None:
            return "sed command"
        position = match.end()
        if match["opens"] is not None:
            depth += 1
            continue
        if not _ends_command(script[position : position + 1], depth):
            return "sed script"


def _ends_command(following: str, depth: int) -> bool:
    return following in ("", ";") or (following == "}" and depth > 0)


def _skip_ends(script: str, position: int, depth: int) -> tuple[int, int]:
    """Skip blanks, semicolons and the ends of blocks."""
    while position < len(script):
        char = script[position]
        if char == "}" and depth:
            depth -= 1
        elif char not in " ;":
            break
        position += 1
    return position, depth


def sed_edit(script: str) -> str:
    """Return why a sed script may do more than change the file that it is given, or an
    empty text.
    """
    line = ""
    for piece in script.split("\n"):
        line += piece
        backslashes = len(piece) - len(piece.rstrip("\\"))
        if backslashes % 2:
            line = line[:-1] + " "  # the line goes on
            continue
        if not _TEXT.match(line):
            reason = sed_program(line)
            if reason:
                return reason
        line = ""
    return "sed script" if line else ""
