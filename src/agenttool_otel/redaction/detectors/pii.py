"""Personal data with high confidence: check digits must hold, formats must be complete, and
examples stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from agenttool_otel.redaction.detectors.built_in import BuiltIn
from agenttool_otel.redaction.detectors.id_numbers import find_id_numbers, in_longer_number, luhn
from agenttool_otel.redaction.patterns import MATCH, find_all, occurs, spans_of
from agenttool_otel.redaction.plausibility import has_letter_sequence
from agenttool_otel.redaction.types import Span
from agenttool_otel.redaction.words import byte_words, words

_EMAIL: Final = r"[A-Za-z0-9._%+'-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,6}[A-Za-z]{2,24}"
# in groups of three at least, as cards are printed; a dump of bytes has groups of two
_CARD: Final = r"\b(?:\d{13,19}|\d{3,6}(?:[ -]\d{3,7}){1,4})\b"
_IBAN: Final = r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b"
_INTERNATIONAL: Final = r"\+[1-9]\d{0,2}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{1,4}(?:[ .-]?\d{2,4}){2,5}\b"
_NORTH_AMERICAN: Final = r"\(\d{3}\) ?\d{3}[-. ]\d{4}\b|\b\d{3}-\d{3}-\d{4}\b"
_PHONE: Final = f"{_INTERNATIONAL}|{_NORTH_AMERICAN}"
_DIGITS: Final = r"\d{2}[\d -]{0,3}\d|\(\d{3}\)"

_RESERVED: Final = tuple(sorted(byte_words("reserved_domains")))
_NOT_TLDS: Final = byte_words("not_tlds")
_ROLES: Final = byte_words("role_addresses")
_INVENTED: Final = re.compile(
    rb"(?:^|[._+-])(?:fake|example|dummy|test|sample|noreply|no-reply)\d*(?:$|[._+-])"
)
_GOES_ON: Final = re.compile(rb"[\w@]|-\w|:[/~]")
# who wrote something is published with it: commits, packages, keys, notices
_AUTHOR_FIELDS: Final = (
    rb"authors?|committer|maintainers?|packager|tagger|[a-z]-by|\buid|copyright"
    rb"|(?:resent-)?message-id|in-reply-to|references"
)
_AUTHOR: Final = re.compile(rb"(?i)(?:" + _AUTHOR_FIELDS + rb")\b[^\n<>@]{0,64}<\Z")
# a place of work's number
HOT_LINES: Final = rb"(?:hot|help|support) ?line"
"""``hotline``"""
RECEPTIONS: Final = (
    rb"reception|front desk|switchboard|help ?desk|service ?desk|office|headquarters"
    rb"|empfang|zentrale"
)
"""``Reception: +49 30 901820``"""
CUSTOMER_SERVICES: Final = rb"head of sales|call cent(?:er|re)|customer (?:service|care|support)"
"""``customer care``"""
_DESK: Final = (
    rb"(?i)\b" + HOT_LINES + rb"|\b(?:" + RECEPTIONS + rb"|" + CUSTOMER_SERVICES + rb")\b"
)
ROLE_USERS: Final = (
    rb"info|sales|service|support|contact|kontakt|hello|office|helpdesk|servicedesk|vertrieb"
)
"""``info@``"""
DEPARTMENT_USERS: Final = rb"orders|billing|accounts|marketing|press|hr|jobs"
"""``billing@``"""
_DESK_ADDRESS: Final = rb"\b(?:" + ROLE_USERS + rb"|" + DEPARTMENT_USERS + rb")@[\w-]+\."
_DESK_BEFORE: Final = re.compile(_DESK + rb"|" + _DESK_ADDRESS)
_DESK_BEHIND: Final = re.compile(rb"(?i)[^\n@]{0,32}" + _DESK_ADDRESS)
# free calls, and +1 555 0100 to 0199, which is set apart for films
_FREE_OR_FILM: Final = re.compile(
    rb"\+1[ .-]?\(?(?:8(?:00|33|44|55|66|77|88)\b|\d{3}\)?[ .-]?555[ .-]?01)"
    rb"|\+\d\d[ .-]?\(?0?\)?800\b"
)
_MADE_UP: Final = rb"test|sandbox|sample|example|dummy|fake|demo"
_NUMBERS: Final = rb"(?:card|iban|account|number|pan|visa)s?(?:[ _-](?:number|no))?"
_SAMPLE_BEFORE: Final = re.compile(
    rb"(?i)\b(?:(?:" + _MADE_UP + rb")[ _-](?:\w+[ _-])?" + _NUMBERS + rb"|"
    rb"placeholder|example|e\.g|sample|format)\W{1,4}\Z"
)
_SAMPLE_BEHIND: Final = re.compile(
    rb"(?i)\W{1,3}(?:as|is) (?:a |an |the )?(?:" + _MADE_UP + rb")\b"
)
_IBAN_LENGTHS: Final = {pair[:2]: int(pair[3:]) for pair in words("iban_lengths")}
_CALLING_CODES: Final = words("calling_codes")
_NEWLINE: Final = 10
_LINE_BEFORE: Final = 40
_AUTHOR_BEFORE: Final = 96


def card_number(digits: str) -> bool:
    """Whether digits are a payment card's number: issuer range, length and check digit
    (ISO/IEC 7812).
    """
    if not _is_of_issuer(digits):
        return False
    return len(set(digits)) > 1 and luhn(digits)


def _is_of_issuer(digits: str) -> bool:
    """Whether the first digits are an issuer's, and the length is one of its cards."""
    size = len(digits)
    two = int(digits[:2])
    three = int(digits[:3])
    four = int(digits[:4])
    if digits[0] == "4" and size in (13, 16, 19):  # Visa
        return True
    if size == 16:
        if 51 <= two <= 55 or 2221 <= four <= 2720:  # Mastercard
            return True
        if four == 6011 or two == 65 or 644 <= three <= 649:  # Discover
            return True
    if size == 15:
        return two in (34, 37)  # American Express
    if size == 14:
        return two in (36, 38, 39) or 300 <= three <= 305  # Diners Club
    if 16 <= size <= 19:
        return 3528 <= four <= 3589 or two == 62  # JCB, UnionPay
    return False


