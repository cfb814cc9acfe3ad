"""Columns of tables whose head says that they hold secrets: CSV, TSV, Markdown, what database clients print."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from agenttool_otel.redaction import inert
from agenttool_otel.redaction.keys import KeyClass, classify, is_service, kind_of_key
from agenttool_otel.redaction.patterns import compile_pattern
from agenttool_otel.redaction.types import Engine, Span

__all__ = ["GATE", "TableDetector"]

_WORDS: Final = r"pass|pwd|secret|token|api.?key|\bpin\b|otp|cvv|cvc|ssn|iban|card.?num"
_MOST_BYTES: Final = 800
_CELL_NAME: Final = re.compile(rb"(?:[^\W\d]|[\x80-\xff])(?:[\w .\-/()]|[\x80-\xff]){0,40}")
_RULE: Final = re.compile(rb"[-+|: =]+")
_DELIMITERS: Final = (b",", b";", b"\t", b"|")
_MOST_HEADS: Final = 50
_MOST_ROWS: Final = 5000
_MOST_COLUMNS: Final = 64

GATE: Final = r"(?:pass|pwd|secret|token|api.?key|otp|cvv|ssn)[\w ]*[\"']?[ \t]*[,;|\t\r\n]"
"""What a text has in it where a table's head could stand."""

Cell = tuple[int, int]
"""First byte of a cell and one past its last, without white space and quotes around it."""


class TableDetector:
    """Finds the cells of secret columns."""

    name = "tables"

    def __init__(self, engine: Engine, *, pii: bool = True) -> None:
        """Compile the pattern.

        Args:
            engine: the matcher.
            pii: whether columns of personal numbers count.
        """
        self._pii = pii
        self._words = compile_pattern(_WORDS, engine)

    def find(self, data: bytes, lowered: bytes) -> Iterable[Span]:
        """Spans of cells."""
        if b"\n" not in data:
            return
        upto = -1
        for start in self._heads(lowered):
            if start < upto:
                continue
            for delimiter in _DELIMITERS:
                columns, width = self._columns(data, start, delimiter)
                if columns:
                    for row in _rows(data, _line_end(data, start) + 1, delimiter, width):
                        upto = row[-1][1]
                        for index, found, name in columns:
                            first, last = row[index]
                            if first < last and _secret(found, name, data[first:last]):
                                yield Span(first, last, kind_of_key(found), "column:" + found.value)
                    break

    def _heads(self, lowered: bytes) -> Iterator[int]:
        """Where the first lines begin that have a word of a secret's name in them, and a line behind them."""
        at = count = 0
        for match in self._words.finditer(lowered):
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

    def _columns(self, data: bytes, start: int, delimiter: bytes) -> tuple[list[tuple[int, KeyClass, str]], int]:
        """The secret columns of a head, and how many it has in all; none when the line is no head."""
        line = data[start : _line_end(data, start)]
        if not 1 <= line.count(delimiter) < _MOST_COLUMNS:
            return [], 0
        cells = _cells(data, start, start + len(line), delimiter)
        found: list[tuple[int, KeyClass, str]] = []
        for index, (first, last) in enumerate(cells):
            text = data[first:last]
            if not text and delimiter == b"|" and index in (0, len(cells) - 1):
                continue  # the edges of a Markdown table
            if _CELL_NAME.fullmatch(text) is None:
                return [], 0
            name = text.decode("utf-8", "replace")
            kind = classify(name)
            if kind in _CLASSES and (self._pii or kind is not KeyClass.PERSONAL):
                found.append((index, kind, name))
        return found, len(cells)


_CLASSES: Final = (KeyClass.PASSWORD, KeyClass.TOKEN, KeyClass.CODE, KeyClass.PERSONAL, KeyClass.SERVICE)


def _secret(found: KeyClass, name: str, value: bytes) -> bool:
    if inert.is_template(value):
        return False
    if found is KeyClass.PASSWORD:
        return True
    digits = sum(48 <= byte <= 57 for byte in value)
    if found is KeyClass.CODE:
        return digits == len(value) and digits >= 3
    if found is KeyClass.PERSONAL:
        return digits >= 4
    return inert.plausible_token(value, named=is_service(name), quoted=True)


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
            if not line or line.count(delimiter) >= _MOST_COLUMNS:
                return
            cells = _cells(data, start, end, delimiter)
            if len(cells) != width:
                return
            yield cells
        start = end + 1


def _cells(data: bytes, start: int, end: int, delimiter: bytes) -> list[Cell]:
    """The cells of one line; a delimiter within double quotes is part of its cell."""
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
    around = b" \t\r\"'`"
    while first < last and data[first] in around:
        first += 1
    while last > first and data[last - 1] in around:
        last -= 1
    return first, last
