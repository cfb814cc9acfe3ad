"""Many processes, killed processes, forked processes, locked and full disks: at most once, and
nothing is lost.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest
from approval_helpers import ARGS, a_request, bindings, yes

from agenttool_otel.approvals.store.sealing import generate_key
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.errors import ApprovalConflict, ApprovalStoreError
from agenttool_otel.names import ApprovalStatus as Status

WORKER = Path(__file__).with_name("approval_worker.py")
KEY = generate_key()


def start(role: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(WORKER), role, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(process: subprocess.Popen[str]) -> str:
    stream: IO[str] | None = process.stdout
    assert stream is not None
    line = stream.readline().strip()
    if not line and process.poll() not in {None, 0}:
        assert process.stderr is not None
        raise AssertionError(process.stderr.read())
    return line


STEPS: dict[str, tuple[Status | None, int, bool]] = {
    # step -> state that the next process finds, how often the tool ran before, whether it is asked
    # again
    "create:before_commit": (None, 0, False),
    "created": (Status.PENDING, 0, False),
    "answer:before_commit": (Status.PENDING, 0, False),
    "answered": (Status.APPROVED, 0, False),
    "claim:before_commit": (Status.APPROVED, 0, False),
    "claimed": (Status.CONSUMED, 0, True),
    "ran": (Status.CONSUMED, 1, True),
    "finish:before_commit": (Status.CONSUMED, 1, True),
    "finished": (Status.CONSUMED, 1, False),
}
QUICK = {"claim:before_commit", "ran"}


@pytest.mark.parametrize(
    "step",
    [step if step in QUICK else pytest.param(step, marks=pytest.mark.slow) for step in STEPS],
)
def test_sigkill_at_each_step_runs_nothing_twice_nor_loses_it(
    store_url: str, tmp_path: Path, step: str
) -> None:
    found, ran_before, asked_again = STEPS[step]
    ran, invocation = tmp_path / "ran", "inv_killed"
    process = start("die_at", store_url, KEY, step, str(ran), invocation)
    assert said(process) == step
    process.send_signal(signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL
    assert process.stdout is not None
    for stream in (process.stdin, process.stdout, process.stderr):
        assert stream is not None
        stream.close()

    store = ApprovalStore(store_url, key=KEY, timeout=60)
    request = store.by_invocation(invocation)
    assert (request.status if request else None) is found
    assert len(ran.read_text().splitlines() if ran.exists() else []) == ran_before
    lost = store.recover()
    assert bool(lost) is asked_again
    assert store.verify_chain().ok
    if request is None:
        return
    if asked_again:
        # never again by itself; only a new answer lets it run
        with pytest.raises(ApprovalConflict):
            store.claim(invocation, **bindings(request))
        assert store.get(request.request_id).status is Status.INTERRUPTED
        request = store.get(lost[0].asked_again)
    if request.status is Status.PENDING:
        store.answer(request.request_id, yes())
    if step != "finished":
        store.finish(store.claim(invocation, **bindings(request)), "succeeded")
    with pytest.raises(ApprovalConflict):
        store.claim(invocation, **bindings(request))
    assert store.verify_chain().ok


def _settle_many(store_url: str, tmp_path: Path, each: int, processes: int) -> None:
    ApprovalStore(store_url, key=KEY)
    ran = tmp_path / "ran"
    workers = [
        start("work", store_url, KEY, str(seed), str(each), str(ran)) for seed in range(processes)
    ]
    try:
        for worker in workers:
            assert said(worker) == "asked"
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()
        for worker in workers:
            _, errors = worker.communicate(timeout=500)
            assert worker.returncode == 0, errors
    finally:
        for worker in workers:
            worker.kill()
    store = ApprovalStore(store_url, key=KEY)
    expected = {f"inv_{seed}_{n}" for seed in range(processes) for n in range(each) if n % 3}
    times = Counter(ran.read_text().splitlines())
    assert set(times) == expected
    assert set(times.values()) == {1}
    counts = store.counts()
    assert counts[Status.CONSUMED] == len(expected)
    assert counts[Status.REJECTED] == each * processes - len(expected)
    assert counts[Status.PENDING] == counts[Status.APPROVED] == 0
    report = store.verify_chain()
    assert report.ok, report


def test_a_few_concurrent_asks_each_run_once(tmp_path: Path) -> None:
    _settle_many(f"sqlite:///{tmp_path}/a.db", tmp_path, each=10, processes=2)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_1000_asks_answered_by_four_processes_each_run_once(store_url: str, tmp_path: Path) -> None:
    _settle_many(store_url, tmp_path, each=250, processes=4)


def test_of_many_processes_that_resume_a_call_one_runs_it(store_url: str) -> None:
    store = ApprovalStore(store_url, key=KEY)
    request = store.create(a_request(), ARGS)
    store.answer(request.request_id, yes())
    racers = [start("race", store_url, KEY, request.invocation_id) for _ in range(3)]
    for racer in racers:
        assert said(racer) == "ready"
    results = []
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    for racer in racers:
        output, _ = racer.communicate(timeout=60)
        results.append(output.strip())
    assert sorted(results) == ["lost consumed", "lost consumed", "won"]


def test_of_many_threads_that_resume_one_invocation_one_runs_it(store: ApprovalStore) -> None:
    request = store.create(a_request(), ARGS)
    store.answer(request.request_id, yes())
    results: list[str] = []
    barrier = threading.Barrier(8)

    def resume() -> None:
        barrier.wait()
        try:
            store.claim(request.invocation_id, **bindings(request))
            results.append("won")
        except ApprovalConflict as error:
            results.append(str(error.reason))

    threads = [threading.Thread(target=resume) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(results) == {"won": 1, "consumed": 7}


def _in_child(store: ApprovalStore, request_id: str, queue: Any) -> None:
    try:
        store.answer(request_id, yes())
        queue.put("answered")
    except Exception as error:
        queue.put(f"{type(error).__name__}: {error}")


def _fork(store: ApprovalStore, request_id: str) -> str:
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(store, request_id, queue))
    child.start()
    result = queue.get(timeout=30)
    child.join(30)
    assert child.exitcode == 0
    return str(result)


def test_a_forked_child_and_its_parent_both_go_on(store: ApprovalStore) -> None:
    first, second = (store.create(a_request(), ARGS) for _ in range(2))
    stop = threading.Event()

    def keep_busy() -> None:
        while not stop.is_set():
            store.counts()

    busy = threading.Thread(target=keep_busy)
    busy.start()
    try:
        assert _fork(store, first.request_id) == "answered"
        assert _fork(store, second.request_id) == "answered"
    finally:
        stop.set()
        busy.join()
    assert (
        store.get(first.request_id).status is store.get(second.request_id).status is Status.APPROVED
    )
    assert store.claim(first.invocation_id, **bindings(first)).arguments == ARGS
    assert store.verify_chain().ok


def test_an_in_memory_store_refuses_a_forked_child() -> None:
    store = ApprovalStore("sqlite://")
    request = store.create(a_request(), ARGS)
    assert "forked" in _fork(store, request.request_id)
    assert store.get(request.request_id).status is Status.PENDING


def test_a_locked_store_fails_in_bounded_time_and_nothing_runs(tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path / "a.db", timeout=0.3)
    request = store.create(a_request(), ARGS)
    store.answer(request.request_id, yes())
    holder = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    started = time.monotonic()
    for act in (
        lambda: store.create(a_request(), ARGS),
        lambda: store.claim(request.invocation_id, **bindings(request)),
        lambda: store.answer(request.request_id, yes()),
    ):
        with pytest.raises(ApprovalStoreError, match="locked"):
            act()
    assert time.monotonic() - started < 30
    holder.execute("ROLLBACK")
    holder.close()
    assert store.claim(request.invocation_id, **bindings(request)).arguments == ARGS


@pytest.mark.postgres
@pytest.mark.slow
def test_a_locked_postgresql_fails_in_bounded_time(postgres_url: str) -> None:
    import psycopg

    store = ApprovalStore(postgres_url, key=KEY, timeout=0.5)
    request = store.create(a_request(), ARGS)
    with psycopg.connect(postgres_url) as holder:
        holder.execute("SELECT * FROM agenttool_approval_head FOR UPDATE")
        started = time.monotonic()
        with pytest.raises(ApprovalStoreError):
            store.answer(request.request_id, yes())
        assert time.monotonic() - started < 30
    assert store.answer(request.request_id, yes()).status is Status.APPROVED


@pytest.mark.postgres
@pytest.mark.slow
def test_a_dropped_connection_fails_one_operation_at_most(postgres_url: str) -> None:
    import psycopg

    store = ApprovalStore(postgres_url, key=KEY)
    request = store.create(a_request(), ARGS)
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    assert store.answer(request.request_id, yes()).status is Status.APPROVED


def _full_by_pages(store: ApprovalStore) -> None:
    with store._db._connection() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")


def test_a_full_database_means_no_request_and_no_run(tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path / "a.db")
    big = {"content": "x" * 100_000}
    request = store.create(a_request(big, arguments_preview={}), big)
    store.answer(request.request_id, yes())
    _full_by_pages(store)
    with pytest.raises(ApprovalStoreError, match="full"):
        store.create(a_request(big, arguments_preview={}), big)
    assert store.list("pending") == []
    assert store.verify_chain().ok


def _write_until_full(path: str, key: str, result: str) -> None:
    """Runs in a child whose files may not grow: the writes of the operating system fail as on a
    full disk.
    """
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    store = ApprovalStore(path, key=key)
    request = store.create(a_request(), ARGS)
    store.answer(request.request_id, yes())
    size = max(os.path.getsize(path), os.path.getsize(f"{path}-wal"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    lines = []
    for act in (
        lambda: store.claim(request.invocation_id, **bindings(request)),
        lambda: store.create(a_request(), ARGS),
    ):
        try:
            act()
            lines.append("done")
        except ApprovalStoreError:
            lines.append("ApprovalStoreError")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    store.claim(request.invocation_id, **bindings(request))
    lines.append(str(store.verify_chain().ok))
    Path(result).write_text("\n".join(lines))


def test_writes_that_the_system_refuses_let_nothing_run(tmp_path: Path) -> None:
    result = tmp_path / "result"
    child = multiprocessing.get_context("fork").Process(
        target=_write_until_full, args=(str(tmp_path / "a.db"), KEY, str(result))
    )
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert result.read_text().splitlines() == ["ApprovalStoreError", "ApprovalStoreError", "True"]


def test_a_read_only_store_still_shows_what_is_due_as_expired(tmp_path: Path, clock: Any) -> None:
    store = ApprovalStore(tmp_path / "a.db", clock=clock, ticks=clock.ticks, timeout=0.3)
    request = store.create(a_request(), ARGS)
    holder = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    clock.move(601)
    assert store.get(request.request_id).status is Status.EXPIRED
    holder.execute("ROLLBACK")
    holder.close()


@pytest.mark.slow
def test_many_processes_make_one_schema_and_one_key(tmp_path: Path) -> None:
    code = (
        "import sys; from agenttool_otel.approvals.store.store import ApprovalStore;"
        "print(ApprovalStore(sys.argv[1]).verify_chain().ok)"
    )
    path = str(tmp_path / "deep" / "er" / "a.db")
    starts: Callable[[], subprocess.Popen[str]] = lambda: subprocess.Popen(  # noqa: E731
        [sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True
    )
    assert [
        process.communicate(timeout=60)[0].strip() for process in [starts() for _ in range(3)]
    ] == ["True"] * 3
