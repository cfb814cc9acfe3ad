"""Words of a record: in clear where they stand in a closed vocabulary, as keyed digests elsewhere.

A text is cut at its separators, which stay. So ``/srv/acme/notes.txt`` becomes
``/^kqvwmzhdta/^bnrjcytoxe/^fhsuaqlzgi.txt``: what asks for a folder, a host's domain or an equal text finds the same
as before, once the words of the asking policy are looked up by their digests.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

import orjson

SEPARATORS: Final = '/.:@_=,~*;<>\\" \t\n-'
"""Characters that stay, because rules cut texts at them."""

_MARK: Final = "^"  # begins a digest; no separator, so no text in clear holds one
_LETTERS: Final = 8
_PATTERNS: Final = 2**_LETTERS - 3  # of large and small letters that no other form of a word has
_MAX_CHARS: Final = 2_000
_MAX_KNOWN: Final = 20_000
_WORD: Final = re.compile(f"[^{re.escape(SEPARATORS)}]+")
_DIGEST: Final = re.compile(r"\^[A-Za-z]+")


@cache
def vocabulary() -> frozenset[str]:
    """Return the words that records hold in clear: ``data/vocabulary.txt``, made by
    ``tools/evidence_words.py``.
    """
    source = resources.files("agenttool_otel.evidence").joinpath("data/vocabulary.txt")
    return frozenset(source.read_text(encoding="utf-8").split())


def words_in(text: str) -> list[str]:
    """Return the words between a text's separators.

    Args:
        text: any text.
    """
    return _WORD.findall(text)


class Words:
    """Hides words under a key, and finds those of a policy again.

    Args:
        key: the key of the digests.
    """

    def __init__(self, key: bytes) -> None:
        self._key = hashlib.sha256(b"agenttool.decision.words\0" + key).digest()
        self._clear = vocabulary()
        self._known: dict[str, str] = {}

    def hide(self, text: str) -> str:
        """Return a text with a digest in place of each word that is not in the vocabulary.

        Args:
            text: any text; what is behind its first 2,000 characters is left out.
        """
        return _WORD.sub(lambda match: self.hidden(match[0]), text[:_MAX_CHARS])

    def hidden(self, word: str) -> str:
        """Return a word of the vocabulary, or the digest of any other."""
        if word in self._clear:
            return word
        known = self._known.get(word)
        if known is None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            known = self._known[word] = _MARK + self._letters(word)
        return known

    def _letters(self, word: str) -> str:
        """Return a digest in letters that has the word's case, so that ``lower(x)`` finds its
        equal.
        """
        lower = word.lower()
        letters = self._digest(lower)
        if word == lower:
            return letters
        if word == lower.upper():
            return letters.upper()
        if word == lower.capitalize():
            return letters.capitalize()
        return self._mixed(word, letters)

    def _mixed(self, word: str, letters: str) -> str:
        """Return a digest of which some letters are large, by the word's own digest: ``gitHub`` and
        ``githuB`` have two that ``lower(x)`` makes equal.
        """
        pattern = self._number(word) % _PATTERNS + 2  # neither none, nor the first letter alone
        return "".join(
            letter.upper() if pattern >> place & 1 else letter
            for place, letter in enumerate(letters)
        )

    def _number(self, word: str) -> int:
        state = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), key=self._key, digest_size=8)
        return int.from_bytes(state.digest())

    def _digest(self, word: str) -> str:
        return _as_letters(self._number(word))

    def finder(self, words: Iterable[str]) -> Finder:
        """Return what finds words of a policy in hidden texts.

        Args:
            words: the policy's texts.
        """
        found: dict[str, str] = {}
        lowered: set[str] = set()
        for text in words:
            for word in words_in(text):
                lowered.add(_MARK + self._letters(word.lower()))
                for form in (word.lower(), word.upper(), word.lower().capitalize(), word):
                    found[self.hidden(form)] = form
        return Finder(found, lowered)


class Finder:
    """Puts the words of a policy back into hidden texts.

    Args:
        found: the words by their digests.
        lowered: digests of the words in small letters, those of the vocabulary included.
    """

    def __init__(self, found: Mapping[str, str], lowered: Container[str]) -> None:
        self._found = found
        self._lowered = lowered

    def reveal(self, value: Any) -> Any:
        """Return plain data with the known words in clear; of other digests the mark is taken off.

        Args:
            value: plain JSON data of a record.
        """
        return _mapped(value, self._revealed)

    def reveal_alike(self, value: Any) -> Any:
        """Return plain data with the known words in clear, and the others renamed in their order.

        Two records that differ in unknown words alone become equal: "cat a.py", "cat b.py". What
        decides alike under another key of the words decides alike under other names.

        Args:
            value: plain JSON data of a record.
        """
        return _mapped(value, _Renaming(self._found))

    def reveal_known(self, value: Any) -> Any:
        """Return plain data with the known words in clear; other digests stay, with their mark.

        Args:
            value: plain JSON data of a record.
        """
        return _mapped(value, self._marked)

    def _revealed(self, match: re.Match[str]) -> str:
        return self._found.get(match[0]) or match[0][1:]

    def _marked(self, match: re.Match[str]) -> str:
        return self._found.get(match[0]) or match[0]

    def has_folded(self, value: Any) -> bool:
        """Return whether data may hold a word of the policy in a spelling that it does not have:
        ``GitHub``, where it has ``github``.
        """
        if not self._found:
            return False
        unknown = (digest for digest in _digests_in(value) if digest not in self._found)
        return any(digest.lower() in self._lowered for digest in unknown)

    def has_unknown(self, value: Any) -> bool:
        """Return whether data holds a digest that is none of the policy's words."""
        return any(digest not in self._found for digest in _digests_in(value))


