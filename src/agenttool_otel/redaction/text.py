"""Text: all readings, all value detectors, one replacement."""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final, NamedTuple

from agenttool_otel.redaction.detectors.assignments import find_in_assignments
from agenttool_otel.redaction.detectors.built_in import built_in
from agenttool_otel.redaction.detectors.encoded import find_encoded
from agenttool_otel.redaction.detectors.pii import card_number
from agenttool_otel.redaction.detectors.private_keys import find_private_keys
from agenttool_otel.redaction.detectors.tokens import token_detector
from agenttool_otel.redaction.keys import PERSONAL_NUMBER, normal_name
from agenttool_otel.redaction.patterns import compile_pattern, find_all
from agenttool_otel.redaction.placeholders import Placeholders, omitted
from agenttool_otel.redaction.prefilter import prefilter
from agenttool_otel.redaction.split_secrets import Part, edges, parts_found, whole
from agenttool_otel.redaction.types import RedactionSettings, Span
from agenttool_otel.redaction.views import json_text
from agenttool_otel.redaction.views.decoded import escaped_view, html_view, percent_view
from agenttool_otel.redaction.views.joined import (
    concatenated_view,
    event_views,
    joined_view,
    line_start,
    narrowed_view,
    uncoloured_view,
    unwrapped_view,
    without_breaks,
    wrapped_ends,
)
from agenttool_otel.redaction.views.views import (
    View,
    needs_normalising,
    normalised_view,
    parts_around,
)
from agenttool_otel.redaction.work import MOST_WORK, TooMuchWork, bounded, nothing_left, spend

_ROUNDS: Final = 5
_OVERLAP: Final = 4096
_PLACES: Final = 2000
_TEXT: Final = 160
_MARKS: Final = b" \t\"'`>|#*,-"
_MEGABYTE: Final = 1 << 20
_TOKEN_REACH: Final = 2000
_BEFORE_PLACE: Final = 96
_BEGINNING_BYTES: Final = 16 << 10
_ONE_WORD: Final = re.compile(rb"[A-Za-z0-9][A-Za-z0-9_.]{0,255}")
_PERSONAL: Final = frozenset(("email", "phone", "national_id", "iban"))

_READINGS: Final = (
    percent_view,
    escaped_view,
    html_view,
    uncoloured_view,
    unwrapped_view,
    narrowed_view,
    concatenated_view,
)

Finds = list[tuple[str, str]]
"""(kind, rule) of each thing that was removed from one text."""
WITHHELD: Final = ("too_much_work", "work")
"""(kind, rule) of what is withheld because nobody looked at it."""
JsonRules = Callable[[Any, int], dict[tuple[str | int, ...], tuple[str, str, int]]]
"""Key rules on parsed JSON: path to (kind, rule, characters that stay in front)."""


class DetectorFailed(Exception):
    """A detector raised; its name is the only thing that is told."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.detector = name


class _Named(NamedTuple):
    """What looks for secrets, and the name that is stated when it fails."""

    name: str
    find: Callable[[bytes, bytes], Iterable[Span]]


_PRIVATE_KEYS: Final = (_Named("private_keys", find_private_keys),)


def _extra_patterns(
    patterns: Sequence[tuple[str, str]], data: bytes, lowered: bytes
) -> Iterator[Span]:
    """What the user's own patterns match: group 1 where there is one, else the whole match."""
    for index, (kind, pattern) in enumerate(patterns):
        for match in find_all(pattern, data):
            try:
                start, end = match.span(1)
            except IndexError:
                start, end = -1, -1
            if start < 0:
                start, end = match.span()
            if end > start:
                yield Span(start, end, kind, f"extra:{index}")


