"""Who holds a claim, and whether that process is still there (so that a crash is distinguished from a long
run).
"""

from __future__ import annotations

from typing import Any, Final

from agenttool_otel.values.process_identity import is_dead, this_process

HELD: Final[set[str]] = set()
"""Claims that this process was given and has not ended."""


def is_lost(row: Any, now_us: int) -> bool:
    """Return whether the run of a claimed request will never be ended by the holder of the claim."""
    owner = row.claim_owner or ""
    if owner == this_process():
        return row.claim_id not in HELD  # a commit whose answer never arrived
    dead = is_dead(owner)
    return bool(dead) if dead is not None else (row.lease_us or 0) <= now_us
