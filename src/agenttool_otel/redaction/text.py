"""Text: all readings, all value detectors, one replacement."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final, NamedTuple

from agenttool_otel.redaction import json_text
from agenttool_otel.redaction.assignments import AssignmentDetector
from agenttool_otel.redaction.decoded import escaped_view, html_view, percent_view
from agenttool_otel.redaction.encoded import EncodedDetector
from agenttool_otel.redaction.flags import FlagDetector
from agenttool_otel.redaction.gate import gate
from agenttool_otel.redaction.headers import HeaderDetector
from agenttool_otel.redaction.joined import (
    concatenated_view,
    joined_view,
    line_start,
    narrowed_view,
    uncoloured_view,
    unwrapped_view,
    without_breaks,
    wrapped_ends,
)
from agenttool_otel.redaction.keys import normal_name
from agenttool_otel.redaction.pairs import PairDetector
from agenttool_otel.redaction.patterns import compile_pattern, effective_engine
from agenttool_otel.redaction.phrases import PhraseDetector
from agenttool_otel.redaction.pii import PiiDetector, card_number
from agenttool_otel.redaction.placeholders import Placeholders, omitted
from agenttool_otel.redaction.private_keys import PrivateKeyDetector
from agenttool_otel.redaction.spread import Cut, cuts, edges, whole
from agenttool_otel.redaction.statements import StatementDetector
from agenttool_otel.redaction.tables import TableDetector
from agenttool_otel.redaction.tokens import TokenDetector
from agenttool_otel.redaction.types import Detector, RedactionSettings, Span
from agenttool_otel.redaction.urls import UrlDetector
from agenttool_otel.redaction.views import View, needs_normalising, normalised_view

__all__ = ["DetectorFailed", "TextRedactor"]

_ROUNDS: Final = 5
_OVERLAP: Final = 4096
_PLACES: Final = 2000
_TOKEN_REACH: Final = 2000
_BEFORE_PLACE: Final = 96
_MOST_FINDS: Final = 20_000
_PERSONAL: Final = frozenset(("email", "phone", "national_id", "iban"))

_DECODED: Final = (percent_view, escaped_view, html_view, uncoloured_view, unwrapped_view, narrowed_view)

Finds = list[tuple[str, str]]
"""(kind, rule) of each thing that was removed from one text."""
JsonRules = Callable[[Any, int], dict[tuple[str | int, ...], tuple[str, str, int]]]
"""Key rules on parsed JSON: path to (kind, rule, characters that stay in front)."""


class DetectorFailed(Exception):
    """A detector raised; its name is the only thing that is told."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.detector = name


class _PatternDetector:
    """The user's own patterns."""

    name = "extra_patterns"

    def __init__(self, settings: RedactionSettings) -> None:
        engine = effective_engine(settings.engine)
        self._patterns = tuple((kind, compile_pattern(pattern, engine)) for kind, pattern in settings.extra_patterns)

    def find(self, data: bytes, lowered: bytes) -> list[Span]:
        found = []
        for index, (kind, pattern) in enumerate(self._patterns):
            for match in pattern.finditer(data):
                try:
                    start, end = match.start(1), match.end(1)
                except IndexError:
                    start, end = -1, -1
                if start < 0:
                    start, end = match.start(), match.end()
                if end > start:
                    found.append(Span(start, end, kind, f"extra:{index}"))
        return found


class _Entry(NamedTuple):
    detector: Detector
    joined: bool


