"""Governed generators: lazy, with the span current only while the body runs, and honest about how
they ended.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Generator, Iterator
from typing import Any

import pytest
from opentelemetry import trace

from agenttool_otel import ToolDenied
from agenttool_otel.testing import StaticEngine, capture


def numbers(count: int) -> Iterator[int]:
    yield from range(count)


def current() -> Any:
    return trace.get_current_span().get_span_context().span_id


def test_nothing_is_decided_before_the_first_item_is_asked_for() -> None:
    engine = StaticEngine("deny")
    with capture(policy=engine) as captured:
        stream = captured.governor.govern(numbers)(3)
        assert engine.documents == []
        with pytest.raises(ToolDenied):
            next(stream)
        assert len(engine.documents) == 1


def test_the_span_is_current_in_the_body_not_the_consumer() -> None:
    inside: list[Any] = []

    def body() -> Iterator[int]:
        for number in range(3):
            inside.append(current())
            yield number

    with capture(policy=StaticEngine("allow")) as captured:
        tracer = captured.tracer_provider.get_tracer("test")
        with tracer.start_as_current_span("consumer") as consumer:
            for _ in captured.governor.govern(body)():
                assert current() == consumer.get_span_context().span_id
        assert set(inside) == {captured.span.get_span_context().span_id}


def test_child_spans_open_across_items_keep_their_children() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        tracer = captured.tracer_provider.get_tracer("test")

        def body() -> Iterator[int]:
            with tracer.start_as_current_span("child"):
                yield 1
                with tracer.start_as_current_span("grandchild"):
                    pass
                yield 2

        assert list(captured.governor.govern(body)()) == [1, 2]
        spans = {span.name: span for span in captured.spans}
        assert spans["grandchild"].parent.span_id == spans["child"].context.span_id
        assert spans["child"].parent.span_id == spans["execute_tool body"].context.span_id


def test_send_throw_and_return_values_pass_through() -> None:
    def body() -> Generator[str, str, str]:
        got = yield "first"
        try:
            yield f"got {got}"
        except KeyError:
            yield "caught"
        return "end"

    with capture(policy=StaticEngine("allow")) as captured:
        stream = captured.governor.govern(body)()
        assert next(stream) == "first"
        assert stream.send("x") == "got x"
        assert stream.throw(KeyError("k")) == "caught"
        with pytest.raises(StopIteration) as stop:
            next(stream)
        assert stop.value.value == "end"
        assert captured.span.attributes["agenttool.result.items"] == 3


def test_an_abandoned_stream_is_partial_and_no_error() -> None:
    cleaned: list[int] = []

    def body() -> Iterator[int]:
        try:
            yield from range(10)
        finally:
            cleaned.append(1)

    with capture(policy=StaticEngine("allow")) as captured:
        stream = captured.governor.govern(body)()
        next(stream)
        stream.close()
        assert cleaned == [1]
        attributes = captured.span.attributes
        assert attributes["agenttool.result.status"] == "partial_succeeded"
        assert attributes["agenttool.abort_reason"] == "abandoned"
        assert attributes["agenttool.result.items"] == 1
        assert "error.type" not in attributes


def test_a_stream_closed_in_another_thread_leaves_no_span_behind() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        stream = captured.governor.govern(numbers)(5)
        next(stream)
        before = current()
        thread = threading.Thread(target=stream.close)
        thread.start()
        thread.join()
        assert current() == before
        assert captured.span.attributes["agenttool.abort_reason"] == "abandoned"


def test_an_abandoned_asynchronous_stream_is_closed_and_recorded() -> None:
    async def body() -> AsyncIterator[int]:
        for number in range(10):
            yield number

    async def go(governed: Any) -> None:
        stream = governed()
        assert await anext(stream) == 0
        await stream.aclose()

    with capture(policy=StaticEngine("allow")) as captured:
        asyncio.run(go(captured.governor.govern(body)))
        assert captured.span.attributes["agenttool.result.status"] == "partial_succeeded"


def test_concurrent_asynchronous_streams_keep_their_own_spans() -> None:
    async def body(name: str) -> AsyncIterator[tuple[str, Any]]:
        for _ in range(3):
            await asyncio.sleep(0)
            yield name, current()

    async def drain(governed: Any, name: str) -> set[Any]:
        return {span async for _, span in governed(name)}

    async def go(governed: Any) -> list[set[Any]]:
        return await asyncio.gather(*(drain(governed, name) for name in "abc"))

    with capture(policy=StaticEngine("allow")) as captured:
        seen = asyncio.run(go(captured.governor.govern(body)))
        assert all(len(contexts) == 1 for contexts in seen)
        assert len(set.union(*seen)) == 3


def test_a_stream_of_text_adds_up_its_bytes_without_keeping_them() -> None:
    def body() -> Iterator[str]:
        for _ in range(1000):
            yield "é" * 10

    with capture(policy=StaticEngine("allow")) as captured:
        for _ in captured.governor.govern(body)():
            pass
        assert captured.span.attributes["agenttool.result.size_bytes"] == 20_000
        assert captured.span.attributes["agenttool.result.items"] == 1000


def test_invoke_collects_a_stream_into_one_envelope() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        result = captured.governor.govern(numbers).tool.invoke(count=3)
        assert result.status == "succeeded"
        assert result.value == [0, 1, 2]
