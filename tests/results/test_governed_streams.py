"""Governed streams: ordered partial results, bounded memory, the whole in the store, and
obligations at every door.
"""

from __future__ import annotations

import asyncio
import threading
import time
import tracemalloc
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenttool_otel import Governor
from agenttool_otel.errors import PersistenceError
from agenttool_otel.redaction import Redactor
from agenttool_otel.results.persistence.keeper import ResultKeeper
from agenttool_otel.results.stores.local import LocalBackend
from agenttool_otel.results.stores.store import ResultStore
from agenttool_otel.results.transform import WITHHELD_ITEM, ItemCleaner
from agenttool_otel.testing import StaticEngine, capture, decision

TOKEN = "ghp" + "_" + "a1B2c3D4e5F6" + "g7H8i9J0k1L2m3N4o5P6q7R8"
REDACTOR = Redactor()


def keeper(folder: Path, **options: Any) -> ResultKeeper:
    return ResultKeeper(ResultStore(LocalBackend(folder, durable=False)), **options)


def lines(count: int) -> Iterator[str]:
    for number in range(count):
        yield f"line {number}\n"


async def alines(count: int) -> AsyncIterator[str]:
    for number in range(count):
        yield f"line {number}\n"


def drained(governed: Any, *args: Any) -> list[Any]:
    made = governed(*args)
    if not hasattr(made, "__anext__"):
        return list(made)

    async def drain() -> list[Any]:
        return [item async for item in made]

    return asyncio.run(drain())


def events(captured: Any, name: str) -> list[dict[str, Any]]:
    return [dict(event.attributes) for event in captured.span.events if event.name == name]


@pytest.mark.parametrize("body", [lines, alines])
def test_partial_results_have_an_ordered_sequence_when_verbose(body: Any) -> None:
    with capture(policy=StaticEngine("allow"), verbose=True) as captured:
        assert len(drained(captured.governor.govern(body), 5)) == 5
        partial = events(captured, "tool.invocation.partial_result")
        assert [event["agenttool.progress.sequence"] for event in partial] == [0, 1, 2, 3, 4]
        assert {event["agenttool.result.size_bytes"] for event in partial} == {7}


def test_an_unwatched_stream_has_no_tap() -> None:
    seen: list[Any] = []

    def body() -> Iterator[int]:
        import sys

        seen.append(sys._getframe(1).f_code.co_name)
        yield 1

    governor = Governor(policy=StaticEngine("allow"))
    list(governor.govern(body)())
    governor.close()
    assert seen == ["stream"]


@pytest.mark.parametrize("body", [lines, alines])
def test_a_contract_keeps_the_whole_stream_beside_its_consumer(body: Any, tmp_path: Path) -> None:
    with capture(policy=StaticEngine("allow"), results=keeper(tmp_path)) as captured:
        got = drained(captured.governor.govern(body, max_inline_chars=100), 1000)
        assert got == list(lines(1000))
        [event] = events(captured, "tool.result.persisted")
        stored = captured.governor.results.store.read(event["agenttool.result.ref"])  # type: ignore[union-attr]
        assert stored.decode() == "".join(got)
        assert captured.span.attributes["agenttool.result.items"] == 1000
        assert captured.span.attributes["agenttool.result.persistence"] == "preview_and_persist"


def test_what_an_abandoned_stream_gave_is_kept(tmp_path: Path) -> None:
    with capture(policy=StaticEngine("allow"), results=keeper(tmp_path)) as captured:
        stream = captured.governor.govern(lines, persistence="preview_and_persist")(10)
        assert [next(stream), next(stream)] == ["line 0\n", "line 1\n"]
        stream.close()
        [event] = events(captured, "tool.result.persisted")
        assert (
            captured.governor.results.store.read(event["agenttool.result.ref"])
            == b"line 0\nline 1\n"
        )  # type: ignore[union-attr]
        assert captured.span.attributes["agenttool.result.status"] == "partial_succeeded"
        assert captured.span.attributes["agenttool.abort_reason"] == "abandoned"


def test_a_cancelled_stream_is_recorded_and_what_it_gave_is_kept(tmp_path: Path) -> None:
    async def slow() -> AsyncIterator[str]:
        yield "first\n"
        await asyncio.sleep(60)
        yield "never\n"

    async def go(governed: Any) -> None:
        begun = asyncio.Event()

        async def consume() -> None:
            async for _ in governed():
                begun.set()

        task = asyncio.create_task(consume())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with capture(policy=StaticEngine("allow"), results=keeper(tmp_path)) as captured:
        asyncio.run(go(captured.governor.govern(slow, persistence="preview_and_persist")))
        assert captured.span.attributes["error.type"] == "canceled"
        [event] = events(captured, "tool.result.persisted")
        assert captured.governor.results.store.read(event["agenttool.result.ref"]) == b"first\n"  # type: ignore[union-attr]


