"""A process of its own for the kill and concurrency tests: ``approval_worker.py ROLE URL
KEY ...``.
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from approval_helpers import ARGS, a_request, bindings, no, yes

from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.errors import ApprovalConflict
from agenttool_otel.names import ApprovalStatus as Status


def here(step: str) -> None:
    """Say that the step is reached, and wait to be killed there."""
    print(step, flush=True)
    time.sleep(120)


def die_at(url: str, key: str, step: str, ran: str, invocation: str) -> None:
    """Walk from the ask to the result, and stop at one step; the "tool" appends a line to a
    file.
    """
    store = ApprovalStore(url, key=key, max_pending_per_session=0)
    inside, _, point = step.partition(":")
    if point == "before_commit":
        real = store._db.write

        def write() -> Any:
            manager = real()
            if next(calls) != target:
                return manager

            class Held:
                def __enter__(self) -> Any:
                    return manager.__enter__()

                def __exit__(self, *_: object) -> None:
                    here(step)

            return Held()

        calls = iter(range(100))
        target = ["create", "answer", "claim", "finish"].index(inside)
        store._db.write = write  # type: ignore[method-assign]

    def reached(name: str) -> None:
        if step == name:
            here(step)

    request = store.create(a_request(invocation_id=invocation), ARGS)
    reached("created")
    store.answer(request.request_id, yes())
    reached("answered")
    claim = store.claim(invocation, **bindings(request))
    reached("claimed")
    with Path(ran).open("a") as file:
        file.write(f"{invocation}\n")
    reached("ran")
    store.finish(claim, "succeeded")
    reached("finished")


def work(url: str, key: str, seed: str, count: str, ran: str) -> None:
    """Answer requests of everybody in random order and resume whatever is approved, until all are
    settled.
    """
    chance = random.Random(int(seed))
    store = ApprovalStore(url, key=key, timeout=30, max_pending_per_session=0)
    mine = [
        store.create(a_request(invocation_id=f"inv_{seed}_{n}", ttl=3600), ARGS)
        for n in range(int(count))
    ]
    print("asked", flush=True)
    sys.stdin.readline()
    everything = [
        request
        for offset in range(0, 4000, 1000)
        for request in store.list(limit=1000, offset=offset)
    ]
    chance.shuffle(everything)
    for request in everything:
        # the number decides, so that every process gives the same answer and any of them may be
        # first
        approved = int(request.invocation_id.rsplit("_", 1)[1]) % 3 != 0
        if store.get(request.request_id).status is Status.PENDING:
            with contextlib.suppress(ApprovalConflict):  # another process was faster
                store.answer(request.request_id, yes() if approved else no())
        try:
            claim = store.claim(request.invocation_id, **bindings(request))
        except ApprovalConflict:
            continue
        descriptor = os.open(ran, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, f"{request.invocation_id}\n".encode())
        os.close(descriptor)
        store.finish(claim, "succeeded")
    assert len(mine) == int(count)


def race(url: str, key: str, invocation: str) -> None:
    """Resume one invocation as soon as told; say whether it was ours."""
    store = ApprovalStore(url, key=key, timeout=30, max_pending_per_session=0)
    request = store.by_invocation(invocation)
    assert request is not None
    assert request.status is Status.APPROVED
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        store.claim(invocation, **bindings(request))
        print("won", flush=True)
    except ApprovalConflict as error:
        print(f"lost {error.reason}", flush=True)


if __name__ == "__main__":
    {"die_at": die_at, "work": work, "race": race}[sys.argv[1]](*sys.argv[2:])
