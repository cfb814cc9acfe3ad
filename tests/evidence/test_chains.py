"""Files of records hold together."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from recorded_calls import lines_of, record_calls

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.evidence.chain import ChainBroken, Reading
from agenttool_otel.evidence.files import DecisionFile, key_of

KEY = b"k" * 32


def put_records(sink: DecisionFile, count: int, size: int = 10) -> None:
    """Write small records."""
    for number in range(count):
        sink.put(lambda number=number: [("agenttool.decision", {"n": number, "x": "x" * size})])  # type: ignore[misc]
    assert sink.flush(10)


@pytest.mark.parametrize("place", range(0, 4000, 397))
def test_one_changed_byte_is_found(tmp_path: Path, place: int) -> None:
    path = tmp_path / "d.jsonl"
    record_calls(path)
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(ChainBroken):
        lines_of(path)


def test_a_line_that_was_taken_out_is_found(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    record_calls(path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:4], *lines[5:]]))
    with pytest.raises(ChainBroken, match=r"d\.jsonl:5: the line before it"):
        lines_of(path)


def test_a_torn_last_line_is_named_and_the_others_hold(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    record_calls(path)
    path.write_bytes(path.read_bytes()[:-20])
    reading = Reading()
    assert len(lines_of(path, reading)) == 26
    assert reading.torn == [str(path)]


def test_another_process_goes_on_behind_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    record_calls(path)
    path.write_bytes(path.read_bytes()[:-20])
    record_calls(path)
    reading = Reading()
    assert len(lines_of(path, reading)) == 26 + 27
    assert len(reading.torn) == 1


@pytest.mark.unchecked_records("a gap is what it is about")
def test_what_is_lost_leaves_a_gap_that_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    key_of(path, make=True)
    sink = DecisionFile(path, key_of(path), queue=5)
    put_records(sink, 1)
    with sink._changed:  # its thread takes nothing meanwhile
        for number in range(12):
            sink.put(lambda number=number: [("agenttool.decision", {"n": number})])  # type: ignore[misc]
    assert sink.flush(10)
    put_records(sink, 1)
    sink.close()
    reading = Reading()
    lines_of(path, reading)
    assert reading.lost == sink.lost == 7


def test_rotated_files_are_compressed_and_read_in_order(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    key_of(path, make=True)
    sink = DecisionFile(path, key_of(path), max_bytes=20_000)
    for _ in range(6):
        put_records(sink, 10, 1000)
    sink.close()
    assert (tmp_path / "d.jsonl.1.xz").exists()
    assert [line["record"]["n"] for line in lines_of(path)] == [*range(10)] * 6


def test_without_the_key_nothing_is_read(tmp_path: Path) -> None:
    record_calls(tmp_path / "d.jsonl")
    (tmp_path / "d.jsonl.key").unlink()
    with pytest.raises(ConfigurationError, match=r"the key .* can't be read"):
        lines_of(tmp_path / "d.jsonl")


def test_the_key_is_for_its_owner_alone(tmp_path: Path) -> None:
    record_calls(tmp_path / "d.jsonl")
    assert (tmp_path / "d.jsonl.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_a_killed_writer_leaves_a_chain_that_holds(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    code = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[2])\n"
        "from recorded_calls import record_calls\n"
        "while True: record_calls(Path(sys.argv[1]))"
    )
    writer = subprocess.Popen([sys.executable, "-c", code, path, Path(__file__).parent])
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (path.exists() and path.stat().st_size > 200_000):
        time.sleep(0.05)
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    reading = Reading()
    assert len(lines_of(path, reading)) > 40
    assert len(reading.torn) <= 1
