"""Redaction of results: large texts in blocks, streams item by item, values as far as they can be
read.

A cut between two blocks or items is checked with the redactor itself: around the cut, redacting
both sides apart must give the same as redacting them together. Where it does not, a secret lies
across, and the cut moves.

No obligation is met unseen. What an iterator, an open file, an object of the caller's own or binary
content holds is not known without consuming or running it: obliged redaction withholds it; inside a
container, a tag stands for it.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

from agenttool_otel.errors import PersistenceError
from agenttool_otel.redaction.work import Purse, paid_from
from agenttool_otel.results.content.libraries import IMAGE, library_type
from agenttool_otel.results.content.shown import read_json
from agenttool_otel.results.restored import restored
from agenttool_otel.values.conversion import to_whole_json
from agenttool_otel.values.inspection import CONTAINERS, Kind, kind_of

LOOKAHEAD_CHARS: Final = 2048
"""Characters that must follow a text of a stream before it is passed on."""

WITHHELD_ITEM: Final = "[item withheld: redaction failed]"

_BLOCK_CHARS: Final = 1 << 17
_CONTEXT_CHARS: Final = 1 << 13
_MAX_HELD_CHARS: Final = _BLOCK_CHARS * 4
_MAX_CUTS: Final = 12
_CUT_MARKS: Final = ("\n", "}", ";", ",", " ", "")
_SMALL_VALUE_CHARS: Final = 32  # as which each of the small values of a large result counts
_MAX_HELD_ITEM_CHARS: Final = 1 << 20
_SPLIT_STEPS: Final = (0, 1, -1, 2, -2, 4, -4, 8, -8, 16, -16, 32, -32, 64, -64, 128, -128)
_HARMLESS_CHARS: Final = 6  # a shorter text holds no secret that a detector could find


class RedactionFailed(PersistenceError):
    """The redactor raised or returned something else; nothing that it should have cleaned is kept
    or shown.
    """


def redacted(redactor: Callable[..., Any], *given: Any) -> Any:
    """Return what a redactor makes of what it is given; whatever it raises becomes
    RedactionFailed.
    """
    try:
        return redactor(*given)
    except Exception as error:
        raise RedactionFailed(f"redaction failed: {type(error).__name__}") from None


class Transform(NamedTuple):
    """What must happen to a result before it is kept or shown."""

    text: Callable[[str], str]  # redacts a text
    # redacts a value that sits at a JSON pointer of the result; structure stays
    value: Callable[[Any, str], Any]


@dataclass(slots=True)
class CleanText:
    """Redacts a text that comes in pieces."""

    clean: Callable[[str], str]  # redacts one text
    changed: bool = False  # whether anything was redacted so far
    _held: str = field(default="", repr=False)
    # one for all pieces: a text costs what it may as a whole
    _purse: Purse = field(default_factory=Purse, repr=False)

    def pieces(self, pieces: Iterable[str]) -> Iterator[str]:
        """Yield the redacted text of all pieces."""
        for piece in pieces:
            yield from self.feed(piece)
        yield from self.finish()

    def feed(self, piece: str) -> Iterator[str]:
        """Take a piece and yield the text that is ready."""
        self._purse.grow(len(piece))
        for start in range(0, len(piece), _BLOCK_CHARS):
            self._held += piece[start : start + _BLOCK_CHARS]
            while len(self._held) >= _BLOCK_CHARS + _CONTEXT_CHARS:
                cut = self._find_cut()
                if cut is None:
                    break
                ready = self._held[:cut]
                self._held = self._held[cut:]
                yield self._apply(ready)

    def finish(self) -> Iterator[str]:
        """Yield what is left."""
        ready = self._held
        self._held = ""
        if ready:
            yield self._apply(ready)

    def _find_cut(self) -> int | None:
        """Return where the text held may be cut; ``None`` where more has to be held first."""
        held = self._held
        if self._purse.left <= 0:
            # nothing is looked at any more, so nothing that could be a secret is passed on
            return len(held)
        tried: set[int] = set()
        for mark in _CUT_MARKS:
            for cut in _cuts_behind(held, mark):
                if cut not in tried and self._is_clean(cut):
                    return cut
                tried.add(cut)
        # One secret as long as all that: hold more, up to a bound, then take it whole.
        if len(held) < _MAX_HELD_CHARS:
            return None
        return len(held)

    def _is_clean(self, cut: int) -> bool:
        left = self._held[max(0, cut - _CONTEXT_CHARS) : cut]
        right = self._held[cut : cut + _CONTEXT_CHARS]
        return self._run(left) + self._run(right) == self._run(left + right)

    def _apply(self, text: str) -> str:
        cleaned = self._run(text)
        self.changed = self.changed or cleaned != text
        return cleaned

    def _run(self, text: str) -> str:
        with paid_from(self._purse):
            cleaned = redacted(self.clean, text)
        if type(cleaned) is not str:
            raise RedactionFailed("redaction failed: no text")
        return cleaned


def _cuts_behind(held: str, mark: str) -> Iterator[int]:
    """Yield places behind a mark where a text might be cut, from its end on."""
    position = len(held) - _CONTEXT_CHARS
    for _ in range(_MAX_CUTS):
        if mark:
            position = held.rfind(mark, _CONTEXT_CHARS, position)
        else:
            # a megabyte of base64 in one line has none of the marks
            position -= _CONTEXT_CHARS // 3
        if position <= _CONTEXT_CHARS:
            return
        yield position + len(mark)


@dataclass(slots=True)
class CleanValue:
    """Redacts the values of a result at their places."""

    clean: Callable[[Any, str], Any]  # redacts a value that sits at a JSON pointer
    changed: bool = False  # whether anything was redacted so far
    _purse: Purse = field(default_factory=Purse, repr=False)

    def at(self, value: Any, pointer: str) -> Any:
        """Return the redacted value."""
        self._purse.grow(_SMALL_VALUE_CHARS)
        with paid_from(self._purse):
            cleaned = redacted(self.clean, value, pointer)
        if not self.changed and cleaned is not value:
            self.changed = bool(cleaned != value)
        return cleaned


class ItemCleaner:
    """Redacts a stream's items in order before anyone sees them, also where a secret comes in pieces.

    Texts, and bytes that are UTF-8, are held back until enough of what follows is known: where
    redacting two neighbours apart gives something else than redacting them together, a secret lies
    across, and they become one item. All others keep their boundaries.
    """

    def __init__(self, clean: Callable[[Any], Any], *, apart: bool = False) -> None:
        self._clean = clean
        self._apart = apart
        self._held: list[str] = []
        self._chars = 0
        self._utf8: codecs.IncrementalDecoder | None = None  # where the items held back are bytes
        self.failed = False

    def feed(self, item: Any) -> list[Any]:
        """Take an item and return those that are ready; never raises."""
        if type(item) not in (str, bytes) or self._apart:
            return [*self.finish(), self.redact(item)]
        ready: list[Any] = []
        is_bytes = type(item) is bytes
        holds_bytes = self._utf8 is not None
        if is_bytes != holds_bytes:
            ready = self.finish()
        text = item
        if is_bytes:
            if self._utf8 is None:
                self._utf8 = codecs.getincrementaldecoder("utf-8")()
            pending, _ = self._utf8.getstate()
            try:
                text = self._utf8.decode(item)
            except UnicodeDecodeError:
                # a PNG after some texts: it stands alone, with the bytes that its text ended in
                self._utf8.reset()
                ready += self.finish()
                ready.append(self.redact(pending + item))
                return ready
        self._held.append(text)
        self._chars += len(text)
        if self._chars >= 2 * LOOKAHEAD_CHARS:
            ready += self._ready()
        return ready

    def finish(self) -> list[Any]:
        """Return what is still held back."""
        held = self._held
        self._held = []
        self._chars = 0
        ready: list[Any] = []
        if held:
            ready = self._as_given(self._split(held))
        if self._utf8 is None:
            return ready
        pending, _ = self._utf8.getstate()
        self._utf8 = None
        # the stream ended within a character
        if pending:
            ready.append(self.redact(pending))
        return ready

    def _as_given(self, items: list[Any]) -> list[Any]:
        """Return texts as the consumer expects them: as bytes where they came as bytes."""
        if self._utf8 is None:
            return items
        encoded: list[Any] = []
        for item in items:
            if type(item) is str:
                item = item.encode("utf-8", "surrogatepass")
            encoded.append(item)
        return encoded

    def redact(self, item: Any) -> Any:
        """Redact a value that stands alone."""
        try:
            return self._clean(item)
        except Exception:
            self.failed = True
            return WITHHELD_ITEM

    def _ready(self) -> list[Any]:
        """Return the items before a clean cut that leaves enough text behind it."""
        held = self._held
        last = len(held)
        following = 0
        while last > 0 and following < LOOKAHEAD_CHARS:
            last -= 1
            following += len(held[last])
        cuts = [last - step for step in (0, 1, 2, 4, 8, 16, 32, 64) if last > step]
        for cut in cuts:
            if self._is_clean(held, cut):
                self._held = held[cut:]
                self._chars = sum(map(len, self._held))
                return self._as_given(self._split(held[:cut]))
        if not cuts or self._chars <= _MAX_HELD_ITEM_CHARS:
            return []
        self._held = []
        self._chars = 0
        self.failed = True
        return self._as_given([WITHHELD_ITEM])

    def _split(self, items: list[str]) -> list[Any]:
        """Redact items whose outer borders are clean, apart wherever that is safe."""
        text = "".join(items)
        cleaned = self.redact(text)
        if len(items) == 1:
            return [cleaned]
        if cleaned == text:
            # An item alone may look like a secret that it does not look like among the others.
            apart: list[Any] = []
            for item in items:
                apart.append(item if len(item) < _HARMLESS_CHARS else self.redact(item))
            return apart
        middle = len(items) // 2
        for step in _SPLIT_STEPS:
            cut = middle + step
            if 0 < cut < len(items) and self._is_clean(items, cut):
                return [*self._split(items[:cut]), *self._split(items[cut:])]
        return [cleaned]

    def _is_clean(self, items: list[str], cut: int) -> bool:
        """Return whether no secret lies across the border before an item."""
        left = _end_of(items[:cut])
        right = _start_of(items[cut:])
        clean_left = self.redact(left)
        clean_right = self.redact(right)
        together = self.redact(left + right)
        for part in (clean_left, clean_right, together):
            if type(part) is not str:
                return False
        return bool(clean_left + clean_right == together)


def _end_of(items: list[str]) -> str:
    text = ""
    for item in reversed(items):
        text = item[-LOOKAHEAD_CHARS:] + text
        if len(text) >= LOOKAHEAD_CHARS:
            break
    return text[-LOOKAHEAD_CHARS:]


def _start_of(items: list[str]) -> str:
    text = ""
    for item in items:
        text += item[:LOOKAHEAD_CHARS]
        if len(text) >= LOOKAHEAD_CHARS:
            break
    return text[:LOOKAHEAD_CHARS]


def _unchanged(data: Any) -> Any:
    return data


def _encoded(data: Any) -> Any:
    return data.encode("utf-8") if type(data) is str else data


class Reading(NamedTuple):
    """What of a value can be read."""

    data: Any  # plain JSON data or a text
    whole: bool = True  # whether that is all of the value; if not, only the data may be passed on
    # makes what a caller expects of cleaned data: bytes where they were bytes, a copy of the value
    # with other parts
    restore: Callable[[Any], Any] = _unchanged


def read(value: Any, *, libraries: bool = True) -> Reading | None:
    """Read a value without running its code; ``None`` for one of which nothing but its class can be
    known.

    Args:
        value: what a tool returned.
        libraries: whether objects of libraries are read; not where pointers lead into the value, as
            nobody who wrote them knew what a data frame's data looks like.
    """
    if type(value) is str:
        return Reading(value)
    kind = kind_of(value)
    if kind is Kind.BYTES:
        try:
            return Reading(bytes(value).decode("utf-8"), restore=_encoded)
        except UnicodeDecodeError:
            return None  # an image, an archive: a text redactor sees nothing in it
    known = None
    if libraries:
        known = library_type(value)
        if known is IMAGE:
            return None
        data, whole = read_json(value)
    else:
        data, whole = to_whole_json(value)
    if whole:
        return Reading(data, True, partial(restored, value, data))
    # an iterator, an open file: its data is a tag with its class
    if known is None and kind is not Kind.TEXT and kind not in CONTAINERS:
        return None
    return Reading(data, False)
