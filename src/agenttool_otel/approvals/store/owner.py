"""Who holds a claim, and whether that process is still there (so that a crash is distinguished from a long
run).
"""

from __future__ import annotations

import functools
import json
import os
import platform
from pathlib import Path
from typing import Any, Final

from agenttool_otel.approvals.store.clock import BOOT_ID

HELD: Final[set[str]] = set()
"""Claims that this process was given and has not ended."""


def this_process() -> str:
    """Return the identity of this process: boot, process namespace, pid and start time, as
    JSON text.
    """
    return _identity(os.getpid())


@functools.lru_cache(maxsize=4)
def _identity(pid: int) -> str:
    return json.dumps({"host": _host(), "pid": pid, "start": _start_time(pid)}, sort_keys=True)


def is_dead(owner: str) -> bool | None:
    """Return whether the process that an identity names has ended."""
    try:
        data = json.loads(owner)
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


def is_lost(row: Any, now_us: int) -> bool:
    """Return whether the run of a claimed request will never be ended by the holder of the claim."""
    owner = row.claim_owner or ""
    if owner == this_process():
        return row.claim_id not in HELD  # a commit whose answer never arrived
    dead = is_dead(owner)
    return bool(dead) if dead is not None else (row.lease_us or 0) <= now_us


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
