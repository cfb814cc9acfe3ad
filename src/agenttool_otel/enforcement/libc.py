"""The C library's ``prctl`` and the calls about capabilities, which Python has no names for."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Any


@cache
def libc() -> Any:
    """Return the C library, loaded once: to load it again costs as much as a thread."""
    library = ctypes.CDLL(None, use_errno=True)
    # prctl reads all of its five arguments as unsigned long
    library.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    return library


def prctl(option: int, value: int = 0, more: int = 0) -> int:
    """Call ``prctl``.

    Raises:
        OSError: the kernel refuses.
    """
    return checked(libc().prctl(option, value, more, 0, 0))


def checked(result: int) -> int:
    """Return the result of a call.

    Raises:
        OSError: it is -1.
    """
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
