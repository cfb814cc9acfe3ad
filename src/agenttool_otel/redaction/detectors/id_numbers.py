"""Numbers of persons: national ids whose check digits hold, and those and telephone numbers that
only a label betrays.

Nine or eleven digits are anything; behind ``BSN:`` they are one person's, if the check digits hold.
Check digits are those of python-stdnum.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Final

from agenttool_otel.redaction.patterns import find_all, occurs, spans_of
from agenttool_otel.redaction.types import Span

_DOUBLED: Final = str.maketrans("0123456789", "0246813579")
"""The digit sum of twice each digit: 6 becomes 12, which is 3."""
_NEAR_BEFORE: Final = 80
_NEAR_BEHIND: Final = 40


def luhn(digits: str) -> bool:
    """Whether the Luhn check digit holds (ISO/IEC 7812-1, Annex B)."""
    backwards = digits[::-1]
    plain = sum(map(int, backwards[::2]))
    doubled = sum(map(int, backwards[1::2].translate(_DOUBLED)))
    return (plain + doubled) % 10 == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class IdNumber:
    """One kind of number with a form of its own.

    Attributes:
        rule: stable name.
        pattern: RE2; the whole match is the number.
        check: module of python-stdnum that has its check digits; it is loaded when the first such
            number is met. Empty: there are none.
        unless: what fits the pattern and is no such number.
        near: what has to stand beside it.
    """

    rule: str
    pattern: str
    check: str = ""
    unless: re.Pattern[str] | None = None
    near: re.Pattern[str] | None = None

    def fits(self, text: str) -> bool:
        """Whether a text that matches the pattern is such a number."""
        return _fits(text, self.check, self.unless)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledNumber:
    """One kind of number that is known by its label: nine to thirteen digits behind it.

    Attributes:
        rule: stable name.
        label: RE2, without regard to case.
        check: module of python-stdnum that has its check digits. Empty: there are none.
        kind: what is removed.
        length: how many digits it has; 0: as many as its check digits allow.
        unless: what fits and is no such number.
    """

    rule: str
    label: str
    check: str = ""
    kind: str = "national_id"
    length: int = 0
    unless: re.Pattern[str] | None = None

    @property
    def pattern(self) -> str:
        """The label and the number, as group 1."""
        return f"(?i){self.label}{AFTER_LABEL}"

    def fits(self, digits: str) -> bool:
        """Whether the digits behind the label are such a number."""
        if self.length and len(digits) != self.length:
            return False
        return _fits(digits, self.check, self.unless)


def _fits(text: str, check: str, unless: re.Pattern[str] | None) -> bool:
    # 123-45-6780 is an example's
    if unless is not None and unless.match(text):
        return False
    if not check:
        return True
    # stdnum.us.ssn
    module = import_module(f"stdnum.{check}")
    return bool(module.is_valid(text))


AFTER_LABEL: Final = r"[^\r\n\d:]{0,24}[:.]?\s{0,3}\(?(\d(?:[ .-]?\d){8,12})\b"
"""What stands behind a label: nine to thirteen digits, as group 1."""

_TELEPHONE: Final = r"\bt(?:e|é)l(?:(?:e|é)ph?on[eo]?|efon)?\b"
_DEVICES: Final = r"\bphone\b|\bmobile?\b|\bhandy|\bportable\b|\bm(?:o|ó)vil\b|\bcell\b|\bfax\b"
CALL: Final = r"\b(?:call(?:s|ed|ing)?|ring|text|reach(?:ed|able)?|dial)\b"
"""``reachable``, ``dial``"""
PERSON_AT: Final = r"(?: (?:me|us|him|her|them|you))?(?: back)? (?:at|on|under|via)\b"
"""`` me back at``, `` under``"""
_CALL_ME_AT: Final = CALL + PERSON_AT
_GERMAN: Final = "r(?:ü|ue)ckruf|erreichbar|anrufen"
_ROMANCE: Final = r"appele[rz]\b|joindre\b|ll(?:a|á)m\w+ al\b|chiamar\w+ al\b"
_DUTCH: Final = r"bel (?:me|ons)\b"
PHONE_LABEL: Final = rf"(?:{_TELEPHONE}|{_DEVICES}|\bwhatsapp\b|rufnummer|{_CALL_ME_AT}|{_GERMAN}|{_ROMANCE}|{_DUTCH})"
"""What announces a telephone number."""

_LABELLED: Final = (
    LabelledNumber(
        rule="nl_bsn",
        label=r"\b(?:bsn|burgerservicenummer)\b",
        check="nl.bsn",
    ),
    LabelledNumber(
        rule="pl_pesel",
        label=r"\bpesel\b",
        check="pl.pesel",
    ),
    LabelledNumber(
        rule="de_steuer_id",
        label=r"\b(?:steuer[- ]?id\w*|steuer-?identifikationsnummer|idnr)\b",
        check="de.idnr",
    ),
    LabelledNumber(
        rule="tr_kimlik",
        label=r"\b(?:kimlik|tckn|tc no)\b",
        check="tr.tckimlik",
    ),
    LabelledNumber(
        rule="uk_nhs",
        label=r"\bnhs\b",
        check="gb.nhs",
    ),
    LabelledNumber(
        rule="ca_sin",
        label=r"\b(?:sin|social insurance)\b",
        check="luhn",
        length=9,
    ),
    LabelledNumber(
        rule="au_tfn",
        label=r"\b(?:tfn|tax file)\b",
        check="au.tfn",
        length=9,
    ),
    LabelledNumber(
        rule="phone_named",
        label=PHONE_LABEL,
        kind="phone",
        # no leading zero, too long, or of two digits only
        unless=re.compile(r"[^0]|.{13}|(.)\1*(?:(.)(?:\1|\2)*)?\Z"),
    ),
)
LABELS: Final = "|".join(number.label for number in _LABELLED)
"""What a text has in it where a number with a label could stand, as a regular expression."""
_ANY_LABELLED: Final = f"(?i)(?:{LABELS}){AFTER_LABEL}"

_FORMS: Final = r"\bssn|social|tax ?(?:id|payer)"
_PERSON: Final = (
    r"\b(?:w-?[249]|1099|dob|born|birth|patient|employee|applicant|borrower|spouse|dependents?"
    r"|citizen|claimant|name)\b"
)
THINGS: Final = r"\bpart|teil|\bsku|order|bestell|arti[ck]|product|produkt|\bitem|model"
"""``part no. 123-45-6789``"""
NUMBERED_PAPERS: Final = r"invoice|rechnung|serial|batch|\blot\b|catalog"
"""``Rechnung 123-45-6789``"""
ORDERS_ELSEWHERE: Final = r"pièce|commande|pedido|ricambio|onderdeel|ticket"
"""``pedido 123-45-6789``"""
_OF_A_THING: Final = f"{THINGS}|{NUMBERED_PAPERS}|{ORDERS_ELSEWHERE}"
_ALONE: Final = (
    r"""(?:[\s\S]*(?:\n[ \t]*|["\x27,;|\t] ?))?"""
    r"""\d{3}-\d\d-\d{4} ?(?:$|["\x27,;|\t\r\n])"""
)
"""The number alone in its cell or on its line."""
NEAR_SSN: Final = rf"(?i){_FORMS}|{_PERSON}|\A(?![\s\S]*(?:{_OF_A_THING})){_ALONE}"
"""What stands beside a social security number: what it is, whose it is, or nothing; parts, orders
and tickets have numbers of the same form.
"""

_BARE: Final = (
    IdNumber(
        rule="us_ssn",
        pattern=r"\b\d{3}-\d{2}-\d{4}\b",
        check="us.ssn",
        near=re.compile(NEAR_SSN),
        unless=re.compile("123-45-6780"),
    ),
    IdNumber(
        rule="br_cpf",
        pattern=r"\b\d{3}\.\d{3}\.\d{3}-\d{2}\b",
        check="br.cpf",
        unless=re.compile(r"(\d)\1\1\.\1\1\1\."),
    ),
    IdNumber(
        rule="fr_nir",
        pattern=(
            r"\b[12] ?\d\d ?(?:0[1-9]|1[0-2]|[2-9]\d) ?"
            r"(?:\d\d|2[AB]) ?\d{3} ?\d{3} ?\d{2}\b"
        ),
        check="fr.nir",
    ),
    IdNumber(
        rule="es_dni",
        pattern=r"\b(?:\d{8}|[XYZ]\d{7})-?[A-HJ-NP-TV-Z]\b",
        check="es.nif",
    ),
    IdNumber(
        rule="uk_nino",
        pattern=r"\b[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] \d{2} \d{2} \d{2} [A-D]\b",
        unless=re.compile("BG|GB|KN|NK|NT|TN|ZZ"),
    ),
    IdNumber(
        rule="in_aadhaar",
        pattern=r"\b[2-9]\d{3}[ -]\d{4}[ -]\d{4}\b",
        check="in_.aadhaar",
    ),
    IdNumber(
        rule="it_codice_fiscale",
        pattern=r"\b[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z]\b",
        check="it.codicefiscale",
    ),
    IdNumber(
        rule="fi_hetu",
        pattern=r"\b\d{6}[-+A]\d{3}[0-9A-FHJ-NPR-Y]\b",
        check="fi.hetu",
    ),
)
_ANY_BARE: Final = "|".join(f"(?:{number.pattern})" for number in _BARE)


def find_id_numbers(data: bytes) -> Iterable[Span]:
    """Spans of the numbers, without their labels."""
    if occurs(_ANY_LABELLED, data):
        yield from _find_labelled(data)
    if occurs(_ANY_BARE, data):
        yield from _find_bare(data)


def _find_labelled(data: bytes) -> Iterable[Span]:
    for number in _LABELLED:
        for match in find_all(number.pattern, data):
            start, end = match.span(1)
            # BSN: 1112.22.333
            digits = re.sub(rb"\D", b"", data[start:end])
            if number.fits(digits.decode()):
                yield Span(start, end, number.kind, "pii:" + number.rule)


def _find_bare(data: bytes) -> Iterable[Span]:
    for number in _BARE:
        for match in find_all(number.pattern, data):
            start, end = spans_of(match, 0)[0]
            if in_longer_number(data, start, end):
                continue
            if not number.fits(data[start:end].decode()):
                continue
            around = data[max(0, start - _NEAR_BEFORE) : end + _NEAR_BEHIND]
            if number.near is None or number.near.search(around.decode("utf-8", "replace")):
                yield Span(start, end, "national_id", "pii:" + number.rule)


def in_longer_number(data: bytes, start: int, end: int) -> bool:
    """Whether digits go on beyond a dot, dash or slash: a decimal fraction, a UUID, a path."""
    before = data[max(0, start - 2) : start]
    # 0.123-45-6789
    if before[-1:] == b"." and before[:1].isdigit():
        return True
    # 4bf92f35-123-45-6789
    if len(before) == 2 and before[1:] in (b"-", b"/", b"_") and before[:1].isalnum():
        return True
    behind = data[end : end + 2]
    return behind[:1] in (b".", b"-", b"_") and behind[1:].isalnum()
