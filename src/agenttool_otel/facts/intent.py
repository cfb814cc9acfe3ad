"""Does what the user asked for call for this kind of action? From the user's own words and the
tool's, nothing else.

It is lexical and deterministic: words are brought to their stems (Snowball's English stemmer) and
compared with the words that stand for the tool's action, of a small table (``data/intent.toml``).
It understands nothing: words that are not in the table, or of another language, are not matched,
unless the tool's ``verbs`` name them.

Kept of the user's words are keyed digests of stems.
"""

from __future__ import annotations

import hashlib
import math
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, Final, NamedTuple

from agenttool_otel.facts.tokens import normalize_text
from agenttool_otel.facts.types import IntentFact, ToolWords
from agenttool_otel.values.tables import load_table

_KEY: Final = secrets.token_bytes(32)
"""The key of this process, for where none is given."""

_MAX_CHARS: Final = 200_000
_MAX_STEMS: Final = 8_192
_MAX_SHOWN: Final = 16
_MAX_WORD: Final = 40
_DELEGATED: Final = "\0delegated"
_PLAIN_VERB: Final = "\1"
"""Before the stem of a word that stands where only a verb stands: "please exchange my order"."""

_NEAR_PARTICLE: Final = 6
"""Words before a particle among which its verb stands: "call the meeting with Ann off"."""

_MOST: Final = 2 / 3
"""Of the words of a tool without a verb, how many have to be said."""

_NEAR: Final = 3
"""Words before a noun among which a light verb makes it an action."""

_CONNECTIVES: Final = frozenset(("and", "or", "then", "to"))
_TOKEN: Final = re.compile(r"[^\W\d_]+|[.,;:!?()\n]")
_COMPOUND: Final = re.compile(r"\b([^\W\d_]{3,})[-\u2010\u2011][^\W\d_]+ing\b", re.I)
"""A noun of two words, of which the second asks for nothing: "decision-making", not "re-ordering"."""

_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class UserWords:
    """What a user asked for, in all turns of a session, as keyed digests; grows only to its bound.

    A stem that had no room is not matched later, so that the call is asked about rather than let
    through.
    """

    __slots__ = ("_asked", "_key", "_named")

    def __init__(
        self,
        key: bytes = _KEY,
        asked: Iterable[bytes] = (),
        named: Iterable[bytes] = (),
    ) -> None:
        self._key = key
        self._asked = set(asked)
        self._named = set(named)

    def __len__(self) -> int:
        """Return how many stems are remembered."""
        return len(self._asked) + len(self._named)

    @property
    def digests(self) -> tuple[list[str], list[str]]:
        """Return the digests, for the same session in another process."""
        asked = [digest.hex() for digest in self._asked]
        named = [digest.hex() for digest in self._named]
        return asked, named

    def with_more(self, asked: Iterable[str], named: Iterable[str]) -> UserWords:
        """Return the same words and more; the same alone where more have no room."""
        all_asked = self._asked.union(map(bytes.fromhex, asked))
        all_named = self._named.union(map(bytes.fromhex, named))
        more = UserWords(self._key, all_asked, all_named)
        return more if len(more) <= _MAX_STEMS else self

    def add(self, text: str) -> None:
        """Add the words of a text of the user."""
        for stem, asks in _stems(_COMPOUND.sub(r"\1", text[:_MAX_CHARS])):
            if len(self) >= _MAX_STEMS:
                return
            digest = _digest(self._key, stem)
            if not stem.startswith(_PLAIN_VERB):
                self._named.add(digest)
            if asks:
                self._asked.add(digest)

    def intent(self, tool: ToolWords) -> IntentFact:
        """Return whether the user asked for what a tool does."""
        keyed = _keyed(tool, self._key)
        matched = _words_by_digest(keyed.actions, self._asked)
        named = _words_by_digest(keyed.objects, self._named)
        return {
            "called_for": len(matched) >= keyed.needed or keyed.first in self._asked,
            "matched": matched[:_MAX_SHOWN],
            "named": named[:_MAX_SHOWN],
            "delegated": _digest(self._key, _DELEGATED) in self._asked,
        }


def _begins_name(tool: ToolWords, key: bytes) -> bytes:
    """Return the digest of the first word of a tool's name where it stands as a verb.

    A name begins with what the tool does, though no table has the word: "exchange_items".
    """
    words = _words_of_name(tool.name)
    return _digest(key, _PLAIN_VERB + _stem(words[0])) if words else b""


def _words_by_digest(words: Mapping[bytes, str], digests: set[bytes]) -> list[str]:
    """Return the words whose digests are among some, sorted."""
    found = {words[digest] for digest in words.keys() & digests}
    return sorted(found)


class _Keyed(NamedTuple):
    """A tool's words by their digests."""

    actions: dict[bytes, str]  # ask for what it does
    objects: dict[bytes, str]  # what it does it with
    needed: int  # of the actions, how many words ask for it
    first: bytes  # the first word of its name, where it stands as a verb


