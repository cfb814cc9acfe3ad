"""What is known is stored as soon as it can be, no clock ends what is open, and a failing store is
no person's no.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from approval_helpers import ARGS, FakeClock, a_request, bindings, no, yes

from agenttool_otel import ApprovalAnswer, ApprovalRequired, agent_context
from agenttool_otel.approvals.store.sealing import generate_key
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.errors import ApprovalClockAhead, ApprovalStoreError, ToolDenied
from agenttool_otel.testing import StaticEngine, capture

KEY = generate_key()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    held = sqlite3.connect(path, isolation_level=None)
    held.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        held.execute("ROLLBACK")
        held.close()


def settled(store: ApprovalStore) -> bool:
    ends = time.monotonic() + 20
    while len(store.outbox) and time.monotonic() < ends:
        time.sleep(0.05)
    return not len(store.outbox)


@pytest.fixture
def store(tmp_path: Path) -> ApprovalStore:
    return ApprovalStore(tmp_path / "a.db", key=KEY, timeout=0.2)


# --- what could not be stored ---------------------------------------------------------------------


def test_an_outcome_is_stored_once_the_store_can(tmp_path: Path, store: ApprovalStore) -> None:
    with capture(policy=StaticEngine("ask"), approvals=store) as captured:

        def pay() -> str:
            stack.enter_context(locked(tmp_path / "a.db"))
            return "paid"

        import contextlib

        with contextlib.ExitStack() as stack:
            with pytest.raises(ApprovalRequired) as asked:
                captured.governor.govern(pay, name="pay")()
            store.answer(asked.value.request_id, ApprovalAnswer(True, answered_by="user:u"))
            assert captured.governor.resume(asked.value.invocation_id).value == "paid"
            assert len(store.outbox) == 1
            assert (
                sum(point.value for point in captured.points("agenttool.approvals.unstored")) == 1
            )
        assert settled(store)
        assert store.get(asked.value.request_id).outcome == "succeeded"
        assert sum(point.value for point in captured.points("agenttool.approvals.unstored")) == 0


def test_an_answer_given_in_place_is_kept(tmp_path: Path, store: ApprovalStore) -> None:
    import contextlib

    stack = contextlib.ExitStack()

    class Person:
        def ask(self, request: Any) -> ApprovalAnswer:
            stack.enter_context(locked(tmp_path / "a.db"))
            return ApprovalAnswer(True, answered_by="user:u")

    with capture(policy=StaticEngine("ask"), approvals=store, approver=Person()) as captured:
        with stack, pytest.raises(ApprovalRequired) as asked:
            captured.governor.govern(lambda: "done", name="act")()
        assert settled(store)
        assert captured.governor.resume(asked.value.invocation_id).value == "done"


def test_a_cancellation_is_kept(tmp_path: Path, store: ApprovalStore) -> None:
    with capture(policy=StaticEngine("ask"), approvals=store) as captured:
        with pytest.raises(ApprovalRequired) as asked:
            captured.governor.govern(lambda: "done", name="act")()
        with locked(tmp_path / "a.db"), pytest.raises(ApprovalStoreError):
            captured.governor.interrupt(asked.value.invocation_id, "enough")
        assert settled(store)
        assert store.get(asked.value.request_id).status == "canceled"


def test_a_closing_store_stores_what_it_kept(tmp_path: Path, store: ApprovalStore) -> None:
    request = store.create(a_request(), ARGS)
    store.answer(request.request_id, yes())
    claim = store.claim(request.request_id, **bindings(request))
    store.outbox.keep("an outcome", lambda: store.finish(claim, "succeeded"))
    store.close()
    assert ApprovalStore(tmp_path / "a.db", key=KEY).get(request.request_id).outcome == "succeeded"


def test_what_a_store_refuses_for_good_is_not_tried_again(store: ApprovalStore) -> None:
    request = store.create(a_request(), ARGS)
    store.answer(request.request_id, no())
    store.outbox.keep("an answer", lambda: store.answer(request.request_id, yes()))
    assert store.outbox.flush(1)
    assert store.get(request.request_id).status == "rejected"


def test_a_process_that_ends_stores_what_it_kept(tmp_path: Path, store: ApprovalStore) -> None:
    request = store.create(a_request(), ARGS)
    program = f"""
        import sqlite3, threading
        from agenttool_otel.approvals.store.store import ApprovalStore
        store = ApprovalStore({str(tmp_path / "a.db")!r}, key={KEY!r}, timeout=0.1)
        held = sqlite3.connect({str(tmp_path / "a.db")!r}, isolation_level=None, check_same_thread=False)
        held.execute("BEGIN IMMEDIATE")
        store.outbox.keep("a cancellation", lambda: store.cancel({request.request_id!r}, "why"))
        threading.Timer(1, lambda: held.execute("ROLLBACK")).start()
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=60)
    assert store.get(request.request_id).status == "canceled"


# --- clocks ---------------------------------------------------------------------------------------


@pytest.fixture(
    params=["sqlite", pytest.param("postgresql", marks=[pytest.mark.postgres, pytest.mark.slow])]
)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/c.db"
    return str(request.getfixturevalue("postgres_url"))


