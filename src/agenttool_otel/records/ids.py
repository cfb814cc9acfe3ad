"""Sortable ids: UUIDv7 (RFC 9562), with the record's kind in front."""

from __future__ import annotations

import os
import time

__all__ = ["new_id", "uuid7_hex"]


def uuid7_hex() -> str:
    """Return a UUIDv7 as 32 lower-case hexadecimal digits: 48 bits of milliseconds, then 74 random bits."""
    millis = time.time_ns() // 1_000_000
    rand = int.from_bytes(os.urandom(10), "big")
    value = (millis & 0xFFFF_FFFF_FFFF) << 80
    value |= 0x7 << 76
    value |= ((rand >> 68) & 0xFFF) << 64
    value |= 0b10 << 62
    value |= rand & 0x3FFF_FFFF_FFFF_FFFF
    return f"{value:032x}"


def new_id(kind: str) -> str:
    """Return a new sortable id such as ``inv_0199...``.

    Args:
        kind: short prefix that tells what the id names (``inv``, ``perm``, ``result``, ``appr`` ...).
    """
    return f"{kind}_{uuid7_hex()}"
