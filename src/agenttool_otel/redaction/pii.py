"""Personal data with high confidence: check digits must hold, formats must be complete, and examples stay."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from agenttool_otel.redaction import inert
from agenttool_otel.redaction.checksums import luhn
from agenttool_otel.redaction.labelled import LabelledNumbers
from agenttool_otel.redaction.patterns import compile_pattern, spans_of
from agenttool_otel.redaction.types import Engine, Span
from agenttool_otel.redaction.words import byte_words, words

__all__ = ["PiiDetector", "card_number", "iban"]

_EMAIL = r"[A-Za-z0-9._%+'-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,6}[A-Za-z]{2,24}"
# in groups of three at least, as cards are printed; a dump of bytes has groups of two
_CARD = r"\b(?:\d{13,19}|\d{3,6}(?:[ -]\d{3,7}){1,4})\b"
_IBAN = r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b"
_PHONE = (
    r"\+[1-9]\d{0,2}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{1,4}(?:[ .-]?\d{2,4}){2,5}\b"
    r"|\(\d{3}\) ?\d{3}[-. ]\d{4}\b|\b\d{3}-\d{3}-\d{4}\b"
)
_IDS: Final = (
    ("us_ssn", r"\b\d{3}-\d{2}-\d{4}\b"),
    ("br_cpf", r"\b\d{3}\.\d{3}\.\d{3}-\d{2}\b"),
    ("fr_nir", r"\b[12] ?\d\d ?(?:0[1-9]|1[0-2]|[2-9]\d) ?(?:\d\d|2[AB]) ?\d{3} ?\d{3} ?\d{2}\b"),
    ("es_dni", r"\b(?:\d{8}|[XYZ]\d{7})-?[A-HJ-NP-TV-Z]\b"),
    ("uk_nino", r"\b[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] \d{2} \d{2} \d{2} [A-D]\b"),
    ("in_aadhaar", r"\b[2-9]\d{3}[ -]\d{4}[ -]\d{4}\b"),
    ("it_codice_fiscale", r"\b[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z]\b"),
    ("fi_hetu", r"\b\d{6}[-+A]\d{3}[0-9A-FHJ-NPR-Y]\b"),
)
_RESERVED: Final = tuple(sorted(byte_words("reserved_domains")))
_NOT_TLDS: Final = byte_words("not_tlds")
_ROLES: Final = byte_words("role_addresses")
_INVENTED: Final = re.compile(rb"(?:^|[._+-])(?:fake|example|dummy|test|sample|noreply|no-reply)\d*(?:$|[._+-])")
_GOES_ON: Final = re.compile(rb"[\w@]|-\w")
_LENGTHS: Final = {pair[:2]: int(pair[3:]) for pair in words("iban_lengths")}
_CALLING_CODES: Final = words("calling_codes")


def card_number(digits: str) -> bool:
    """Whether digits are a payment card's number: issuer range, length and check digit (ISO/IEC 7812)."""
    size = len(digits)
    two, four = int(digits[:2]), int(digits[:4])
    fits = (
        (digits[0] == "4" and size in (13, 16, 19))
        or (
            size == 16
            and (51 <= two <= 55 or 2221 <= four <= 2720 or four == 6011 or two == 65 or 644 <= four // 10 <= 649)
        )
        or (size == 15 and two in (34, 37))
        or (size == 14 and (two in (36, 38, 39) or 300 <= four // 10 <= 305))
        or (16 <= size <= 19 and (3528 <= four <= 3589 or two == 62))
    )
    return fits and len(set(digits)) > 1 and luhn(digits)


def iban(text: str) -> bool:
    """Whether it is an IBAN: the country's length and the check digits (ISO 13616, mod 97)."""
    compact = text.replace(" ", "")
    if _LENGTHS.get(compact[:2]) != len(compact):
        return False
    moved = compact[4:] + compact[:4]
    return int("".join(str(int(char, 36)) for char in moved)) % 97 == 1


class PiiDetector:
    """Finds personal data."""

    name = "pii"

    def __init__(self, engine: Engine) -> None:
        self._email = compile_pattern(_EMAIL, engine)
        self._card = compile_pattern(_CARD, engine)
        self._iban = compile_pattern(_IBAN, engine)
        self._phone = compile_pattern(_PHONE, engine)
        self._labelled = LabelledNumbers(engine)
        self._digits = compile_pattern(r"\d{2}[\d -]{0,3}\d|\(\d{3}\)", engine)
        # one search for all: most texts have none of them
        self._any_id = compile_pattern("|".join(f"(?:{pattern})" for _, pattern in _IDS), engine)
        self._ids = tuple((name, compile_pattern(pattern, engine), _CHECKS[name]) for name, pattern in _IDS)

    def find(self, data: bytes, lowered: bytes) -> Iterable[Span]:
        """Spans of e-mail addresses, cards, IBANs, telephone numbers and national ids."""
        if b"@" in data:
            for match in self._email.finditer(data):
                if data[max(0, match.start() - 3) : match.start()] == b"://":
                    continue  # a user of a host
                if _is_personal(match.group().lower()) and not _GOES_ON.match(data, match.end()):
                    yield Span(match.start(), match.end(), "email", "pii:email")
        if self._digits.search(data) is None:
            return
        for match in self._card.finditer(data):
            start, end = spans_of(match, 0)[0]
            if card_number(data[start:end].translate(None, b" -").decode()) and not _in_number(data, start, end):
                yield Span(start, end, "payment_card", "pii:card")
        for match in self._iban.finditer(data):
            start, end = spans_of(match, 0)[0]
            if iban(data[start:end].decode()):
                yield Span(start, end, "iban", "pii:iban")
        if b"+" in data or b"-" in data or b"(" in data:
            for match in self._phone.finditer(data):
                start, end = spans_of(match, 0)[0]
                if _is_phone(data, start, end):
                    yield Span(start, end, "phone", "pii:phone")
        yield from self._labelled.find(data)
        if self._any_id.search(data) is None:
            return
        for name, matcher, check in self._ids:
            for match in matcher.finditer(data):
                start, end = spans_of(match, 0)[0]
                if not _in_number(data, start, end) and check(data[start:end].decode()):
                    yield Span(start, end, "national_id", "pii:" + name)


def _in_number(data: bytes, start: int, end: int) -> bool:
    """Whether digits go on beyond a dot, dash or slash: a decimal fraction, a UUID, a path."""
    before = data[max(0, start - 2) : start]
    after = data[end : end + 2]
    joins = b".-/_"
    return (
        (before[-1:] in (b".",) and before[:1].isdigit())
        or (len(before) == 2 and before[1:] in (b"-", b"/", b"_") and before[:1].isalnum())
        or (after[:1] in (b".", b"-", b"_") and after[1:].isalnum() and after[:1] in joins)
    )


def _is_personal(address: bytes) -> bool:
    user, _, domain = address.rpartition(b"@")
    if user.strip(b".'") in _ROLES or domain.rpartition(b".")[2] in _NOT_TLDS:
        return False
    if _INVENTED.search(user):
        return False
    return not any(domain == name or domain.endswith(b"." + name) for name in _RESERVED)


def _is_phone(data: bytes, start: int, end: int) -> bool:
    text = data[start:end].decode()
    digits = re.sub(r"\D", "", text)
    if _in_number(data, start, end) or inert.has_letter_sequence(data[start:end]):
        return False
    if text[0] == "+":
        if not 9 <= len(digits) <= 15 or not any(digits[:n] in _CALLING_CODES for n in (1, 2, 3)):
            return False
        # a line of a diff starts with + as well
        at_line_start = start == 0 or data[start - 1] == 10
        whole = start == 0 and end == len(data)
        return whole or not (text[1:].isdigit() and at_line_start)
    area, exchange = digits[:3], digits[3:6]
    return len(digits) == 10 and area[0] in "23456789" and exchange[0] in "23456789" and area[1:] != "11"


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


_CHECKS: Final[dict[str, Callable[[str], bool]]] = {
    "us_ssn": _ssn, "br_cpf": _cpf, "fr_nir": _nir, "es_dni": _dni, "uk_nino": _nino, "in_aadhaar": _aadhaar,
    "it_codice_fiscale": _codice, "fi_hetu": _hetu,
}  # fmt: skip