@lru_cache(maxsize=4096)
def _keyed(tool: ToolWords, key: bytes) -> _Keyed:
    actions, objects, needed = _words_of(tool)
    keyed_actions = {_digest(key, stem): word for stem, word in actions.items()}
    keyed_objects = {_digest(key, stem): word for stem, word in objects.items()}
    return _Keyed(keyed_actions, keyed_objects, needed, _begins_name(tool, key))


def _digest(key: bytes, stem: str) -> bytes:
    data = stem.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=12, key=key, person=b"intent").digest()


def _words_of(tool: ToolWords) -> tuple[dict[str, str], dict[str, str], int]:
    """Return by stem the words that ask for what a tool does and the words for what it does it
    with, and how many of the first ask for it.
    """
    name = _words_of_name(tool.name)
    named = [*name, *_tokens(tool.hints)]
    words = {_stem(word): word for word in reversed(named)}
    verbs = _verbs_of(name, tool.hints)
    objects = {stem: word for stem, word in words.items() if stem not in verbs}
    stated: dict[str, str] = {}
    for text in tool.verbs:
        for word in _tokens(text):
            stated[_stem(word)] = word
    if not verbs and not stated:
        # "weather" has no word for what it does: most of its words ask for it
        return words, objects, max(1, math.ceil(_MOST * len(words)))
    actions = dict(stated)
    for stem in (*verbs, *stated):
        actions.setdefault(stem, words.get(stem) or stated[stem])
        for entry in _entries(stem, words):
            actions = {**entry.asking, **actions}
    return actions, objects, 1


def _verbs_of(name: list[str], hints: str) -> list[str]:
    """Return the stems of a tool's words that are verbs: of its name the first word, where it is a
    known one, and those behind a connective.

    Of ``return_delivered_order_items`` only "return": the others say what is returned. Of
    ``post_comment`` both, as both may be the verb.
    """
    stems = list(map(_stem, name))
    of_hints = _verbs_among({_stem(word): word for word in _tokens(hints)})
    if len(stems) < 3 or stems[0] not in _table().actions:
        return list(dict.fromkeys([*_verbs_among(stems), *of_hints]))
    joined = [stem for before, stem in pairwise(stems) if before in _CONNECTIVES]
    known = [stem for stem in joined if stem in _table().actions]
    return list(dict.fromkeys([stems[0], *known, *of_hints]))


def _verbs_among(stems: Iterable[str]) -> list[str]:
    """Return the stems that are verbs: of "post_comment" both, as both may be nouns."""
    table = _table()
    known = [stem for stem in stems if stem in table.actions]
    verbs_alone = [stem for stem in known if stem not in table.nouns]
    return verbs_alone or known


def _entries(stem: str, words: Mapping[str, str]) -> list[_Action]:
    """Return the rows for a verb: those for one of the tool's nouns, or else those for any."""
    entries = _table().actions.get(stem, ())
    others = words.keys() - {stem}
    special = [entry for entry in entries if entry.nouns & others]
    return special or [entry for entry in entries if not entry.nouns]


def _words_of_name(name: str) -> list[str]:
    spaced = _HUMP.sub(" ", name)
    return _tokens(spaced.replace("_", " "))


def _stems(text: str) -> Iterator[tuple[str, bool]]:
    """Return the stems of a text, each with whether the user asks for it to be done."""
    table = _table()
    refused = False
    before: list[str] = [""]  # of this clause
    for word, following in pairwise([*_tokens(text), ""]):
        if not word.isalpha():
            before = [""]
            refused = False
            continue
        if word == "s" and before[-1] == "let":
            continue
        # "don't delete" refuses; "don't forget to delete" asks
        refused = word in table.refusals or (refused and word not in table.kept)
        near = before[-_NEAR:]
        if not refused and word in table.handed and _hands_over(near):
            yield _DELEGATED, True
        stem = _stem(word)
        yield stem, not refused and _asks(stem, near, following)
        if not refused:
            yield from _further_verbs(word, before, following)
        before.append(word)


def _further_verbs(word: str, before: list[str], following: str) -> Iterator[tuple[str, bool]]:
    """Yield what a word asks for beside itself: as a plain verb, a participle or a particle."""
    table = _table()
    if before[-1] in _ASKING or (
        following in table.objects and before[-1] not in table.determiners
    ):
        yield _PLAIN_VERB + _stem(word), True
    verb = table.participles.get(word)
    if verb is not None and not table.wanting.isdisjoint(before[-_NEAR:]):
        yield verb, True
    verbs = table.phrases.get(word, {})
    for earlier in before[-_NEAR_PARTICLE:]:
        meant = verbs.get(_stem(earlier))
        if meant is not None:
            yield meant, True


def _hands_over(near: list[str]) -> bool:
    """Return whether the words before "instructions" ask to do them: "follow the", but not "do the
    following".
    """
    if "following" in near:
        return False
    return not _table().handing.isdisjoint(near)


def _asks(stem: str, near: list[str], following: str) -> bool:
    """Return whether a word is used as something to be done, by the words around it."""
    table = _table()
    # make a payment, place an order
    if not table.light.isdisjoint(map(_stem, near)):
        return True
    last = near[-1]
    if last in table.determiners:
        return False
    return stem not in table.nouns or _begins(last, following)


