"""Personal data with high confidence: check digits must hold, formats must be complete, and
examples stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from agenttool_otel.redaction.detectors.id_numbers import find_id_numbers, in_longer_number, luhn
from agenttool_otel.redaction.patterns import LONG_PATTERNS, MATCH, find_all, occurs, spans_of
from agenttool_otel.redaction.plausibility import has_letter_sequence
from agenttool_otel.redaction.types import Span
from agenttool_otel.redaction.words import byte_words, words

_EMAIL = r"[A-Za-z0-9._%+'-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,6}[A-Za-z]{2,24}"
# in groups of three at least, as cards are printed; a dump of bytes has groups of two
_CARD = r"\b(?:\d{13,19}|\d{3,6}(?:[ -]\d{3,7}){1,4})\b"
_IBAN = r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b"
_LONG_PATTERNS: Final = LONG_PATTERNS["pii"]
_PHONE = _LONG_PATTERNS["phone"]
_DIGITS = r"\d{2}[\d -]{0,3}\d|\(\d{3}\)"
_RESERVED: Final = tuple(sorted(byte_words("reserved_domains")))
_NOT_TLDS: Final = byte_words("not_tlds")
_ROLES: Final = byte_words("role_addresses")
_INVENTED: Final = re.compile(
    rb"(?:^|[._+-])(?:fake|example|dummy|test|sample|noreply|no-reply)\d*(?:$|[._+-])"
)
_GOES_ON: Final = re.compile(rb"[\w@]|-\w|:[/~]")
# who wrote something is published with it: commits, packages, keys, notices
_AUTHOR: Final = re.compile(_LONG_PATTERNS["author"].encode())
# nobody's own number: a place of work, a free call, what is set apart for films
_DESK: Final = re.compile(
    "|".join(map(_LONG_PATTERNS.__getitem__, ("desk", "desk_address"))).encode()
)
_DESK_BEHIND: Final = re.compile(rb"(?i)[^\n@]{0,32}" + _LONG_PATTERNS["desk_address"].encode())
_NOBODYS: Final = re.compile(_LONG_PATTERNS["nobodys"].encode())
_SAMPLE_BEFORE: Final = re.compile(_LONG_PATTERNS["sample_before"].encode())
_SAMPLE_BEHIND: Final = re.compile(_LONG_PATTERNS["sample_behind"].encode())
_LENGTHS: Final = {pair[:2]: int(pair[3:]) for pair in words("iban_lengths")}
_CALLING_CODES: Final = words("calling_codes")


def card_number(digits: str) -> bool:
    """Whether digits are a payment card's number: issuer range, length and check digit
    (ISO/IEC 7812).
    """
    size = len(digits)
    two, four = int(digits[:2]), int(digits[:4])
    fits = (
        (digits[0] == "4" and size in (13, 16, 19))
        or (
            size == 16
            and (
                51 <= two <= 55
                or 2221 <= four <= 2720
                or four == 6011
                or two == 65
                or 644 <= four // 10 <= 649
            )
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


def find_personal_data(data: bytes, lowered: bytes) -> Iterable[Span]:
    """Spans of e-mail addresses, cards, IBANs, telephone numbers and national ids."""
    if b"@" in data:
        for match in find_all(_EMAIL, data, 2 * MATCH):
            if data[max(0, match.start() - 3) : match.start()] == b"://":
                continue  # a user of a host
            if (
                _is_personal(match.group().lower())
                and not _GOES_ON.match(data, match.end())
                and not _AUTHOR.search(data, max(0, match.start() - 96), match.start())
            ):
                yield Span(match.start(), match.end(), "email", "pii:email")
    if not occurs(_DIGITS, data):
        return
    for match in find_all(_CARD, data):
        start, end = spans_of(match, 0)[0]
        number = data[start:end].translate(None, b" -").decode()
        if card_number(number) and not (
            in_longer_number(data, start, end) or _is_sample(data, start, end)
        ):
            yield Span(start, end, "payment_card", "pii:card")
    for match in find_all(_IBAN, data):
        start, end = spans_of(match, 0)[0]
        if iban(data[start:end].decode()) and not _is_sample(data, start, end):
            yield Span(start, end, "iban", "pii:iban")
    if b"+" in data or b"-" in data or b"(" in data:
        for match in find_all(_PHONE, data):
            start, end = spans_of(match, 0)[0]
            if _is_phone(data, start, end) and not _is_sample(data, start, end):
                yield Span(start, end, "phone", "pii:phone")
    yield from find_id_numbers(data)


def _is_personal(address: bytes) -> bool:
    user, _, domain = address.rpartition(b"@")
    if user.strip(b".'") in _ROLES or domain.rpartition(b".")[2] in _NOT_TLDS:
        return False
    if _INVENTED.search(user):
        return False
    return not any(domain == name or domain.endswith(b"." + name) for name in _RESERVED)


def _is_sample(data: bytes, start: int, end: int) -> bool:
    """Whether the text beside a number says that it is made up."""
    return bool(
        _SAMPLE_BEFORE.search(data, max(0, start - 48), start)
        or _SAMPLE_BEHIND.match(data, end, end + 32)
    )


def _is_phone(data: bytes, start: int, end: int) -> bool:
    text = data[start:end].decode()
    digits = re.sub(r"\D", "", text)
    if (
        in_longer_number(data, start, end)
        or has_letter_sequence(data[start:end])
        or _NOBODYS.match(data, start, end)
    ):
        return False
    if _DESK.search(data, max(data.rfind(b"\n", max(0, start - 40), start), start - 40, 0), start):
        return False
    if _DESK_BEHIND.match(data, end, end + 96) or data.endswith(b"++", 0, start + 1):  # of EDIFACT
        return False
    if text[0] == "+":
        if not 9 <= len(digits) <= 15 or not any(digits[:n] in _CALLING_CODES for n in (1, 2, 3)):
            return False
        # a line of a diff starts with + as well
        at_line_start = start == 0 or data[start - 1] == 10
        whole = start == 0 and end == len(data)
        return whole or not (text[1:].isdigit() and at_line_start)
    area, exchange = digits[:3], digits[3:6]
    return (
        len(digits) == 10
        and area[0] in "23456789"
        and exchange[0] in "23456789"
        and area[1:] != "11"
    )
