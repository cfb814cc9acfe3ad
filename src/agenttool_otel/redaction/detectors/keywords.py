"""Which of many literals occur in a text, in one linear search."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from typing import Final

from agenttool_otel.redaction.patterns import Matcher, compile_pattern
from agenttool_otel.redaction.work import spend

_ENOUGH: Final = 400
"""Matches in one go, of a text of up to 400 KB."""
_BYTES_PER_HIT: Final = 1024
_OFTEN: Final = 8
_ROUNDS: Final = 12
_SEARCH_WORK: Final = 4
"""Units of work of a search, for each kilobyte."""
_HIT_WORK: Final = 2
"""Units of a match, with the literals that it may hide."""
_LEAST_BYTES: Final = 3
_HEAD_BYTES: Final = 16 << 10
_EVERYWHERE: Final = frozenset(
    (b"pat", b"bot", b"asia", b"test_", b"live_", b"private", b"account", b"api-", b"key-")
)


class KeywordIndex:
    """A set of lower-case literals.

    Most are looked for together. Those that are frequent in any text are asked for one by one: the
    first place is soon found, and visiting every place would cost more.
    """

    def __init__(self, words: Iterable[bytes], *, frequent: frozenset[bytes] = _EVERYWHERE) -> None:
        """Compile the search.

        Args:
            words: the literals, in lower case.
            frequent: those of them that any text is full of.
        """
        # the longest first: an alternation takes the first that matches
        everything = sorted(set(words), key=lambda word: (-len(word), word))
        self._short: list[bytes] = []
        self._long: list[bytes] = []
        for word in everything:
            is_short = len(word) < _LEAST_BYTES or word in frequent
            (self._short if is_short else self._long).append(word)
        self._hidden = cache(self._hidden_in)
        self._matcher = compile_pattern(_any_of(self._long))

    def hits(self, lowered: bytes) -> dict[bytes, list[int] | None]:
        """The literals that occur, and where; None as places means: somewhere.

        Args:
            lowered: a text in lower case.
        """
        spend(_SEARCH_WORK * (3 + (len(lowered) >> 10)))
        found: dict[bytes, list[int] | None] = dict.fromkeys(self._frequent_in(lowered))
        enough = max(_ENOUGH, len(lowered) // _BYTES_PER_HIT)
        left = self._long
        matcher = self._matcher
        at = 0
        for _ in range(_ROUNDS):
            seen: Counter[bytes] = Counter()
            for match in islice(matcher.finditer(lowered, at), enough):
                word = match.group()
                at = match.start()
                seen[word] += 1
                self._note(lowered, word, at, found)
            hits = seen.total()
            spend(_HIT_WORK * hits)
            if hits < enough:
                return found
            spend(_SEARCH_WORK * (1 + ((len(lowered) - at) >> 10)))
            # what comes again and again is everywhere; the others are looked for alone, from here
            # on
            often = {word for word, times in seen.items() if times >= _OFTEN} or set(seen)
            found.update(dict.fromkeys(often))
            left = [word for word in left if word not in often]
            matcher = _compile_once(left)
        for word in left:
            if word in lowered:
                found[word] = None
        return found

    def _note(
        self, lowered: bytes, word: bytes, at: int, found: dict[bytes, list[int] | None]
    ) -> None:
        """Add the place of a match, and those of the literals that it may hide."""
        for offset, literal in self._hidden(word):
            if not lowered.startswith(literal, at + offset):
                continue
            places = found.setdefault(literal, [])
            if places is not None:
                places.append(at + offset)

    def _frequent_in(self, lowered: bytes) -> list[bytes]:
        """The frequent literals that occur: most of them early in the text, the others are looked
        for together.
        """
        head = lowered[:_HEAD_BYTES]
        found = [word for word in self._short if word in head]
        left = [word for word in self._short if word not in found]
        at = 0
        while left and len(lowered) > len(head):
            match = next(_compile_once(left).finditer(lowered, at), None)
            if match is None:
                break
            word = match.group()
            at = match.start()
            found.append(word)
            left.remove(word)
        return found

    def _hidden_in(self, word: bytes) -> list[tuple[int, bytes]]:
        """Where a find is: itself, and those it may hide, within it or going on behind it."""
        return [(at, other) for other in self._long for at in _places_in(word, other)]

    def occurs(self, lowered: bytes) -> bool:
        """Whether any literal occurs."""
        if self._matcher.search(lowered) is not None:
            return True
        return any(word in lowered for word in self._short)

    def places(self, lowered: bytes, most: int) -> list[int] | None:
        """Where literals begin, without those that are part of many words; None when there are more
        than ``most``.
        """
        found = [match.start() for match in islice(self._matcher.finditer(lowered), most + 1)]
        return found if len(found) <= most else None


def _compile_once(words: Iterable[bytes]) -> Matcher:
    """The search for the words that one text leaves over: not to be remembered."""
    return compile_pattern.__wrapped__(_any_of(words))


def _any_of(words: Iterable[bytes]) -> str:
    """An alternation of literals; of none, what never matches."""
    return "|".join(re.escape(word.decode()) for word in words) or r"\z."


def _places_in(word: bytes, other: bytes) -> Iterator[int]:
    """Where in a literal another one may begin: "secret" within, "token" at the end of "auth_to"."""
    for at in range(len(word)):
        if word.startswith(other[: len(word) - at], at):
            yield at