class TextRedactor:
    """Redacts text. Immutable after construction; safe to share between threads."""

    def __init__(self, settings: RedactionSettings, json_rules: JsonRules) -> None:
        """Build the detectors.

        Args:
            settings: what runs.
            json_rules: key rules for JSON inside of text (given by the redactor, which owns them).
        """
        engine = effective_engine(settings.engine)
        extra_keys = frozenset(normal_name(name) for name in settings.extra_keys)
        self.placeholders = Placeholders(settings)
        self._json_rules = json_rules
        self._allow = frozenset(value.encode("utf-8", "surrogatepass") for value in settings.allow)
        self._allow_patterns = tuple(
            compile_pattern(rf"\A(?:{pattern})\z", engine) for pattern in settings.allow_patterns
        )
        builders: dict[str, Callable[[], Detector]] = {
            "tokens": lambda: _tokens(settings),
            "private_keys": lambda: PrivateKeyDetector(engine),
            "urls": lambda: UrlDetector(engine),
            "headers": lambda: HeaderDetector(engine),
            "assignments": lambda: AssignmentDetector(engine, extra_keys=extra_keys, pii=settings.pii),
            "flags": lambda: FlagDetector(engine),
            "phrases": lambda: PhraseDetector(engine),
            "statements": lambda: StatementDetector(engine),
            "pairs": lambda: PairDetector(engine, pii=settings.pii),
            "tables": lambda: TableDetector(engine, pii=settings.pii),
            "pii": lambda: PiiDetector(engine),
        }
        names = [name for name in settings.detectors if name in builders and (settings.pii or name != "pii")]
        own: list[Detector] = [builders[name]() for name in names] if settings.enabled else []
        if settings.extra_patterns and settings.enabled:
            own.append(_PatternDetector(settings))
        self._inner: tuple[Detector, ...] = tuple(own)
        extra: tuple[Detector, ...] = settings.extra_detectors if settings.enabled else ()
        encoded: tuple[Detector, ...] = ()
        if settings.enabled and "encoded" in settings.detectors:
            encoded = (EncodedDetector(engine, self._find_inner),)
        self._all: tuple[Detector, ...] = (*self._inner, *extra, *encoded)
        self._joined: TokenDetector | None = None
        if settings.enabled and "tokens" in settings.detectors:
            self._joined = TokenDetector(engine, joined_only=True)
        self._keys = tuple(detector for detector in own if detector.name == "private_keys")
        # a foreign detector may find anything, so then nothing is gated
        patterns = tuple(pattern for _, pattern in settings.extra_patterns)
        self._gate = None if extra else gate(engine, patterns, tuple(_spellings(settings.extra_keys)))
        self._order = {detector.name: index for index, detector in enumerate(self._all)}
        self._pii = settings.pii and "pii" in settings.detectors and settings.enabled

    @property
    def active(self) -> bool:
        """Whether there is any detector."""
        return bool(self._all)

    def suspicious(self, text: str) -> bool:
        """Whether a text could hold anything; False is certain, True is not."""
        if not self._all:
            return False
        if self._gate is None:
            return True
        data = text.encode("utf-8", "surrogatepass")
        if self._gate.search(data) is not None:
            return True
        return len(data) != len(text) and needs_normalising(text)

    def redact(self, text: str, depth: int = 0) -> tuple[str, Finds]:
        """Redact one text until nothing more is found.

        Args:
            text: any text.
            depth: how many JSON strings it is inside of.

        Returns:
            The text and what was removed.

        Raises:
            DetectorFailed: a detector raised.
        """
        finds: Finds = []
        if not self.suspicious(text):
            return text, finds
        for _ in range(_ROUNDS):
            changed = self._json(text, finds, depth)
            changed = self._replace(changed, finds)
            if changed == text:
                break
            text = changed
            if len(finds) > _MOST_FINDS:  # nothing that people or programs write on purpose; and work must stay bounded
                finds.append(("too_many", "finds"))
                return omitted("too_many_secrets"), finds[-1:]
        return text, finds

    def cut(self, text: str, budget: int) -> str:
        """The part of a text that lies within a byte budget, never ending inside of a token or of a find.

        Args:
            text: a text of more than ``budget`` bytes.
            budget: bytes.
        """
        data = text[: budget + _OVERLAP].encode("utf-8", "surrogatepass")
        if len(data) <= budget:
            return text
        window = data[: budget + _OVERLAP]
        end = budget
        while end > 0 and not window[end - 1 : end].isspace() and not window[end : end + 1].isspace():
            end -= 1
        for span in sorted(self.spans(window.decode("utf-8", "ignore")), reverse=True):
            if span.start < end < span.end:
                end = span.start
        return window[:end].decode("utf-8", "ignore")

    def spans(self, text: str) -> list[Span]:
        """Everything that is to go, in the text's UTF-8 bytes, merged and in order."""
        data = text.encode("utf-8", "surrogatepass")
        found: list[tuple[int, Span]] = []
        self._run(self._all, View_of(data), found)
        normalised = normalised_view(text)
        if normalised is not None:
            self._run(self._all, normalised, found)
        for make in _DECODED:
            decoded = make(data)
            if decoded is not None:
                self._run(self._inner, decoded, found)
        if self._joined is not None:
            concatenated = concatenated_view(data)
            if concatenated is not None:
                self._run((self._joined,), concatenated, found)
            for joined in self._joined_views(data):
                self._run((self._joined,), joined, found)
        return self._merge(data, found)

    def suspicious_together(self, strings: Sequence[str]) -> bool:
        """Whether strings of a value could hold a secret together of which none holds enough to be suspicious.

        Args:
            strings: the strings, in any order that keeps those of a list in theirs.
        """
        if len(strings) < 2:
            return False
        bare = "".join(strings).lower().encode("utf-8", "surrogatepass")
        if b"private key" in bare:
            return True
        if self._joined is None or not self._joined.keywords.occurs(bare):
            return False
        # most of what is found here is a keyword that any text is full of
        return self._joined.keywords.places(bare, 0) is None or bool(self.spread(strings))

    def spread(self, pieces: Sequence[str]) -> list[Cut]:
        """The parts of secrets that are spread over strings which follow each other.

        Args:
            pieces: the strings.

        Raises:
            DetectorFailed: a detector raised.
        """
        raw = [piece.encode("utf-8", "surrogatepass") for piece in pieces]
        found: list[Cut] = []
        if any(b"-----" in piece for piece in raw):
            found.extend(chain.from_iterable(cuts(whole(raw), b"", partial(self._find_by, self._keys))))
        tokens = edges(raw)
        for separator in (b"", b"\n"):  # parts of a text, or its lines
            taken = {cut.place for cut in found}
            for parts in cuts(tokens, separator, self._find_joined):
                if not any(cut.place in taken for cut in parts):
                    found.extend(parts)
        return found

    def _find_by(self, detectors: tuple[Detector, ...], data: bytes, lowered: bytes | None = None) -> list[Span]:
        found: list[tuple[int, Span]] = []
        self._run(detectors, View_of(data, lowered), found)
        return self._merge(data, found)

    def _find_joined(self, data: bytes) -> list[Span]:
        if self._joined is None or not self._joined.keywords.occurs(data.lower()):
            return []
        found: list[tuple[int, Span]] = []
        self._run((self._joined,), View_of(data), found)
        for joined in self._joined_views(data):
            self._run((self._joined,), joined, found)
        return self._merge(data, found)

    def card(self, number: int) -> bool:
        """Whether an integer is a payment card's number."""
        return self._pii and 10**12 <= number < 10**19 and card_number(str(number))

    def _joined_views(self, data: bytes) -> Iterator[View]:
        """Readings without line breaks, of the stretches where a known token begins shortly before a break."""
        if self._joined is None or not any(mark in data for mark in (b"\n", b"\\n", b"\r", b"\\r")):
            return
        index = self._joined.keywords
        lowered = data.lower()
        places = index.places(lowered, _PLACES)
        bare = without_breaks(lowered)
        bare_places = None if places is None else index.places(bare, len(places))
        if places is None or bare_places is None or len(bare_places) != len(places):
            view = joined_view(data)  # too many places, or a break stands inside of a token's prefix
            if view is not None:
                yield view
            return
        for place in places:
            # not from before a break: without it, the line before would run into the token
            start = line_start(data, max(0, place - _BEFORE_PLACE), place)
            for stop in wrapped_ends(data, place, place + _TOKEN_REACH):
                if (view := joined_view(data, start, stop)) is not None:
                    yield view

    def _run(self, detectors: tuple[Detector, ...], view: View, found: list[tuple[int, Span]]) -> None:
        original = view.name == ""
        for detector in detectors:
            order = self._order.get(detector.name, 0)
            try:
                for span in detector.find(view.data, view.lowered):
                    if len(found) > _MOST_FINDS:
                        return
                    if original:
                        found.append((order, span))
                    elif 0 <= span.start < span.end <= len(view.data) and (not view.joins or view.changed(span)):
                        found.append((order, view.source(span)))
            except Exception as error:
                raise DetectorFailed(detector.name) from error

    def _find_inner(self, data: bytes, lowered: bytes) -> list[Span]:
        if self._gate is not None and self._gate.search(data) is None:
            return []
        return self._find_by(self._inner, data, lowered)

    def _merge(self, data: bytes, found: list[tuple[int, Span]]) -> list[Span]:
        if not found:
            return []
        existing = [match.span() for match in self.placeholders.pattern.finditer(data)]
        kept = [
            (order, span)
            for order, span in found
            if 0 <= span.start < span.end <= len(data) and not self._spared(data, span, existing)
        ]
        kept.sort(key=lambda item: (item[1].start, item[0]))
        merged: list[tuple[int, Span]] = []
        for order, span in kept:
            if merged and span.start < merged[-1][1].end:
                before_order, before = merged[-1]
                if span.kind in _PERSONAL and before_order < order and span.end > before.end:
                    continue
                if before.kind in _PERSONAL and order < before_order:
                    merged[-1] = (order, span)
                    continue
                first = (
                    before if (before_order, -before.end + before.start) <= (order, -span.end + span.start) else span
                )
                end = max(before.end, span.end)
                merged[-1] = (min(order, before_order), Span(before.start, end, first.kind, first.rule))
            else:
                merged.append((order, span))
        return [span for _, span in merged]

    def _spared(self, data: bytes, span: Span, existing: list[tuple[int, int]]) -> bool:
        at = bisect_right(existing, (span.start, len(data))) - 1
        if at >= 0 and span.end <= existing[at][1]:
            return True
        value = data[span.start : span.end]
        if value in self._allow:
            return True
        return any(pattern.search(value) is not None for pattern in self._allow_patterns)

    def _replace(self, text: str, finds: Finds) -> str:
        spans = self.spans(text)
        if not spans:
            return text
        if len(spans) > _MOST_FINDS:
            finds.extend((span.kind, span.rule) for span in spans)
            return text + " "
        data = text.encode("utf-8", "surrogatepass")
        parts: list[bytes] = []
        at = 0
        for span in spans:
            parts.append(data[at : span.start])
            parts.append(self.placeholders.make(span.kind, data[span.start : span.end]).encode())
            finds.append((span.kind, span.rule))
            at = span.end
        parts.append(data[at:])
        return b"".join(parts).decode("utf-8", "surrogatepass")

    def _json(self, text: str, finds: Finds, depth: int) -> str:
        """Apply key rules and escapes inside of a text that is JSON as a whole."""
        if depth >= 3:
            return text
        parsed = json_text.loads(text)
        if parsed is None:
            return text
        hits = self._json_rules(parsed, depth)
        escapes = "\\" in text
        if not hits and not escapes:
            return text
        parts: list[str] = []
        at = 0
        for literal in json_text.literals(text, lambda path: escapes or path in hits):
            raw = text[literal.start : literal.end]
            new = self._literal(raw, hits.get(literal.path), finds, depth)
            if new is not None:
                parts.append(text[at : literal.start])
                parts.append(new)
                at = literal.end
        return "".join(parts) + text[at:] if parts else text

    def _literal(self, raw: str, hit: tuple[str, str, int] | None, finds: Finds, depth: int) -> str | None:
        if hit is not None:
            kind, rule, start = hit
            value = json.loads(raw)
            body = value if type(value) is str else raw
            encoded = body[start:].encode("utf-8", "surrogatepass")
            if self.placeholders.is_done(encoded) or encoded in self._allow:
                return None
            finds.append((kind, rule))
            return json.dumps(body[:start] + self.placeholders.make(kind, encoded), ensure_ascii=False)
        if raw[:1] != '"' or "\\" not in raw:
            return None
        value = json.loads(raw)
        new, inner = self.redact(value, depth + 1)
        if not inner:
            return None
        finds.extend(inner)
        return json.dumps(new, ensure_ascii=raw.isascii())


def View_of(data: bytes, lowered: bytes | None = None) -> View:
    """The text as it is, as a reading."""
    view = View.__new__(View)
    view.name = ""
    view.joins = False
    view.data = data
    view.lowered = data.lower() if lowered is None else lowered
    return view


def _tokens(settings: RedactionSettings) -> Detector:
    if settings.engine == "hyperscan":
        from agenttool_otel.redaction.hyperscan_tokens import HyperscanTokenDetector

        return HyperscanTokenDetector()
    return TokenDetector(effective_engine(settings.engine))


def _spellings(names: tuple[str, ...]) -> list[str]:
    """Ways to write a name that a case-blind search has to know: as given, and its last word."""
    words: list[str] = []
    for name in names:
        words.append(name)
        words.extend(part for part in re.split(r"[^A-Za-z0-9]+", name) if len(part) >= 2)
    return words
