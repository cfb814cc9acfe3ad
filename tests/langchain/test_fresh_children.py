"""Processes that multiprocessing starts afresh are governed as their parent is, or refuse
with a text.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest
from child_tools import configured_use, put, use_a_tool

from agenttool_otel import configure
from agenttool_otel.call.runtime import replace_default
from agenttool_otel.integrations.instrumentor import AgentToolInstrumentor
from agenttool_otel.testing import StaticEngine
from samples import one_in


@pytest.fixture(autouse=True)
def instrumented() -> Iterator[None]:
    old = replace_default(None)
    configure(policy=StaticEngine("deny"))
    AgentToolInstrumentor().instrument(facts={})
    yield
    AgentToolInstrumentor().uninstrument()
    replace_default(old)


@pytest.mark.slow
@pytest.mark.parametrize("method", one_in(2, ["spawn", "forkserver"]))
def test_a_fresh_child_refuses_until_it_is_configured(method: str) -> None:
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        assert "call configure()" in pool.submit(use_a_tool, "a").result(120)
        assert pool.submit(configured_use, "a").result(120) == "ran"


@pytest.mark.slow
def test_a_process_object_carries_the_instructions() -> None:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=put, args=(queue, "a"))
    process.start()
    assert "call configure()" in queue.get(timeout=120)
    process.join()


def test_a_forked_child_is_governed_as_its_parent() -> None:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        answer = pool.submit(use_a_tool, "a").result(120)
        assert answer != "ran"
        assert "call configure()" not in answer
