"""A long run is not taken for a lost one: its lease is renewed while it lasts, by a thread that is
there only then.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from approval_helpers import held_by

from agenttool_otel import ApprovalAnswer
from agenttool_otel.approvals.store import claims as store_claims
from agenttool_otel.approvals.store import owner
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.names import ApprovalStatus
from agenttool_otel.testing import Capture, FixedApprover, StaticEngine, capture

YES = ApprovalAnswer(approved=True, answered_by="user:ada")
LEASE = 1.5


def renewing() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "agenttool-leases"]


def gone(threads: Callable[[], list[threading.Thread]] = renewing) -> bool:
    deadline = time.monotonic() + 5
    while threads() and time.monotonic() < deadline:
        time.sleep(0.01)
    return not threads()


@pytest.fixture
def captured(tmp_path: Path) -> Iterator[Capture]:
    store = ApprovalStore(tmp_path / "approvals.db", lease=LEASE)
    with capture(
        policy=StaticEngine("ask"), approvals=store, approver=FixedApprover(YES)
    ) as captured:
        yield captured


def elsewhere(path: Path, monkeypatch: pytest.MonkeyPatch) -> ApprovalStore:
    """The store as another machine sees it: it can't tell whether our process lives."""
    monkeypatch.setattr(owner, "is_dead", lambda _: None)
    monkeypatch.setattr(owner, "this_process", lambda: "another")
    assert store_claims.is_lost is owner.is_lost
    return ApprovalStore(path, lease=LEASE)


@pytest.mark.slow
def test_a_run_longer_than_its_lease_is_not_lost(
    captured: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = elsewhere(tmp_path / "approvals.db", monkeypatch)
    found: list[Any] = []

    def long() -> str:
        assert len(renewing()) == 1
        until = time.monotonic() + 3 * LEASE
        while time.monotonic() < until:
            found.extend(other.recover())
            time.sleep(0.1)
        return "done"

    assert captured.governor.govern(long, name="long")() == "done"
    assert found == []
    (request,) = other.list()
    assert (request.status, request.outcome) == (ApprovalStatus.CONSUMED, "succeeded")
    assert gone()
    other.close()


@pytest.mark.slow
def test_without_renewal_it_would_be(
    captured: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = elsewhere(tmp_path / "approvals.db", monkeypatch)
    monkeypatch.setattr(captured.governor.approvals, "hold", lambda _: None)
    lost: list[Any] = []

    def long() -> None:
        time.sleep(1.5 * LEASE)
        lost.extend(other.recover())

    captured.governor.govern(long, name="long")()
    assert len(lost) == 1
    other.close()


async def test_asynchronous_runs_are_renewed_too(captured: Capture) -> None:
    seen: list[int] = []

    async def long() -> None:
        seen.append(len(renewing()))

    await captured.governor.govern(long, name="long")()
    assert seen == [1]
    assert gone()


def test_there_is_no_thread_where_nothing_is_held(captured: Capture) -> None:
    store = captured.governor.approvals.store
    captured.governor.approvals.approver = None
    assert captured.governor.govern(lambda: 1, name="act").tool.invoke().status == "pending"
    assert renewing() == []
    assert store.lease.total_seconds() == LEASE


def test_a_store_in_memory_needs_none() -> None:
    seen: list[int] = []
    with capture(policy=StaticEngine("ask"), approver=FixedApprover(YES)) as captured:
        captured.governor.govern(lambda: seen.append(len(renewing())), name="act")()
    assert seen == [0]


def test_a_claim_that_is_given_back_is_no_longer_renewed(captured: Capture) -> None:
    store = captured.governor.approvals.store

    def act() -> None:
        claim = held[0]
        store.release(claim)
        assert gone()

    held: list[Any] = []
    real = store.claim

    def claiming(*args: Any, **kwargs: Any) -> Any:
        held.append(real(*args, **kwargs))
        return held[0]

    store.claim = claiming  # type: ignore[method-assign]
    captured.governor.govern(act, name="act")()


@pytest.mark.parametrize("ended_by", ["complete", "interrupt"])
def test_a_call_that_waits_for_its_result_is_not_renewed(tmp_path: Path, ended_by: str) -> None:
    hour_long = ApprovalStore(tmp_path / "approvals.db")
    with (
        capture(
            policy=StaticEngine("ask"), approvals=hour_long, approver=FixedApprover(YES)
        ) as first,
        capture(approvals=ApprovalStore(tmp_path / "approvals.db")) as second,
    ):
        tools = [
            one.governor.govern(lambda: None, name="pick", ownership="custom")
            for one in (first, second)
        ]
        waiting = tools[0].tool.invoke()
        assert waiting.status == "pending"
        assert gone()
        getattr(second.governor, ended_by)(waiting.invocation_id, "ended elsewhere")
        assert gone()


def test_a_claim_that_another_process_took_over_is_not_renewed(
    captured: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = captured.governor.approvals.store

    def act() -> None:
        held_by(store, "another process")
        assert gone()

    captured.governor.govern(act, name="act")()


def test_a_failing_store_is_tried_again(captured: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    from agenttool_otel.errors import ApprovalStoreError

    store, tries = captured.governor.approvals.store, [0]
    real = store.extend

    def flaky(claim: Any) -> None:
        tries[0] += 1
        if tries[0] == 1:
            raise ApprovalStoreError("locked")
        real(claim)

    monkeypatch.setattr(store, "extend", flaky)
    captured.governor.govern(lambda: time.sleep(1.2 * LEASE), name="act")()
    assert tries[0] >= 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_renews_its_own_claims_and_not_its_parents(
    captured: Capture, tmp_path: Path
) -> None:
    governor = captured.governor
    inner = governor.govern(
        lambda: (tmp_path / "child").write_text(str(len(renewing()))), name="inner"
    )
    keeper = governor.approvals._leases

    def forks() -> None:
        assert keeper.running
        child = os.fork()
        if child == 0:
            code = 1
            try:
                if not keeper.running and keeper._claims == {}:
                    inner()
                    code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert len(renewing()) == 1

    governor.govern(forks, name="forks")()
    assert (tmp_path / "child").read_text() == "1"
    assert gone()
