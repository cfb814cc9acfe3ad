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
            if len(word) < _LEAST_BYTES or word in frequent:
                self._short.append(word)
            else:
                self._long.append(word)
        self._hidden = cache(self._hidden_in)
        self._matcher = compile_pattern(_any_of(self._long))

    def hits(self, lowered: bytes) -> dict[bytes, list[int] | None]:
        """The literals that occur, and their places; None as places means: somewhere.

        Args:
            lowered: a text in lower case.
        """
        size = len(lowered)
        kilobytes = size >> 10
        spend(_SEARCH_WORK * (3 + kilobytes))
        frequent = self._frequent_in(lowered)
        found: dict[bytes, list[int] | None] = dict.fromkeys(frequent)
        enough = max(_ENOUGH, size // _BYTES_PER_HIT)
        left = self._long
        matcher = self._matcher
        at = 0
        for _ in range(_ROUNDS):
            seen: Counter[bytes] = Counter()
            # a log in which "key_" stands in each line has thousands of matches: some are enough
            matches = matcher.finditer(lowered, at)
            for match in islice(matches, enough):
                word = match.group()
                at = match.start()
                seen[word] += 1
                self._note(lowered, word, at, found)
            hits = seen.total()
            spend(_HIT_WORK * hits)
            if hits < enough:
                return found
            kilobytes = (size - at) >> 10
            spend(_SEARCH_WORK * (1 + kilobytes))
            # what comes again and again is everywhere; the others are looked for alone, from here
            # on
            often = {word for word, times in seen.items() if times >= _OFTEN}
            if not often:
                often = set(seen)
            for word in often:
                found[word] = None
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
            place = at + offset
            if not lowered.startswith(literal, place):
                continue
            places = found.setdefault(literal, [])
            # None: it is everywhere
            if places is not None:
                places.append(place)

    def _frequent_in(self, lowered: bytes) -> list[bytes]:
        """The frequent literals that occur: most of them early in the text, the others are looked
        for together.
        """
        head = lowered[:_HEAD_BYTES]
        found = [word for word in self._short if word in head]
        left = [word for word in self._short if word not in found]
        at = 0
        while left and len(lowered) > len(head):
            matcher = _compile_once(left)
            match = next(matcher.finditer(lowered, at), None)
            if match is None:
                break
            word = match.group()
            at = match.start()
            found.append(word)
            left.remove(word)
        return found

    def _hidden_in(self, word: bytes) -> list[tuple[int, bytes]]:
        """Where a find is: itself, and those it may hide, within it or going on behind it."""
        hidden: list[tuple[int, bytes]] = []
        for other in self._long:
            for at in _places_in(word, other):
                hidden.append((at, other))
        return hidden

    def occurs(self, lowered: bytes) -> bool:
        """Whether any literal occurs."""
        if self._matcher.search(lowered) is not None:
            return True
        return any(word in lowered for word in self._short)

    def places(self, lowered: bytes, most: int) -> list[int] | None:
        """Where literals begin, without those that are part of many words; None when there are more
        than ``most``.
        """
        matches = self._matcher.finditer(lowered)
        found = [match.start() for match in islice(matches, most + 1)]
        if len(found) > most:
            return None
        return found


def _compile_once(words: Iterable[bytes]) -> Matcher:
    """The search for the words that one text leaves over: not to be remembered."""
    return compile_pattern.__wrapped__(_any_of(words))


def _any_of(words: Iterable[bytes]) -> str:
    """An alternation of literals; of none, what never matches."""
    escaped = [re.escape(word.decode()) for word in words]
    # behind the end of a text no character follows
    return "|".join(escaped) or r"\z."


def _places_in(word: bytes, other: bytes) -> Iterator[int]:
    """Where in a literal another one may begin: "secret" within, "token" at the end of "auth_to"."""
    for at in range(len(word)):
        within = other[: len(word) - at]
        if word.startswith(within, at):
            yield at
