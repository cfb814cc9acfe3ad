"""A thread that lost the context of the program is no wider than the context: it is asked about,
and says why.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from agenttool_otel import ApprovalRequired, Governor, ToolDenied, agent_context, carry_context

READS: dict[str, Any] = {
    "tool_kind": "file_operation",
    "access_kinds": ["file_read"],
    "read_only": True,
}


def reader(**options: Any) -> Any:
    governor = Governor(**options)

    @governor.govern(**READS)
    def read_file(path: str) -> str:
        return "content"

    return read_file


def answer(read_file: Any) -> str:
    try:
        return str(read_file("/srv/other/customers.csv"))
    except (ApprovalRequired, ToolDenied) as error:
        return str(error)


def test_an_executor_that_lost_the_context_is_asked_about() -> None:
    read_file = reader()

    async def in_executor() -> str:
        return await asyncio.get_running_loop().run_in_executor(None, answer, read_file)

    async def in_to_thread() -> str:
        return await asyncio.to_thread(answer, read_file)

    with (
        agent_context(actor="agent:x", session_id="s", roots=["/srv"]),
        ThreadPoolExecutor(1) as executor,
    ):
        assert answer(read_file) == "content"
        assert "carry_context" in executor.submit(answer, read_file).result()
        assert "carry_context" in asyncio.run(in_executor())
        assert executor.submit(carry_context(answer), read_file).result() == "content"
        assert asyncio.run(in_to_thread()) == "content"


def test_it_stays_lost_after_the_block_and_beside_settings() -> None:
    read_file = reader(roots=["/srv"], actor="agent:x")
    with agent_context(actor="agent:x"):
        pass
    with ThreadPoolExecutor(1) as executor:
        assert "carry_context" in executor.submit(answer, read_file).result()
    assert answer(read_file) == "content"  # the main thread's own choice


def test_a_program_that_states_no_context_is_left_alone() -> None:
    program = (
        "import threading\n"
        "from agenttool_otel import Governor\n"
        "governor = Governor()\n"
        "@governor.govern(read_only=True, access_kinds=['file_read'], tool_kind='file_operation')\n"
        "def read_file(path: str) -> str: return 'content'\n"
        "thread = threading.Thread(target=lambda: print(read_file('/srv/x.csv')))\n"
        "thread.start(); thread.join()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "content\n"


@pytest.mark.parametrize("inside", [False, True])
def test_where_a_context_is_required_there_is_no_call_without(inside: bool) -> None:
    read_file = reader(require_context=True, roots=["/srv"], actor="agent:x")
    found: list[str] = []

    def work() -> None:
        found.append(answer(read_file))

    with agent_context(actor="agent:x"):
        assert answer(read_file) == "content"
        thread = threading.Thread(target=carry_context(work) if inside else work)
        thread.start()
        thread.join()
    if not inside:
        assert "carry_context" in answer(read_file)
        assert read_file.tool.check(path="/srv/x").behavior == "deny"
    assert ("content" in found[0]) is inside
    assert ("carry_context" in found[0]) is not inside
