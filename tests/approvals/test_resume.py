"""A paused call goes on through whichever door fits it, is not used up by one that doesn't, and can
be canceled.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from approval_helpers import bindings
from closing import closed_once
from opentelemetry import trace

from agenttool_otel import ApprovalAnswer, ApprovalRequired, Settings, agent_context
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.errors import ApprovalConflict
from agenttool_otel.names import ApprovalStatus
from agenttool_otel.testing import Capture, StaticEngine, capture

YES = ApprovalAnswer(approved=True, answered_by="user:ada")


@pytest.fixture
def captured(tmp_path: Path) -> Iterator[Capture]:
    with capture(
        policy=StaticEngine("ask"), approvals=f"sqlite:///{tmp_path / 'approvals.db'}"
    ) as captured:
        yield captured


def store_of(captured: Capture) -> ApprovalStore:
    return captured.governor.approvals.store


def approved(captured: Capture, error: ApprovalRequired) -> str:
    store_of(captured).answer(error.request_id, YES)
    return error.invocation_id


def status_of(captured: Capture, invocation_id: str) -> ApprovalStatus:
    request = store_of(captured).by_invocation(invocation_id)
    assert request is not None
    return request.status


class Counter:
    """Has tools as methods: only with its instance can they run."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def plain(self, item: int) -> int:
        self.seen.append((item, threading.get_ident()))
        return item

    async def later(self, item: int) -> int:
        await asyncio.sleep(0)
        self.seen.append((item, threading.get_ident()))
        return item

    def items(self, count: int) -> Iterator[int]:
        for item in range(count):
            self.seen.append(trace.get_current_span().get_span_context().span_id)
            yield item

    async def aitems(self, count: int) -> AsyncIterator[int]:
        for item in range(count):
            self.seen.append(trace.get_current_span().get_span_context().span_id)
            yield item


def governed(captured: Capture, name: str) -> tuple[Counter, Callable[..., Any]]:
    """A bound governed method."""
    owner: Any = type(
        "Owner", (Counter,), {name: captured.governor.govern(getattr(Counter, name), name=name)}
    )()
    return owner, getattr(owner, name)


# --- doors ----------------------------------------------------------------------------------------


async def test_an_asynchronous_call_outlives_the_wrong_door(captured: Capture) -> None:
    owner, call = governed(captured, "later")
    with pytest.raises(ApprovalRequired) as asked:
        await call(7)
    invocation = approved(captured, asked.value)
    with pytest.raises(TypeError, match="use aresume"):
        captured.governor.resume(invocation)
    assert status_of(captured, invocation) is ApprovalStatus.APPROVED
    result = await captured.governor.aresume(invocation)
    assert (result.status, result.value) == ("succeeded", 7)
    assert [item for item, _ in owner.seen] == [7]


async def test_a_resumed_coroutine_that_is_closed_has_an_end(captured: Capture) -> None:
    begun: list[int] = []

    @captured.governor.govern
    async def wait(item: int) -> None:
        begun.append(item)
        await asyncio.sleep(60)

    with pytest.raises(ApprovalRequired) as asked:
        await wait(7)
    invocation = approved(captured, asked.value)
    await closed_once(lambda: begun, captured.governor.aresume(invocation))
    request = store_of(captured).by_invocation(invocation)
    assert request is not None
    assert request.outcome == "canceled"
    assert captured.governor.running() == []


async def test_a_plain_call_goes_on_off_the_event_loop(captured: Capture) -> None:
    owner, call = governed(captured, "plain")
    with pytest.raises(ApprovalRequired) as asked:
        call(7)
    result = await captured.governor.aresume(approved(captured, asked.value))
    assert (result.status, result.value) == ("succeeded", 7)
    assert owner.seen[0][1] != threading.get_ident()


def test_an_awaited_plain_call_goes_on_without_an_event_loop(captured: Capture) -> None:
    ran: list[int] = []
    tool = captured.governor.govern(lambda item: ran.append(item), name="act").tool
    paused = asyncio.run(tool.ainvoke(item=7))
    assert paused.status == "pending"
    request = store_of(captured).by_invocation(paused.invocation_id)
    assert request is not None
    store_of(captured).answer(request.request_id, YES)
    assert captured.governor.resume(paused.invocation_id).status == "succeeded"
    assert ran == [7]


@pytest.mark.parametrize("name", ["items", "aitems"])
async def test_a_paused_stream_goes_on_as_the_items_it_gives(captured: Capture, name: str) -> None:
    owner, call = governed(captured, name)

    async def consume() -> list[int]:
        return list(call(3)) if name == "items" else [item async for item in call(3)]

    with pytest.raises(ApprovalRequired) as asked:
        await consume()
    invocation = approved(captured, asked.value)
    result = await captured.governor.aresume(invocation)
    assert (result.status, list(result.value)) == ("succeeded", [0, 1, 2])
    span = captured.spans[-1].get_span_context()
    assert span is not None
    assert owner.seen == [span.span_id] * 3  # inside the call's span


