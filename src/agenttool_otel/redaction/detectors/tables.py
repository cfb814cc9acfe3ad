"""Columns and lists whose head says that they hold secrets: CSV, TSV, Markdown, what clients print;
YAML's lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Final

from agenttool_otel.redaction.detectors.built_in import BuiltIn
from agenttool_otel.redaction.keys import KeyClass, classify, fits_class, is_service, kind_of_key
from agenttool_otel.redaction.patterns import LONG_PATTERNS, MATCH, find_all, occurs
from agenttool_otel.redaction.plausibility import FOUR_KINDS, has_digit, is_template
from agenttool_otel.redaction.types import Span
from agenttool_otel.redaction.words import reads_like_words
from agenttool_otel.redaction.work import spend

_LIST_WORDS: Final = (
    r"pass|pwd|secret|token|api.?key|\bpin\b|otp|cvv|cvc|ssn|iban|card.?num|cred|recovery|backup"
)
_LONG_PATTERNS: Final = LONG_PATTERNS["tables"]
_WORDS: Final = _LONG_PATTERNS["words"]
_MOST_BYTES: Final = 800
_CELL_NAME: Final = re.compile(
    rb"(?:[^\W\d]|[\x80-\xff])(?:[\w .\-/]|[\x80-\xff]){0,40}(?:\([\w .\-/]{0,20}\))?"
)
_COPY: Final = re.compile(rb"(?i)copy [^\s()]{1,200} \(([^()]*)\) from stdin;")
_RULE: Final = re.compile(rb"[-+|: =]+")
_SPACES: Final = b"  "
_DELIMITERS: Final = (b",", b";", b"\t", b"|", _SPACES)
_CELL: Final = re.compile(rb"\S+(?: \S+)*")
_MOST_HEADS: Final = 50
_MOST_REMEMBERED: Final = 64
_MOST_ROWS: Final = 5000
_MOST_COLUMNS: Final = 64
_AROUND: Final = b" \t\r\"'`"

HEAD: Final = rf"(?:{_WORDS})[\w ]*[\"']?[ \t]*[,;|\t\r\n\]<]"
"""What a text has in it where a table's head could stand."""

Cell = tuple[int, int]
"""First byte of a cell and one past its last, without white space and quotes around it."""


def find_in_tables(data: bytes, lowered: bytes) -> Iterable[Span]:
    """Spans of cells, and of the items of lists."""
    yield from find_in_lists(data, lowered)
    yield from _find_in_grids(data, lowered)
    if b"\n" not in data:
        return
    upto = -1
    for start in _heads(lowered):
        if start < upto or _goes_on(data, start):
            continue
        copied = _COPY.match(data, start)
        head = copied.span(1) if copied else (start, _line_end(data, start))
        for delimiter in _DELIMITERS:
            columns, width = _columns(data, *head, delimiter)
            if columns:
                delimiter = b"\t" if copied else delimiter
                of_user = re.search(
                    rb"user|login|host|account", lowered[start : _line_end(data, start)]
                )
                for row in _rows(data, _line_end(data, start) + 1, delimiter, width):
                    upto = row[-1][1]
                    for index, found, name in columns:
                        first, last = row[index]
                        value = data[first:last]
                        plain = (
                            delimiter is _SPACES
                            and not has_digit(value)
                            and reads_like_words(value)
                        )
                        count = (
                            not of_user
                            and name.lower().endswith("pass")
                            and len(value) < 4
                            and value.isdigit()
                        )
                        if (
                            value
                            and not (plain or count)
                            and fits_class(found, value, service=is_service(name))
                        ):
                            yield Span(first, last, kind_of_key(found), "column:" + found.value)
                break


