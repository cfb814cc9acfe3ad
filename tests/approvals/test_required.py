"""Calls of custom tools that wait in the approval store: any process ends them, once, as if it had
permitted them.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from approval_helpers import held_by
from pydantic import BaseModel, SecretStr
from required_worker import governed

from agenttool_otel import ApprovalAnswer, agent_context
from agenttool_otel.approvals.store.sealing import generate_key
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.call.pending.required import RequiredActions
from agenttool_otel.errors import (
    ApprovalStoreError,
    InvocationConflict,
    InvocationNotFound,
    ResultInvalid,
    ToolChanged,
    UnknownTool,
)
from agenttool_otel.hooks import AdditionalContext, HookContext, Hooks, Message, UpdatedInput
from agenttool_otel.names import ApprovalLogKind as Kind
from agenttool_otel.testing import Capture, FixedApprover, StaticEngine, capture, decision

WORKER = Path(__file__).with_name("required_worker.py")
KEY = generate_key()


class Picked(BaseModel):
    path: str


class Processes:
    """Governors that share nothing but a store, as processes do."""

    def __init__(self, url: str, stack: ExitStack) -> None:
        self.url = url
        self._stack = stack

    def start(self, policy: Any = "deny", **options: Any) -> Capture:
        """A process of its own; what it settles it need not be ready to permit."""
        store = ApprovalStore(self.url, key=KEY, timeout=options.pop("timeout", 5.0))
        self._stack.callback(store.close)
        return self._stack.enter_context(
            capture(policy=StaticEngine(policy), approvals=store, **options)
        )


@pytest.fixture
def processes(store_url: str) -> Iterator[Processes]:
    with ExitStack() as stack:
        yield Processes(store_url, stack)


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Iterator[Processes]:
    with ExitStack() as stack:
        yield Processes(f"sqlite:///{tmp_path}/approvals.db", stack)


def waiting(captured: Capture) -> str:
    with agent_context(actor="agent:a", session_id="s1", tenant="acme", surface="main"):
        result = governed(captured).tool.invoke(title="which?")
    assert result.status == "pending", result.error
    assert result.invocation_id is not None
    return result.invocation_id


def approving(processes: Processes) -> tuple[Capture, FixedApprover]:
    approver = FixedApprover(ApprovalAnswer(True, answered_by="user:eve"))
    return processes.start("ask", approver=approver), approver


VERDICT = (
    "agenttool.invocation.id",
    "agenttool.tool.id",
    "agenttool.permission.decision_id",
    "agenttool.permission.behavior",
    "agenttool.permission.source",
    "agenttool.permission.reason.type",
    "agenttool.permission.rule",
    "agenttool.policy.engine",
    "agenttool.policy.revision",
    "agenttool.actor.id",
    "agenttool.tenant.id",
    "agenttool.session.id",
    "agenttool.surface.id",
)

# --- another process ------------------------------------------------------------------------------


@pytest.mark.parametrize("asynchronous", [False, True])
def test_another_process_completes_as_if_it_had_permitted(
    processes: Processes, asynchronous: bool
) -> None:
    first = processes.start("allow")
    invocation_id = waiting(first)
    second = processes.start()
    governed(second)
    governor = second.governor
    (action,) = (
        asyncio.run(governor.arequired_actions()) if asynchronous else governor.required_actions
    )
    assert (action.invocation_id, action.tool_name, action.arguments) == (
        invocation_id,
        "pick",
        {"title": "which?"},
    )
    assert (action.actor_id, action.tenant, action.session_id) == ("agent:a", "acme", "s1")
    with agent_context(actor="user:operator", session_id="other"):
        done = governor.acomplete(invocation_id, "q3.xlsx") if asynchronous else None
        result = asyncio.run(done) if done else governor.complete(invocation_id, "q3.xlsx")
    assert (result.status, result.value, result.invocation_id) == (
        "succeeded",
        "q3.xlsx",
        invocation_id,
    )
    asked, settled = first.span, second.span
    for name in VERDICT:
        assert settled.attributes[name] == asked.attributes[name], name
    assert settled.attributes["agenttool.invocation.status"] == "succeeded"
    assert settled.attributes["agenttool.invocation.resumed"] is True
    assert settled.attributes["agenttool.permission.outcome"] == "executed"
    assert [link.context.span_id for link in settled.links] == [asked.context.span_id]
    assert result.permission["decision_id"] == asked.attributes["agenttool.permission.decision_id"]
    assert result.permission["reason"]["message"] == "the test answers allow"
    assert list(first.governor.required_actions) == list(governor.required_actions) == []


def test_the_permitting_process_closes_a_call_in_the_store(processes: Processes) -> None:
    first, second = processes.start("allow"), processes.start()
    invocation_id = waiting(first)
    governed(second)
    assert first.governor.complete(invocation_id, "a").status == "succeeded"
    assert list(second.governor.required_actions) == []
    with pytest.raises(InvocationConflict, match="completed"):
        second.governor.complete(invocation_id, "b")
    assert len(second.spans) == 0


def test_a_call_completed_elsewhere_is_completed_here_too(processes: Processes) -> None:
    first, second = processes.start("allow"), processes.start()
    invocation_id = waiting(first)
    governed(second)
    second.governor.complete(invocation_id, "a")
    for again in (first.governor.complete, first.governor.interrupt):
        with pytest.raises(InvocationConflict, match="completed"):
            again(invocation_id, "late")
    with pytest.raises(InvocationNotFound):
        second.governor.complete("inv_unknown", "a")
    assert len(first.spans) == 1


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_another_process_interrupts_a_call_of_an_unknown_tool(
    processes: Processes, asynchronous: bool, known: bool
) -> None:
    first, approver = approving(processes)
    invocation_id = waiting(first)
    second = processes.start()
    if known:
        governed(second)
    governor = second.governor
    if asynchronous:
        result = asyncio.run(governor.ainterrupt(invocation_id, "the user went on"))
    else:
        result = governor.interrupt(invocation_id, "the user went on")
    assert result.status == "canceled"
    assert second.span.attributes["gen_ai.tool.name"] == "pick"
    assert second.span.attributes["agenttool.actor.id"] == "agent:a"
    assert [link.context.span_id for link in second.span.links] == [first.span.context.span_id]
    assert governor.approvals.store.get(approver.asked[0].request_id).outcome == "canceled"
    with pytest.raises(InvocationConflict, match="interrupted"):
        first.governor.complete(invocation_id, "late")


def test_a_process_without_the_same_tool_leaves_the_call_waiting(processes: Processes) -> None:
    def pick(title: str, folder: str) -> str:
        """Another tool by now."""
        raise AssertionError("ran")

    def pick_here(title: str) -> str:
        """Let the user pick a file."""
        raise AssertionError("ran")

    invocation_id = waiting(processes.start("allow"))
    stranger, changed, managed = processes.start(), processes.start(), processes.start()
    held = [
        changed.governor.govern(pick, name="pick", namespace="ui", ownership="custom"),
        managed.governor.govern(pick_here, name="pick", namespace="ui"),
    ]
    with pytest.raises(UnknownTool, match="ui"):
        stranger.governor.complete(invocation_id, "a")
    for other in (changed, managed):
        with pytest.raises(ToolChanged, match="declared otherwise"):
            other.governor.complete(invocation_id, "a")
    assert [len(other.spans) for other in (stranger, changed, managed)] == [0, 0, 0]
    assert len(held) == 2
    governed(stranger)
    assert stranger.governor.complete(invocation_id, "a").status == "succeeded"


def test_a_result_that_breaks_the_schema_elsewhere_waits_on(on_sqlite: Processes) -> None:
    def pick(title: str) -> Picked:
        raise AssertionError("ran")

    first, second = on_sqlite.start("allow"), on_sqlite.start()
    tools = [captured.governor.govern(pick, ownership="custom") for captured in (first, second)]
    invocation_id = tools[0].tool.invoke(title="a").invocation_id
    with pytest.raises(ResultInvalid):
        second.governor.complete(invocation_id, {"path": 7})
    assert second.governor.complete(invocation_id, {"path": "p"}).status == "succeeded"


def test_an_error_is_reported_to_another_process(on_sqlite: Processes) -> None:
    invocation_id = waiting(on_sqlite.start("allow"))
    second = on_sqlite.start()
    governed(second)
    result = second.governor.complete(invocation_id, error="the user closed the window")
    assert (result.status, second.span.attributes["agenttool.invocation.status"]) == (
        "failed",
        "failed",
    )


def test_obligations_and_secrets_bind_the_completing_process(on_sqlite: Processes) -> None:
    word, other = "correct-" + "horse-7", "battery-" + "staple-9"

    def unlock(pin: str, code: SecretStr) -> dict[str, str]:
        raise AssertionError("ran")

    options = {"ownership": "custom", "sensitive_fields": ["pin"]}
    first = on_sqlite.start(decision("allow", obligations={"redact_result": ["/password"]}))
    second = on_sqlite.start(capture="SPAN_ONLY")
    tools = [captured.governor.govern(unlock, **options) for captured in (first, second)]
    invocation_id = tools[0].tool.invoke(pin=word, code=other).invocation_id
    value = {"password": "from-" + "outside", "log": f"tried {word} and {other}"}
    result = second.governor.complete(invocation_id, value)
    assert result.status == "succeeded"
    assert "from-outside" not in repr(result)
    assert word not in str(second.span.attributes)
    assert other not in str(second.span.attributes)
    failed = tools[0].tool.invoke(pin=word, code=other).invocation_id
    assert word not in repr(second.governor.complete(failed, error=f"{word} was wrong"))


def test_what_hooks_changed_and_said_goes_with_the_call(on_sqlite: Processes) -> None:
    before, after, seen = Hooks(), Hooks(), []

    @before.on("pre_tool_use")
    def change(ctx: HookContext) -> Any:
        return [
            UpdatedInput({**ctx.arguments, "title": "changed"}),
            AdditionalContext("c"),
            Message("m"),
        ]

    @after.on("post_tool_use")
    def look(ctx: HookContext) -> None:
        seen.append(ctx.arguments)

    invocation_id = waiting(on_sqlite.start("allow", hooks=before))
    second = on_sqlite.start(hooks=after)
    governed(second)
    (action,) = second.governor.required_actions
    assert action.arguments == {"title": "changed"}
    told = second.governor.complete(invocation_id, "a").to_json_object()
    assert [entry["text"] for entry in told["additional_context"]] == ["c"]
    assert [entry["text"] for entry in told["hook_messages"]] == ["m"]
    assert seen == [{"title": "changed"}]


# --- the approval behind it -----------------------------------------------------------------------


def owned_by_a_dead_process(store: ApprovalStore) -> None:
    owner = json.loads(json.dumps({"host": "", "pid": 1, "start": -1}))
    from agenttool_otel.values.process_identity import this_process

    owner["host"] = json.loads(this_process())["host"]
    held_by(store, json.dumps(owner))


def test_an_approved_run_is_kept_while_its_result_is_awaited(processes: Processes) -> None:
    first, approver = approving(processes)
    invocation_id = waiting(first)
    second = processes.start()
    governed(second)
    store, request_id = second.governor.approvals.store, approver.asked[0].request_id
    owned_by_a_dead_process(store)
    assert store.recover() == []
    assert store.get(request_id).status == "consumed"
    assert second.governor.complete(invocation_id, "a").status == "succeeded"
    assert store.get(request_id).outcome == "succeeded"
    assert second.span.attributes["agenttool.approval.id"] == request_id
    assert second.span.attributes["agenttool.approval.status"] == "consumed"
    assert store.recover() == []
    assert store.verify_chain().ok


def test_a_process_that_dies_with_a_call_interrupts_its_approval(processes: Processes) -> None:
    first, approver = approving(processes)
    invocation_id = waiting(first)
    store = processes.start().governor.approvals.store
    owned_by_a_dead_process(store)
    taken = store.take_required(invocation_id, "completed")
    assert taken.claim is not None
    assert store.recover() == []  # this process holds it, and is alive
    owned_by_a_dead_process(store)
    (lost,) = store.recover()
    assert lost.request_id == approver.asked[0].request_id
    with pytest.raises(InvocationConflict):
        first.governor.complete(invocation_id, "late")


def test_each_step_is_in_the_evidence_log_without_content(processes: Processes) -> None:
    first = processes.start("allow")
    store = first.governor.approvals.store
    first.governor.complete(waiting(first), "a")
    first.governor.interrupt(waiting(first), "why")
    entries = store.log_entries()
    ended = [
        Kind.RESULT_REQUIRED,
        Kind.RESULT_COMPLETED,
        Kind.RESULT_REQUIRED,
        Kind.RESULT_INTERRUPTED,
    ]
    assert [entry.kind for entry in entries] == ended
    assert "which?" not in str(entries)
    assert store.verify_chain().ok


# --- what is stored -------------------------------------------------------------------------------


def test_no_argument_of_a_waiting_call_is_readable_or_kept(tmp_path: Path) -> None:
    secret = "hunter" + "2-" + "correct-horse"
    path = tmp_path / "a.db"
    with capture(policy=StaticEngine("allow"), approvals=str(path)) as captured:
        tool = governed(captured).tool
        invocation_id = tool.invoke(title=secret).invocation_id
        captured.governor.approvals.close()
        for file in tmp_path.iterdir():
            assert secret.encode() not in file.read_bytes(), file.name
        captured.governor.complete(invocation_id, "a")
    with sqlite3.connect(path) as database:
        rows = database.execute(
            "SELECT status, sealed_call FROM agenttool_approval_required"
        ).fetchall()
    assert rows == [("completed", b"")]


def test_an_ended_call_is_not_revived_by_editing_the_database(on_sqlite: Processes) -> None:
    captured = on_sqlite.start("allow")
    invocation_id, other = waiting(captured), waiting(captured)
    path = on_sqlite.url.removeprefix("sqlite:///")
    with sqlite3.connect(path) as database:
        (sealed,) = database.execute(
            "SELECT sealed_call FROM agenttool_approval_required WHERE invocation_id = ?",
            (invocation_id,),
        ).fetchone()
    captured.governor.complete(invocation_id, "a")
    with sqlite3.connect(path) as database:
        database.execute(
            "UPDATE agenttool_approval_required SET status = 'waiting', sealed_call = ?", (sealed,)
        )
    second = on_sqlite.start()
    governed(second)
    for edited in (invocation_id, other):
        with pytest.raises(ApprovalStoreError, match="changed"):
            second.governor.complete(edited, "b")
    assert list(second.governor.required_actions) == []


def test_a_call_that_a_framework_hands_over_again_waits_once(on_sqlite: Processes) -> None:
    captured = on_sqlite.start("allow")
    store = captured.governor.approvals.store
    for title in ("a", "b"):
        store.keep_required("inv_1", "ui/pick", {"title": title}, {}, declaration_digest="d")
    assert store.required("inv_1").arguments == {"title": "b"}
    store.take_required("inv_1", "completed")
    with pytest.raises(InvocationConflict):
        store.take_required("inv_1", "completed")


# --- where it is not stored -----------------------------------------------------------------------


@pytest.mark.parametrize("url", [None, "sqlite://"])
def test_without_a_lasting_store_calls_wait_in_memory(url: str | None) -> None:
    options = {"approvals": url} if url else {}
    with capture(policy=StaticEngine("allow"), **options) as captured:
        invocation_id = waiting(captured)
        if url is None:
            assert captured.governor.approvals._store is None  # nothing is opened for it
        else:
            assert captured.governor.approvals.store.list_required() == []
        assert captured.governor.complete(invocation_id, "a").status == "succeeded"
        assert captured.governor.telemetry.losses.total == 0


@contextmanager
def locked(processes: Processes) -> Iterator[None]:
    holder = sqlite3.connect(processes.url.removeprefix("sqlite:///"), isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        holder.execute("ROLLBACK")
        holder.close()


def test_a_call_that_a_locked_store_refuses_waits_in_memory(on_sqlite: Processes) -> None:
    captured = on_sqlite.start("allow", timeout=0.2)
    governor = captured.governor
    with locked(on_sqlite):
        ids = [waiting(captured), waiting(captured)]
        assert [action.invocation_id for action in governor.required_actions] == ids
        assert governor.complete(ids[0], "a").status == "succeeded"
    assert governor.telemetry.losses.by_kind() == {("required_action", "ApprovalStoreError"): 2}
    assert governor.complete(ids[1], "b").status == "succeeded"
    with pytest.raises(InvocationConflict, match="completed"):
        governor.complete(ids[1], "c")


def test_a_call_that_a_full_store_can_not_keep_waits_in_memory(on_sqlite: Processes) -> None:
    captured = on_sqlite.start("allow")
    tool = governed(captured).tool
    with captured.governor.approvals.store._db._connection() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")
    result = tool.invoke(title="x" * 100_000)
    assert result.status == "pending"
    assert captured.governor.telemetry.losses.total == 1
    assert captured.governor.complete(result.invocation_id, "a").status == "succeeded"


def test_a_store_that_can_not_be_opened_costs_no_call(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with capture(
        policy=StaticEngine("allow"), approvals=str(tmp_path / "file" / "a.db")
    ) as captured:
        invocation_id = waiting(captured)
        assert [action.invocation_id for action in captured.governor.required_actions] == [
            invocation_id
        ]
        assert captured.governor.complete(invocation_id, "a").status == "succeeded"


def test_a_stored_call_waits_while_the_store_cannot_say_who_won(on_sqlite: Processes) -> None:
    captured = on_sqlite.start("allow", timeout=0.2)
    invocation_id = waiting(captured)
    with locked(on_sqlite):
        for end in (captured.governor.complete, captured.governor.interrupt):
            with pytest.raises(ApprovalStoreError):
                end(invocation_id, "a")
    assert captured.governor.complete(invocation_id, "a").status == "succeeded"


def test_calls_that_other_processes_ended_take_no_room(on_sqlite: Processes) -> None:
    first, second = on_sqlite.start("allow"), on_sqlite.start()
    governor = first.governor
    governor.pipeline.required = RequiredActions(limit=2, approvals=governor.approvals)
    tool = governed(first).tool
    governed(second)
    ids = [tool.invoke(title="a").invocation_id for _ in range(2)]
    assert tool.invoke(title="a").error.error_class == "rate_limited"
    second.governor.complete(ids[0], "a")
    assert tool.invoke(title="a").status == "pending"
    assert tool.invoke(title="a").status == "failed"
    assert len(second.governor.required_actions) == 2


# --- asynchronous code ----------------------------------------------------------------------------


async def test_a_slow_store_does_not_block_the_event_loop(on_sqlite: Processes) -> None:
    captured = on_sqlite.start("allow")
    governor, tool = captured.governor, governed(captured).tool
    invocation_id = waiting(captured)
    steps: list[Callable[[], Any]] = [
        lambda: tool.ainvoke(title="a"),
        lambda: governor.acomplete(invocation_id, "a"),
        lambda: governor.ainterrupt(governor.required_actions[0].invocation_id, "why"),
    ]
    for step in steps:
        work = step()
        with locked(on_sqlite):
            task = asyncio.ensure_future(work)
            # a loop that is blocked comes round again when the store has given up
            for _ in range(20):
                await asyncio.sleep(0.01)
            assert not task.done()
        await task
    assert list(await governor.arequired_actions()) == []


async def test_a_task_canceled_while_its_call_is_stored_does_not_wait(on_sqlite: Processes) -> None:
    captured, approver = approving(on_sqlite)
    tool, store = governed(captured).tool, captured.governor.approvals.store
    reached, go_on = threading.Event(), threading.Event()
    real = ApprovalStore.keep_required

    def slow(*args: Any, **kwargs: Any) -> None:
        reached.set()
        go_on.wait(60)
        real(store, *args, **kwargs)

    store.keep_required = slow  # type: ignore[method-assign]
    task = asyncio.ensure_future(tool.ainvoke(title="a"))
    await asyncio.to_thread(reached.wait, 10)
    task.cancel()
    await asyncio.sleep(0.05)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert list(await captured.governor.arequired_actions()) == []
    assert store.list_required() == []
    assert store.get(approver.asked[0].request_id).outcome == "canceled"
    assert captured.span.attributes["agenttool.invocation.status"] == "canceled"


async def test_a_completion_canceled_after_its_claim_is_still_recorded(
    on_sqlite: Processes,
) -> None:
    captured = on_sqlite.start("allow")
    governor, store = captured.governor, captured.governor.approvals.store
    invocation_id = waiting(captured)
    reached, go_on = threading.Event(), threading.Event()
    real = ApprovalStore.take_required

    def slow(*args: Any) -> Any:
        taken = real(store, *args)
        reached.set()
        go_on.wait(60)
        return taken

    store.take_required = slow  # type: ignore[method-assign]
    task = asyncio.ensure_future(governor.acomplete(invocation_id, "a"))
    await asyncio.to_thread(reached.wait, 10)
    task.cancel()
    await asyncio.sleep(0.05)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert captured.spans[-1].attributes["agenttool.invocation.status"] == "succeeded"
    with pytest.raises(InvocationConflict, match="completed"):
        await governor.acomplete(invocation_id, "b")


# --- many processes -------------------------------------------------------------------------------


def start(role: str, *arguments: str) -> subprocess.Popen[str]:
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([sys.executable, str(WORKER), role, *arguments], text=True, **pipes)  # type: ignore[call-overload,no-any-return]


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if not line:
        process.kill()
        assert process.stderr is not None
        raise AssertionError(process.stderr.read())
    return line


def closed(process: subprocess.Popen[str]) -> None:
    for stream in (process.stdin, process.stdout, process.stderr):
        assert stream is not None
        stream.close()


@pytest.mark.slow
@pytest.mark.parametrize("behavior", ["allow", "ask"])
def test_kill_minus_9_between_pause_and_result_loses_nothing(
    processes: Processes, behavior: str
) -> None:
    victim = start("pause", processes.url, KEY, behavior)
    told = json.loads(said(victim))
    assert told["status"] == "pending"
    victim.send_signal(signal.SIGKILL)
    assert victim.wait(60) == -signal.SIGKILL
    closed(victim)

    second = processes.start()
    governed(second)
    store = second.governor.approvals.store
    assert store.recover() == []
    assert [action.invocation_id for action in second.governor.required_actions] == [
        told["invocation_id"]
    ]
    result = second.governor.complete(told["invocation_id"], "q3.xlsx")
    assert (result.status, result.value) == ("succeeded", "q3.xlsx")
    for name in VERDICT[:-1]:
        assert second.span.attributes[name] == told["attributes"][name], name
    assert [link.context.span_id for link in second.span.links] == [told["span_id"]]
    if behavior == "ask":
        assert store.get(told["asked"]).outcome == "succeeded"
    assert store.recover() == []
    assert store.verify_chain().ok


@pytest.mark.slow
def test_of_four_processes_that_complete_one_call_one_wins(processes: Processes) -> None:
    first, approver = approving(processes)
    invocation_id = waiting(first)
    racers = [start("race", processes.url, KEY, invocation_id, str(n)) for n in range(4)]
    for racer in racers:
        assert said(racer) == "ready"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    results = [racer.communicate(timeout=60)[0].strip() for racer in racers]
    assert sorted(results)[:3] == ["lost the call was completed already"] * 3
    assert sorted(results)[3].startswith("won ")
    store = first.governor.approvals.store
    assert store.get(approver.asked[0].request_id).outcome == "succeeded"
    assert [entry.kind for entry in store.log_entries()].count(Kind.RESULT_COMPLETED) == 1
    assert store.verify_chain().ok


def _complete_in_child(captured: Capture, invocation_id: str, queue: Any) -> None:
    try:
        queue.put(captured.governor.complete(invocation_id, "child").status)
    except Exception as error:
        queue.put(type(error).__name__)


def test_of_a_forked_child_and_its_parent_one_completes_a_call(processes: Processes) -> None:
    captured = processes.start("allow")
    theirs, ours = waiting(captured), waiting(captured)
    captured.governor.complete(ours, "parent")
    context = multiprocessing.get_context("fork")
    results = []
    for invocation_id in (theirs, theirs):
        queue = context.Queue()
        child = context.Process(target=_complete_in_child, args=(captured, invocation_id, queue))
        child.start()
        results.append(queue.get(timeout=30))
        child.join(30)
    assert results == ["succeeded", "InvocationConflict"]
    with pytest.raises(InvocationConflict, match="completed"):
        captured.governor.complete(theirs, "parent")
    assert list(captured.governor.required_actions) == []


def test_of_many_threads_that_complete_a_stored_call_one_wins(on_sqlite: Processes) -> None:
    captured = on_sqlite.start("allow")
    invocation_id = waiting(captured)
    taken: list[Any] = []
    gate = threading.Barrier(8)

    def complete(number: int) -> None:
        gate.wait()
        try:
            taken.append(captured.governor.complete(invocation_id, number).value)
        except InvocationConflict:
            taken.append(None)

    threads = [threading.Thread(target=complete, args=(n,)) for n in range(8)]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.monotonic() - started < 30
    assert len([value for value in taken if value is not None]) == 1
    assert len(captured.spans) == 2
