"""Asynchronous calls where no asyncio loop runs are refused with a reason, and their bodies
never run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pytest

from agenttool_otel import ToolDenied
from agenttool_otel.testing import StaticEngine, capture


def drive(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine as a loop that is not asyncio's would."""
    try:
        while True:
            coroutine.send(None)
    except StopIteration as end:
        return end.value


async def body(n: int) -> int:
    """Never runs."""
    raise AssertionError("ran")


async def items(n: int) -> AsyncIterator[int]:
    """Never runs."""
    raise AssertionError("ran")
    yield n


async def first(stream: Any) -> Any:
    return [item async for item in stream]


def test_a_call_without_asyncio_is_refused_with_a_reason() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        governed = captured.governor.govern(body)
        with pytest.raises(ToolDenied, match="trio is not supported"):
            drive(governed(1))
        result = drive(governed.tool.ainvoke({"n": 1}))
        assert "asyncio" in result.error.message
        assert len(captured.spans) == 2


def test_a_stream_without_asyncio_is_refused_with_a_reason() -> None:
    with (
        capture(policy=StaticEngine("allow")) as captured,
        pytest.raises(ToolDenied, match="asyncio"),
    ):
        drive(first(captured.governor.govern(items)(1)))


def test_a_preflight_without_asyncio_says_why() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        preflight = drive(captured.governor.govern(body).tool.acheck({"n": 1}))
        assert preflight.behavior == "deny"
        assert "asyncio" in str(preflight)


def test_trio_is_refused_with_a_reason() -> None:
    trio = pytest.importorskip("trio")
    with capture(policy=StaticEngine("allow")) as captured:
        governed = captured.governor.govern(body)
        with pytest.raises(ToolDenied, match="trio is not supported"):
            trio.run(governed, 1)
