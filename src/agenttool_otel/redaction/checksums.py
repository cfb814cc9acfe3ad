"""Check digits that more than one kind of number has."""

from __future__ import annotations

from typing import Final

__all__ = ["luhn"]

_DOUBLED: Final = str.maketrans("0123456789", "0246813579")


def luhn(digits: str) -> bool:
    """Whether the Luhn check digit holds (ISO/IEC 7812-1, Annex B)."""
    backwards = digits[::-1]
    return (sum(map(int, backwards[::2])) + sum(map(int, backwards[1::2].translate(_DOUBLED)))) % 10 == 0
