"""Checks of the small languages that some commands take as a word: sed, awk, jq, find, printf, test.

Each check answers why the program is not proven to only read, or an empty string when it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import cycle, groupby, takewhile

from agenttool_otel.readers.shell.awk import awk_program
from agenttool_otel.readers.shell.tables import NUMBER, programs
from agenttool_otel.readers.shell.words import Word

# --- sed: [address[,address]][!]command, joined by ";" or newlines; only commands that print, delete or substitute ---

SED_ACTING = frozenset("wWerR")
# no command begins with a dot: every sed refuses the script
_SED_NEVER = re.compile(r"\{[0-9]+\.\.")


def _sed_part(end: str, *, brackets: bool = True, loose: bool = False) -> str:
    """What stands up to the next unescaped delimiter, with it; a bracket must hold none,
    unless loose.
    """
    if not brackets:
        return rf"(?:\\.|[^\\{end}])*{end}"
    kinds = "|".join(
        rf"\[\{kind}(?:(?!\{kind}\])[^{end}])*\{kind}\]" for kind in ":.=" if f"\\{kind}" != end
    )
    inner = rf"(?:\\.|{kinds}|\[(?![:.=])|[^\]\\\[{'' if loose else end}])*"
    return rf"(?:\\.|[^\\\[{end}]|\[(?:\^|(?!\^))(?:\]|(?!\])){inner}\])*{end}"


@cache
def _sed_command(*, loose: bool) -> re.Pattern[str]:
    """One command with its addresses, of those that print, delete or substitute."""
    pattern = _sed_part(r"\/", loose=loose)
    line = rf"(?:\s*(?:[0-9]+(?:~[0-9]+)?|\$|\+[0-9]+)|/{pattern}I*)"
    plain = re.escape("".join(programs()["sed"]["plain"]))
    changes = [f"(?P<opens>{{)|[qQ][0-9]*|[{plain}]"]
    for end in map("\\{}".format, "/|,#:@!%+~_-"):
        # In the letters of y and in a replacement a bracket is an ordinary character.
        rest = _sed_part(end, brackets=False)
        changes.append(f"s{end}{_sed_part(end, loose=loose)}{rest}[gpIi0-9]*|y{end}{rest}{rest}")
    return re.compile(rf"(?:{line}(?:,{line})?)?[! ]*(?:{'|'.join(changes)}) *", re.DOTALL)


def sed_program(script: str) -> str:
    """Why a sed script may do more than print, or ``""``."""
    if "\n" in script:
        return "sed script with line breaks"
    if _SED_NEVER.match(script):
        return ""
    # Where the script can neither write nor run nor read anything in any reading, a bracket may
    # hold the delimiter.
    command, pos, depth = _sed_command(loose=not SED_ACTING & set(script)), 0, 0
    while True:
        while script[pos : pos + 1] in (" ", ";") or (depth and script.startswith("}", pos)):
            depth -= script[pos] == "}"
            pos += 1
        if pos == len(script):
            return "sed block" if depth else ""
        if (match := command.match(script, pos)) is None:
            return "sed command"
        pos, opens = match.end(), match["opens"] is not None
        depth += opens
        if not (
            opens or script[pos : pos + 1] in ("", ";") or (depth and script.startswith("}", pos))
        ):
            return "sed script"


_SED_LINE = r"(?:[0-9]+|\$|/(?:[^/\\]|\\.)*/)"
_SED_TEXT = re.compile(rf"\s*(?:{_SED_LINE}(?:,{_SED_LINE})?)?\s*!?\s*[aic](?:\\|\s)")


def sed_edit(script: str) -> str:
    """Why a sed script may do more than print and change the file that it is given, or ``""``."""
    line = ""
    for piece in script.split("\n"):
        line += piece
        # an odd number of backslashes: the line goes on
        if len(piece) - len(piece.rstrip("\\")) & 1:
            line = line[:-1] + " "
            continue
        # a, i and c take the rest of the line as text
        if not _SED_TEXT.match(line) and (reason := sed_program(line)):
            return reason
        line = ""
    return "sed script" if line else ""


# A name right behind one dot is a field.
_JQ_NAME = re.compile(r"(?<![A-Za-z0-9_])(?<!(?<![.0-9])\.)[A-Za-z_][A-Za-z0-9_]*")


_JQ_STRING = re.compile(r'"(?:[^"\\]|\\[^(])*"')
_JQ_PART = re.compile(r"def\s+\w+|\w+|\S")
_JQ_REPEATS = re.compile(r"\b(?:def|reduce|foreach)\b")
_JQ_DEFINES = re.compile(r"\bdef\s")
_MAX_JQ_STEPS = 24
_JQ_WIDE = re.compile(r"\"\s*\*|\[\s*[0-9]{6}|\*\s*[0-9]{5}|[0-9]{5}\s*\*")
_JQ_COUNTS = re.compile(r"\brange\(\s*(?:[0-9]{1,4}|length)\s*(?:;\s*(?:[0-9]{1,4}|length)\s*)?\)")


def jq_program(program: str) -> str:
    """Why a jq program may read more than its input, or go on for ever, or ``""``."""
    forbidden = programs()["jq"]["forbidden"]
    if (
        _JQ_WIDE.search(program)
        or len(_JQ_DEFINES.findall(program)) > 1
        or program.count("|") > _MAX_JQ_STEPS
    ):
        return "jq without a bound"
    if program.count("range") == 1 and not _JQ_REPEATS.search(program):  # several would multiply
        program = _JQ_COUNTS.sub("0", program)
    for name in _JQ_NAME.findall(program):
        if name in forbidden or "load" in name or (name == "def" and _jq_repeats(program)):
            return f"jq {name}"
    return ""


def _jq_repeats(program: str) -> bool:
    """Whether a function of a jq program may call itself: its name occurs before the semicolon that
    ends it.
    """
    plain = _JQ_STRING.sub("0", program)
    depth, defining = 0, list[tuple[str, int]]()
    for part in _JQ_PART.findall(plain):
        depth += (part in "([{") - (part in ")]}")
        if part[:3] == "def" and part[3:4].isspace():
            defining.append((part[3:].strip(), depth))
        elif part == ";" and defining and defining[-1][1] == depth:
            defining.pop()
        elif any(part == name for name, _ in defining):
            return True
    return '"' in plain or "#" in plain or bool(defining)


CHECKS = {"sed": sed_program, "awk": awk_program, "jq": jq_program}
"""The check of each small language."""

# --- find -----------------------------------------------------------------------------------------

_FIND_VALUE = re.compile(r"-[0-9]|-[ugoa]*[=+][rwxXst]+\Z")
_FIND_ACTIONS = frozenset(("-exec", "-print", "-print0", "-printf", "-ls"))
_PLAIN_NAME = re.compile(r"(?:[\w.*-]|\[\w+\])+", re.ASCII)
_FIND_NEWER = re.compile(r"-newer[aBcm][aBcmt]\Z")


@dataclass(slots=True)
class FindWords:
    """What the words behind ``find`` are."""

    reason: str = ""  # why it may do more than read
    starts: list[Word] = field(default_factory=list)
    names: list[Word] = field(default_factory=list)  # patterns of names and paths
    compared: list[Word] = field(default_factory=list)  # files that others are compared with
    # what -exec runs, with {} for the files
    commands: list[list[Word]] = field(default_factory=list)
    file_names: tuple[str, ...] = ()  # patterns that the name of every file matches


def narrowing(names: Iterable[str]) -> tuple[str, ...]:
    """Patterns of names, where each is one that every program and ``fnmatch`` read alike; else
    none: that is all.
    """
    found = tuple(names)
    return found if all(_PLAIN_NAME.fullmatch(name) and "**" not in name for name in found) else ()


def find_words(words: list[Word]) -> FindWords:
    """Reads the words behind ``find``."""
    found = FindWords()
    found.reason = _read_find(words, found)
    given = {id(word) for command in found.commands for word in command}
    texts = [word.text for word in words if id(word) not in given]
    # what stands behind narrows nothing
    tests = list(takewhile(lambda text: text not in _FIND_ACTIONS, texts))
    if "," in texts:
        return found
    # Behind the last "or" stand the tests of the only action, if no other is left open there.
    last = max((i for i, text in enumerate(texts) if text in ("-o", "-or")), default=-1)
    if last >= 0 and last < len(tests) < len(texts) and not {"(", ")"} & set(texts[last:]):
        tests = tests[last + 1 :]
    elif last > len(tests) or (len(tests) < len(texts) and not _surrounds_all(tests)):
        return found
    alternatives = list[list[str]]([[]])
    for before, text, following in zip(["", *tests], tests, [*tests[1:], ""], strict=False):
        if text in ("!", "-not") and following == "(":
            return found
        if text in ("-o", "-or"):
            alternatives.append([])
        elif text == "-name" and before not in ("!", "-not"):
            alternatives[-1].append(following)
    # whatever is true of a file, all that stands between two "or" is, and one of its names
    if all(alternatives):
        found.file_names = narrowing(name for names in alternatives for name in names)
    return found


def _surrounds_all(tests: list[str]) -> bool:
    """Whether parentheses hold every "or" of tests, so that what follows is done with the files of
    all of them.
    """
    depth, outside = 0, False
    for text in tests:
        depth += (text == "(") - (text == ")")
        outside |= depth == 0 and text in ("-o", "-or")
    return not (depth or outside)


def _exec_words(words: list[Word], index: int) -> int:
    """The position of the word that ends the command of an ``-exec``, or 0."""
    texts = [word.text for word in words]
    return next(
        (
            i
            for i in range(index, len(texts))
            if texts[i] == ";" or texts[i - 1 : i + 1] == ["{}", "+"]
        ),
        0,
    )


def _read_find(words: list[Word], found: FindWords) -> str:
    table = programs()["find"]
    index = 0
    starts, names, compared = found.starts, found.names, found.compared
    nested = any(word.text == "(" for word in words)
    while index < len(words) and words[index].text in ("-H", "-L", "-P"):
        index += 1
    while index < len(words) and not (
        words[index].text[:1] == "-" or words[index].text in table["flags"]
    ):
        if words[index].glob_first and not (words[index].one and words[index].text.endswith("/")):
            return "find with an unquoted glob"
        starts.append(words[index])
        index += 1
    left_out = False
    while index < len(words):
        word, turned, left_out = words[index], left_out, False
        index += 1
        if word.glob:
            return "find with an unquoted glob"
        if word.text in table["flags"]:
            left_out = word.text in ("!", "-not") and not turned
            continue
        if word.text == "-exec":
            end = _exec_words(words, index)
            if end <= index:
                return "find -exec without its end"
            found.commands.append(words[index:end])
            index = end + 1
            continue
        named, compares = (
            word.text in table["names"],
            word.text in table["files"] or _FIND_NEWER.match(word.text),
        )
        if not (named or compares or word.text in table["values"]):
            return f"find {word.text[:40]}"
        if index >= len(words):
            return f"find {word.text} without its value"
        value = words[index]
        index += 1
        if value.glob or (value.text.startswith("-") and not _FIND_VALUE.match(value.text)):
            return f"find {word.text} with {value.text[:40]}"
        if named and (nested or not turned):  # what is left out is not looked for
            names.append(value)
        elif compares:
            compared.append(value)
    return ""


# --- printf, test ---------------------------------------------------------------------------------

_PRINTF = re.compile(
    r"(?:(?!\\(?:[xuU]0*25|0*45))[^%]|%%|%-?[0-9]{0,4}(?:\.[0-9]{1,4})?[sbqcdiuxXo])*\Z", re.DOTALL
)
_CONVERSION = re.compile(r"%%|%[-.0-9]*(\w)")


def printf_words(words: list[Word]) -> str:
    """Why ``printf`` may do more than print: ``-v`` and ``%n`` assign, and numbers are evaluated in
    some shells.
    """
    if words and words[0].text == "--":
        words = words[1:]
    if not words:
        return "printf without a format"
    if (
        words[0].glob
        or words[0].unknown
        or words[0].text.startswith("-")
        or not _PRINTF.match(words[0].text)
    ):
        return "printf format"
    kinds = list(filter(None, _CONVERSION.findall(words[0].text)))
    numbers = [
        word for kind, word in zip(cycle(kinds), words[1:], strict=False) if kind not in "sbqc"
    ]
    doubt = any(w.moves for w in words) or not all(_NUMBER.match(w.text) for w in numbers)
    return "printf of a number" if numbers and doubt else ""


_NUMBER = re.compile(rf"(?:-?[0-9]{{1,18}}|{NUMBER})\Z")


def test_words(name: str, words: list[Word]) -> tuple[str, list[Word]]:
    """Reads the words of ``test``, ``[`` and ``[[``.

    Arrays' subscripts are evaluated by ``-v``, ``-R`` and, within ``[[``, by numeric comparison; so
    only tests of files and of literal text are read, and numbers must be numbers.
    """
    if name != "test":
        closing = "]" if name == "[" else "]]"
        if not words or words[-1].text != closing or words[-1].quoted:
            return "test without its end", []
        words = words[:-1]
    if words and words[0].text == "!":
        words = words[1:]
    joints = ("&&", "||") if name == "[[" else ("-a", "-o")
    apart = groupby(words, lambda word: word.text in joints and not word.quoted)
    parts = [list(part) for joint, part in apart if not joint]
    table = programs()["test"]
    # a pattern is none of files there, and names some at the most where there is no [[
    if name == "[[":
        compares = [len(part) == 3 and part[1].text in table["equal"] for part in parts]
        parts = [
            [*p[:2], replace(p[2], glob=False)] if c else p
            for p, c in zip(parts, compares, strict=True)
        ]
    if len(parts) > 1:
        # A shell without [[ takes what stands behind && and || for commands, whose names must then
        # be none.
        tests = {*table["file"], *table["text"]}
        named = name == "[[" and any(part[0].text not in tests for part in parts[1:])
        read = [test_words("test", part) for part in parts]
        reason = "test of several" if named else next((reason for reason, _ in read if reason), "")
        return reason, [word for _, files in read for word in files]
    words = parts[0] if parts else []
    globs = [word for word in words if word.glob]
    if any(not (word.one or (word.split and words[0].text in table["file"])) for word in globs):
        return "test with a glob", []
    texts = [word.text for word in words]
    if len(texts) == 1 and texts[0] not in ("!", "(", ")") and not texts[0].startswith("-"):
        return "", []
    if len(texts) == 2 and texts[0] in table["file"] and not words[1].substitution:
        return "", [words[1]]
    if len(texts) == 2 and texts[0] in table["text"]:
        return "", []
    if len(texts) == 3:
        if texts[1] in table["equal"] and texts[0] not in ("!", "("):
            return "", []
        if texts[1] in table["number"] and _NUMBER.match(texts[0]) and _NUMBER.match(texts[2]):
            return "", []
        if texts[1] in table["age"]:
            return "", [words[0], words[2]]
    return "test expression", []
