"""Numbers of persons that only their label betrays: nine or eleven digits are anything, behind ``BSN:`` they are one.

The check digits must hold all the same, where the number has any.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from agenttool_otel.redaction.checksums import luhn
from agenttool_otel.redaction.patterns import compile_pattern
from agenttool_otel.redaction.types import Engine, Span

__all__ = ["LABEL_GATE", "LabelledNumbers"]


def _bsn(digits: list[int]) -> bool:
    """Netherlands: the "eleven test"."""
    return len(digits) == 9 and sum(d * w for d, w in zip(digits, (9, 8, 7, 6, 5, 4, 3, 2, -1), strict=True)) % 11 == 0


def _pesel(digits: list[int]) -> bool:
    """Poland."""
    weights = (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)
    return len(digits) == 11 and sum(d * w for d, w in zip(digits, weights, strict=True)) % 10 == 0


def _steuer_id(digits: list[int]) -> bool:
    """Germany: ISO 7064, mod 11, 10."""
    if len(digits) != 11 or digits[0] == 0:
        return False
    product = 10
    for digit in digits[:10]:
        product = ((digit + product) % 10 or 10) * 2 % 11
    return (11 - product) % 10 == digits[10]


def _tckn(digits: list[int]) -> bool:
    """Turkey."""
    if len(digits) != 11 or digits[0] == 0:
        return False
    tenth = (sum(digits[0:9:2]) * 7 - sum(digits[1:8:2])) % 10
    return tenth == digits[9] and sum(digits[:10]) % 10 == digits[10]


def _nhs(digits: list[int]) -> bool:
    """England: modulus 11."""
    return len(digits) == 10 and (11 - sum(d * (10 - at) for at, d in enumerate(digits[:9])) % 11) % 11 == digits[9]


def _sin(digits: list[int]) -> bool:
    """Canada."""
    return len(digits) == 9 and luhn("".join(map(str, digits)))


def _tfn(digits: list[int]) -> bool:
    """Australia."""
    weights = (1, 4, 3, 7, 5, 8, 6, 9, 10)
    return len(digits) == 9 and sum(d * w for d, w in zip(digits, weights, strict=True)) % 11 == 0


def _phone(digits: list[int]) -> bool:
    return 9 <= len(digits) <= 12 and len(set(digits)) > 2


_DIGITS: Final = r"(\d(?:[ .-]?\d){8,12})\b"
_LABELLED: Final[tuple[tuple[str, str, str, Callable[[list[int]], bool]], ...]] = (
    ("national_id", "nl_bsn", r"\b(?:bsn|burgerservicenummer)\b", _bsn),
    ("national_id", "pl_pesel", r"\bpesel\b", _pesel),
    ("national_id", "de_steuer_id", r"\b(?:steuer[- ]?id\w*|steuer-?identifikationsnummer|idnr)\b", _steuer_id),
    ("national_id", "tr_kimlik", r"\b(?:kimlik|tckn|tc no)\b", _tckn),
    ("national_id", "uk_nhs", r"\bnhs\b", _nhs),
    ("national_id", "ca_sin", r"\b(?:sin|social insurance)\b", _sin),
    ("national_id", "au_tfn", r"\b(?:tfn|tax file)\b", _tfn),
    (
        "phone",
        "phone_named",
        r"(?:\bt(?:e|é)l(?:(?:e|é)ph?on[eo]?|efon)?\b|\bphone\b|\bmobile?\b|\bhandy|\bportable\b|\bm(?:o|ó)vil\b|\bcell\b|\bfax\b"
        r"|\bwhatsapp\b|rufnummer)",
        _phone,
    ),
)
_BETWEEN: Final = r"[^\r\n\d:]{0,24}[:.]?\s{0,3}\(?"
LABEL_GATE: Final = "|".join(label for _, _, label, _ in _LABELLED)
"""What a text has in it where such a number could stand, as a regular expression."""


class LabelledNumbers:
    """Finds personal numbers by the words before them."""

    def __init__(self, engine: Engine) -> None:
        self._any = compile_pattern(f"(?i)(?:{LABEL_GATE}){_BETWEEN}{_DIGITS}", engine)
        self._each = tuple(
            (kind, "pii:" + name, compile_pattern(f"(?i){label}{_BETWEEN}{_DIGITS}", engine), check)
            for kind, name, label, check in _LABELLED
        )

    def find(self, data: bytes) -> Iterable[Span]:
        """Spans of the numbers, without their labels."""
        if self._any.search(data) is None:
            return
        for kind, rule, matcher, check in self._each:
            for match in matcher.finditer(data):
                start, end = match.span(1)
                text = data[start:end]
                if check([int(char) for char in re.sub(rb"\D", b"", text).decode()]) and (
                    kind != "phone" or text[:1] == b"0"
                ):
                    yield Span(start, end, kind, rule)
