"""Processes that are killed at any moment: no approval runs twice, nothing runs without a claim,
the evidence holds.

``AGENTTOOL_TEST_KILLS`` says how often a process is killed on each database.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from approval_helpers import ARGS, a_request, bindings, yes

from agenttool_otel.approvals.store.sealing import generate_key
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.errors import ApprovalError
from agenttool_otel.names import ApprovalLogKind as Kind

KILLS = int(os.environ.get("AGENTTOOL_TEST_KILLS", "100"))
PROCESSES = 3
KEY = generate_key()

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


def work(url: str, ran: Path, seed: int) -> None:
    """Ask, answer, run and recover, until somebody kills this process; a run leaves one line."""
    store = ApprovalStore(url, key=KEY, max_pending=20)
    chance = random.Random(seed)
    while True:
        with suppress(ApprovalError):
            for lost in store.recover():
                store.answer(lost.asked_again, yes())
            with suppress(ApprovalError):
                store.create(a_request(), ARGS)
            for request in store.list("pending", limit=3):
                store.answer(request.request_id, yes())
            for request in chance.sample(found := store.list("approved", limit=5), len(found)):
                with suppress(ApprovalError):
                    claim = store.claim(request.invocation_id, **bindings(request))
                    with open(ran, "a") as file:
                        file.write(f"{claim.request.request_id} {claim.claim_id}\n")
                    store.finish(claim, "succeeded")


def start(url: str, ran: Path, seed: int) -> int:
    child = os.fork()
    if child == 0:
        try:
            work(url, ran, seed)
        finally:
            os._exit(1)
    return child


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_kills_at_any_moment_run_nothing_twice(store_url: str, tmp_path: Path) -> None:
    ran, chance = tmp_path / "ran", random.Random(7)
    ran.touch()
    ApprovalStore(store_url, key=KEY).close()
    started = time.monotonic()
    children = [start(store_url, ran, seed) for seed in range(PROCESSES)]
    try:
        while not ran.stat().st_size and time.monotonic() < started + 60:
            time.sleep(0.005)
        # what this machine takes from a start to a run, as busy as it is
        pace = time.monotonic() - started
        for kill in range(KILLS):
            time.sleep(chance.uniform(0, pace))
            child = children.pop(0)
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL  # it did not end by itself
            children.append(start(store_url, ran, PROCESSES + kill))
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    store = ApprovalStore(store_url, key=KEY)
    store.recover()
    report = store.verify_chain()
    assert report.ok, report.problem
    claimed, position = set(), 0
    while entries := store.log_entries(position):
        claimed |= {
            (entry.request_id, entry.data["claim"])
            for entry in entries
            if entry.kind is Kind.CLAIMED
        }
        position = entries[-1].seq
    runs = [
        (request, claim)
        for request, claim in (line.split() for line in ran.read_text().splitlines())
    ]
    assert len(runs) > KILLS / 10
    assert set(runs) <= claimed
    assert max(Counter(request for request, _ in runs).values()) == 1
    assert max(Counter(request for request, _ in claimed).values()) == 1
    store.close()
