"""No test of results leaves a worker behind: what still hangs counts against the next
test's workers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

WORKERS = ("agenttool-upload", "agenttool-store")


def workers_end(seconds: float = 30) -> None:
    """Wait until the threads that write to stores have ended.

    Raises:
        AssertionError: they still run after the time.
    """
    until = time.monotonic() + seconds
    while left := [thread.name for thread in threading.enumerate() if thread.name in WORKERS]:
        assert time.monotonic() < until, left
        time.sleep(0.01)


@pytest.fixture(autouse=True)
def let_go() -> Iterator[threading.Event]:
    """What a store that hangs in a test waits for; set when the test is over, and then everything
    has to end.
    """
    event = threading.Event()
    yield event
    event.set()
    workers_end()


@pytest.fixture
def all_stored(let_go: threading.Event) -> Callable[[], None]:
    """Let hanging stores go, and wait until every worker has ended."""

    def end() -> None:
        let_go.set()
        workers_end()

    return end
