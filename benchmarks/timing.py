"""Interleaved timing: every contestant runs in every round, in a new order, so that noise is noise
for all.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Mapping

__all__ = ["interleaved"]


def interleaved(
    contestants: Mapping[str, Callable[[], object]], *, rounds: int = 40, calls: int = 200
) -> dict[str, float]:
    """Return the median CPU time per call in microseconds.

    CPU time of this thread, not wall time: other programs on the machine don't count. Garbage
    collection is off while a batch runs and done between batches.

    Args:
        contestants: what to run, by name.
        rounds: rounds; each contestant runs once in each.
        calls: calls of one batch.
    """
    names = list(contestants)
    found: dict[str, list[float]] = {name: [] for name in names}
    for name in names:
        for _ in range(calls):
            contestants[name]()
    for _ in range(rounds):
        random.shuffle(names)
        for name in names:
            run = contestants[name]
            gc.collect()
            gc.disable()
            start = time.thread_time_ns()
            for _ in range(calls):
                run()
            found[name].append((time.thread_time_ns() - start) / calls / 1000)
            gc.enable()
    return {name: statistics.median(times) for name, times in found.items()}
