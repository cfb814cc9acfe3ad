"""The word lists of ``words.toml``."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from importlib import resources

__all__ = ["byte_words", "words"]


@lru_cache(maxsize=1)
def _lists() -> dict[str, str]:
    return tomllib.loads(resources.files(__package__).joinpath("words.toml").read_text("utf-8"))


def words(name: str) -> frozenset[str]:
    """One list."""
    return frozenset(_lists()[name].split())


def byte_words(name: str) -> frozenset[bytes]:
    """One list, as bytes."""
    return frozenset(_lists()[name].encode().split())
