"""The words of ``printf`` and ``test``."""

from __future__ import annotations

import re
from itertools import cycle, groupby

from agenttool_otel.readers.shell.syntax import Word
from agenttool_otel.readers.shell.tables import programs
from agenttool_otel.readers.shell.verdict import Refused

# \x25, \u0025 and \045 are a percent sign
_ESCAPED_PERCENT = r"\\(?:[xuU]0*25|0*45)"
_CONVERSION_OF_KNOWN_WIDTH = r"%-?[0-9]{0,4}(?:\.[0-9]{1,4})?[sbqcdiuxXo]"
_FORMAT = re.compile(
    rf"(?:(?!{_ESCAPED_PERCENT})[^%]|%%|{_CONVERSION_OF_KNOWN_WIDTH})*\Z", re.DOTALL
)
_CONVERSION = re.compile(r"%%|%[-.0-9]*(\w)")
_TEXT_CONVERSIONS = frozenset("sbqc")
_NUMBER = re.compile(r"-?[0-9]{1,18}\Z")
_JOINTS = ("-a", "-o")


def check_printf(words: list[Word]) -> None:
    """Check the words behind ``printf``.

    ``-v`` and ``%n`` assign, and some shells evaluate what stands for a number.

    Raises:
        Refused: it may do more than print.
    """
    if words and words[0].text == "--":
        words = words[1:]
    if not words:
        raise Refused("printf without a format")
    text = words[0].text
    if words[0].glob or text.startswith("-") or not _FORMAT.match(text):
        raise Refused("printf format")
    conversions = [letter for letter in _CONVERSION.findall(text) if letter]
    numbers = []
    # the format is used again for further words
    for letter, word in zip(cycle(conversions), words[1:], strict=False):
        if letter not in _TEXT_CONVERSIONS:
            numbers.append(word)
    if not numbers:
        return
    moves = any(word.glob for word in words)  # printf '%s %d' * 3
    if moves or not all(_NUMBER.match(word.text) for word in numbers):
        raise Refused("printf of a number")


def tested_files(name: str, words: list[Word]) -> list[Word]:
    """Return the files that ``test``, ``[`` or ``[[`` looks at.

    ``-v``, ``-R`` and numbers within ``[[`` evaluate the subscripts of arrays. So only tests of
    files and of literal text are read, and numbers must be numbers.

    Raises:
        Refused: the words are none of these.
    """
    if name != "test":
        closing = "]" if name == "[" else "]]"
        if not words or words[-1].text != closing or words[-1].quoted:
            raise Refused("test without its end")
        words = words[:-1]
    if words and words[0].text == "!":
        words = words[1:]
    parts: list[list[Word]] = []
    for is_joint, part in groupby(words, lambda word: word.text in _JOINTS and not word.quoted):
        if not is_joint:
            parts.append(list(part))
    files: list[Word] = []
    for words in parts:
        files += _tested_by(words)
    if not parts:
        raise Refused("test expression")
    return files


def _tested_by(words: list[Word]) -> list[Word]:
    """Return the files of one test, without ``-a`` and ``-o``."""
    if len(words) > 1 and words[0].text == "!":
        words = words[1:]
    if any(word.glob for word in words):
        raise Refused("test with a glob")
    table = programs()["test"]
    texts = [word.text for word in words]
    if len(texts) == 1 and texts[0] not in ("!", "(", ")") and not texts[0].startswith("-"):
        return []
    if len(texts) == 2 and texts[0] in table["file"]:
        return [words[1]]
    if len(texts) == 2 and texts[0] in table["text"]:
        return []
    if len(texts) == 3:
        return _compared(words, texts)
    raise Refused("test expression")


def _compared(words: list[Word], texts: list[str]) -> list[Word]:
    table = programs()["test"]
    first, operator, second = texts
    if operator in table["equal"] and first not in ("!", "("):
        return []
    if operator in table["number"] and _NUMBER.match(first) and _NUMBER.match(second):
        return []
    if operator in table["age"]:
        return [words[0], words[2]]
    raise Refused("test expression")
