"""Processes that are killed while a call is rehearsed, asked about, answered and committed."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import pytest
from call_kills_helpers import one_life

KILLS = int(os.environ.get("AGENTTOOL_TEST_CALL_KILLS", "60"))
"""How many processes the slow test kills; docs/rehearsals.md names the number of the last long run."""


def killed(folder: Path, kills: int) -> Counter[str]:
    """Live until so many processes were killed; return how the lives ended."""
    chance, done, ends = random.Random(kills), 0, Counter[str]()
    while done < kills:
        place = folder / str(sum(ends.values()))
        place.mkdir()
        reached, more = one_life(place, chance)
        ends[reached] += 1
        done += more
    return ends


@pytest.mark.slow
def test_a_killed_call_commits_once_or_never(place: object, tmp_path: Path) -> None:
    killed(tmp_path, 2)


@pytest.mark.slow
@pytest.mark.timeout(12 * 3600)
def test_many_killed_calls_commit_once_or_never(place: object, tmp_path: Path) -> None:
    ends = killed(tmp_path, KILLS)
    assert set(ends) == {"before", "after"}
    print(dict(ends))