_GRIDS: Final = (
    # what has to occur; a row; a cell of it
    (
        b"values",
        r"(?i)\(([^()]*)\)(?:\s*values\b)?",
        re.compile(rb"\\*[\"']([^\"'\\]*)\\*[\"']|([^\s,\"'()]+)"),
    ),
    (
        b"<th",
        r"(?is)(?:<tr[^<>]*>)(.*?)</tr>",
        re.compile(rb"(?i)<t[hd][^<>]*>\s*([^<>]*?)\s*</t[hd]>"),
    ),
    (b"]", r"\[([^\[\]{}:]*)\]", re.compile(rb"\\*[\"']([^\"'\\]*)\\*[\"']|([^\s,\"']+)")),
)


def _find_in_grids(data: bytes, lowered: bytes) -> Iterable[Span]:
    """Spans of cells below a head, where rows are elements of HTML or lists of JSON."""
    for mark, row, cell in _GRIDS:
        if mark not in lowered or not occurs(_WORDS, lowered):
            continue
        columns: list[tuple[int, KeyClass]] = []
        width = 0
        for match in find_all(row, data):
            cells = [
                found.span(found.lastindex or 1)
                for found in islice(cell.finditer(data, *match.span(1)), _MOST_COLUMNS)
            ]
            if columns and len(cells) == width:
                for (first, last), found in ((cells[index], found) for index, found in columns):
                    value = data[first:last]
                    if fits_class(found, value, service=False) and (
                        has_digit(value) or not reads_like_words(value)
                    ):
                        yield Span(first, last, kind_of_key(found), "column:" + found.value)
            elif mark in match.group().lower():
                width = len(cells)
                named = enumerate(
                    classify(data[first:last].decode("utf-8", "replace")) for first, last in cells
                )
                columns = [
                    (index, found) for index, found in named if found in _CLASSES and width > 1
                ]


_NAME = r"([A-Za-z_][\w.\-]+)"
_LISTS: Final = (
    # a name, and what belongs to it below, each behind a dash
    r"(?m)^[ \t]*(?:-[ \t]+)?[\"']?"
    + _NAME
    + r"[\"']?[ \t]*:[ \t]*\r?\n((?:[ \t]*-[ \t]+[^\r\n]*(?:\r?\n|\z))+)",
    _NAME + r"\\{0,3}[\"']?(?:[ \t]*(?:=>|[:=])[ \t]*[\[({]|[ \t]+\{)([^\[\](){}]{6,})[\])}]",
    _NAME + r"[ \t]*[:=][ \t]*([^\s,;\"'(){}\[\]]{6,}(?:[,;][ \t]?[^\s,;\"'(){}\[\]]{6,})+)",
)
_ITEM: Final = re.compile(_LONG_PATTERNS["item"].encode())


def find_in_lists(data: bytes, lowered: bytes) -> Iterable[Span]:
    """Spans of the items of lists."""
    if not occurs(_LIST_WORDS, lowered) or not occurs(r"[\[({,;]|- ", data):
        return
    fruitless: set[bytes] = set()
    for match in chain.from_iterable(find_all(pattern, data) for pattern in _LISTS):
        (start, end), (first, last) = match.span(1), match.span(2)
        name = data[start:end].decode()
        found = classify(name)
        if found in _LIST_CLASSES and data[start:last] not in fruitless:
            if len(fruitless) < _MOST_REMEMBERED and last - start < _MOST_BYTES:
                fruitless.add(data[start:last])
            for item in _ITEM.finditer(data[first:last]):
                value = item.group(item.lastindex or 0)
                # under a name of credentials, a password by its four kinds of characters
                chosen = (
                    found is KeyClass.WEAK
                    and FOUR_KINDS.fullmatch(value)
                    and not is_template(value)
                )
                if (
                    len(value) >= _LEAST_ITEM_BYTES
                    and (chosen or fits_class(found, value, service=is_service(name)))
                    and (has_digit(value) or not reads_like_words(value))
                ):
                    fruitless.discard(data[match.start(1) : last])
                    start, end = item.span(item.lastindex or 0)
                    yield Span(
                        first + start, first + end, kind_of_key(found), "list:" + found.value
                    )