class TextRedactor:
    """Redacts text. Immutable after construction; safe to share between threads."""

    def __init__(self, settings: RedactionSettings, json_rules: JsonRules) -> None:
        """Build the detectors."""
        self.placeholders = Placeholders(settings)
        self._json_rules = json_rules
        self._allow = frozenset(value.encode("utf-8", "surrogatepass") for value in settings.allow)
        self._allow_patterns = tuple(
            compile_pattern(rf"\A(?:{pattern})\z") for pattern in settings.allow_patterns
        )
        for _, pattern in settings.extra_patterns:
            compile_pattern(pattern)  # what is not valid is told at once
        wanted = settings.detectors if settings.enabled else ()
        extra = settings.extra_detectors if settings.enabled else ()
        inner: list[_Named] = []
        between_words: set[str] = set()
        for name in wanted:
            # "encoded" looks with the others at what it decodes
            if name == "encoded" or (name == "pii" and not settings.pii):
                continue
            detector = built_in(name)
            inner.append(_Named(name, detector.find))
            if detector.between_words:
                between_words.add(name)
        if settings.extra_keys:
            keys = frozenset(normal_name(name) for name in settings.extra_keys)
            with_keys = partial(find_in_assignments, extra_keys=keys)
            inner = [
                _Named(named.name, with_keys) if named.name == "assignments" else named
                for named in inner
            ]
        if settings.extra_patterns and settings.enabled:
            inner.append(
                _Named("extra_patterns", partial(_extra_patterns, settings.extra_patterns))
            )
        self._inner = tuple(inner)
        self._all = (*self._inner, *(_Named(detector.name, detector.find) for detector in extra))
        if "encoded" in wanted:
            self._all += (_Named("encoded", partial(find_encoded, find_inner=self._find_inner)),)
        self._joined = token_detector(joined_only=True) if "tokens" in wanted else None
        self._joined_tokens = () if self._joined is None else (_Named("tokens", self._joined.find),)
        self._keys = tuple(named for named in _PRIVATE_KEYS if named in inner)
        # a foreign detector may find anything, so then every text has to be looked at
        patterns = tuple(pattern for _, pattern in settings.extra_patterns)
        self._prefilter = (
            None if extra else prefilter(patterns, tuple(_spellings(settings.extra_keys)))
        )
        # of the others each needs white space or a sign that one word does not have, and so does
        # each other reading
        self._of_words = tuple(named for named in self._all if named.name not in between_words)
        self._order = {named.name: index for index, named in enumerate(self._all)}
        self._personal_numbers = settings.pii
        self._cards = settings.pii and "pii" in wanted

    @property
    def active(self) -> bool:
        """Whether there is any detector."""
        return bool(self._all)

    def suspicious(self, text: str) -> bool:
        """Whether a text could hold anything; False is certain, True is not."""
        if not self._all:
            return False
        if self._prefilter is None:
            return True
        data = text.encode("utf-8", "surrogatepass")
        if self._prefilter.search(data) is not None:
            return True
        return len(data) != len(text) and needs_normalising(text)

    def redact(self, text: str, depth: int = 0) -> tuple[str, Finds]:
        """Redact one text until nothing more is found."""
        finds: Finds = []
        if not self.suspicious(text):
            return text, finds
        spend(_TEXT - max(0, len(text) - _MEGABYTE) * MOST_WORK // _MEGABYTE * (not depth))
        places: list[tuple[int, int]] | None = None
        for _ in range(_ROUNDS):
            changed = self._json(text, finds, depth)
            changed, places = self._replace(changed, finds, places if changed == text else None)
            if changed == text:
                break
            text = changed
        return text, finds

    def beginning(self, text: str) -> tuple[str, Finds]:
        """Redact the beginning of a text that costs too much as a whole; a fact stands for
        the rest.
        """
        if nothing_left():
            return omitted(WITHHELD[0]), [WITHHELD]
        try:
            with bounded(MOST_WORK // 6 if len(text) > _BEGINNING_BYTES else 0):
                text, finds = self.redact(self.cut(text, _BEGINNING_BYTES))
        except TooMuchWork:
            text, finds = "", []
        return text + omitted(WITHHELD[0]), [*finds, WITHHELD]

    def cut(self, text: str, budget: int) -> str:
        """The part of a text that lies within a byte budget, never ending inside of a token or of a
        find.
        """
        data = text[: budget + _OVERLAP].encode("utf-8", "surrogatepass")
        if len(data) <= budget:
            return text
        window = data[: budget + _OVERLAP]
        end = budget
        while (
            end > 0 and not window[end - 1 : end].isspace() and not window[end : end + 1].isspace()
        ):
            end -= 1
        for span in sorted(self.spans(window.decode("utf-8", "ignore")), reverse=True):
            if span.start < end < span.end:
                end = span.start
        return window[:end].decode("utf-8", "ignore")

    def spans(self, text: str) -> list[Span]:
        """Everything that is to go, in the text's UTF-8 bytes, merged and in order."""
        data = text.encode("utf-8", "surrogatepass")
        if _ONE_WORD.fullmatch(data):
            return self._merge(data, list(self._run(self._of_words, original_view(data))))
        found = list(self._run(self._all, original_view(data)))
        if (normalised := normalised_view(text)) is not None:
            found.extend(self._run(self._all, normalised))
        for reading in _READINGS:
            detectors = self._joined_tokens if reading.tokens_only else self._inner
            for first, last in reading.parts(data):
                if (decoded := reading(data[first:last])) is not None:
                    found.extend(
                        (order, _moved(span, first))
                        for order, span in self._run(detectors, decoded)
                    )
        for events in event_views(data):
            found.extend(self._run(self._inner, events))
        for joined in self._joined_views(data):
            found.extend(self._run(self._joined_tokens, joined))
        return self._merge(data, found)

    def suspicious_together(self, strings: Sequence[str]) -> bool:
        """Whether strings of a value could hold a secret together of which none holds enough to be
        suspicious.
        """
        if len(strings) < 2:
            return False
        bare = "".join(strings).lower().encode("utf-8", "surrogatepass")
        if b"private key" in bare:
            return True
        if self._joined is None or not self._joined.keywords.occurs(bare):
            return False
        # most of what is found here is a keyword that any text is full of
        try:
            return self._joined.keywords.places(bare, 0) is None or bool(
                self.split_secrets(strings)
            )
        except TooMuchWork:
            return True

    def split_secrets(self, pieces: Sequence[str]) -> list[Part]:
        """The parts of secrets that are spread over strings which follow each other."""
        raw = [piece.encode("utf-8", "surrogatepass") for piece in pieces]
        found: list[Part] = []
        if any(b"-----" in piece for piece in raw):
            found.extend(
                chain.from_iterable(
                    parts_found(whole(raw), b"", partial(self._find_by, self._keys))
                )
            )
        tokens = edges(raw)
        for separator in (b"", b"\n"):  # parts of a text, or its lines
            taken = {part.place for part in found}
            for parts in parts_found(tokens, separator, self._find_joined):
                if not any(part.place in taken for part in parts):
                    found.extend(parts)
        return found

    def _find_by(
        self, detectors: tuple[_Named, ...], data: bytes, lowered: bytes | None = None
    ) -> list[Span]:
        return self._merge(data, list(self._run(detectors, original_view(data, lowered))))

    def _find_joined(self, data: bytes) -> list[Span]:
        if self._joined is None or not self._joined.keywords.occurs(data.lower()):
            return []
        views = (original_view(data), *self._joined_views(data))
        return self._merge(
            data, [find for view in views for find in self._run(self._joined_tokens, view)]
        )

    def card(self, number: int) -> bool:
        """Whether an integer is a payment card's number."""
        return self._cards and 10**12 <= number < 10**19 and card_number(str(number))

    def _joined_views(self, data: bytes) -> Iterator[View]:
        """Readings without line breaks, of the stretches where a known token begins shortly before
        a break.
        """
        if self._joined is None or not any(mark in data for mark in (b"\n", b"\\n", b"\r", b"\\r")):
            return
        index = self._joined.keywords
        lowered = data.lower()
        places = index.places(lowered, _PLACES)
        bare = without_breaks(lowered)
        bare_places = None if places is None else index.places(bare, len(places))
        if places is None or bare_places is None or len(bare_places) != len(places):
            # too many places, or a break stands inside of a token's prefix
            view = joined_view(data)
            if view is not None:
                yield view
            return
        # not from before a break: without it, the line before would run into the token
        starts = [line_start(data, max(0, place - _BEFORE_PLACE), place) for place in places]
        # nor into a line that begins with a token of its own, unless it goes on behind a dot
        own = [
            start
            for start, place in zip(starts, places, strict=True)
            if _begins_line(data, start, place)
        ]
        for start, place in zip(starts, places, strict=True):
            after = bisect_right(own, place)
            most = own[after] if after < len(own) else len(data)
            for stop in wrapped_ends(data, place, min(place + _TOKEN_REACH, most)):
                if (view := joined_view(data, start, stop)) is not None:
                    yield view

    def _run(self, detectors: tuple[_Named, ...], view: View) -> Iterator[tuple[int, Span]]:
        """What some detectors find in a reading, in the original's bytes, each with the place of
        its detector.
        """
        original = view.name == ""
        for detector in detectors:
            order = self._order.get(detector.name, 0)
            try:
                for span in detector.find(view.data, view.lowered):
                    if span.kind == PERSONAL_NUMBER and not self._personal_numbers:
                        continue
                    if original:
                        yield order, span
                    elif 0 <= span.start < span.end <= len(view.data) and (
                        not view.joins or view.changed(span)
                    ):
                        yield from ((order, part) for part in view.sources(span))
            except TooMuchWork:
                raise
            except Exception as error:
                raise DetectorFailed(detector.name) from error

    def _find_inner(self, data: bytes, lowered: bytes) -> list[Span]:
        if self._prefilter is not None and self._prefilter.search(data) is None:
            return []
        return self._find_by(self._inner, data, lowered)

    def _merge(self, data: bytes, found: list[tuple[int, Span]]) -> list[Span]:
        if not found:
            return []
        existing = [match.span() for match in self.placeholders.pattern.finditer(data)]
        kept = [
            (order, _with_placeholder(span, existing))
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
                    before
                    if (before_order, -before.end + before.start) <= (order, -span.end + span.start)
                    else span
                )
                end = max(before.end, span.end)
                merged[-1] = (
                    min(order, before_order),
                    Span(before.start, end, first.kind, first.rule),
                )
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

    def _replace(
        self, text: str, finds: Finds, places: list[tuple[int, int]] | None
    ) -> tuple[str, list[tuple[int, int]]]:
        """Replace what is found, near the places of the round before; with where this round has
        replaced something.
        """
        data = text.encode("utf-8", "surrogatepass")
        near = [(0, len(data))] if places is None else parts_around(data, places)
        spans = [
            _moved(span, first)
            for first, last in near
            for span in self.spans(data[first:last].decode("utf-8", "surrogatepass"))
        ]
        if not spans:
            return text, []
        out = bytearray()
        made: list[tuple[int, int]] = []
        at = 0
        for span in spans:
            out += data[at : span.start]
            made.append((len(out), len(out)))
            out += self.placeholders.make(span.kind, data[span.start : span.end]).encode()
            finds.append((span.kind, span.rule))
            at = span.end
        out += data[at:]
        return out.decode("utf-8", "surrogatepass"), made

    def _json(self, text: str, finds: Finds, depth: int) -> str:
        """Apply key rules and escapes inside of a text that is JSON as a whole."""
        if depth >= 3:
            return text
        if (parsed := json_text.loads(text)) is None:
            return text
        hits = self._json_rules(parsed, depth)
        escapes = "\\" in text
        if not hits and not escapes:
            return text
        parts: list[str] = []
        at = 0
        for literal in json_text.literals(text, lambda path: escapes or path in hits):
            raw = text[literal.start : literal.end]
            if (new := self._literal(raw, hits.get(literal.path), finds, depth)) is not None:
                parts += (text[at : literal.start], new)
                at = literal.end
        return "".join(parts) + text[at:] if parts else text

    def _literal(
        self, raw: str, hit: tuple[str, str, int] | None, finds: Finds, depth: int
    ) -> str | None:
        if hit is not None:
            kind, rule, start = hit
            value = json.loads(raw)
            body = value if type(value) is str else raw
            encoded = body[start:].encode("utf-8", "surrogatepass")
            if self.placeholders.is_done(encoded) or encoded in self._allow:
                return None
            finds.append((kind, rule))
            return json.dumps(
                body[:start] + self.placeholders.make(kind, encoded), ensure_ascii=False
            )
        if raw[:1] != '"' or "\\" not in raw:
            return None
        value = json.loads(raw)
        if not self.suspicious(value.replace("\n", " ")):
            # line breaks alone: most texts have some, and the text as a whole is looked at, too
            return None
        new, inner = self.redact(value, depth + 1)
        if not inner:
            return None
        finds.extend(inner)
        return json.dumps(new, ensure_ascii=raw.isascii())


def _begins_line(data: bytes, start: int, place: int) -> bool:
    before = data[max(0, start - 4) : start].rstrip(b"\\rn\r\n")
    return not data[start:place].strip(_MARKS) and not before.endswith(b".")


def _with_placeholder(span: Span, existing: list[tuple[int, int]]) -> Span:
    """A value that ends within a placeholder takes all of it."""
    at = bisect_left(existing, (span.end, 0))
    return span._replace(end=max(span.end, existing[at - 1][1])) if at else span


def _moved(span: Span, by: int) -> Span:
    return Span(span.start + by, span.end + by, span.kind, span.rule)


def original_view(data: bytes, lowered: bytes | None = None) -> View:
    """The text as it is, as a reading."""
    view = View.__new__(View)
    view.name = ""
    view.joins = False
    view.data = data
    view.lowered = data.lower() if lowered is None else lowered
    return view


def _spellings(names: tuple[str, ...]) -> list[str]:
    """Ways to write a name that a case-blind search has to know: as given, and its last word."""
    return [
        word
        for name in names
        for word in (name, *re.split(r"[^A-Za-z0-9]+", name))
        if len(word) >= 2
    ]
