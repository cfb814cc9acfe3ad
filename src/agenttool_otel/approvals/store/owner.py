"""Who holds a claim, and whether that process is still there (so that a crash is distinguished from a long
run).
"""

from __future__ import annotations

from typing import Any, Final

from agenttool_otel.values.process_identity import is_dead, this_process

HELD: Final[set[str]] = set()
"""Claims that this process was given and has not ended."""


def is_lost(row: Any, now_us: int) -> bool:
    """Return whether the run of a claimed request will never be ended by the holder of the claim.

    Args:
        row: the claimed request, as it is stored.
        now_us: the store's time, in microseconds since 1970.
    """
    owner = row.claim_owner or ""
    if owner == this_process():
        # a commit whose answer never arrived
        return row.claim_id not in HELD
    dead = is_dead(owner)
    if dead is not None:
        return dead
    # a process on another machine: its lease is all that is known
    lease_end = row.lease_us or 0
    return bool(lease_end <= now_us)
