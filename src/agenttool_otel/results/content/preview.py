"""A short view of a long text: its head and its tail, cut where a reader would cut, and what is
missing in between.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from typing import Final, NamedTuple

_HEAD_SHARE: Final = 2 / 3
_REGIONAL: Final = re.compile("[\U0001f1e6-\U0001f1ff]")
_JOINER: Final = "\u200d"
_LOOK_BACK_CHARS: Final = 64
_NOTE_CHARS: Final = 80
_MAX_PARTS: Final = 4096


class Preview(NamedTuple):
    """A view of a text."""

    text: str  # head, a line about what is left out, tail; or the whole text if it fits
    chars: int  # characters of the whole text
    lines: int  # lines of the whole text
    omitted_chars: int = 0  # characters that the view leaves out
    omitted_lines: int = 0  # line ends among them


def preview(text: str, max_chars: int) -> Preview:
    """Return the view of a text that is already redacted."""
    builder = PreviewBuilder(max_chars)
    builder.add(text)
    return builder.build()


class PreviewBuilder:
    """Makes the view of a text that comes in pieces, holding no more than a few times its size."""

    def __init__(self, max_chars: int) -> None:
        self._max = max(0, max_chars)
        self._head = ""
        self._tail: deque[str] = deque()
        self._tail_chars = 0
        self._chars = 0
        self._breaks = 0
        self._ends_with_break = False

    def add(self, text: str) -> None:
        """Add the next piece."""
        if not text:
            return
        self._chars += len(text)
        self._breaks += text.count("\n")
        self._ends_with_break = text.endswith("\n")
        # more than is shown: a cut may have to move back to a whole character
        kept = self._max + _LOOK_BACK_CHARS
        room = kept - len(self._head)
        if room > 0:
            self._head += text[:room]
        end = text[-kept:]
        self._tail.append(end)
        self._tail_chars += len(end)
        while self._tail_chars - len(self._tail[0]) >= kept:
            dropped = self._tail.popleft()
            self._tail_chars -= len(dropped)
        # many tiny pieces: one string costs less than their headers
        if len(self._tail) > _MAX_PARTS:
            self._tail = deque(["".join(self._tail)])

    def build(self, max_chars: int | None = None) -> Preview:
        """Return the view of all pieces so far.

        Args:
            max_chars: a smaller room than that of the builder.
        """
        most = self._max
        if max_chars is not None:
            most = max(0, min(self._max, max_chars))
        lines = self._breaks
        # "a\nb" has two lines, "a\nb\n" too
        if self._chars and not self._ends_with_break:
            lines += 1
        if self._chars <= most:
            return Preview(self._head, self._chars, lines)
        room = most - _NOTE_CHARS
        if room <= 0:
            note = f"[{self._chars} characters omitted]"
            return Preview(
                note[:most],
                chars=self._chars,
                lines=lines,
                omitted_chars=self._chars,
                omitted_lines=self._breaks,
            )
        head_room = int(room * _HEAD_SHARE)
        head = _cut_head(self._head, head_room)
        tail = _cut_tail("".join(self._tail), room - head_room)
        omitted = self._chars - len(head) - len(tail)
        omitted_breaks = self._breaks - head.count("\n") - tail.count("\n")
        if head and not head.endswith("\n"):
            head += "\n"
        note = f"[... {omitted} characters, {omitted_breaks} lines omitted ...]"
        return Preview(
            f"{head}{note}\n{tail}",
            chars=self._chars,
            lines=lines,
            omitted_chars=omitted,
            omitted_lines=omitted_breaks,
        )


def _cut_head(text: str, size: int) -> str:
    if size >= len(text):
        return text
    # a line break right behind the room costs nothing: a break stands before the note in any case,
    # and here it is the text's own
    line = text.rfind("\n", size // 2, size + 1)
    if line >= 0:
        return text[: line + 1]
    return text[: _boundary_before(text, size)]


def _cut_tail(text: str, size: int) -> str:
    if size >= len(text):
        return text
    start = len(text) - size
    line = text.find("\n", start - 1, start + size // 2)
    if line >= 0:
        return text[line + 1 :]
    position = start
    while position < len(text) and not _is_boundary(text, position, open_start=True):
        position += 1
    return text[position:]


def _boundary_before(text: str, position: int) -> int:
    lowest = max(0, position - _LOOK_BACK_CHARS)
    while position > lowest and not _is_boundary(text, position):
        position -= 1
    return position


def _is_boundary(text: str, position: int, *, open_start: bool = False) -> bool:
    """Return whether a cut here leaves every user-perceived character whole (a near form of UAX #29
    clusters).

    Args:
        text: the text, or its end.
        position: where it is cut.
        open_start: whether the text may be an end, so that its first character is no beginning.
    """
    if position <= 0 or position >= len(text):
        return True
    before = text[position - 1]
    after = text[position]
    if before == "\n":
        return True  # nothing belongs to a line break before it
    if before == "\r" and after == "\n":
        return False
    if before == _JOINER or _extends(after):
        return False
    if _REGIONAL.match(before) and _REGIONAL.match(after):
        return _is_between_flags(text, position, open_start=open_start)
    return True


def _is_between_flags(text: str, position: int, *, open_start: bool) -> bool:
    """Return whether a cut in a run of regional indicators is between two flags, which are pairs:
    ``DE|FR``.
    """
    first = position
    while first > 0 and _REGIONAL.match(text[first - 1]):
        first -= 1
    letters = position - first
    if first == 0 and open_start:
        # the run may have begun before the text: its end is known
        last = position
        while last < len(text) and _REGIONAL.match(text[last]):
            last += 1
        letters = last - position
    return letters % 2 == 0


def _extends(character: str) -> bool:
    """Return whether a character belongs to the one before: marks, joiners, emoji modifiers
    and tags.
    """
    if character <= "\u02ff":
        return False
    if character in "\u200c\u200d":
        return True
    if unicodedata.category(character) in ("Mn", "Mc", "Me"):
        return True
    is_skin_tone = "\U0001f3fb" <= character <= "\U0001f3ff"
    is_tag = "\U000e0020" <= character <= "\U000e007f"
    return is_skin_tone or is_tag
