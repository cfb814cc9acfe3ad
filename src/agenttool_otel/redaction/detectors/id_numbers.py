"""Numbers of persons: national ids whose check digits hold, and those and telephone numbers that
only a label betrays.

Nine or eleven digits are anything; behind ``BSN:`` they are one person's, if the check digits hold.
The numbers are data (id_numbers.toml), their check digits those of python-stdnum.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from typing import Any, Final, NamedTuple

from agenttool_otel.redaction.patterns import find_all, occurs, spans_of
from agenttool_otel.redaction.types import Span
from agenttool_otel.values.tables import load_table, row_of

_DOUBLED: Final = str.maketrans("0123456789", "0246813579")


def luhn(digits: str) -> bool:
    """Whether the Luhn check digit holds (ISO/IEC 7812-1, Annex B)."""
    backwards = digits[::-1]
    return (
        sum(map(int, backwards[::2])) + sum(map(int, backwards[1::2].translate(_DOUBLED)))
    ) % 10 == 0


class IdNumber(NamedTuple):
    """One kind of number."""

    rule: str
    pattern: str  # group 1 is the number, where it has one
    # the module of stdnum that knows its check digits, loaded when the first such number is seen
    check: str = ""
    kind: str = "national_id"
    length: int = 0
    unless: re.Pattern[str] | None = None  # what fits and is none
    near: re.Pattern[str] | None = None  # what has to stand beside it, or around it

    def fits(self, text: str) -> bool:
        """Tell whether the digits of a labelled number, or the text of any other, are such
        a number.
        """
        if (self.length and len(text) != self.length) or (
            self.unless is not None and self.unless.match(text)
        ):
            return False
        return not self.check or bool(import_module(f"stdnum.{self.check}").is_valid(text))


_TABLE: Final[dict[str, list[dict[str, Any]]]] = load_table(__package__, "id_numbers.toml")
LABELS: Final = "|".join(row["label"] for row in _TABLE["labelled"])
"""What a text has in it where a number with a label could stand, as a regular expression."""

_AFTER_LABEL: Final = r"[^\r\n\d:]{0,24}[:.]?\s{0,3}\(?(\d(?:[ .-]?\d){8,12})\b"
_LABELLED: Final = tuple(
    row_of(IdNumber, {**row, "pattern": f"(?i){row['label']}{_AFTER_LABEL}"})
    for row in _TABLE["labelled"]
)
_ANY_LABELLED: Final = f"(?i)(?:{LABELS}){_AFTER_LABEL}"
_BARE: Final = tuple(row_of(IdNumber, row) for row in _TABLE["number"])
_ANY_BARE: Final = "|".join(f"(?:{number.pattern})" for number in _BARE)


def find_id_numbers(data: bytes) -> Iterable[Span]:
    """Spans of the numbers, without their labels."""
    if occurs(_ANY_LABELLED, data):
        for number in _LABELLED:
            for match in find_all(number.pattern, data):
                start, end = match.span(1)
                if number.fits(re.sub(rb"\D", b"", data[start:end]).decode()):
                    yield Span(start, end, number.kind, "pii:" + number.rule)
    if occurs(_ANY_BARE, data):
        for number in _BARE:
            for match in find_all(number.pattern, data):
                start, end = spans_of(match, 0)[0]
                near = data[max(0, start - 80) : end + 40].decode("utf-8", "replace")
                if (
                    not in_longer_number(data, start, end)
                    and number.fits(data[start:end].decode())
                    and (number.near is None or number.near.search(near))
                ):
                    yield Span(start, end, number.kind, "pii:" + number.rule)


def in_longer_number(data: bytes, start: int, end: int) -> bool:
    """Whether digits go on beyond a dot, dash or slash: a decimal fraction, a UUID, a path."""
    before = data[max(0, start - 2) : start]
    after = data[end : end + 2]
    return (
        (before[-1:] == b"." and before[:1].isdigit())
        or (len(before) == 2 and before[1:] in (b"-", b"/", b"_") and before[:1].isalnum())
        or (after[:1] in (b".", b"-", b"_") and after[1:].isalnum())
    )
