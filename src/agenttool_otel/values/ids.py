"""Sortable ids: UUIDv7 (RFC 9562), with the record's kind in front."""

from __future__ import annotations

import os
import time

from agenttool_otel.values.forks import in_child, new_lock

_lock = new_lock()
_POOL_BYTES = 10 * 64
_pool = b""


def _forget_pool() -> None:
    global _pool
    _pool = b""  # a forked child must not draw its parent's bits


in_child(_forget_pool)


def uuid7_hex() -> str:
    """Return a UUIDv7 as 32 lower-case hexadecimal digits: 48 bits of milliseconds, then 74 random
    bits.
    """
    global _pool
    with _lock:
        if not _pool:  # the kernel is asked once for many ids
            _pool = os.urandom(_POOL_BYTES)
        taken, _pool = _pool[:10], _pool[10:]
    rand = int.from_bytes(taken, "big")
    value = (
        (time.time_ns() // 1_000_000 & 0xFFFF_FFFF_FFFF) << 80
        | 0x7 << 76
        | (rand >> 68) << 64
        | 0b10 << 62
        | rand & 0x3FFF_FFFF_FFFF_FFFF
    )
    return f"{value:032x}"


def new_id(kind: str) -> str:
    """Return a new sortable id such as ``inv_0199...``."""
    return f"{kind}_{uuid7_hex()}"