class _Renaming:
    """Puts known words in the place of their digests, and names in the place of the others."""

    def __init__(self, found: Mapping[str, str]) -> None:
        self._found = found
        self._names: dict[str, str] = {}

    def __call__(self, match: re.Match[str]) -> str:
        known = self._found.get(match[0])
        if known is not None:
            return known
        letters = match[0][1:]
        if len(letters) != _LETTERS:  # "^start", in a tool's description
            return letters
        small = letters.lower()
        name = self._names.get(small)
        if name is None:
            name = self._names[small] = _name(len(self._names))
        if letters == small:
            return name
        cases = zip(name, letters, strict=True)
        return "".join(new.upper() if old.isupper() else new for new, old in cases)


@cache
def _name(number: int) -> str:
    """Return a word that stands for any other; like a digest, it is no word of a policy."""
    state = hashlib.blake2b(number.to_bytes(4), digest_size=8)
    return _as_letters(int.from_bytes(state.digest()))


def _as_letters(number: int) -> str:
    letters = []
    for _ in range(_LETTERS):
        number, letter = divmod(number, 26)
        letters.append(chr(97 + letter))
    return "".join(letters)


def _digests_in(value: Any) -> set[str]:
    """Return the digests in plain data, its names included."""
    return set(_DIGEST.findall(_as_json(value)))


def texts_in(value: Any) -> Iterator[str]:
    """Yield the names and texts of plain data, at all depths.

    Args:
        value: the data.
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from texts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)


def hidden_words(value: Any) -> list[str]:
    """Return the digests in plain data.

    Args:
        value: plain JSON data.
    """
    if isinstance(value, str):
        return _DIGEST.findall(value)
    if isinstance(value, list):
        return [digest for item in value for digest in hidden_words(item)]
    return []


def unmarked(value: Any) -> Any:
    """Return plain data with the marks of its digests taken off.

    Args:
        value: plain JSON data.
    """
    return _mapped(value, lambda match: match[0][1:])


def _mapped(value: Any, found: Callable[[re.Match[str]], str]) -> Any:
    """Return plain data with another text in the place of each digest.

    Data are looked through as JSON: a fourth of the time that a walk takes. A digest ends there, too,
    where a separator follows it, or the backslash of one.
    """
    if isinstance(value, str):
        return _DIGEST.sub(found, value) if _MARK in value else value
    text = _as_json(value)
    if _MARK not in text:
        return value
    return _parsed(_DIGEST.sub(lambda match: _escaped(found(match)), text))


def _as_json(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # a tool whose description has half of a surrogate pair
        return json.dumps(value)


def _parsed(text: str) -> Any:
    try:
        return orjson.loads(text)
    except ValueError:  # a word of the policy may be half of a surrogate pair
        return json.loads(text)


def _escaped(word: str) -> str:
    """Return a word as it stands in JSON."""
    if word.isascii() and word.isalnum():
        return word
    return json.dumps(word)[1:-1]