def iban(text: str) -> bool:
    """Whether it is an IBAN: the country's length and the check digits (ISO 13616, mod 97)."""
    compact = text.replace(" ", "")
    country = compact[:2]
    if _IBAN_LENGTHS.get(country) != len(compact):
        return False
    moved = compact[4:] + compact[:4]
    digits = "".join(str(int(char, 36)) for char in moved)
    return int(digits) % 97 == 1


def find_personal_data(data: bytes, lowered: bytes) -> Iterable[Span]:
    """Spans of e-mail addresses, cards, IBANs, telephone numbers and national ids."""
    if b"@" in data:
        yield from _find_addresses(data)
    if not occurs(_DIGITS, data):
        return
    yield from _find_cards(data)
    yield from _find_ibans(data)
    if b"+" in data or b"-" in data or b"(" in data:
        yield from _find_phones(data)
    yield from find_id_numbers(data)


def _find_addresses(data: bytes) -> Iterable[Span]:
    for match in find_all(_EMAIL, data, 2 * MATCH):
        start = match.start()
        end = match.end()
        # a user of a host: postgres://bob@db.internal
        if data[max(0, start - 3) : start] == b"://":
            continue
        if not _is_personal(match.group().lower()):
            continue
        if _GOES_ON.match(data, end):
            continue
        if _AUTHOR.search(data, max(0, start - _AUTHOR_BEFORE), start):
            continue
        yield Span(start, end, "email", "pii:email")


def _find_cards(data: bytes) -> Iterable[Span]:
    for match in find_all(_CARD, data):
        start, end = spans_of(match, 0)[0]
        digits = data[start:end].translate(None, b" -").decode()
        if not card_number(digits):
            continue
        if in_longer_number(data, start, end) or _is_sample(data, start, end):
            continue
        yield Span(start, end, "payment_card", "pii:card")


def _find_ibans(data: bytes) -> Iterable[Span]:
    for match in find_all(_IBAN, data):
        start, end = spans_of(match, 0)[0]
        if iban(data[start:end].decode()) and not _is_sample(data, start, end):
            yield Span(start, end, "iban", "pii:iban")


def _find_phones(data: bytes) -> Iterable[Span]:
    for match in find_all(_PHONE, data):
        start, end = spans_of(match, 0)[0]
        if _is_phone(data, start, end) and not _is_sample(data, start, end):
            yield Span(start, end, "phone", "pii:phone")


def _is_personal(address: bytes) -> bool:
    """Whether an address in lower case is a person's: not info@, not of example.com."""
    user, _, domain = address.rpartition(b"@")
    if user.strip(b".'") in _ROLES:
        return False
    if domain.rpartition(b".")[2] in _NOT_TLDS:
        return False
    if _INVENTED.search(user):
        return False
    return not any(domain == name or domain.endswith(b"." + name) for name in _RESERVED)


def _is_sample(data: bytes, start: int, end: int) -> bool:
    """Whether the text beside a number calls it made up: ``test card: 4111...``."""
    if _SAMPLE_BEFORE.search(data, max(0, start - 48), start):
        return True
    return _SAMPLE_BEHIND.match(data, end, end + 32) is not None


def _is_phone(data: bytes, start: int, end: int) -> bool:
    """Whether what has the form of a telephone number is a person's."""
    if in_longer_number(data, start, end) or has_letter_sequence(data[start:end]):
        return False
    if _FREE_OR_FILM.match(data, start, end) or _is_of_a_desk(data, start, end):
        return False
    # ++ of EDIFACT
    if data.endswith(b"++", 0, start + 1):
        return False
    text = data[start:end].decode()
    digits = re.sub(r"\D", "", text)
    if text[0] != "+":
        return _is_north_american(digits)
    if not 9 <= len(digits) <= 15:
        return False
    if not any(digits[:size] in _CALLING_CODES for size in (1, 2, 3)):
        return False
    if start == 0 and end == len(data):
        return True
    # a line of a diff starts with + as well
    at_line_start = start == 0 or data[start - 1] == _NEWLINE
    return not (at_line_start and text[1:].isdigit())


def _is_of_a_desk(data: bytes, start: int, end: int) -> bool:
    """Whether the text beside a number calls it a place of work's: ``reception: ...``."""
    before = max(0, start - _LINE_BEFORE)
    line = max(data.rfind(b"\n", before, start), before)
    if _DESK_BEFORE.search(data, line, start):
        return True
    return _DESK_BEHIND.match(data, end, end + 96) is not None


def _is_north_american(digits: str) -> bool:
    """Whether digits are a number of the North American Numbering Plan: N11 is no area."""
    if len(digits) != 10:
        return False
    area = digits[:3]
    exchange = digits[3:6]
    if area[0] in "01" or exchange[0] in "01":
        return False
    return area[1:] != "11"


DETECTOR: Final = BuiltIn(find=find_personal_data)
