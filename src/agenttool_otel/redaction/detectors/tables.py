"""Columns and lists whose head names secrets: CSV, TSV, Markdown, what clients print;
YAML's lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Final, NamedTuple

from agenttool_otel.redaction.detectors.built_in import BuiltIn
from agenttool_otel.redaction.keys import KeyClass, classify, fits_class, is_service, kind_of_key
from agenttool_otel.redaction.patterns import MATCH, find_all, occurs
from agenttool_otel.redaction.plausibility import FOUR_KINDS, has_digit, is_template
from agenttool_otel.redaction.types import Span
from agenttool_otel.redaction.words import reads_like_words
from agenttool_otel.redaction.work import spend

_LIST_WORDS: Final = (
    r"pass|pwd|secret|token|api.?key|\bpin\b|otp|cvv|cvc|ssn|iban|card.?num|cred|recovery|backup"
)
IN_OTHER_LANGUAGES: Final = (
    r"contrase|senha|wachtwoord|kennwort|lösenord|adgangskode|hasło|haslo|heslo|geslo|jelsz|parol"
    r"|salasana"
)
"""The word "password", or its stem."""
_WORDS: Final = (
    r"pass|pwd|secret|token|api.?key|\bpin\b|otp|cvv|cvc|ssn|iban|card.?num|" + IN_OTHER_LANGUAGES
)
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
        head = _head_at(data, lowered, start)
        if head is None:
            continue
        for row in _rows(data, _line_end(data, start) + 1, head.delimiter, head.width):
            upto = row[-1][1]
            yield from _secret_cells(data, row, head)


class _Column(NamedTuple):
    """A column whose name is that of secrets."""

    place: int  # which cell of a row
    found: KeyClass
    name: str

    def span(self, first: int, last: int) -> Span:
        """The find of a cell."""
        return Span(first, last, kind_of_key(self.found), "column:" + self.found.value)


class _Head(NamedTuple):
    """The first line of a table."""

    columns: list[_Column]  # those that hold secrets
    width: int  # how many there are in all
    delimiter: bytes  # what separates the cells of the rows
    of_users: bool  # whether the rows are accounts


def _head_at(data: bytes, lowered: bytes, start: int) -> _Head | None:
    """The head that a line is, by the first delimiter that divides it into names."""
    end = _line_end(data, start)
    # pg_dump's COPY names the columns, and separates the cells by tabs
    copied = _COPY.match(data, start)
    first, last = copied.span(1) if copied else (start, end)
    for delimiter in _DELIMITERS:
        columns, width = _columns(data, first, last, delimiter)
        if columns:
            of_users = re.search(rb"user|login|host|account", lowered[start:end]) is not None
            return _Head(columns, width, b"\t" if copied else delimiter, of_users)
    return None


def _secret_cells(data: bytes, row: list[Cell], head: _Head) -> Iterable[Span]:
    """Spans of the cells of a row that hold secrets."""
    for column in head.columns:
        first, last = row[column.place]
        if _is_secret_cell(data[first:last], column, head):
            yield column.span(first, last)


def _is_secret_cell(value: bytes, column: _Column, head: _Head) -> bool:
    """Whether a cell of a secret column holds a secret."""
    if not value:
        return False
    # columns of a program's output are separated by spaces, as words are
    if head.delimiter is _SPACES and not has_digit(value) and reads_like_words(value):
        return False
    # suite,pass,fail with 12 tests that passed
    counts = not head.of_users and column.name.lower().endswith("pass")
    if counts and len(value) < 4 and value.isdigit():
        return False
    return fits_class(column.found, value, service=is_service(column.name))


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
        columns: list[_Column] = []
        width = 0
        for match in find_all(row, data):
            cells = [
                found.span(found.lastindex or 1)
                for found in islice(cell.finditer(data, *match.span(1)), _MOST_COLUMNS)
            ]
            if columns and len(cells) == width:
                yield from _find_in_row(data, cells, columns)
            elif mark in match.group().lower():
                width = len(cells)
                columns = _named_columns(data, cells)


def _find_in_row(data: bytes, cells: list[Cell], columns: list[_Column]) -> Iterable[Span]:
    """Spans of the secret cells of a row."""
    for column in columns:
        first, last = cells[column.place]
        value = data[first:last]
        if not fits_class(column.found, value, service=False):
            continue
        if has_digit(value) or not reads_like_words(value):
            yield column.span(first, last)


def _named_columns(data: bytes, cells: list[Cell]) -> list[_Column]:
    """The secret columns of a row of names; a list of one is no row."""
    if len(cells) < 2:
        return []
    columns: list[_Column] = []
    for index, (first, last) in enumerate(cells):
        name = data[first:last].decode("utf-8", "replace")
        found = classify(name)
        if found in _CLASSES:
            columns.append(_Column(index, found, name))
    return columns


_NAME = r"([A-Za-z_][\w.\-]+)"
_LISTS: Final = (
    # a name, and what belongs to it below, each behind a dash
    r"(?m)^[ \t]*(?:-[ \t]+)?[\"']?"
    + _NAME
    + r"[\"']?[ \t]*:[ \t]*\r?\n((?:[ \t]*-[ \t]+[^\r\n]*(?:\r?\n|\z))+)",
    _NAME + r"\\{0,3}[\"']?(?:[ \t]*(?:=>|[:=])[ \t]*[\[({]|[ \t]+\{)([^\[\](){}]{6,})[\])}]",
    _NAME + r"[ \t]*[:=][ \t]*([^\s,;\"'(){}\[\]]{6,}(?:[,;][ \t]?[^\s,;\"'(){}\[\]]{6,})+)",
)
QUOTED_ITEM: Final = r"""\\{0,3}["']([^\s"'\\,]+)\\{0,3}["']"""
"""An item in quotes, which may be escaped."""
BARE_ITEM: Final = (
    r"""(?:^[ \t]*-|^|[,;])[ \t]*"""
    r"""([^\s"'\\,;\[\]{}()]*[^\s"'\\,;\[\]{}():])(?=[ \t]*(?:[,;\r\n]|\Z))"""
)
"""An item behind a dash or a comma, up to the next one; what ends in a colon is a name."""
_ITEM: Final = re.compile(rf"(?m){QUOTED_ITEM}|{BARE_ITEM}".encode())


def find_in_lists(data: bytes, lowered: bytes) -> Iterable[Span]:
    """Spans of the items of lists."""
    if not occurs(_LIST_WORDS, lowered) or not occurs(r"[\[({,;]|- ", data):
        return
    fruitless: set[bytes] = set()
    for match in chain.from_iterable(find_all(pattern, data) for pattern in _LISTS):
        start, end = match.span(1)
        first, last = match.span(2)
        name = data[start:end].decode()
        text = data[start:last]
        if classify(name) not in _LIST_CLASSES or text in fruitless:
            continue
        if len(fruitless) < _MOST_REMEMBERED and last - start < _MOST_BYTES:
            fruitless.add(text)
        for span in _items(data, first, last, name):
            fruitless.discard(text)
            yield span


def _items(data: bytes, first: int, last: int, name: str) -> Iterable[Span]:
    """Spans of the secret items of a list with a name."""
    found = classify(name)
    for item in _ITEM.finditer(data[first:last]):
        start, end = item.span(item.lastindex or 0)
        value = data[first + start : first + end]
        if _is_secret_item(value, found, name):
            yield Span(first + start, first + end, kind_of_key(found), "list:" + found.value)


def _is_secret_item(value: bytes, found: KeyClass, name: str) -> bool:
    """Whether an item of a list is a secret, by the name of the list."""
    if len(value) < _LEAST_ITEM_BYTES:
        return False
    if not has_digit(value) and reads_like_words(value):
        return False
    # under a name of credentials, a password by its four kinds of characters
    if found is KeyClass.WEAK and FOUR_KINDS.fullmatch(value) and not is_template(value):
        return True
    return fits_class(found, value, service=is_service(name))


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


def _columns(data: bytes, start: int, end: int, delimiter: bytes) -> tuple[list[_Column], int]:
    """The secret columns of a head, and how many it has in all; none when the line is no head."""
    line = data[start:end]
    if not line.rstrip().count(delimiter) >= 1 or line.count(delimiter) >= _MOST_COLUMNS:
        return [], 0
    cells = _cells(data, start, end, delimiter)
    if len(cells) < 2:
        return [], 0  # an indented word, such as Python's "pass"
    found: list[_Column] = []
    for index, (first, last) in enumerate(cells):
        text = data[first:last]
        if not text and delimiter == b"|" and index in (0, len(cells) - 1):
            continue  # the edges of a Markdown table
        if _CELL_NAME.fullmatch(text) is None:
            return [], 0
        name = text.decode("utf-8", "replace")
        kind = classify(name)
        if kind in _CLASSES:
            found.append(_Column(index, kind, name))
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
