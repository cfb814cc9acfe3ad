"""How the fuzz targets run: random edits of a corpus, for a stated time, with every failure kept
and tried first.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase

TARGETS = 9
SECONDS = float(os.environ.get("FUZZ_SECONDS", "120")) / TARGETS
"""What one target has; ``make fuzz FUZZ_SECONDS=600`` gives all of them ten minutes."""

EXAMPLES_OF_A_ROUND = 100
CORPORA = Path(__file__).resolve().parents[1] / "facts" / "corpus"
FOUND = Path(__file__).resolve().parents[2] / ".hypothesis" / "fuzz"


def corpus(name: str) -> list[str]:
    """The inputs of a corpus of the facts' tests."""
    lines = (CORPORA / f"{name}.jsonl").read_text("utf-8").splitlines()
    return [row["input"] for row in map(json.loads, lines) if isinstance(row["input"], str)]


def edited(texts: Sequence[str]) -> st.SearchStrategy[str]:
    """A text of the corpus with some stretches replaced: by nothing, by its own, by another's or by
    any characters.
    """
    text = st.sampled_from(texts)
    piece = st.one_of(st.just(""), st.text(max_size=6), text.map(lambda found: found[:20]), text)
    edit = st.tuples(st.integers(0, 400), st.integers(0, 12), piece)

    def apply(start: str, edits: list[tuple[int, int, str]]) -> str:
        for place, length, new in edits:
            at = place % (len(start) + 1)
            start = start[:at] + new + start[at + length :]
        return start[:4000]

    return st.builds(apply, text, st.lists(edit, max_size=5))


def fuzz(strategy: st.SearchStrategy[Any], check: Callable[[Any], None]) -> None:
    """Check random inputs until the time is over; a failure is made small, kept, and tried first
    the next time. CI draws the same inputs each time, so that a failure is the change's.
    """
    first = 0 if os.environ.get("CI") else random.SystemRandom().getrandbits(32)

    @settings(
        max_examples=EXAMPLES_OF_A_ROUND,
        deadline=None,
        derandomize=False,
        database=DirectoryBasedExampleDatabase(FOUND),
        phases=[Phase.reuse, Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def one_round(value: Any) -> None:
        check(value)

    until = time.monotonic() + SECONDS
    for number in itertools.count(first):
        seed(number)(one_round)()
        if time.monotonic() > until:
            return
