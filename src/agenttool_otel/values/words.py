"""The words that a text may be, as a part of its annotation: ``Annotated[str, OneOf(RiskLevel)]``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OneOf:
    """The words that a text may be."""

    words: Iterable[str]  # the words
    more: Iterable[str] = ()  # further words
    open: bool = False  # whether somebody may have words of their own beside these

    def listed(self) -> list[str]:
        """Return all words."""
        listed = []
        for word in self.words:
            listed.append(str(word))
        for word in self.more:
            listed.append(str(word))
        return listed