def test_send_throw_and_return_value_pass_through_a_tap(tmp_path: Path) -> None:
    def body() -> Generator[str, str, str]:
        got = yield "first"
        try:
            yield f"got {got}"
        except KeyError:
            yield "caught"
        return "end"

    with capture(policy=StaticEngine("allow"), results=keeper(tmp_path)) as captured:
        stream = captured.governor.govern(body, persistence="preview_and_persist")()
        assert next(stream) == "first"
        assert stream.send("x") == "got x"
        assert stream.throw(KeyError("k")) == "caught"
        with pytest.raises(StopIteration) as stop:
            next(stream)
        assert stop.value.value == "end"


def test_a_collected_stream_takes_bounded_memory(tmp_path: Path) -> None:
    block = "0123456789abcde\n" * 4096  # 64 KiB

    def flood(blocks: int) -> Iterator[bytes]:
        for _ in range(blocks):
            yield block.encode()

    with capture(policy=StaticEngine("allow"), results=keeper(tmp_path)) as captured:
        governed = captured.governor.govern(flood)
        governed.tool.invoke(blocks=1)
        tracemalloc.start()
        try:
            result = governed.tool.invoke(blocks=1024)  # 64 MiB
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 24 << 20, peak
        reference = result.persistence["persisted_ref"]
        assert reference["size_bytes"] == 1024 * len(block)
        assert isinstance(result.value, str)
        assert reference["uri"] in result.model_facing_content[0]["text"]
        small = governed.tool.invoke(blocks=2)
        assert small.value == [block.encode()] * 2, "what fits in memory keeps its form"


# --- obligations ----------------------------------------------------------------------------------


@pytest.mark.parametrize("door", ["iterate", "iterate_async", "invoke"])
def test_an_obliged_stream_is_redacted_before_its_consumer(door: str) -> None:
    def body() -> Iterator[Any]:
        yield {"user": "ann", "password": "x" + "yzzy-plugh"}
        yield f"token {TOKEN} there.\n"
        yield "fine\n"

    async def abody() -> AsyncIterator[Any]:
        for item in body():
            yield item

    answer = decision("allow", obligations={"redact_result": ["/password"]})
    with capture(policy=StaticEngine(answer)) as captured:
        govern = captured.governor.govern
        if door == "invoke":
            got = govern(body).tool.invoke().value
        else:
            got = drained(govern(body if door == "iterate" else abody))
        assert got[0]["user"] == "ann"
        assert "plugh" not in str(got)
        assert TOKEN not in str(got)
        assert got[-1] == "fine\n"
        assert captured.span.attributes["agenttool.redaction.state"] == "redacted"
        [event] = events(captured, "tool.result.redacted")
        assert event["agenttool.redaction.target"] == "result"


def test_a_secret_in_pieces_is_found_across_items() -> None:
    def body() -> Iterator[str]:
        yield from f"see {TOKEN} there, and more text follows. " + "words " * 1000

    answer = decision("allow", obligations={"redact_result": ["/password"]})
    with capture(policy=StaticEngine(answer)) as captured:
        text = "".join(captured.governor.govern(body)())
        assert TOKEN not in text
        assert text.startswith("see [redacted:github_token] there, and more")


def test_an_obligation_for_everything_leaves_nothing_of_any_item() -> None:
    answer = decision("allow", obligations={"redact_result": ["*"]})
    with capture(policy=StaticEngine(answer)) as captured:
        assert set(captured.governor.govern(lines)(3)) == {"[redacted:schema_field]"}


def test_an_obliged_generators_return_value_is_redacted_too() -> None:
    def body() -> Generator[str, None, str]:
        yield "item"
        return f"total {TOKEN}"

    answer = decision("allow", obligations={"redact_result": ["/password"]})
    with capture(policy=StaticEngine(answer)) as captured:
        stream = captured.governor.govern(body)()
        assert next(stream) == "item"
        with pytest.raises(StopIteration) as stop:
            next(stream)
        assert TOKEN not in stop.value.value


@pytest.mark.parametrize("strategy", ["ref_only", "drop_with_reason"])
def test_an_obligation_that_shows_nothing_shows_no_item(strategy: str, tmp_path: Path) -> None:
    answer = decision("allow", obligations={"persistence": strategy})
    with capture(policy=StaticEngine(answer), results=keeper(tmp_path)) as captured:
        got = drained(captured.governor.govern(lines), 5)
        assert "line" not in "".join(got)
        stored = [
            path for path in tmp_path.rglob("*") if path.is_file() and "objects" in path.parts
        ]
        assert bool(stored) is (strategy == "ref_only")


