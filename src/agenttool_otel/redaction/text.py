"""Text: all readings, all value detectors, one replacement."""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Final, NamedTuple

from agenttool_otel.redaction.detectors.assignments import find_in_assignments
from agenttool_otel.redaction.detectors.built_in import built_in
from agenttool_otel.redaction.detectors.encoded import find_encoded
from agenttool_otel.redaction.detectors.pii import card_number
from agenttool_otel.redaction.detectors.private_keys import find_private_keys
from agenttool_otel.redaction.detectors.tokens import TokenDetector, token_detector
from agenttool_otel.redaction.keys import PERSONAL_NUMBER, normal_name
from agenttool_otel.redaction.patterns import Matcher, compile_pattern, find_all
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
    Reading,
    View,
    needs_normalising,
    normalised_view,
    parts_around,
)
from agenttool_otel.redaction.work import MOST_WORK, TooMuchWork, bounded, nothing_left, spend

_MAX_CLEAN: Final = 256
_CLEAN_CHARS: Final = 10_000
_ROUNDS: Final = 5
_OVERLAP: Final = 4096
_PLACES: Final = 2000
_TEXT: Final = 160
_BREAKS: Final = (b"\n", b"\\n", b"\r", b"\\r")
_MARKS: Final = b" \t\"'`>|#*,-"
_MEGABYTE: Final = 1 << 20
_TOKEN_REACH: Final = 2000
_BEFORE_PLACE: Final = 96
_BEGINNING_BYTES: Final = 16 << 10
_ONE_WORD: Final = re.compile(rb"[A-Za-z0-9/][A-Za-z0-9_./-]{0,255}")
"""``hunter2``, ``/home/me/notes-1.txt``"""
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
"""(kind, rule) of what is withheld because it was not looked at."""
JsonRules = Callable[[Any, int], dict[tuple[str | int, ...], tuple[str, str, int]]]
"""Key rules on parsed JSON: path to (kind, rule, characters that stay in front)."""


class DetectorFailed(Exception):
    """A detector raised; nothing but its name is passed on, for its message may hold the text."""

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


def _inner_detectors(settings: RedactionSettings) -> list[_Named]:
    """What looks for secrets in a text and in what ``encoded`` decodes."""
    if not settings.enabled:
        return []
    detectors: list[_Named] = []
    for name in settings.detectors:
        # "encoded" looks with the others at what it decodes
        if name == "encoded" or (name == "pii" and not settings.pii):
            continue
        find = built_in(name).find
        if name == "assignments" and settings.extra_keys:
            keys = frozenset(normal_name(key) for key in settings.extra_keys)
            find = partial(find_in_assignments, extra_keys=keys)
        detectors.append(_Named(name, find))
    if settings.extra_patterns:
        with_patterns = partial(_extra_patterns, settings.extra_patterns)
        detectors.append(_Named("extra_patterns", with_patterns))
    return detectors


def _needs_several_words(named: _Named) -> bool:
    """Whether a detector finds nothing in a text of one word or path, such as ``hunter2``."""
    # a pattern of the user's may match anything
    if named.name == "extra_patterns":
        return False
    return built_in(named.name).between_words


