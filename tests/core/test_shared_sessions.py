"""One session in several processes: its budget holds over all of them, and what one did not see it
doubts.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from agenttool_otel import ConfigurationError, Governor, ToolDenied, agent_context
from agenttool_otel.approvals.store.database import parse_url
from agenttool_otel.context.context import AgentContext
from agenttool_otel.context.session_store import open_store
from agenttool_otel.context.sessions import SessionBook
from agenttool_otel.context.shared_session import SharedSessionBook
from agenttool_otel.facts.outputs import OPEN_WORLD
from agenttool_otel.testing import StaticEngine

KEY = b"k" * 32
WORKER = Path(__file__).with_name("shared_session_worker.py")
READS: dict[str, Any] = {"read_only": True, "access_kinds": ["file_read"]}


def ran(url: str, calls: int, budget: int) -> int:
    command = [sys.executable, str(WORKER), url, str(calls), str(budget)]
    workers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    return sum(int(worker.communicate(timeout=1_100)[0]) for worker in workers)


@pytest.mark.slow
def test_two_processes_spend_no_more_than_one_budget(tmp_path: Path) -> None:
    assert ran(f"sqlite:///{tmp_path}/s.db", 100, 90) == 90


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize(
    "kind", ["sqlite", "redis", pytest.param("postgres", marks=pytest.mark.postgres)]
)
def test_of_ten_thousand_calls_exactly_the_budget_runs(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue(f"{kind}_url")
    assert ran(url, 5_000, 5_000) == 5_000


def test_a_store_that_fails_denies_and_a_tool_still_returns(tmp_path: Path) -> None:
    governor = Governor(sessions_url=str(tmp_path / "s.db"))
    counts: Any = governor.sessions._store
    failing = False

    def add(*given: Any, inner: Any = counts.add) -> Any:
        if failing:
            raise OSError
        return inner(*given)

    counts.add = add

    @governor.govern(**READS)
    def look() -> str:
        nonlocal failing
        failing = True
        return "x"

    with agent_context(actor="agent:a", session_id="s") as context:
        assert look() == "x"
        with pytest.raises(ToolDenied):
            look()
        failing = False
        assert look() == "x"
        failing = False
        # what could not be counted when it happened is counted with the next call
        assert governor.sessions.of(context).admit("t")["result_bytes"] == 2
        assert governor.sessions.of(context).admit("t")["calls"] == 3
    governor.close()


def watched(
    tmp_path: Path, during: Callable[[int], None], answer: str = "allow"
) -> tuple[Governor, list[dict[str, int]]]:
    governor = Governor(policy=StaticEngine(answer), sessions_url=str(tmp_path / "s.db"))
    counts: Any = governor.sessions._store
    after: list[dict[str, int]] = []

    def add(*given: Any, inner: Any = counts.add) -> Any:
        during(len(after))
        after.append(inner(*given))
        return after[-1]

    counts.add = add
    return governor, after


@pytest.mark.parametrize("denied", [False, True])
async def test_an_event_loop_never_waits_for_the_sessions_store(
    tmp_path: Path, denied: bool
) -> None:
    threads: list[int] = []
    answer = "deny" if denied else "allow"
    governor, after = watched(
        tmp_path, lambda number: threads.append(threading.get_ident()), answer
    )

    @governor.govern(**READS)
    async def look() -> str:
        return "x"

    with (
        agent_context(actor="agent:a", session_id="s"),
        pytest.raises(ToolDenied) if denied else nullcontext(),
    ):
        assert await look() == "x"
    assert after[-1]["open"] == 0
    assert after[-1].get("denials", 0) == denied
    assert len(threads) == 2
    assert threading.get_ident() not in threads


async def test_a_call_cancelled_while_it_tells_its_end_ends_once(tmp_path: Path) -> None:
    telling, go_on = threading.Event(), threading.Event()

    def wait(number: int) -> None:
        if number == 1:
            telling.set()
            go_on.wait(20)

    governor, after = watched(tmp_path, wait)

    @governor.govern(**READS)
    async def look() -> str:
        return "x"

    with agent_context(actor="agent:a", session_id="s"):
        task = asyncio.create_task(look())
        await asyncio.to_thread(telling.wait, 20)
        task.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        await look()
    assert after[-1]["open"] == 0
    assert max(one.get("calls", 0) for one in after) == 2


def test_what_another_process_counted_makes_this_one_doubt(tmp_path: Path) -> None:
    url = str(tmp_path / "s.db")
    one, other = (SharedSessionBook(open_store(parse_url(url), KEY)) for _ in range(2))
    context = AgentContext(actor="agent:a", session_id="s")
    one.of(context).admit("t")
    one.of(context).admit("t")
    assert one.of(context).ledger is None
    assert other.of(context).admit("t")["calls"] == 2
    ledger = other.of(context).ledger
    assert ledger is not None
    assert not ledger.lookup("eve@evil.test")["certain"]
    one.close()
    other.close()


def test_a_counted_session_is_no_text_in_the_database(tmp_path: Path) -> None:
    book = SharedSessionBook(open_store(parse_url(tmp_path / "s.db"), KEY))
    book.of(AgentContext(actor="agent:hidden", session_id="hidden")).admit("hidden.tool")
    book.close()
    assert all(b"hidden" not in file.read_bytes() for file in tmp_path.iterdir())


def test_an_url_that_is_no_store_is_refused() -> None:
    for url in ("mysql://x/y", "approvals"):
        with pytest.raises((ConfigurationError, ModuleNotFoundError)):
            Governor(sessions_url=url)


def test_the_longest_unused_session_forgets_first() -> None:
    book = SessionBook(max_bytes=2**20)
    contexts = [AgentContext(actor="agent:a", session_id=str(number)) for number in range(30)]
    for number, context in enumerate(contexts):
        session = book.of(context)
        session.record_user_text((f"write to user{number}@example.org",))
        words = " ".join(f"word{number}x{index}" for index in range(700))
        session.open_ledger().record_output("web.fetch", words, OPEN_WORLD)
        book.of(context)
    assert sum(book.of(context).memory for context in contexts[-3:]) <= 2**20
    first, last = (book.of(contexts[at]).ledger for at in (0, -1))
    assert first is not None
    assert last is not None
    assert not first.lookup("user0@example.org")["certain"]
    assert last.lookup("user29@example.org")["sources"] == ["user"]


@pytest.mark.slow
def test_two_thousand_sessions_stay_within_the_bound() -> None:
    program = (
        "import resource, random\n"
        "from agenttool_otel.context.context import AgentContext\n"
        "from agenttool_otel.facts.outputs import OPEN_WORLD\n"
        "from agenttool_otel.context.sessions import SessionBook\n"
        "used = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024\n"
        "book, before = SessionBook(max_bytes=64 * 2**20), used()\n"
        "for number in range(2_000):\n"
        "    context = AgentContext(actor='agent:a', session_id=str(number))\n"
        "    for _ in range(10):\n"
        "        text = ' '.join('%x' % random.getrandbits(32) for _ in range(560))\n"
        "        book.of(context).open_ledger().record_output('web.fetch', text, OPEN_WORLD)\n"
        "print(used() - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) <= 64 + 16
