"""What a program states, checked where it states it: the message says what to write.

A text where a list belongs is the worst of them: it is a list of its letters, so that the roots of
``"/srv/ws"`` would hold ``/``, and everything would lie inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.values.conversion import to_whole_json
from agenttool_otel.values.policy_value import NumberConverter


def texts(name: str, value: Any) -> tuple[str, ...]:
    """Take a list of texts."""
    if isinstance(value, (str, bytes, bytearray)):
        written = f"{name}=[{value!r}]" if isinstance(value, str) else f'{name}=["..."]'
        raise ConfigurationError(f"{name} has to be a list of texts: write {written}")
    if isinstance(value, Mapping) or not isinstance(value, Iterable):
        raise ConfigurationError(
            f'{name} has to be a list of texts such as ["..."], not {type(value).__name__}'
        )
    found = tuple(value)
    for entry in found:
        if not isinstance(entry, str):
            raise ConfigurationError(f"{name} has to be a list of texts; it holds {_kind(entry)}")
    return found


def maybe_text(name: str, value: Any) -> str | None:
    """Take a text or nothing."""
    if value is None or isinstance(value, str):
        return value
    raise ConfigurationError(f'{name} has to be a text such as {name}="...", not {_kind(value)}')


def truth(name: str, value: Any) -> bool | None:
    """Take ``True``, ``False`` or nothing; the text ``"no"`` would count as true."""
    if value is None or isinstance(value, bool):
        return value
    raise ConfigurationError(f"{name} has to be True or False, not {_kind(value)}")


def one_of(name: str, value: Any, known: Iterable[str]) -> str:
    """Take a word of a closed vocabulary."""
    words = [str(word) for word in known]
    if isinstance(value, str) and str(value) in words:
        return str(value)
    raise ConfigurationError(
        f"{name} can't be {value!r}{did_you_mean(value, words)}; it is one of {', '.join(words)}"
    )


def whole_object(name: str, value: Any) -> dict[str, Any]:
    """Take an object whose JSON form tells all that it holds; a rule must not be shown a
    part of it.
    """
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ConfigurationError(f"{name} has to be a dict by name, not {_kind(value)}")
    data, whole = to_whole_json(dict(value), make=NumberConverter)
    if not whole or not isinstance(data, dict):
        raise ConfigurationError(
            f"{name} has to hold JSON data, dataclasses or pydantic models alone, and no number that JSON lacks"
        )
    return data


def did_you_mean(word: Any, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return `` (did you mean 'x'?)`` for the nearest known word, or an empty text."""
    from difflib import get_close_matches

    words = sorted(known)
    flat = {_flat(candidate): candidate for candidate in words}
    near = get_close_matches(_flat(str(word)), list(flat), n=1, cutoff=cutoff)
    return f" (did you mean {flat[near[0]]!r}?)" if near else ""


def _flat(word: str) -> str:
    """``readOnly``, ``read-only`` and ``readonly`` are the same slip for ``read_only``."""
    return word.replace("_", "").replace("-", "").replace(" ", "").lower()


def _kind(value: Any) -> str:
    article = "an" if type(value).__name__[:1] in "aeiouAEIOU" else "a"
    return f"{article} {type(value).__name__}"