def test_an_obliged_limit_ends_the_stream_and_stores_the_rest(tmp_path: Path) -> None:
    answer = decision("allow", obligations={"max_inline_chars": 20})
    with capture(policy=StaticEngine(answer), results=keeper(tmp_path)) as captured:
        got = drained(captured.governor.govern(lines), 50)
        assert got[:2] == ["line 0\n", "line 1\n"]
        assert "line 3\n" not in got
        assert "48 items withheld" in got[-1]
        [event] = events(captured, "tool.result.persisted")
        assert event["agenttool.result.ref"] in got[-1]


def test_a_redactor_that_fails_withholds_the_items() -> None:
    class Broken(Redactor):
        def redact(self, value: Any, **options: Any) -> Any:
            raise RuntimeError("bug")

    answer = decision("allow", obligations={"redact_result": ["/password"]})
    with capture(policy=StaticEngine(answer), redactor=Broken()) as captured:
        assert set(drained(captured.governor.govern(lines), 3)) == {WITHHELD_ITEM}
        assert captured.span.attributes["agenttool.redaction.state"] == "failed"


@settings(max_examples=60, deadline=None)
@given(
    st.text("ab \n.", max_size=3000),
    st.text("ab \n.", max_size=3000),
    st.lists(st.integers(1, 40), min_size=1),
)
def test_a_secret_cut_over_items_is_gone_and_the_rest_stays(
    before: str, after: str, sizes: list[int]
) -> None:
    text = f"{before} {TOKEN} {after}"
    cleaner = ItemCleaner(lambda item: REDACTOR.redact(item).value)
    got: list[str] = []
    position, turn = 0, 0
    while position < len(text):
        size = sizes[turn % len(sizes)]
        got += cleaner.feed(text[position : position + size])
        position, turn = position + size, turn + 1
    got += cleaner.finish()
    assert "".join(got) == f"{before} [redacted:github_token] {after}"


@settings(max_examples=40, deadline=None)
@given(
    st.text("ab é.", max_size=2500),
    st.text("ab é.", max_size=2500),
    st.lists(st.integers(1, 40), min_size=1),
)
def test_however_bytes_are_cut_into_items_a_secret_is_gone(
    before: str, after: str, sizes: list[int]
) -> None:
    data = f"{before} {TOKEN} {after}".encode()
    cleaner = ItemCleaner(lambda item: REDACTOR.redact(item).value)
    got: list[bytes] = []
    position, turn = 0, 0
    while position < len(data):
        size = sizes[turn % len(sizes)]
        got += cleaner.feed(data[position : position + size])
        position, turn = position + size, turn + 1
    got += cleaner.finish()
    assert b"".join(got).decode() == f"{before} [redacted:github_token] {after}"


def test_a_secret_over_two_items_of_bytes_is_gone() -> None:
    def chunks() -> Iterator[bytes]:
        yield b"key " + TOKEN[:12].encode()
        yield TOKEN[12:].encode() + b" end"

    answer = decision("allow", obligations={"redact_result": ["/password"]})
    with capture(policy=StaticEngine(answer)) as captured:
        got = b"".join(captured.governor.govern(chunks)())
    assert got == b"key [redacted:github_token] end"


def test_bytes_that_are_no_text_are_withheld_alone() -> None:
    def chunks() -> Iterator[bytes]:
        yield b"text \xc3"
        yield b"\xa9."
        yield b"\xff\xfe\x00"
        yield b"more"

    answer = decision("allow", obligations={"redact_result": ["/password"]})
    with capture(policy=StaticEngine(answer)) as captured:
        got = list(captured.governor.govern(chunks)())
    assert got[:1] == [b"text "]
    assert "é.".encode() in got
    assert WITHHELD_ITEM in got
    assert got[-1] == b"more"


# --- faults ---------------------------------------------------------------------------------------


class Hanging(ResultStore):
    let_go: threading.Event

    def put_stream(self, *args: Any, **options: Any) -> Any:
        self.let_go.wait(30)
        raise PersistenceError("late")


def test_a_hanging_store_costs_a_stream_bounded_time(
    tmp_path: Path, let_go: threading.Event
) -> None:
    store = Hanging(LocalBackend(tmp_path))
    store.let_go = let_go
    slow = ResultKeeper(store, deadline_s=0.3)
    with capture(policy=StaticEngine("allow"), results=slow) as captured:
        started = time.monotonic()
        got = drained(captured.governor.govern(lines, persistence="preview_and_persist"), 100)
        assert time.monotonic() - started < 15
        assert got == list(lines(100))
        [event] = events(captured, "tool.result.persistence_failed")
        assert event["agenttool.result.reason"] == "deadline"
        assert sum(point.value for point in captured.points("agenttool.persistence.failures")) == 1
        assert captured.span.attributes["agenttool.result.status"] == "succeeded"