def _heads(lowered: bytes) -> Iterator[int]:
    """Where the first lines begin that have a word of a secret's name in them, and a line
    behind them.
    """
    at = count = 0
    for match in find_all(_WORDS, lowered):
        place = match.start()
        if place < at:
            continue
        start = lowered.rfind(b"\n", 0, place) + 1
        end = lowered.find(b"\n", place)
        if end < 0 or count >= _MOST_HEADS:
            return
        if end - start <= _MOST_BYTES:
            count += 1
            yield start
        at = end + 1


def _goes_on(data: bytes, start: int) -> bool:
    """Whether a line of Markdown goes on with a table: the head stands above, and a rule
    below it.
    """
    lines = data[max(0, start - _MOST_BYTES) : start].splitlines()
    return len(lines) > 1 and b"|" in lines[-2] and _RULE.fullmatch(lines[-1]) is not None


def _columns(
    data: bytes, start: int, end: int, delimiter: bytes
) -> tuple[list[tuple[int, KeyClass, str]], int]:
    """The secret columns of a head, and how many it has in all; none when the line is no head."""
    line = data[start:end]
    if not line.rstrip().count(delimiter) >= 1 or line.count(delimiter) >= _MOST_COLUMNS:
        return [], 0
    cells = _cells(data, start, end, delimiter)
    if len(cells) < 2:
        return [], 0  # an indented word, such as Python's "pass"
    found: list[tuple[int, KeyClass, str]] = []
    for index, (first, last) in enumerate(cells):
        text = data[first:last]
        if not text and delimiter == b"|" and index in (0, len(cells) - 1):
            continue  # the edges of a Markdown table
        if _CELL_NAME.fullmatch(text) is None:
            return [], 0
        name = text.decode("utf-8", "replace")
        kind = classify(name)
        if kind in _CLASSES:
            found.append((index, kind, name))
    return found, len(cells)


_CLASSES: Final = (
    KeyClass.PASSWORD,
    KeyClass.TOKEN,
    KeyClass.CODE,
    KeyClass.PERSONAL,
    KeyClass.SERVICE,
)


_LIST_CLASSES: Final = (*_CLASSES, KeyClass.WEAK, KeyClass.HEADER)
_LEAST_ITEM_BYTES: Final = 5


def _line_end(data: bytes, start: int) -> int:
    end = data.find(b"\n", start)
    return len(data) if end < 0 else end


def _rows(data: bytes, start: int, delimiter: bytes, width: int) -> Iterator[list[Cell]]:
    """The rows that have as many cells as the head has, until a line that has not."""
    for _ in range(_MOST_ROWS):
        if start >= len(data):
            return
        end = _line_end(data, start)
        line = data[start:end].strip()
        if not (line and _RULE.fullmatch(line)):
            if not line or (delimiter is not _SPACES and line.count(delimiter) >= _MOST_COLUMNS):
                return
            cells = _cells(data, start, end, delimiter)
            if len(cells) != width:
                return
            spend(MATCH)
            yield cells
        start = end + 1


def _cells(data: bytes, start: int, end: int, delimiter: bytes) -> list[Cell]:
    """The cells of one line; a delimiter within double quotes is part of its cell."""
    if delimiter is _SPACES:
        return [cell.span() for cell in _CELL.finditer(data, start, end)]
    cells: list[Cell] = []
    first = start
    if b'"' not in data[start:end]:
        for cell in data[start:end].split(delimiter):
            cells.append(_bare(data, first, first + len(cell)))
            first += len(cell) + 1
        return cells
    quoted = False
    for at in range(start, end):
        byte = data[at : at + 1]
        if byte == b'"':
            quoted = not quoted
        elif byte == delimiter and not quoted:
            cells.append(_bare(data, first, at))
            first = at + 1
    cells.append(_bare(data, first, end))
    return cells


def _bare(data: bytes, first: int, last: int) -> Cell:
    text = data[first:last].lstrip(_AROUND)
    first = last - len(text)
    return first, first + len(text.rstrip(_AROUND))


DETECTOR: Final = BuiltIn(find=find_in_tables, between_words=True)
