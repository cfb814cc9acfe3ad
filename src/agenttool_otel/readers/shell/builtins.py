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
    form = words[0]
    if form.glob or form.text.startswith("-") or not _FORMAT.match(form.text):
        raise Refused("printf format")
    numbers = _numbers_of(form.text, words[1:])
    if not numbers:
        return
    # printf '%s %d' * 3
    if any(word.glob for word in words):
        raise Refused("printf of a number")
    # printf %d 'a[$(rm x)]'
    for word in numbers:
        if not _NUMBER.match(word.text):
            raise Refused("printf of a number")


def _numbers_of(form: str, words: list[Word]) -> list[Word]:
    """Return the words that a format prints as numbers."""
    # %% prints no word
    conversions = [letter for letter in _CONVERSION.findall(form) if letter]
    numbers = []
    # the format is used again for further words
    for letter, word in zip(cycle(conversions), words, strict=False):
        if letter not in _TEXT_CONVERSIONS:
            numbers.append(word)
    return numbers


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
    files: list[Word] = []
    is_empty = True
    # test -f a -a -f b
    for is_joint, part in groupby(words, _is_joint):
        if is_joint:
            continue
        files += _tested_by(list(part))
        is_empty = False
    if is_empty:
        raise Refused("test expression")
    return files


def _is_joint(word: Word) -> bool:
    return word.text in ("-a", "-o") and not word.quoted


def _tested_by(words: list[Word]) -> list[Word]:
    """Return the files of one test, without ``-a`` and ``-o``."""
    if len(words) > 1 and words[0].text == "!":
        words = words[1:]
    if any(word.glob for word in words):
        raise Refused("test with a glob")
    texts = [word.text for word in words]
    # [ text ]
    if len(texts) == 1 and not _is_operator(texts[0]):
        return []
    if len(texts) == 2:
        operator = texts[0]
        table = programs()["test"]
        if operator in table["file"]:
            return words[1:]
        if operator in table["text"]:
            return []
    if len(texts) == 3:
        return _compared(words, texts)
    raise Refused("test expression")


def _is_operator(text: str) -> bool:
    return text in ("!", "(", ")") or text.startswith("-")


def _compared(words: list[Word], texts: list[str]) -> list[Word]:
    """Return the files that a test of two operands compares."""
    table = programs()["test"]
    first, operator, second = texts
    # [ ! = x ] and [ ( = ) ] are no comparison to every shell
    if operator in table["equal"] and first not in ("!", "("):
        return []
    if operator in table["number"] and _NUMBER.match(first) and _NUMBER.match(second):
        return []
    # [ a -nt b ]
    if operator in table["age"]:
        return [words[0], words[2]]
    raise Refused("test expression")
