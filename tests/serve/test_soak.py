"""Many clients at once: each gets its own answer, in time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from benchmarks.serve_soak import CLIENTS, MOST_TIMES_THE_MEDIAN, serving, soak

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_two_hundred_clients_get_their_own_answers(tmp_path: Path) -> None:
    with serving(tmp_path):
        found = asyncio.run(soak(tmp_path / "serve.sock", 20))
    assert found.lost == []
    assert found.crossed == []
    assert len(found.seconds) > CLIENTS
    assert found.p99 <= MOST_TIMES_THE_MEDIAN * found.median
