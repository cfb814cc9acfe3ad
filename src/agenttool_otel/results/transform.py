"""Redaction of what is too large to be redacted at once: text in blocks that no secret straddles.

A cut between two blocks is checked with the redactor itself: around the cut, redacting both sides apart must give the
same as redacting them together. Where it does not, a secret lies across, and the cut moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from agenttool_otel.errors import PersistenceError

__all__ = ["CleanText", "RedactionFailed", "Transform"]

_BLOCK_CHARS: Final = 1 << 17
_CONTEXT_CHARS: Final = 1 << 13
_MAX_HELD: Final = _BLOCK_CHARS * 4
_TRIES: Final = 12


class RedactionFailed(PersistenceError):
    """The redactor raised or returned something else; nothing that it should have cleaned is kept or shown."""


@dataclass(frozen=True, slots=True)
class Transform:
    """What must happen to a result before it is kept or shown.

    Attributes:
        text: redacts a text.
        value: redacts a value that sits at a JSON pointer of the result; structure stays.
    """

    text: Callable[[str], str]
    value: Callable[[Any, str], Any]


@dataclass(slots=True)
class CleanText:
    """Redacts a text that comes in pieces.

    Attributes:
        clean: redacts one text.
        changed: whether anything was redacted so far.
    """

    clean: Callable[[str], str]
    changed: bool = False
    _held: str = field(default="", repr=False)

    def pieces(self, pieces: Iterable[str]) -> Iterator[str]:
        """Yield the redacted text of all pieces.

        Raises:
            RedactionFailed: the redactor failed; what was yielded before is clean, and there is no more.
        """
        for piece in pieces:
            yield from self.feed(piece)
        yield from self.finish()

    def feed(self, piece: str) -> Iterator[str]:
        """Take a piece and yield the text that is ready."""
        for start in range(0, len(piece), _BLOCK_CHARS):
            self._held += piece[start : start + _BLOCK_CHARS]
            while len(self._held) >= _BLOCK_CHARS + _CONTEXT_CHARS:
                cut = self._find_cut()
                if cut is None:
                    break
                ready, self._held = self._held[:cut], self._held[cut:]
                yield self._apply(ready)

    def finish(self) -> Iterator[str]:
        """Yield what is left."""
        if self._held:
            ready, self._held = self._held, ""
            yield self._apply(ready)

    def _find_cut(self) -> int | None:
        held = self._held
        end = len(held) - _CONTEXT_CHARS
        tried: set[int] = set()
        for mark in ("\n", "}", ";", ",", " ", ""):
            position = end
            for _ in range(_TRIES):
                position = held.rfind(mark, _CONTEXT_CHARS, position) if mark else position - _CONTEXT_CHARS // 3
                if position <= _CONTEXT_CHARS:
                    break
                cut = position + len(mark)
                if cut not in tried and self._is_clean(cut):
                    return cut
                tried.add(cut)
        # One secret as long as all that: hold more, up to a bound, then take it whole.
        return None if len(held) < _MAX_HELD else len(held)

    def _is_clean(self, cut: int) -> bool:
        left = self._held[max(0, cut - _CONTEXT_CHARS) : cut]
        right = self._held[cut : cut + _CONTEXT_CHARS]
        return self._run(left) + self._run(right) == self._run(left + right)

    def _apply(self, text: str) -> str:
        cleaned = self._run(text)
        self.changed = self.changed or cleaned != text
        return cleaned

    def _run(self, text: str) -> str:
        try:
            cleaned = self.clean(text)
        except Exception as error:
            raise RedactionFailed(f"redaction failed: {type(error).__name__}") from None
        if type(cleaned) is not str:
            raise RedactionFailed("redaction failed: no text")
        return cleaned
