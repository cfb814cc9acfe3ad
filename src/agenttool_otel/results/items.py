"""Redaction of a stream's items before anyone sees them, also where a secret comes in pieces.

Texts are held back until enough of what follows is known: where redacting two neighbours apart gives something else
than redacting them together, a secret lies across, and they become one item. All others keep their boundaries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

__all__ = ["LOOKAHEAD_CHARS", "WITHHELD_ITEM", "ItemCleaner"]

LOOKAHEAD_CHARS: Final = 2048
"""Characters that must follow a text before it is passed on."""

WITHHELD_ITEM: Final = "[item withheld: redaction failed]"

_MAX_HELD: Final = 1 << 20
_STEPS: Final = (0, 1, -1, 2, -2, 4, -4, 8, -8, 16, -16, 32, -32, 64, -64, 128, -128)
_HARMLESS: Final = 6
"""A text that is shorter holds no secret that a detector could know."""


class ItemCleaner:
    """Redacts items in order.

    Args:
        clean: redacts one item, text or other; what it raises withholds the item.
        apart: nothing of an item is left anyway, so that what lies across two of them does not matter.
    """

    def __init__(self, clean: Callable[[Any], Any], *, apart: bool = False) -> None:
        self._clean = clean
        self._apart = apart
        self._held: list[str] = []
        self._chars = 0
        self.failed = False

    def feed(self, item: Any) -> list[Any]:
        """Take an item and return those that are ready; never raises.

        Args:
            item: what the generator yielded.
        """
        if type(item) is not str or self._apart:
            return [*self.finish(), self.one(item)]
        self._held.append(item)
        self._chars += len(item)
        return self._ready() if self._chars >= 2 * LOOKAHEAD_CHARS else []

    def finish(self) -> list[Any]:
        """Return what is still held back."""
        held, self._held, self._chars = self._held, [], 0
        return self._split(held) if held else []

    def one(self, item: Any) -> Any:
        """Redact a value that stands alone.

        Args:
            item: the value.
        """
        try:
            return self._clean(item)
        except Exception:
            self.failed = True
            return WITHHELD_ITEM

    def _ready(self) -> list[Any]:
        """Return the items before a clean cut that leaves enough text behind it."""
        held, following, last = self._held, 0, len(self._held)
        while last > 0 and following < LOOKAHEAD_CHARS:
            last -= 1
            following += len(held[last])
        cuts = [last - step for step in (0, 1, 2, 4, 8, 16, 32, 64) if last > step]
        for cut in cuts:
            if self._is_clean(held, cut):
                self._held = held[cut:]
                self._chars = sum(map(len, self._held))
                return self._split(held[:cut])
        if not cuts or self._chars <= _MAX_HELD:
            return []
        self._held, self._chars, self.failed = [], 0, True
        return [WITHHELD_ITEM]

    def _split(self, items: list[str]) -> list[Any]:
        """Redact items whose outer borders are clean, apart wherever that is safe."""
        text = "".join(items)
        cleaned = self.one(text)
        if len(items) == 1:
            return [cleaned]
        if cleaned == text:
            # An item alone may look like a secret that it does not look like among the others.
            return [item if len(item) < _HARMLESS else self.one(item) for item in items]
        middle = len(items) // 2
        for step in _STEPS:
            cut = middle + step
            if 0 < cut < len(items) and self._is_clean(items, cut):
                return [*self._split(items[:cut]), *self._split(items[cut:])]
        return [cleaned]

    def _is_clean(self, items: list[str], cut: int) -> bool:
        """Tell whether no secret lies across the border before an item."""
        left, right = "", ""
        for text in reversed(items[:cut]):
            left = text[-LOOKAHEAD_CHARS:] + left
            if len(left) >= LOOKAHEAD_CHARS:
                break
        for text in items[cut:]:
            right += text[:LOOKAHEAD_CHARS]
            if len(right) >= LOOKAHEAD_CHARS:
                break
        left, right = left[-LOOKAHEAD_CHARS:], right[:LOOKAHEAD_CHARS]
        both = (self.one(left), self.one(right), self.one(left + right))
        return all(type(part) is str for part in both) and bool(both[0] + both[1] == both[2])
