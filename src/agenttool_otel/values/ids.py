"""Sortable ids: UUIDv7 (RFC 9562), with the record's kind in front."""

from __future__ import annotations

import os
import threading
import time

_lock = threading.Lock()
_POOL_BYTES = 10 * 64
_pool = b""


def _forget_pool() -> None:
    global _lock, _pool
    _lock = threading.Lock()  # another thread may have held the old one, and there is no such thread in the child
    _pool = b""  # a forked child must not draw its parent's bits


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_forget_pool)


def uuid7_hex() -> str:
    """Return a UUIDv7 as 32 lower-case hexadecimal digits: 48 bits of milliseconds, then 74 random bits."""
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