def _begins(last: str, following: str) -> bool:
    """Return whether a word that may be a noun stands as a verb: "please post", "post it"."""
    table = _table()
    return last == "" or last in table.openers or following in table.objects


def verbs_in(sentence: str) -> Iterator[tuple[str, str]]:
    """Return the words that a description uses as verbs, each with its stem: "Creates a post"
    creates, and posts none.

    Participles are verbs in the passive alone: "deleted files" deletes nothing, "the file is
    deleted" does.

    Args:
        sentence: a sentence of a tool's description.
    """
    table = _table()
    before: list[str] = [""]  # of this clause
    for word, following in pairwise([*_tokens(sentence), ""]):
        if not word.isalpha():
            before = [""]
            continue
        last = before[-1]
        near = before[-_NEAR:]
        before.append(word)
        if word.endswith("ed") and _PASSIVE.isdisjoint(near):
            continue
        relative = last in _RELATIVE and word.endswith("s")  # a tool that deletes
        if last in table.determiners and not relative:
            continue
        stem = _stem(word)
        if relative or stem not in table.nouns or _begins(last, following):
            yield stem, word


_RELATIVE: Final = frozenset({"that", "which", "who"})
_ASKING: Final = frozenset({"kindly", "please", "you"})
"""Behind them stands a verb: "please exchange", "could you exchange"."""

_PASSIVE: Final = frozenset({"are", "be", "being", "gets", "is"})


def objects_of(name: str) -> list[str]:
    """Return the stems of what a tool works on, by its name: ``note`` of ``save_note``."""
    words = _words_of_name(name)
    if len(words) < 2:
        return []  # remember, recall
    table = _table()
    objects: list[str] = []
    for at, stem in enumerate(map(_stem, words)):
        if stem not in table.actions or (at and stem in table.nouns):
            objects.append(stem)
    return objects


def is_action(word: str) -> bool:
    """Return whether a word is one of those for what a tool does."""
    return _stem(word) in _table().actions


def is_noun(stem: str) -> bool:
    """Return whether the word of a stem is a noun as often as a verb."""
    return stem in _table().nouns


def stem_of(word: str) -> str:
    """Return the stem by which words are compared."""
    return _stem(word)


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(normalize_text(text))


@lru_cache(maxsize=8192)
def _stem(word: str) -> str:
    if len(word) >= _MAX_WORD:
        return word
    return str(_stemmer().stemWord(word))


@cache
def _stemmer() -> Any:
    # imports all its languages, so it is imported when the first word is read
    from snowballstemmer.english_stemmer import EnglishStemmer

    return EnglishStemmer()


class _Action(NamedTuple):
    """A row of the table: words of users for words of tools."""

    asking: Mapping[str, str]  # words of users, by stem
    nouns: frozenset[str]  # stems with which it counts; empty: with any


class _Table(NamedTuple):
    """The words of ``data/intent.toml``."""

    actions: Mapping[str, list[_Action]]  # by stem of a tool's word
    nouns: frozenset[str]
    openers: frozenset[str]
    determiners: frozenset[str]
    objects: frozenset[str]
    refusals: frozenset[str]
    kept: frozenset[str]
    light: frozenset[str]  # stems
    handing: frozenset[str]
    handed: frozenset[str]
    wanting: frozenset[str]
    participles: Mapping[str, str]  # the stem of its verb, by participle
    phrases: Mapping[
        str, Mapping[str, str]
    ]  # the stem that is meant, by particle and stem of a verb


@cache
def _table() -> _Table:
    data = load_table("agenttool_otel.facts", "data/intent.toml")
    actions: dict[str, list[_Action]] = {}
    for entry in data["action"]:
        asking = {_stem(word): word for word in reversed(entry["user"])}
        action = _Action(asking, nouns=_stems_of(entry.get("with", ())))
        for word in entry["tool"]:
            actions.setdefault(_stem(word), []).append(action)
    return _Table(
        actions=actions,
        nouns=_stems_of(data["nouns"]),
        openers=frozenset(data["openers"]),
        determiners=frozenset(data["determiners"]),
        objects=frozenset(data["objects"]),
        refusals=frozenset(data["refusals"]),
        kept=frozenset(data["kept"]),
        light=_stems_of(data["light"]),
        handing=frozenset(data["handing"]),
        handed=frozenset(data["handed"]),
        wanting=frozenset(data["wanting"]),
        participles={word: _stem(verb) for word, verb in data["participles"].items()},
        phrases=_phrases_of(data["phrases"]),
    )


def _phrases_of(listed: Mapping[str, Iterable[str]]) -> dict[str, dict[str, str]]:
    """Return what is meant by a verb and a particle: "off", then the stem of "call"."""
    phrases: dict[str, dict[str, str]] = {}
    for meant, spellings in listed.items():
        for spelling in spellings:
            verb, particle = spelling.split()
            phrases.setdefault(particle, {})[_stem(verb)] = _stem(meant)
    return phrases


def _stems_of(words: Iterable[str]) -> frozenset[str]:
    return frozenset(map(_stem, words))
