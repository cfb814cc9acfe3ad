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

    text: str  # head, a line that says what is left out, tail; or the whole text if it fits
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
        room = self._max + _LOOK_BACK_CHARS - len(self._head)
        if room > 0:
            self._head += text[:room]
        end = text[-(self._max + _LOOK_BACK_CHARS) :]
        self._tail.append(end)
        self._tail_chars += len(end)
        while self._tail_chars - len(self._tail[0]) >= self._max + _LOOK_BACK_CHARS:
            self._tail_chars -= len(self._tail.popleft())
        # many tiny pieces: one string costs less than their headers
        if len(self._tail) > _MAX_PARTS:
            self._tail = deque(["".join(self._tail)])

    def build(self, max_chars: int | None = None) -> Preview:
        """Return the view of all pieces so far."""
        most = self._max if max_chars is None else max(0, min(self._max, max_chars))
        lines = self._breaks + (0 if self._ends_with_break or not self._chars else 1)
        if self._chars <= most:
            return Preview(self._head, self._chars, lines)
        room = most - _NOTE_CHARS
        if room <= 0:
            note = f"[{self._chars} characters omitted]"
            return Preview(note[:most], self._chars, lines, self._chars, self._breaks)
        head = _cut_head(self._head, int(room * _HEAD_SHARE))
        tail = _cut_tail("".join(self._tail), room - int(room * _HEAD_SHARE))
        omitted = self._chars - len(head) - len(tail)
        omitted_breaks = self._breaks - head.count("\n") - tail.count("\n")
        note = f"[... {omitted} characters, {omitted_breaks} lines omitted ...]"
        text = f"{head}{'' if head.endswith(chr(10)) or not head else chr(10)}{note}\n{tail}"
        return Preview(text, self._chars, lines, omitted, omitted_breaks)


def _cut_head(text: str, size: int) -> str:
    if size >= len(text):
        return text
    # a line break right behind the room costs nothing: one stands before the note in any case, and
    # it is the text's own
    line = text.rfind("\n", size // 2, size + 1)
    return text[: line + 1] if line >= 0 else text[: _boundary(text, size)]


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


def _boundary(text: str, position: int) -> int:
    lowest = max(0, position - _LOOK_BACK_CHARS)
    while position > lowest and not _is_boundary(text, position):
        position -= 1
    return position


def _is_boundary(text: str, position: int, *, open_start: bool = False) -> bool:
    """Tell whether a cut here leaves every user-perceived character whole (a near form of UAX #29
    clusters).
    """
    if position <= 0 or position >= len(text):
        return True
    before, after = text[position - 1], text[position]
    if before == "\n":
        return True  # nothing belongs to a line break before it
    if _extends(after) or before == _JOINER or (before == "\r" and after == "\n"):
        return False
    if _REGIONAL.match(after) and _REGIONAL.match(before):
        run = 0
        while position - 1 - run >= 0 and _REGIONAL.match(text[position - 1 - run]):
            run += 1
        # where the run of flags began is not known; where it ends is
        if open_start and run == position:
            run = 0
            while position + run < len(text) and _REGIONAL.match(text[position + run]):
                run += 1
        return run % 2 == 0  # flags are pairs
    return True


def _extends(character: str) -> bool:
    """Tell whether a character belongs to the one before: marks, joiners, emoji modifiers
    and tags.
    """
    if character <= "\u02ff":
        return False
    if unicodedata.category(character) in ("Mn", "Mc", "Me") or character in "\u200c\u200d":
        return True
    return "\U0001f3fb" <= character <= "\U0001f3ff" or "\U000e0020" <= character <= "\U000e007f"
