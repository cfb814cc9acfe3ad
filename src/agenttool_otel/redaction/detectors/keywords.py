"""Which of many literals occur in a text, in one linear search."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import islice

from agenttool_otel.redaction.patterns import compile_pattern
from agenttool_otel.redaction.work import spend

_ENOUGH = 400
_BYTES_PER_HIT = 1024
_OFTEN = 8
_ROUNDS = 12
_PASSES = 4  # what it is worth, in units of work
_EACH = 2  # a match, with those that it may hide
_SHORT = 3
_HEAD = 16 << 10
_EVERYWHERE = frozenset(
    (b"pat", b"bot", b"asia", b"test_", b"live_", b"private", b"account", b"api-", b"key-")
)


class KeywordIndex:
    """A set of lower-case literals.

    Most are looked for together. Those that are frequent in any text are asked for one by one: the
    first place is soon found, and visiting every place would cost more.
    """

    def __init__(self, words: Iterable[bytes], *, frequent: frozenset[bytes] = _EVERYWHERE) -> None:
        """Compile the search."""
        everything = sorted(set(words), key=lambda word: (-len(word), word))
        self._short = tuple(word for word in everything if len(word) < _SHORT or word in frequent)
        self._long = tuple(word for word in everything if word not in self._short)
        self._hidden = cache(self._hidden_in)
        self._matcher = compile_pattern(_any_of(self._long))
        located = [word for word in everything if len(word) >= _SHORT and word not in frequent]
        self._located = compile_pattern(_any_of(located))

    def hits(self, lowered: bytes) -> dict[bytes, list[int] | None]:
        """The literals that occur, and where; None as places means: somewhere."""
        spend(_PASSES * (3 + (len(lowered) >> 10)))
        found: dict[bytes, list[int] | None] = dict.fromkeys(self._occurring(lowered))
        enough = max(_ENOUGH, len(lowered) // _BYTES_PER_HIT)
        left, matcher, at = self._long, self._matcher, 0
        for _ in range(_ROUNDS):
            seen: Counter[bytes] = Counter()
            for match in islice(matcher.finditer(lowered, at), enough):
                word, at = match.group(), match.start()
                seen[word] += 1
                for offset, literal in self._hidden(word):
                    places = (
                        found.setdefault(literal, [])
                        if lowered.startswith(literal, at + offset)
                        else None
                    )
                    if places is not None:
                        places.append(at + offset)
            spend(_EACH * seen.total())
            if seen.total() < enough:
                return found
            spend(_PASSES * (1 + ((len(lowered) - at) >> 10)))
            # what comes again and again is everywhere; the others are looked for alone, from here
            # on
            often = {word for word, times in seen.items() if times >= _OFTEN} or set(seen)
            found.update(dict.fromkeys(often))
            left = tuple(word for word in left if word not in often)
            matcher = compile_pattern.__wrapped__(_any_of(left))  # one text's, not to be remembered
        return {**found, **{literal: None for literal in left if literal in lowered}}

    def _occurring(self, lowered: bytes) -> list[bytes]:
        """The frequent literals that occur: most of them early in the text, the others are looked
        for together.
        """
        head = lowered[:_HEAD]
        found = [word for word in self._short if word in head]
        left, at = [word for word in self._short if word not in found], 0
        while left and len(lowered) > len(head):
            if (
                match := next(
                    compile_pattern.__wrapped__(_any_of(left)).finditer(lowered, at), None
                )
            ) is None:
                break
            word, at = match.group(), match.start()
            found.append(word)
            left.remove(word)
        return found

    def _hidden_in(self, word: bytes) -> list[tuple[int, bytes]]:
        """Where a find is: itself, and those it may hide, within it or going on behind it."""
        return [(at, other) for other in self._long for at in _places_in(word, other)]

    def occurs(self, lowered: bytes) -> bool:
        """Whether any literal occurs."""
        return self._matcher.search(lowered) is not None or any(
            word in lowered for word in self._short
        )

    def places(self, lowered: bytes, most: int) -> list[int] | None:
        """Where literals begin, without those that are part of many words; None when there are more
        than ``most``.
        """
        found = [match.start() for match in islice(self._located.finditer(lowered), most + 1)]
        return found if len(found) <= most else None


def _any_of(words: Iterable[bytes]) -> str:
    return "|".join(re.escape(word.decode()) for word in words) or r"\z."


def _places_in(word: bytes, other: bytes) -> list[int]:
    """Where in a literal another one may begin."""
    return [at for at in range(len(word)) if word.startswith(other[: len(word) - at], at)]
