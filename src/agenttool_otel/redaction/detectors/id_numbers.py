"""Numbers of persons: national ids whose check digits hold, and those and telephone numbers that only a label betrays.

Nine or eleven digits are anything; behind ``BSN:`` they are one person's, if the check digits hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, NamedTuple

from agenttool_otel.redaction.patterns import find_all, occurs, spans_of
from agenttool_otel.redaction.types import Span

_DOUBLED: Final = str.maketrans("0123456789", "0246813579")


def luhn(digits: str) -> bool:
    """Whether the Luhn check digit holds (ISO/IEC 7812-1, Annex B)."""
    backwards = digits[::-1]
    return (sum(map(int, backwards[::2])) + sum(map(int, backwards[1::2].translate(_DOUBLED)))) % 10 == 0


def _weighted(weights: tuple[int, ...], modulus: int, digits: str) -> bool:
    """Whether the weighted sum of the digits is a multiple."""
    return (
        len(digits) == len(weights)
        and sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=True)) % modulus == 0
    )


def _steuer_id(digits: str) -> bool:
    """ISO 7064, mod 11, 10."""
    if len(digits) != 11 or digits[0] == "0":
        return False
    product = 10
    for digit in digits[:10]:
        product = ((int(digit) + product) % 10 or 10) * 2 % 11
    return (11 - product) % 10 == int(digits[10])


def _kimlik(text: str) -> bool:
    if len(text) != 11 or text[0] == "0":
        return False
    digits = [int(char) for char in text]
    tenth = (sum(digits[0:9:2]) * 7 - sum(digits[1:8:2])) % 10
    return tenth == digits[9] and sum(digits[:10]) % 10 == digits[10]


def _sin(digits: str) -> bool:
    return len(digits) == 9 and luhn(digits)


def _phone(digits: str) -> bool:
    return digits[0] == "0" and 9 <= len(digits) <= 12 and len(set(digits)) > 2


def _ssn(text: str) -> bool:
    area, group, serial = text.split("-")
    return (
        area not in ("000", "666") and area[0] != "9" and group != "00" and serial != "0000" and text != "123-45-6780"
    )


def _cpf(text: str) -> bool:
    digits = [int(char) for char in text if char.isdigit()]
    if len(set(digits)) == 1:
        return False
    for size in (9, 10):
        total = sum(digit * (size + 1 - index) for index, digit in enumerate(digits[:size])) * 10 % 11 % 10
        if total != digits[size]:
            return False
    return True


def _nir(text: str) -> bool:
    compact = text.replace(" ", "").replace("2A", "19").replace("2B", "18")
    return len(compact) == 15 and compact.isdigit() and 97 - int(compact[:13]) % 97 == int(compact[13:])


def _dni(text: str) -> bool:
    compact = text.replace("-", "")
    number = compact[:-1].replace("X", "0").replace("Y", "1").replace("Z", "2")
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == compact[-1]


def _nino(text: str) -> bool:
    return text[:2] not in ("BG", "GB", "KN", "NK", "NT", "TN", "ZZ")


_D = ("0123456789", "1234067895", "2340178956", "3401289567", "4012395678", "5987604321", "6598710432", "7659821043",
      "8765932104", "9876543210")  # fmt: skip
_P = ("0123456789", "1576283094", "5803796142", "8916043527", "9453126870", "4286573901", "2793806415", "7046913258")


_VERHOEFF: Final = tuple(  # by position modulo 8 and digit: the check digit so far to the next one
    tuple(tuple(int(_D[check][int(_P[position][digit])]) for check in range(10)) for digit in range(10))
    for position in range(8)
)


def _aadhaar(text: str) -> bool:
    check = 0
    for index, char in enumerate(reversed(text.replace(" ", "").replace("-", ""))):
        check = _VERHOEFF[index % 8][int(char)][check]
    return check == 0


_ODD = dict(zip("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", (1, 0, 5, 7, 9, 13, 15, 17, 19, 21,
            1, 0, 5, 7, 9, 13, 15, 17, 19, 21,
            2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23), strict=True))  # fmt: skip


def _codice(text: str) -> bool:
    total = sum(
        _ODD[char] if index % 2 == 0 else (int(char) if char.isdigit() else ord(char) - 65)
        for index, char in enumerate(text[:15])
    )
    return chr(65 + total % 26) == text[15]


def _hetu(text: str) -> bool:
    day, month = int(text[:2]), int(text[2:4])
    number = int(text[:6] + text[7:10])
    return 1 <= day <= 31 and 1 <= month <= 12 and "0123456789ABCDEFHJKLMNPRSTUVWXY"[number % 31] == text[10]


class IdNumber(NamedTuple):
    """One kind of number."""

    rule: str
    pattern: str  # group 1 is the number, where it has one
    check: Callable[[str], bool]  # of the digits alone where the number has a label, of the text otherwise
    kind: str = "national_id"


_LABELS: Final[tuple[tuple[str, str, Callable[[str], bool], str], ...]] = (
    ("nl_bsn", r"\b(?:bsn|burgerservicenummer)\b", partial(_weighted, (9, 8, 7, 6, 5, 4, 3, 2, -1), 11), "national_id"),
    ("pl_pesel", r"\bpesel\b", partial(_weighted, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1), 10), "national_id"),
    (
        "de_steuer_id",
        r"\b(?:steuer[- ]?id\w*|steuer-?identifikationsnummer|idnr)\b",
        _steuer_id,
        "national_id",
    ),
    ("tr_kimlik", r"\b(?:kimlik|tckn|tc no)\b", _kimlik, "national_id"),
    ("uk_nhs", r"\bnhs\b", partial(_weighted, (10, 9, 8, 7, 6, 5, 4, 3, 2, 1), 11), "national_id"),
    ("ca_sin", r"\b(?:sin|social insurance)\b", _sin, "national_id"),
    ("au_tfn", r"\b(?:tfn|tax file)\b", partial(_weighted, (1, 4, 3, 7, 5, 8, 6, 9, 10), 11), "national_id"),
    (
        "phone_named",
        r"(?:\bt(?:e|é)l(?:(?:e|é)ph?on[eo]?|efon)?\b|\bphone\b|\bmobile?\b|\bhandy|\bportable\b|\bm(?:o|ó)vil\b|\bcell\b|\bfax\b"
        r"|\bwhatsapp\b|rufnummer)",
        _phone,
        "phone",
    ),
)
LABELS: Final = "|".join(label for _, label, _, _ in _LABELS)
"""What a text has in it where a number with a label could stand, as a regular expression."""
_AFTER_LABEL: Final = r"[^\r\n\d:]{0,24}[:.]?\s{0,3}\(?(\d(?:[ .-]?\d){8,12})\b"
_LABELLED: Final = tuple(
    IdNumber(rule, f"(?i){label}{_AFTER_LABEL}", check, kind) for rule, label, check, kind in _LABELS
)
_ANY_LABELLED: Final = f"(?i)(?:{LABELS}){_AFTER_LABEL}"
_BARE: Final = (
    IdNumber("us_ssn", r"\b\d{3}-\d{2}-\d{4}\b", _ssn),
    IdNumber("br_cpf", r"\b\d{3}\.\d{3}\.\d{3}-\d{2}\b", _cpf),
    IdNumber("fr_nir", r"\b[12] ?\d\d ?(?:0[1-9]|1[0-2]|[2-9]\d) ?(?:\d\d|2[AB]) ?\d{3} ?\d{3} ?\d{2}\b", _nir),
    IdNumber("es_dni", r"\b(?:\d{8}|[XYZ]\d{7})-?[A-HJ-NP-TV-Z]\b", _dni),
    IdNumber("uk_nino", r"\b[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] \d{2} \d{2} \d{2} [A-D]\b", _nino),
    IdNumber("in_aadhaar", r"\b[2-9]\d{3}[ -]\d{4}[ -]\d{4}\b", _aadhaar),
    IdNumber("it_codice_fiscale", r"\b[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z]\b", _codice),
    IdNumber("fi_hetu", r"\b\d{6}[-+A]\d{3}[0-9A-FHJ-NPR-Y]\b", _hetu),
)
_ANY_BARE: Final = "|".join(f"(?:{number.pattern})" for number in _BARE)


def find_id_numbers(data: bytes) -> Iterable[Span]:
    """Spans of the numbers, without their labels."""
    if occurs(_ANY_LABELLED, data):
        for number in _LABELLED:
            for match in find_all(number.pattern, data):
                start, end = match.span(1)
                if number.check(re.sub(rb"\D", b"", data[start:end]).decode()):
                    yield Span(start, end, number.kind, "pii:" + number.rule)
    if occurs(_ANY_BARE, data):
        for number in _BARE:
            for match in find_all(number.pattern, data):
                start, end = spans_of(match, 0)[0]
                if not in_longer_number(data, start, end) and number.check(data[start:end].decode()):
                    yield Span(start, end, number.kind, "pii:" + number.rule)


def in_longer_number(data: bytes, start: int, end: int) -> bool:
    """Whether digits go on beyond a dot, dash or slash: a decimal fraction, a UUID, a path."""
    before = data[max(0, start - 2) : start]
    after = data[end : end + 2]
    joins = b".-/_"
    return (
        (before[-1:] in (b".",) and before[:1].isdigit())
        or (len(before) == 2 and before[1:] in (b"-", b"/", b"_") and before[:1].isalnum())
        or (after[:1] in (b".", b"-", b"_") and after[1:].isalnum() and after[:1] in joins)
    )