def test_a_paused_generator_goes_on_without_an_event_loop(captured: Capture) -> None:
    owner, call = governed(captured, "items")
    with pytest.raises(ApprovalRequired) as asked:
        list(call(2))
    result = captured.governor.resume(approved(captured, asked.value))
    assert (result.status, list(result.value)) == ("succeeded", [0, 1])
    assert len(owner.seen) == 2


# --- cancellation ---------------------------------------------------------------------------------


async def test_a_resume_canceled_while_it_claims_uses_nothing_up(captured: Capture) -> None:
    owner, call = governed(captured, "plain")
    with pytest.raises(ApprovalRequired) as asked:
        call(7)
    invocation = approved(captured, asked.value)
    store = store_of(captured)
    real, claiming, go_on = store.claim, threading.Event(), threading.Event()

    def slow(*args: Any, **kwargs: Any) -> Any:
        claim = real(*args, **kwargs)
        claiming.set()
        go_on.wait(60)
        return claim

    store.claim = slow  # type: ignore[method-assign]
    task = asyncio.create_task(captured.governor.aresume(invocation))
    await asyncio.to_thread(claiming.wait, 10)
    task.cancel()
    await asyncio.sleep(0.05)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert owner.seen == []
    assert status_of(captured, invocation) is ApprovalStatus.APPROVED
    assert store.recover() == []
    store.claim = real  # type: ignore[method-assign]
    assert captured.spans[-1].attributes is not None
    assert captured.spans[-1].attributes["agenttool.invocation.status"] == "canceled"
    result = await captured.governor.aresume(invocation)
    assert (result.status, result.value) == ("succeeded", 7)
    assert [item for item, _ in owner.seen] == [7]


async def test_a_second_cancellation_does_not_keep_the_claim(captured: Capture) -> None:
    _, call = governed(captured, "plain")
    with pytest.raises(ApprovalRequired) as asked:
        call(7)
    invocation = approved(captured, asked.value)
    store = store_of(captured)
    real, claiming, go_on = store.claim, threading.Event(), threading.Event()

    def slow(*args: Any, **kwargs: Any) -> Any:
        claiming.set()
        go_on.wait(60)
        return real(*args, **kwargs)

    store.claim = slow  # type: ignore[method-assign]
    task = asyncio.create_task(captured.governor.aresume(invocation))
    await asyncio.to_thread(claiming.wait, 10)
    task.cancel()
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    for _ in range(200):
        await asyncio.sleep(0.01)
        entries = [entry.kind.value for entry in store.log_entries()]
        if "claim_released" in entries:
            break
    assert entries[-2:] == ["claimed", "claim_released"]
    assert status_of(captured, invocation) is ApprovalStatus.APPROVED


