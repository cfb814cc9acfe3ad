"""The types of redaction: what was found, what was done, and how it is configured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from agenttool_otel.redaction.state import RedactionState

ALL_DETECTORS: Final = (
    "tokens",
    "private_keys",
    "urls",
    "headers",
    "assignments",
    "flags",
    "phrases",
    "statements",
    "pairs",
    "tables",
    "pii",
    "encoded",
)
"""Names of the built-in value detectors, in the order in which they run."""

Path = tuple[str | int, ...]
"""The keys and indexes that lead from a value to one within it."""

EVERYTHING: Final = ("", "*", "/", "/*", "$")
"""Pointers that name a value as a whole."""


DETECTED: Final = "detected"
"""What a policy names to let detectors look inside of a whole result, which keeps its structure."""


def names_everything(pointers: Iterable[str]) -> bool:
    """Whether a contract's or a policy's pointers name the value as a whole."""
    return any(pointer.strip().removeprefix("#") in EVERYTHING for pointer in pointers)


class Span(NamedTuple):
    """One find in a text.

    Attributes:
        start: first byte of what has to go, in the UTF-8 form of the text.
        end: one past the last byte.
        kind: what it is, of low cardinality (``jwt``, ``email``, ``password`` ...).
        rule: which rule found it.
    """

    start: int
    end: int
    kind: str
    rule: str


@runtime_checkable
class Detector(Protocol):
    """Anything that finds what must not leave. Plain and stateless: bytes in, spans out."""

    @property
    def name(self) -> str:
        """Short name; it is what ``Redaction.rule`` holds when the detector failed."""

    def find(self, data: bytes, lowered: bytes) -> Iterable[Span]:
        """Find secrets.

        Args:
            data: UTF-8 text (lone surrogates encoded as they are).
            lowered: the same bytes with ASCII letters in lower case, for cheap keyword tests.

        Returns:
            Spans in any order; they may overlap.
        """


class Redaction(NamedTuple):
    """One fact about what was removed; it never holds the value, nor its length.

    Attributes:
        kind: what was there, of low cardinality.
        pointer: JSON pointer (RFC 6901) of the value that was changed; empty for the whole value.
        rule: the rule, key or pointer pattern that asked for it.
        count: how many places within that value.
    """

    kind: str
    pointer: str
    rule: str
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody needs here


class Redacted(NamedTuple):
    """A value that may leave the process, and what was taken out of it.

    Attributes:
        value: JSON-like data. Where nothing had to change it may be the very object that was passed
          in.
        redactions: what was removed, in order of first appearance.
        state: ``none``, ``redacted``, or ``failed`` when a detector broke and content was dropped
          for that.
    """

    value: Any
    redactions: tuple[Redaction, ...]
    state: RedactionState


@dataclass(frozen=True, slots=True)
class RedactionSettings:
    """How a redactor works. Immutable; every default is the safe one.

    Attributes:
        enabled: False switches value and key rules off; ``pointers`` are still honoured, because a
            contract or a policy asked for these.
        detectors: built-in detectors that run, a subset of ``ALL_DETECTORS``.
        key_names: whether key-name rules look at decoded structure (mappings, header pairs,
          argument lists).
        extra_keys: further key names (whole names, any case or separator) whose values are always
          removed.
        extra_patterns: further ``(kind, regular expression)`` pairs; group 1 is removed where there
            is one, the whole match otherwise. RE2 syntax.
        extra_detectors: further detectors (see ``Detector``); run after the built-in ones.
        allow: literal values that are never removed by value or key rules (test fixtures, public
          keys).
        allow_patterns: regular expressions of such values; the whole value has to match.
        pii: whether personal data counts: e-mail addresses (not role and example addresses),
            telephone numbers, payment cards, IBANs and national ids whose check digits hold.
        kept_kinds: kinds that stay though they are found (``email``, ``phone``, ``iban``): of what is
          shown to the person who decides about it. With ``iban`` also numbers of bank accounts that
          are known by their key.
        byte_budget: UTF-8 bytes of text that one value may cost; None for no bound. What lies
            beyond was not scanned and is therefore not passed on: a typed placeholder takes its
            place.
        max_depth: deepest nesting that is kept.
        max_nodes: most containers and scalars that are kept.
        placeholder: what stands in for a removed value; ``{kind}`` must occur in it.
        pseudonym_key: secret bytes (16 or more) for stable pseudonyms: equal values get equal
            placeholders, made with HMAC-SHA-256, so that a trace can be followed without the value.
            None: no pseudonyms.

    Raises:
        ValueError: for an unknown detector, a placeholder without ``{kind}``, a short key or a
          negative bound.
    """

    enabled: bool = True
    detectors: tuple[str, ...] = ALL_DETECTORS
    key_names: bool = True
    extra_keys: tuple[str, ...] = ()
    extra_patterns: tuple[tuple[str, str], ...] = ()
    extra_detectors: tuple[Detector, ...] = ()
    allow: frozenset[str] = frozenset()
    allow_patterns: tuple[str, ...] = ()
    pii: bool = True
    kept_kinds: frozenset[str] = frozenset()
    byte_budget: int | None = 1 << 20
    max_depth: int = 64
    max_nodes: int = 200_000
    placeholder: str = "[redacted:{kind}]"
    pseudonym_key: bytes | None = None

    def __post_init__(self) -> None:
        unknown = [name for name in self.detectors if name not in ALL_DETECTORS]
        if unknown:
            raise ValueError(f"unknown detectors {unknown}; known are {list(ALL_DETECTORS)}")
        # "{kind}" alone would be a word as any other: a second pass could not recognise it
        around = self.placeholder.replace("{kind}", "").strip()
        if "{kind}" not in self.placeholder or len(around) < 2:
            raise ValueError(
                "placeholder must contain {kind} and at least two characters around it"
            )
        # a short key is found by trying all of them
        if self.pseudonym_key is not None and len(self.pseudonym_key) < 16:
            raise ValueError("pseudonym_key must have at least 16 bytes")
        is_negative = self.byte_budget is not None and self.byte_budget < 0
        if is_negative or self.max_depth < 1 or self.max_nodes < 1:
            raise ValueError(
                "byte_budget must not be negative, max_depth and max_nodes must be at least 1"
            )
