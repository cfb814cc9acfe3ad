"""The words that a text may be, as a part of its annotation: ``Annotated[str, OneOf(RiskLevel)]``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, init=False)
class OneOf:
    """The words that a text may be.

    Args:
        words: the words.
        more: further words.
        open: whether somebody may have words of their own beside these.
    """

    words: tuple[str, ...]
    open: bool

    def __init__(self, words: Iterable[str], more: Iterable[str] = (), *, open: bool = False):
        object.__setattr__(self, "words", tuple(str(word) for word in (*words, *more)))
        object.__setattr__(self, "open", open)
