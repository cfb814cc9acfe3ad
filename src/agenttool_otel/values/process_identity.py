"""Which process did something, so that a later one can find out whether that one is still there."""

from __future__ import annotations

import functools
import json
import os
import platform
import uuid
from pathlib import Path
from typing import Final


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:  # no Linux: ticks of two processes can't be compared, so each is its own boot
        return f"process-{uuid.uuid4().hex}"


BOOT_ID: Final = _boot_id()
"""Names the running kernel, so that ticks are compared only where they mean the same."""


def this_process() -> str:
    """Return the identity of this process: boot, process namespace, pid and start time, as
    JSON text.
    """
    return _identity(os.getpid())


@functools.lru_cache(maxsize=4)
def _identity(pid: int) -> str:
    return json.dumps({"host": _host(), "pid": pid, "start": _start_time(pid)}, sort_keys=True)


def is_dead(identity: str) -> bool | None:
    """Return whether the process that an identity names has ended; ``None`` if that can't be
    found out from here.
    """
    try:
        data = json.loads(identity)
        host, pid, start = str(data["host"]), int(data["pid"]), data["start"]
    except (ValueError, KeyError, TypeError):
        return None
    if host != _host():
        return None
    now = _start_time(pid)
    if now is not None or start is not None:
        return bool(now != start)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _host() -> str:
    # boot and process namespace, not the host name: a pid means the same thing only within both
    try:
        return f"{BOOT_ID}|{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"{platform.node()}|"


def _start_time(pid: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
        fields = text[text.rindex(")") + 2 :].split()
    except (OSError, ValueError):
        return None
    return None if fields[0] in {"Z", "X"} else int(fields[19])
