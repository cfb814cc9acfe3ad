"""Many calls of every ending in many sessions, all at defaults: a process that serves them stays as
large as it became.

``AGENTTOOL_TEST_SOAK`` says how many calls (300,000 take a quarter to half an hour); the end is
compared with 50,000.
"""

from __future__ import annotations

import gc
import os
import random
import sys
from collections import Counter
from typing import Any

import pytest

from agenttool_otel import ApprovalRequired, Governor, agent_context, current_call
from agenttool_otel.approvals.types import ApprovalAnswer
from agenttool_otel.errors import GovernedOutcome

CALLS = int(os.environ.get("AGENTTOOL_TEST_SOAK", "100000"))
EARLY = min(50_000, CALLS // 2)
SESSIONS = 5_000
READS: dict[str, Any] = {"read_only": True, "access_kinds": [], "write_effects": ["none"]}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]


def resident() -> float:
    """Megabytes of memory that this process holds."""
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


class Service:
    """An agent's tools, used as a service uses them."""

    def __init__(self) -> None:
        self.governor, self.chance, self.ended = Governor(), random.Random(3), Counter[str]()
        governor = self.governor

        @governor.govern(**READS, open_world=True)
        def search(query: str, fail: bool = False, stop: bool = False) -> list[str]:
            if fail:
                raise LookupError(query)
            if stop and (call := current_call()):
                governor.cancel(call.invocation_id, "enough")
                call.raise_if_canceled()
            return [
                f"{query} https://host{self.chance.randrange(10**6)}.example/{row}"
                for row in range(20)
            ]

        @governor.govern(access_kinds=["payment"])
        def pay(to: str, amount: int) -> str:
            return f"paid {amount} to {to}"

        @governor.govern(
            read_only=True, access_kinds=["network"], write_effects=["none"], url_args=["url"]
        )
        def fetch(url: str) -> str:
            return url

        self.search, self.pay, self.fetch = search, pay, fetch

    def call(self, session: int) -> None:
        """Make one call, which ends in one of the ways that calls end in."""
        kind = self.chance.choice(["allowed"] * 6 + ["asked", "denied", "failed", "cancelled"])
        number = self.chance.randrange(10**6)
        said = f"look up customer {session} of account {number % 50}"
        with agent_context(actor="agent:a", session_id=f"s{session}", user_text=said):
            try:
                if kind == "asked":
                    self.pay(f"DE{number:020}", number)
                elif kind == "denied":
                    self.fetch(f"http://169.254.169.254/latest/{number % 100}")
                else:
                    self.search(
                        f"customer {number}", fail=kind == "failed", stop=kind == "cancelled"
                    )
                self.ended["allowed"] += 1
            except LookupError:
                self.ended["failed"] += 1
            except ApprovalRequired as asked:
                self.ended["asked"] += 1
                self.answer(asked)
            except GovernedOutcome as outcome:
                self.ended[type(outcome).__name__] += 1

    def answer(self, asked: ApprovalRequired) -> None:
        """Answer as people do: mostly, and mostly yes; some go away, and a few of their questions
        stay.
        """
        chance = self.chance.random()
        if chance < 0.8:
            yes = ApprovalAnswer(approved=chance < 0.6, answered_by="user:ada", roles=("operator",))
            self.governor.approvals.store.answer(asked.request_id, yes)
            if yes.approved:
                self.governor.resume(asked.invocation_id)
        elif chance < 0.95:
            self.governor.interrupt(asked.invocation_id, "the user left")


def test_memory_stays_flat_over_many_calls() -> None:
    service, order = Service(), random.Random(5)
    early = 0.0
    for done in range(CALLS + 1):
        if done == EARLY:
            early = resident()
        if done % (CALLS // 30) == 0:
            print(f"{done} calls: {resident():.1f} MB", file=sys.stderr, flush=True)
        service.call(order.randrange(SESSIONS))
    late = resident()
    print(dict(service.ended), file=sys.stderr)
    assert (
        min(
            service.ended[end]
            for end in ("allowed", "asked", "ToolDenied", "failed", "ToolCanceled")
        )
        > CALLS / 30
    )
    assert late <= 1.1 * early, f"{early:.1f} MB after {EARLY} calls, {late:.1f} MB at the end"
