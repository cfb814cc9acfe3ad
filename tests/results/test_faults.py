"""Stores that fail under real calls: the tool's result is delivered, in bounded time, and the span
says what failed.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agenttool_otel.errors import PersistenceError
from agenttool_otel.results.persistence.keeper import ResultKeeper
from agenttool_otel.results.stores.local import LocalBackend
from agenttool_otel.results.stores.store import ResultStore, StoreLimits
from agenttool_otel.testing import Capture, StaticEngine, capture, decision


def big() -> str:
    return "0123456789abcde\n" * 20_000


async def abig() -> str:
    return big()


class FullDisk(LocalBackend):
    """A directory whose disk is full after the first piece."""

    def put(self, key: str, chunks: Any) -> None:
        """Write one piece, then fail as the kernel does."""

        def first() -> Any:
            yield next(iter(chunks))
            raise OSError(28, "No space left on device")

        super().put(key, first())


class Hanging(LocalBackend):
    """A network file system that went away."""

    let_go: threading.Event

    def put(self, key: str, chunks: Any) -> None:
        """Wait."""
        self.let_go.wait(30)


@pytest.fixture(autouse=True)
def hangs_until_let_go(let_go: threading.Event) -> None:
    Hanging.let_go = let_go


def full_disk(folder: Path) -> ResultKeeper:
    return ResultKeeper(ResultStore(FullDisk(folder)), deadline_s=2)


def hanging(folder: Path) -> ResultKeeper:
    return ResultKeeper(ResultStore(Hanging(folder)), deadline_s=0.3)


def read_only(folder: Path) -> ResultKeeper:
    target = folder / "file"
    target.write_text("not a directory")
    return ResultKeeper(ResultStore(LocalBackend(target / "results")), deadline_s=2)


def over_quota(folder: Path) -> ResultKeeper:
    return ResultKeeper(
        ResultStore(LocalBackend(folder), limits=StoreLimits(max_object_bytes=1000))
    )


def unopenable(folder: Path) -> ResultKeeper:
    def fail() -> ResultStore:
        raise PersistenceError("no such bucket")

    return ResultKeeper(fail)


FAULTS = [full_disk, hanging, read_only, over_quota, unopenable]


def said(captured: Capture) -> None:
    span = captured.span
    [event] = [event for event in span.events if event.name == "tool.result.persistence_failed"]
    assert event.attributes["agenttool.result.reason"]
    assert span.attributes["agenttool.result.persistence"] == "drop_with_reason"
    assert sum(point.value for point in captured.points("agenttool.persistence.failures")) == 1
    # what the caller got, the model does not
    assert span.attributes["error.type"] == "result_too_large"


@pytest.mark.parametrize("make", FAULTS)
@pytest.mark.parametrize("is_async", [False, True])
def test_the_callers_result_survives_a_failing_store(
    make: Callable[[Path], ResultKeeper], is_async: bool, tmp_path: Path
) -> None:
    with capture(policy=StaticEngine("allow"), results=make(tmp_path)) as captured:
        started = time.monotonic()
        got = (
            asyncio.run(captured.governor.govern(abig)())
            if is_async
            else captured.governor.govern(big)()
        )
        assert time.monotonic() - started < 20, "it waited for the store"
        assert got == big()
        said(captured)


@pytest.mark.parametrize("make", FAULTS)
def test_a_model_gets_a_preview_and_is_told_the_rest_is_gone(
    make: Callable[[Path], ResultKeeper], tmp_path: Path
) -> None:
    with capture(policy=StaticEngine("allow"), results=make(tmp_path)) as captured:
        result = captured.governor.govern(big).tool.invoke()
        text = result.model_facing_content[0]["text"]
        assert len(text) <= 2048
        assert "The rest was not kept." in text
        assert "0123456789abcde" in text
        assert result.persistence["reason"] == "store_failed"
        assert result.persistence.get("persisted_ref") is None
        said(captured)


def test_where_the_reference_alone_shows_a_failing_store_hides(tmp_path: Path) -> None:
    engine = StaticEngine(decision("allow", obligations={"persistence": "ref_only"}))
    with capture(policy=engine, results=full_disk(tmp_path)) as captured:
        assert "0123456789" not in captured.governor.govern(big)()
        said(captured)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_without_permission_to_write(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    with capture(
        policy=StaticEngine("allow"), results=ResultKeeper(ResultStore(LocalBackend(folder)))
    ) as captured:
        assert captured.governor.govern(big)() == big()
        said(captured)


def test_two_threads_that_keep_the_same_content_make_one_object(tmp_path: Path) -> None:
    keeper = ResultKeeper(ResultStore(LocalBackend(tmp_path, durable=False)))
    with capture(policy=StaticEngine("allow"), results=keeper) as captured:
        governed = captured.governor.govern(big)
        threads = [threading.Thread(target=governed) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        refs = {
            event.attributes["agenttool.result.ref"]
            for span in captured.spans
            for event in span.events
            if event.name == "tool.result.persisted"
        }
        assert len(refs) == 4
        assert len([path for path in (tmp_path / "objects").rglob("*") if path.is_file()]) == 1
