"""Redaction of a stream's items before anyone sees them, also where a secret comes in pieces.

Texts are held back until enough of what follows is known: where redacting two neighbours apart gives something else
than redacting them together, a secret lies across, and they become one item. All others keep their boundaries.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

__all__ = ["LOOKAHEAD_CHARS", "WITHHELD_ITEM", "ItemCleaner"]

LOOKAHEAD_CHARS: Final = 2048
"""Characters that must follow a text before it is passed on."""

WITHHELD_ITEM: Final = "[item withheld: redaction failed]"

_MAX_MERGED: Final = 1 << 20


class ItemCleaner:
    """Redacts items in order.

    Args:
        clean: redacts one item, text or other; what it raises withholds the item.
    """

    def __init__(self, clean: Callable[[Any], Any]) -> None:
        self._clean = clean
        self._held: deque[str] = deque()
        self._chars = 0
        self.failed = False

    def feed(self, item: Any) -> list[Any]:
        """Take an item and return those that are ready; never raises.

        Args:
            item: what the generator yielded.
        """
        if type(item) is not str:
            return [*self.finish(), self._run(item)]
        self._held.append(item)
        self._chars += len(item)
        ready: list[Any] = []
        while self._held and self._chars - len(self._held[0]) >= LOOKAHEAD_CHARS:
            self._release(ready)
        return ready

    def finish(self) -> list[Any]:
        """Return what is still held back."""
        ready: list[Any] = []
        while self._held:
            self._release(ready)
        return ready

    def one(self, item: Any) -> Any:
        """Redact a value that stands alone.

        Args:
            item: the value.
        """
        return self._run(item)

    def _release(self, ready: list[Any]) -> None:
        first = self._held.popleft()
        if self._held and not self._is_clean(first):
            following = self._held.popleft()
            if len(first) + len(following) > _MAX_MERGED:
                self._chars -= len(first) + len(following)
                self.failed = True
                ready.append(WITHHELD_ITEM)
                return
            self._held.appendleft(first + following)
            return
        self._chars -= len(first)
        ready.append(self._run(first))

    def _is_clean(self, first: str) -> bool:
        left = first[-LOOKAHEAD_CHARS:]
        right = ""
        for text in self._held:
            right += text[: LOOKAHEAD_CHARS - len(right)]
            if len(right) >= LOOKAHEAD_CHARS:
                break
        both = (self._run(left), self._run(right), self._run(left + right))
        return all(type(part) is str for part in both) and both[0] + both[1] == both[2]

    def _run(self, item: Any) -> Any:
        try:
            return self._clean(item)
        except Exception:
            self.failed = True
            return WITHHELD_ITEM
