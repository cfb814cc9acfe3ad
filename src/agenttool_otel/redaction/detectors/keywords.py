"""Which of many literals occur in a text, in one linear search."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agenttool_otel.redaction.patterns import compile_pattern

_ENOUGH = 400
_BYTES_PER_HIT = 1024
_SHORT = 3
_EVERYWHERE = frozenset((b"pat", b"bot", b"asia", b"test_", b"live_", b"private", b"account", b"api-", b"key-"))


class KeywordIndex:
    """A set of lower-case literals.

    Most are looked for together. Those that are frequent in any text are asked for one by one: the first place is soon
    found, and visiting every place would cost more.
    """

    def __init__(self, words: Iterable[bytes], *, frequent: frozenset[bytes] = _EVERYWHERE) -> None:
        """Compile the search."""
        everything = sorted(set(words), key=lambda word: (-len(word), word))
        self._short = tuple(word for word in everything if len(word) < _SHORT or word in frequent)
        self._long = tuple(word for word in everything if word not in self._short)
        # a longer literal may hide a shorter one that begins at the same place
        self._implied = {
            word: tuple(other for other in self._long if other != word and other in word) for word in self._long
        }
        # and one that begins in it and goes on behind it
        self._reaching = {
            word: tuple(
                (at, other)
                for at in range(1, len(word))
                for other in self._long
                if len(other) > len(word) - at and other.startswith(word[at:])
            )
            for word in self._long
        }
        self._matcher = compile_pattern("|".join(re.escape(word.decode()) for word in self._long))
        located = [word for word in everything if len(word) >= _SHORT and word not in frequent]
        self._located = compile_pattern("|".join(re.escape(word.decode()) for word in located))

    def hits(self, lowered: bytes) -> dict[bytes, list[int] | None]:
        """The literals that occur, and where; None as places means: somewhere."""
        found: dict[bytes, list[int] | None] = {word: None for word in self._short if word in lowered}
        enough = max(_ENOUGH, len(lowered) // _BYTES_PER_HIT)
        for count, match in enumerate(self._matcher.finditer(lowered)):
            if count >= enough:  # a text that is full of them: asking for each is bounded, visiting each is not
                return {literal: None for literal in (*self._short, *self._long) if literal in lowered}
            word = match.group()
            at = match.start()
            for literal in (word, *self._implied[word]):
                places = found.setdefault(literal, [])
                if places is not None:
                    places.append(at)
            for offset, literal in self._reaching[word]:
                if lowered.startswith(literal, at + offset):
                    places = found.setdefault(literal, [])
                    if places is not None:
                        places.append(at + offset)
        return found

    def occurs(self, lowered: bytes) -> bool:
        """Whether any literal occurs."""
        return self._matcher.search(lowered) is not None or any(word in lowered for word in self._short)

    def places(self, lowered: bytes, most: int) -> list[int] | None:
        """Where literals begin, without those that are part of many words; None when there are more than ``most``."""
        found: list[int] = []
        for match in self._located.finditer(lowered):
            if len(found) >= most:
                return None
            found.append(match.start())
        return found
