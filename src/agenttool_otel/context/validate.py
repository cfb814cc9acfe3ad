"""Checks of what a program states, where it states it: the message holds what to write.

A text where a list belongs is the worst mistake: it is a list of its letters, so that the roots of
``"/srv/ws"`` would hold ``/``, and everything would lie inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.values.conversion import to_whole_json
from agenttool_otel.values.policy_value import NumberConverter


def texts(name: str, value: Any) -> tuple[str, ...]:
    """Take a list of texts.

    Args:
        name: what is stated, for the message.
        value: what was stated.

    Raises:
        ConfigurationError: it is no list, or holds something else than texts.
    """
    if isinstance(value, str):
        raise ConfigurationError(f"{name} has to be a list of texts: write {name}=[{value!r}]")
    if isinstance(value, (bytes, bytearray)):
        raise ConfigurationError(f'{name} has to be a list of texts: write {name}=["..."]')
    if isinstance(value, Mapping) or not isinstance(value, Iterable):
        kind = type(value).__name__
        raise ConfigurationError(
            f'{name} has to be a list of texts such as ["..."], not {kind}',
        )
    entries = tuple(value)
    for entry in entries:
        if not isinstance(entry, str):
            kind = _kind(entry)
            raise ConfigurationError(f"{name} has to be a list of texts; it holds {kind}")
    return entries


def maybe_text(name: str, value: Any) -> str | None:
    """Take a text or nothing.

    Args:
        name: what is stated, for the message.
        value: what was stated.

    Raises:
        ConfigurationError: it is something else.
    """
    if value is None or isinstance(value, str):
        return value
    kind = _kind(value)
    raise ConfigurationError(f'{name} has to be a text such as {name}="...", not {kind}')


def truth(name: str, value: Any) -> bool | None:
    """Take ``True``, ``False`` or nothing; the text ``"no"`` would count as true.

    Args:
        name: what is stated, for the message.
        value: what was stated.

    Raises:
        ConfigurationError: it is something else.
    """
    if value is None or isinstance(value, bool):
        return value
    kind = _kind(value)
    raise ConfigurationError(f"{name} has to be True or False, not {kind}")


def one_of(name: str, value: Any, known: Iterable[str]) -> str:
    """Take a word of a closed vocabulary.

    Args:
        name: what is stated, for the message.
        value: what was stated.
        known: the vocabulary.

    Raises:
        ConfigurationError: it is another word, or no text.
    """
    words = [str(word) for word in known]
    if isinstance(value, str) and str(value) in words:
        return str(value)
    near = did_you_mean(value, words)
    listed = ", ".join(words)
    raise ConfigurationError(f"{name} can't be {value!r}{near}; it is one of {listed}")


def whole_object(name: str, value: Any) -> dict[str, Any]:
    """Take an object whose JSON form holds all that it holds; a rule must not be shown a part
    of it.

    Args:
        name: what is stated, for the message.
        value: what was stated.

    Raises:
        ConfigurationError: it is no object with texts as keys, or JSON can't hold all of it.
    """
    if not _has_text_keys(value):
        kind = _kind(value)
        raise ConfigurationError(f"{name} has to be a dict by name, not {kind}")
    data, is_whole = to_whole_json(dict(value), make=NumberConverter)
    if not is_whole or not isinstance(data, dict):
        raise ConfigurationError(
            f"{name} has to hold JSON data, dataclasses or pydantic models alone, and no number that JSON lacks"
        )
    return data


def _has_text_keys(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    return all(isinstance(key, str) for key in value)


def did_you_mean(word: Any, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return `` (did you mean 'x'?)`` for the nearest known word, or an empty text.

    Args:
        word: what was written.
        known: what could have been meant.
        cutoff: how near it has to be, from 0 for anything to 1 for the word itself.
    """
    from difflib import get_close_matches

    words_by_letters = {}
    for candidate in sorted(known):
        words_by_letters[_letters(candidate)] = candidate
    written = _letters(str(word))
    near = get_close_matches(written, list(words_by_letters), n=1, cutoff=cutoff)
    if not near:
        return ""
    meant = words_by_letters[near[0]]
    return f" (did you mean {meant!r}?)"


def _letters(word: str) -> str:
    # readOnly, read-only and readonly are the same slip for read_only
    for separator in ("_", "-", " "):
        word = word.replace(separator, "")
    return word.lower()


def _kind(value: Any) -> str:
    """Return the type of a value with its article: ``an int``."""
    kind = type(value).__name__
    article = "an" if kind[:1] in "aeiouAEIOU" else "a"
    return f"{article} {kind}"