def ahead(hours: float = 25) -> Callable[[], datetime]:
    return lambda: datetime.now(UTC) + timedelta(hours=hours)


@pytest.mark.parametrize("look", ["counts", "expire_due", "list", "unreported_expiries", "recover"])
def test_a_clock_far_ahead_ends_nothing(url: str, look: str) -> None:
    store = ApprovalStore(url, key=KEY)
    requests = [store.create(a_request(), ARGS) for _ in range(2)]
    store.answer(requests[0].request_id, yes())
    getattr(ApprovalStore(url, key=KEY, clock=ahead()), look)()
    assert {status: count for status, count in store.counts().items() if count} == {
        "pending": 1,
        "approved": 1,
    }
    store.claim(requests[0].request_id, **bindings(requests[0]))


def test_a_clock_far_ahead_dates_nothing(url: str) -> None:
    store = ApprovalStore(url, key=KEY)
    store.create(a_request(), ARGS)
    ApprovalStore(url, key=KEY, clock=ahead()).create(a_request(), ARGS)
    again = store.create(a_request(), ARGS)
    assert abs(again.created_at - datetime.now(UTC)) < timedelta(minutes=5)
    assert all(entry.at_us < (time.time() + 300) * 1_000_000 for entry in store.log_entries())


def test_who_is_far_ahead_neither_answers_nor_claims(url: str) -> None:
    store = ApprovalStore(url, key=KEY)
    pending, approved = store.create(a_request(), ARGS), store.create(a_request(), ARGS)
    store.answer(approved.request_id, yes())
    other = ApprovalStore(url, key=KEY, clock=ahead())
    with pytest.raises(ApprovalClockAhead, match=r"1 day, \d:\d\d:\d\d ahead") as caught:
        other.answer(pending.request_id, yes())
    assert caught.value.ahead > timedelta(hours=24)
    with pytest.raises(ApprovalClockAhead):
        other.claim(approved.request_id, **bindings(approved))


def test_a_clock_that_is_accepted_counts(tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path / "c.db", key=KEY)
    request = store.create(a_request(), ARGS)
    other = ApprovalStore(tmp_path / "c.db", key=KEY, clock=ahead())
    assert other.accept_clock() > timedelta(hours=24)
    assert store.get(request.request_id).status == "expired"
    assert store.verify_chain().ok


def test_a_clock_a_little_ahead_is_believed(tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path / "c.db", key=KEY)
    request = store.create(a_request(ttl=60), ARGS)
    assert (
        ApprovalStore(tmp_path / "c.db", key=KEY, clock=ahead(0.05)).get(request.request_id).status
        == "expired"
    )


# --- a store's failure ----------------------------------------------------------------------------


def test_a_failing_store_has_one_shape_everywhere(tmp_path: Path, store: ApprovalStore) -> None:
    with capture(policy=StaticEngine("ask"), approvals=store) as captured:
        tool = captured.governor.govern(lambda: "done", name="act")
        with pytest.raises(ApprovalRequired) as asked:
            tool()
        store.answer(asked.value.request_id, ApprovalAnswer(True, answered_by="user:u"))
        claim = store.claim

        def fail(*given: Any, **named: Any) -> Any:
            raise ApprovalStoreError("locked")

        results = []
        with locked(tmp_path / "a.db"):
            results.append(tool.tool.invoke({}))  # the ask
            results.append(captured.governor.resume(asked.value.invocation_id))  # the claim
        store.claim, store.stored_call, read = fail, fail, store.stored_call  # type: ignore[method-assign]
        results.append(captured.governor.resume(asked.value.invocation_id))  # the read
        store.claim, store.stored_call = claim, read  # type: ignore[method-assign]
        for result in results:
            assert result.error is not None
            assert result.status == "denied"
            assert str(result.error.error_class) == "policy_blocked"
            assert (str(result.error.recoverability), result.error.retry.retry_safe) == (
                "retry_later",
                True,
            )
        causes = [
            (span.attributes or {}).get("agenttool.permission.fail_closed.cause")
            for span in captured.spans
        ]
        assert causes.count("store_unavailable") == 3
        assert captured.governor.resume(asked.value.invocation_id).value == "done"


def test_an_expired_request_is_no_persons_no(tmp_path: Path) -> None:
    clock = FakeClock()
    store = ApprovalStore(tmp_path / "e.db", key=KEY, clock=clock, ticks=clock.ticks)
    with (
        capture(policy=StaticEngine("ask"), approvals=store, approvals_ttl=60) as captured,
        agent_context(actor="a"),
    ):
        with pytest.raises(ApprovalRequired) as asked:
            captured.governor.govern(lambda: "done", name="act")()
        clock.move(61)
        result = captured.governor.resume(asked.value.invocation_id)
        assert result.error is not None
        assert (result.status, str(result.error.error_class)) == ("denied", "policy_blocked")
        assert result.error.retry.approval_required
        assert result.permission["source"] == "timeout"
        with pytest.raises(ToolDenied):
            raise ToolDenied(result.error.message)