async def test_a_running_call_that_is_canceled_raises_and_is_used_up(captured: Capture) -> None:
    started = asyncio.Event()

    async def forever() -> None:
        started.set()
        await asyncio.sleep(60)

    call = captured.governor.govern(forever, name="forever")
    with pytest.raises(ApprovalRequired) as asked:
        await call()
    invocation = approved(captured, asked.value)
    task = asyncio.create_task(captured.governor.aresume(invocation))
    await asyncio.wait_for(started.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    request = store_of(captured).by_invocation(invocation)
    assert request is not None
    assert (request.status, request.outcome) == (ApprovalStatus.CONSUMED, "canceled")


async def test_an_interrupt_that_is_canceled_is_done_and_raises(captured: Capture) -> None:
    _, call = governed(captured, "plain")
    with pytest.raises(ApprovalRequired) as asked:
        call(7)
    store = store_of(captured)
    real, inside, go_on = store.cancel, threading.Event(), threading.Event()

    def slow(*args: Any) -> Any:
        inside.set()
        go_on.wait(60)
        return real(*args)

    store.cancel = slow  # type: ignore[method-assign]
    task = asyncio.create_task(captured.governor.ainterrupt(asked.value.invocation_id, "enough"))
    await asyncio.to_thread(inside.wait, 10)
    task.cancel()
    await asyncio.sleep(0.05)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert status_of(captured, asked.value.invocation_id) is ApprovalStatus.CANCELED


# --- context --------------------------------------------------------------------------------------


def test_a_gated_call_goes_on_with_the_verdict_of_its_evaluator(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'approvals.db'}"
    settings = {"agenttool": {"settings": {"evaluation": {"gates": ["promote"]}}}}
    passing = {"status": "pass", "trend": "improving"}
    with capture(approvals=url, policy_data=settings) as captured:
        call = captured.governor.govern(
            lambda: "done", name="promote", risk_level="high", read_only=False
        )
        with agent_context(
            actor="agent:a", session_id="s-1", surface="surface-1", evaluation=passing
        ):
            with pytest.raises(ApprovalRequired) as asked:
                call()
            invocation = approved(captured, asked.value)
        with agent_context(evaluation={"status": "fail", "trend": "regressing"}):
            assert captured.governor.resume(invocation).status == "denied"
        # nobody says that it still passes
        assert captured.governor.resume(invocation).status == "denied"
        with agent_context(evaluation=passing):
            result = captured.governor.resume(invocation)
        assert (result.status, result.value) == ("succeeded", "done")
        attributes = captured.spans[-1].attributes
        assert attributes is not None
        assert attributes["agenttool.surface.id"] == "surface-1"


def test_another_actors_resume_is_refused_and_the_call_waits_on(captured: Capture) -> None:
    owner, call = governed(captured, "plain")
    with agent_context(actor="agent:a"), pytest.raises(ApprovalRequired) as asked:
        call(7)
    invocation = approved(captured, asked.value)
    with agent_context(actor="agent:b"):
        assert captured.governor.resume(invocation).status == "rejected"
    assert owner.seen == []
    assert captured.governor.resume(invocation).value == 7
    with pytest.raises(ApprovalConflict):
        store_of(captured).cancel(invocation, "late")


def test_asks_beyond_the_bound_are_refused_and_may_be_repeated() -> None:
    settings = Settings(approvals_max_pending_per_session=2, policy_timeout=60)
    with capture(policy=StaticEngine("ask"), settings=settings) as captured:
        tool = captured.governor.govern(lambda n: n, name="count").tool
        with agent_context(session_id="s1"):
            results = [tool.invoke(n=n) for n in range(3)]
        with agent_context(session_id="s2"):
            results.append(tool.invoke(n=3))
    assert [one.status for one in results] == ["pending", "pending", "failed", "pending"]
    error = results[2].error
    assert error is not None
    assert error.error_class == "rate_limited"
    assert "this session" in error.message


def test_a_relative_path_is_approved_for_the_place_it_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a")
    with capture(policy=StaticEngine("ask"), settings=Settings(policy_timeout=60)) as captured:

        def write_file(path: str) -> str:
            """Write a file."""
            Path(path).write_text("hello")
            return "wrote"

        tool = captured.governor.govern(
            write_file, tool_kind="file_operation", access_kinds=["file_write"]
        ).tool
        with agent_context(session_id="s1", roots=["."]):
            relative, absolute, edited = (
                tool.invoke(path=path)
                for path in ("rel.txt", str(tmp_path / "abs.txt"), "edited.txt")
            )
        store = store_of(captured)
        answers = {one.invocation_id: YES for one in (relative, absolute)}
        answers[edited.invocation_id] = replace(YES, edited_input={"path": "other.txt"})
        for invocation_id, answer in answers.items():
            request = store.by_invocation(str(invocation_id))
            assert request is not None
            store.answer(request.request_id, answer)
        monkeypatch.chdir(tmp_path / "a" / "b")
        for one in (relative, edited):
            refused = captured.governor.resume(str(one.invocation_id))
            assert refused.error is not None
            assert "other places" in refused.error.message
        assert list((tmp_path / "a" / "b").iterdir()) == []
        assert captured.governor.resume(str(absolute.invocation_id)).status == "succeeded"
        monkeypatch.chdir(tmp_path / "a")
        for one in (relative, edited):
            assert captured.governor.resume(str(one.invocation_id)).status == "succeeded"
        assert {file.name for file in (tmp_path / "a").iterdir()} == {"b", "rel.txt", "other.txt"}


# --- an approval that was used --------------------------------------------------------------------


def test_a_second_resume_says_that_the_call_has_run(captured: Capture) -> None:
    ran: list[int] = []
    call = captured.governor.govern(lambda item: ran.append(item), name="act")
    with pytest.raises(ApprovalRequired) as asked:
        call(7)
    invocation = approved(captured, asked.value)
    assert captured.governor.resume(invocation).status == "succeeded"
    again = captured.governor.resume(invocation)
    assert ran == [7]
    assert again.status == "denied"
    assert again.error is not None
    assert again.error.error_class == "policy_blocked"
    assert "used already" in again.error.message
    assert "succeeded" in again.error.message
    assert "rejected" not in str(again.to_json_object())
    assert captured.spans[-1].attributes["error.type"] == "policy_blocked"


def test_an_approval_used_by_another_meanwhile_was_not_rejected(tmp_path: Path) -> None:
    class Racing(StaticEngine):
        """Somebody else takes the claim while this process decides again."""

        def evaluate(self, entry_point: str, document: Any, *, timeout: float) -> Any:
            if document["invocation"]["resumed"]:
                request = store.by_invocation(document["invocation"]["id"])
                assert request is not None
                store.claim(request.request_id, **{**bindings(request), "decided_again": True})
            return super().evaluate(entry_point, document, timeout=timeout)

    ran: list[int] = []
    store = ApprovalStore(tmp_path / "approvals.db")
    with capture(policy=Racing("ask"), approvals=store) as captured:
        call = captured.governor.govern(lambda item: ran.append(item), name="act")
        with pytest.raises(ApprovalRequired) as asked:
            call(7)
        late = captured.governor.resume(approved(captured, asked.value))
    store.close()
    assert ran == []
    assert late.error is not None
    assert (late.status, str(late.error.error_class)) == ("denied", "policy_blocked")
    assert "used already" in late.error.message