class TextRedactor:
    """Redacts text. What it finds never changes; safe to share between threads."""

    def __init__(
        self,
        settings: RedactionSettings,
        json_rules: JsonRules,
        stricter: TextRedactor | None = None,
    ) -> None:
        """Build the detectors.

        Args:
            settings: how it works.
            json_rules: key rules on parsed JSON.
            stricter: one that finds all that this one finds, and more.
        """
        self.placeholders = Placeholders(settings)
        self._json_rules = json_rules
        self._allow = frozenset(value.encode("utf-8", "surrogatepass") for value in settings.allow)
        self._allow_patterns = tuple(
            compile_pattern(rf"\A(?:{pattern})\z") for pattern in settings.allow_patterns
        )
        for _, pattern in settings.extra_patterns:
            compile_pattern(pattern)  # raises now if it isn't valid, not at the first text
        wanted = settings.detectors if settings.enabled else ()
        extra = settings.extra_detectors if settings.enabled else ()
        inner = _inner_detectors(settings)
        self._inner = tuple(inner)
        foreign = [_Named(detector.name, detector.find) for detector in extra]
        self._all = (*self._inner, *foreign)
        if "encoded" in wanted:
            self._all += (_Named("encoded", partial(find_encoded, find_inner=self._find_inner)),)
        self._joined: TokenDetector | None = None
        self._joined_tokens: tuple[_Named, ...] = ()
        if "tokens" in wanted:
            self._joined = token_detector(joined_only=True)
            self._joined_tokens = (_Named("tokens", self._joined.find),)
        self._keys = tuple(named for named in _PRIVATE_KEYS if named in inner)
        # a foreign detector may find anything, so then every text has to be looked at
        self._prefilter: Matcher | None = None
        if not extra:
            patterns = tuple(pattern for _, pattern in settings.extra_patterns)
            spellings = tuple(_spellings(settings.extra_keys))
            self._prefilter = prefilter(patterns, spellings)
        # of the others each needs white space or a sign that one word does not have, and so does
        # each other reading
        between_words = {named.name for named in inner if _needs_several_words(named)}
        self._of_words = tuple(named for named in self._all if named.name not in between_words)
        self._order = {named.name: index for index, named in enumerate(self._all)}
        self._personal_numbers = settings.pii
        self._kept_kinds = settings.kept_kinds
        self._cards = settings.pii and "pii" in wanted
        self._stricter = stricter
        # digests of the last texts in which nothing was found: a path is in a call's arguments, in
        # the places of its question, and in what is shown of it
        self._clean: dict[bytes, None] = {}
        self._remembers = not extra  # a foreign detector may find later what it did not find now

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
        digest = b""
        if self._remembers and not depth and len(text) <= _CLEAN_CHARS:
            digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
            if self._is_clean(digest):
                return text, finds
        given = text
        if depth:
            spend(_TEXT)
        else:
            # a log of three megabytes may cost three times as much as one of one megabyte
            beyond = max(0, len(text) - _MEGABYTE)
            spend(_TEXT - beyond * MOST_WORK // _MEGABYTE)
        places: list[tuple[int, int]] | None = None
        for _ in range(_ROUNDS):
            changed = self._json(text, finds, depth)
            # what has changed the text by JSON has moved the places of the round before
            if changed != text:
                places = None
            changed, places = self._replace(changed, finds, places)
            if changed == text:
                break
            text = changed
        if digest and not finds and text == given:
            if len(self._clean) >= _MAX_CLEAN:
                self._clean.clear()
            self._clean[digest] = None
        return text, finds

    def _is_clean(self, digest: bytes) -> bool:
        """Whether nothing was found in a text, here or by a stricter redactor."""
        if digest in self._clean:
            return True
        return self._stricter is not None and self._stricter._is_clean(digest)

    def beginning(self, text: str) -> tuple[str, Finds]:
        """Redact the beginning of a text that costs too much as a whole; a fact stands for
        the rest.
        """
        placeholder = omitted(WITHHELD[0])
        if nothing_left():
            return placeholder, [WITHHELD]
        is_long = len(text) > _BEGINNING_BYTES
        try:
            with bounded(MOST_WORK // 6 if is_long else 0):
                beginning = self.cut(text, _BEGINNING_BYTES)
                clean, finds = self.redact(beginning)
        except TooMuchWork:
            return placeholder, [WITHHELD]
        return clean + placeholder, [*finds, WITHHELD]

    def cut(self, text: str, budget: int) -> str:
        """The part of a text that lies within a byte budget, never ending inside of a token or of a
        find.
        """
        beginning = text[: budget + _OVERLAP]
        data = beginning.encode("utf-8", "surrogatepass")
        if len(data) <= budget:
            return text
        window = data[: budget + _OVERLAP]
        end = budget
        # "... ghp_CoIF7u|UxugF ...": back to the white space before the token
        while end > 0 and not _is_between_words(window, end):
            end -= 1
        spans = self.spans(window.decode("utf-8", "ignore"))
        for span in sorted(spans, reverse=True):
            if span.start < end < span.end:
                end = span.start
        kept = window[:end]
        return kept.decode("utf-8", "ignore")

    def spans(self, text: str) -> list[Span]:
        """Everything that is to go, in the text's UTF-8 bytes, merged and in order."""
        data = text.encode("utf-8", "surrogatepass")
        original = original_view(data)
        if _ONE_WORD.fullmatch(data):
            of_word = list(self._run(self._of_words, original))
            return self._merge(data, of_word)
        found = list(self._run(self._all, original))
        normalised = normalised_view(text)
        if normalised is not None:
            found.extend(self._run(self._all, normalised))
        for reading in _READINGS:
            found.extend(self._found_by(reading, data))
        for events in event_views(data):
            found.extend(self._run(self._inner, events))
        for joined in self._joined_views(data):
            found.extend(self._run(self._joined_tokens, joined))
        return self._merge(data, found)

    def _found_by(self, reading: Reading, data: bytes) -> Iterator[tuple[int, Span]]:
        """What is found in one reading of a text, each with the place of its detector."""
        detectors = self._joined_tokens if reading.tokens_only else self._inner
        for first, last in reading.parts(data):
            decoded = reading(data[first:last])
            if decoded is None:
                continue
            for order, span in self._run(detectors, decoded):
                yield order, _moved(span, first)

    def suspicious_together(self, strings: Sequence[str]) -> bool:
        """Whether strings of a value could hold a secret together of which none holds enough to be
        suspicious.
        """
        if len(strings) < 2:
            return False
        together = "".join(strings).lower()
        bare = together.encode("utf-8", "surrogatepass")
        # ["-----BEGIN PRIVATE", " KEY-----"]
        if b"private key" in bare:
            return True
        if self._joined is None:
            return False
        keywords = self._joined.keywords
        if not keywords.occurs(bare):
            return False
        # most of what is found here is a keyword that any text is full of
        try:
            if keywords.places(bare, 0) is None:
                return True
            return bool(self.split_secrets(strings))
        except TooMuchWork:
            return True

    def split_secrets(self, pieces: Sequence[str]) -> list[Part]:
        """The parts of secrets that are spread over strings which follow each other."""
        raw = [piece.encode("utf-8", "surrogatepass") for piece in pieces]
        found: list[Part] = []
        # ["-----BEGIN PRIVATE KEY-----", "MIIEvQ...", "-----END PRIVATE KEY-----"]
        if any(b"-----" in piece for piece in raw):
            find_keys = partial(self._find_by, self._keys)
            for parts in parts_found(whole(raw), b"", find_keys):
                found.extend(parts)
        tokens = edges(raw)
        # parts of a text, then its lines
        for separator in (b"", b"\n"):
            taken = {part.place for part in found}
            for parts in parts_found(tokens, separator, self._find_joined):
                if not any(part.place in taken for part in parts):
                    found.extend(parts)
        return found

    def _find_by(
        self, detectors: tuple[_Named, ...], data: bytes, lowered: bytes | None = None
    ) -> list[Span]:
        view = original_view(data, lowered)
        found = list(self._run(detectors, view))
        return self._merge(data, found)

    def _find_joined(self, data: bytes) -> list[Span]:
        if self._joined is None or not self._joined.keywords.occurs(data.lower()):
            return []
        found: list[tuple[int, Span]] = []
        for view in (original_view(data), *self._joined_views(data)):
            found.extend(self._run(self._joined_tokens, view))
        return self._merge(data, found)

    def card(self, number: int) -> bool:
        """Whether an integer is a payment card's number."""
        # of 13 to 19 digits
        if not self._cards or not 10**12 <= number < 10**19:
            return False
        return card_number(str(number))

    def _joined_views(self, data: bytes) -> Iterator[View]:
        """Readings without line breaks, of the stretches where a known token begins shortly before
        a break.
        """
        if self._joined is None or not any(mark in data for mark in _BREAKS):
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
        yield from _wrapped_views(data, places)

    def _run(self, detectors: tuple[_Named, ...], view: View) -> Iterator[tuple[int, Span]]:
        """What some detectors find in a reading, in the original's bytes, each with the place of
        its detector.
        """
        for detector in detectors:
            order = self._order.get(detector.name, 0)
            try:
                for span in self._finds_of(detector, view):
                    yield order, span
            except TooMuchWork:
                raise
            except Exception as error:
                raise DetectorFailed(detector.name) from error

    def _finds_of(self, detector: _Named, view: View) -> Iterator[Span]:
        original = view.name == ""
        for span in detector.find(view.data, view.lowered):
            if span.kind == PERSONAL_NUMBER and not self._personal_numbers:
                continue
            if span.kind in self._kept_kinds:
                continue
            if original:
                yield span
            else:
                yield from _sources(view, span)

    def _find_inner(self, data: bytes, lowered: bytes) -> list[Span]:
        if self._prefilter is not None and self._prefilter.search(data) is None:
            return []
        return self._find_by(self._inner, data, lowered)

    def _merge(self, data: bytes, found: list[tuple[int, Span]]) -> list[Span]:
        if not found:
            return []
        size = len(data)
        existing = [match.span() for match in self.placeholders.pattern.finditer(data)]
        kept: list[tuple[int, Span]] = []
        for order, span in found:
            # what a user's own detector yields may lie anywhere
            if not 0 <= span.start < span.end <= size:
                continue
            if self._spared(data, span, existing):
                continue
            kept.append((order, _with_placeholder(span, existing)))
        kept.sort(key=lambda item: (item[1].start, item[0]))
        merged: list[tuple[int, Span]] = []
        for order, span in kept:
            if merged and span.start < merged[-1][1].end:
                merged[-1] = _of_two(merged[-1], (order, span))
            else:
                merged.append((order, span))
        return [span for _, span in merged]

    def _spared(self, data: bytes, span: Span, existing: list[tuple[int, int]]) -> bool:
        # what was replaced before, and its kind: "[redacted:password]"
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
        """Replace what is found, near the places of the round before.

        Args:
            text: the text.
            finds: takes what is found.
            places: the places of the round before; None: everywhere.

        Returns:
            The new text, and the places of this round.
        """
        data = text.encode("utf-8", "surrogatepass")
        near = [(0, len(data))]
        if places is not None:
            near = parts_around(data, places)
        spans: list[Span] = []
        for first, last in near:
            part = data[first:last].decode("utf-8", "surrogatepass")
            spans.extend(_moved(span, first) for span in self.spans(part))
        if not spans:
            return text, []
        out = bytearray()
        made: list[tuple[int, int]] = []
        at = 0
        for span in spans:
            out += data[at : span.start]
            place = len(out)
            made.append((place, place))
            secret = data[span.start : span.end]
            placeholder = self.placeholders.make(span.kind, secret)
            out += placeholder.encode()
            finds.append((span.kind, span.rule))
            at = span.end
        out += data[at:]
        return out.decode("utf-8", "surrogatepass"), made

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
            hit = hits.get(literal.path)
            new = self._literal(raw, hit, finds, depth)
            if new is None:
                continue
            parts.append(text[at : literal.start])
            parts.append(new)
            at = literal.end
        if not parts:
            return text
        return "".join(parts) + text[at:]

    def _literal(
        self, raw: str, hit: tuple[str, str, int] | None, finds: Finds, depth: int
    ) -> str | None:
        """A scalar of a JSON text without its secrets; None: it stays."""
        if hit is not None:
            return self._named_literal(raw, hit, finds)
        # only escapes hide what a look at the whole text does not see: "gh\u0070_CoIF7u..."
        if raw[:1] != '"' or "\\" not in raw:
            return None
        value = json.loads(raw)
        # line breaks alone: most texts have some, and the text as a whole is looked at, too
        if not self.suspicious(value.replace("\n", " ")):
            return None
        new, inner = self.redact(value, depth + 1)
        if not inner:
            return None
        finds.extend(inner)
        return json.dumps(new, ensure_ascii=raw.isascii())

    def _named_literal(self, raw: str, hit: tuple[str, str, int], finds: Finds) -> str | None:
        """What stands for a scalar that key rules remove; None: it is a placeholder or allowed."""
        kind, rule, start = hit
        value = json.loads(raw)
        # {"pin": 4921}: a number is removed as it is written
        body = value if type(value) is str else raw
        secret = body[start:].encode("utf-8", "surrogatepass")
        if self.placeholders.is_done(secret) or secret in self._allow:
            return None
        finds.append((kind, rule))
        new = body[:start] + self.placeholders.make(kind, secret)
        return json.dumps(new, ensure_ascii=False)


def _wrapped_views(data: bytes, places: Sequence[int]) -> Iterator[View]:
    """Readings without line breaks from each place of a token's keyword on."""
    starts: list[int] = []
    # the lines that begin with a token of their own
    own: list[int] = []
    for place in places:
        # not from before a break: without it, the line before would run into the token
        start = line_start(data, max(0, place - _BEFORE_PLACE), place)
        starts.append(start)
        if _begins_line(data, start, place):
            own.append(start)
    for start, place in zip(starts, places, strict=True):
        # nor into the next line that begins with one
        after = bisect_right(own, place)
        most = own[after] if after < len(own) else len(data)
        reach = min(place + _TOKEN_REACH, most)
        for stop in wrapped_ends(data, place, reach):
            view = joined_view(data, start, stop)
            if view is not None:
                yield view


def _is_between_words(data: bytes, at: int) -> bool:
    """Whether white space stands on either side of a place."""
    return data[at - 1 : at].isspace() or data[at : at + 1].isspace()


def _sources(view: View, span: Span) -> Sequence[Span]:
    """The places of a reading's find in the original; none when the original has it, too."""
    if not 0 <= span.start < span.end <= len(view.data):
        return ()
    if view.joins and not view.changed(span):
        return ()
    return tuple(view.sources(span))


def _begins_line(data: bytes, start: int, place: int) -> bool:
    """Whether nothing but marks stands before a token on its line: ``> ghp_...``, ``- ghp_...``."""
    if data[start:place].strip(_MARKS):
        return False
    # eyJhbGciOiJIUzI1NiJ9. at the end of the line before: the claims of a JWT follow
    before = data[max(0, start - 4) : start]
    return not before.rstrip(b"\\rn\r\n").endswith(b".")


def _of_two(before: tuple[int, Span], after: tuple[int, Span]) -> tuple[int, Span]:
    """What two finds that overlap are together, each with the place of its detector.

    Args:
        before: the one that begins first.
        after: the other.
    """
    before_order, first = before
    order, second = after
    # a personal number counts only if nothing stronger was found: postgres://bob:ann@db.example.net
    if second.kind in _PERSONAL and before_order < order and second.end > first.end:
        return before
    if first.kind in _PERSONAL and order < before_order:
        return after
    # the kind is that of the stronger detector, then of the longer find
    named = second
    if (before_order, first.start - first.end) <= (order, second.start - second.end):
        named = first
    end = max(first.end, second.end)
    return min(order, before_order), Span(first.start, end, named.kind, named.rule)


def _with_placeholder(span: Span, existing: list[tuple[int, int]]) -> Span:
    """A value that begins or ends within a placeholder takes all of it."""
    start = _place_around(span.start, existing)[0]
    end = _place_around(span.end - 1, existing)[1]
    return span._replace(start=start, end=end)


def _place_around(at: int, existing: list[tuple[int, int]]) -> tuple[int, int]:
    """The placeholder in which a byte stands, or the byte alone."""
    index = bisect_right(existing, at, key=itemgetter(0)) - 1
    if index >= 0 and at < existing[index][1]:
        return existing[index]
    return at, at + 1


def _moved(span: Span, by: int) -> Span:
    return Span(span.start + by, span.end + by, span.kind, span.rule)


def original_view(data: bytes, lowered: bytes | None = None) -> View:
    """The text as it is, as a reading."""
    return View("", data, _same_place, lowered=lowered)


def _same_place(position: int) -> tuple[int, int]:
    """What a byte of the text as it is stands for: itself."""
    return position, position + 1


def _spellings(names: tuple[str, ...]) -> list[str]:
    """Texts of which one occurs, in any case, where a name is written: the name, and its words."""
    found: list[str] = []
    for name in names:
        # "X-Zanzibar-Id" is written x_zanzibar_id, too
        words = re.split(r"[^A-Za-z0-9]+", name)
        found.extend(word for word in (name, *words) if len(word) >= 2)
    return found
