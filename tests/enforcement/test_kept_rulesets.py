"""The directory of a call is used again, and so is the ruleset that lets it be written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agenttool_otel.enforcement import available, hold, landlock
from agenttool_otel.enforcement.thread import Held, confined

PROOF = available()["read"]
pytestmark = pytest.mark.skipif(not PROOF.proven, reason=PROOF.reason)


def scratch() -> str:
    held = confined()
    assert isinstance(held, Held)
    return held.scratch


def write_there() -> str:
    place = scratch()
    Path(place, "a").write_text("x")
    Path(place, "a").unlink()
    return place


def test_calls_one_after_another_share_a_directory_and_rules() -> None:
    first = hold("read", write_there).value
    made = landlock.writable.cache_info().misses
    assert hold("read", write_there).value == first
    assert landlock.writable.cache_info().misses == made


def test_a_directory_that_was_used_is_not_written_by_others() -> None:
    first = hold("read", scratch).value
    inner: list[str] = []

    def leave_a_file() -> None:
        Path(scratch(), "a").write_text("x")
        inner.append(scratch())

    hold("read", leave_a_file)
    assert inner == [first]
    other = hold("read", scratch).value
    assert other != first
    os.mkdir(first, 0o700)
    try:
        held = hold("read", Path(first, "b").write_text, ("x",))
        assert isinstance(held.exception, PermissionError)
    finally:
        os.rmdir(first)


def test_many_calls_keep_few_descriptors_open() -> None:
    hold("read", write_there)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(40):
        hold("read", Path.write_text, (Path("/nowhere"), "x"))
        hold("read", lambda: Path(scratch(), "left").touch())
    assert len(os.listdir("/proc/self/fd")) <= before + 16
