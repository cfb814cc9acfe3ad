"""What a killed process had in its queue is counted."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from recorded_calls import lines_of, record_calls, replayed, stock
from typer.testing import CliRunner

from agenttool_otel.cli.main import app
from agenttool_otel.evidence.accounts import folder_of, unreported
from agenttool_otel.evidence.attestation import statement
from agenttool_otel.evidence.chain import ChainBroken, Reading
from agenttool_otel.evidence.files import DecisionFile, key_of

_COUNT = struct.Struct("=Q")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of records that is not there yet, with its key."""
    key_of(tmp_path / "d.jsonl", make=True)
    return tmp_path / "d.jsonl"


def opened(path: Path) -> DecisionFile:
    return DecisionFile(path, key_of(path), queue=100_000)


def put_records(sink: DecisionFile, count: int) -> None:
    for number in range(count):
        sink.put(lambda number=number: [("agenttool.decision", {"n": number})])  # type: ignore[misc]


def write_records(path: Path, count: int) -> None:
    """Write some records in this process, which ends well."""
    sink = opened(path)
    put_records(sink, count)
    sink.close(10)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a file, so that records wait in their queue."""
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
        fcntl.flock(file, fcntl.LOCK_UN)  # children have it, too


def start(work: Callable[[int], None]) -> tuple[int, int]:
    """Run work in a process of its own; return its id, and a pipe of what it writes."""
    reader, writer = os.pipe()
    process = os.fork()
    if process:
        os.close(writer)
        return process, reader
    os.close(reader)
    try:
        work(writer)
        time.sleep(60)
    finally:
        os._exit(1)


def kill(process: int) -> None:
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)


def killed_after(work: Callable[[], object]) -> None:
    """Run work in a process that is killed behind it."""

    def worked(pipe: int) -> None:
        work()
        os.write(pipe, b".")

    process, pipe = start(worked)
    assert os.read(pipe, 1) == b"."
    kill(process)
    os.close(pipe)


def killed_with(path: Path, count: int) -> None:
    """Kill a process that has so many records in its queue, and none in the file."""
    with locked(path):
        killed_after(lambda: put_records(opened(path), count))


def lost_in(path: Path) -> int:
    reading = Reading()
    lines_of(path, reading)
    return reading.lost


def kinds_of(path: Path) -> list[str]:
    return [line["object"].rpartition(".")[2] for line in lines_of(path)]


def test_what_stood_in_the_queue_of_a_killed_one_counts(path: Path) -> None:
    write_records(path, 3)
    killed_with(path, 700)
    write_records(path, 2)
    assert lost_in(path) == 700
    assert kinds_of(path) == ["decision"] * 3 + ["loss"] + ["decision"] * 2


def test_a_loss_has_no_number_of_its_own(path: Path) -> None:
    killed_with(path, 1)
    write_records(path, 2)
    assert [line["sequence"] for line in lines_of(path)] == [0, 1, 2]


def test_a_loss_is_counted_once(path: Path) -> None:
    killed_with(path, 5)
    (account,) = folder_of(path).iterdir()
    content = account.read_bytes()
    write_records(path, 1)
    folder_of(path).mkdir()
    account.write_bytes(content)  # who wrote the first line was killed before it removed this
    write_records(path, 1)
    assert kinds_of(path).count("loss") == 2
    assert lost_in(path) == 5


def test_processes_that_end_well_leave_no_account(path: Path) -> None:
    write_records(path, 3)
    assert not folder_of(path).exists()
    assert kinds_of(path) == ["decision"] * 3


def test_a_process_that_lives_lost_nothing(path: Path) -> None:
    living = opened(path)
    with locked(path):
        put_records(living, 10)
        other = opened(path)
        put_records(other, 1)
    other.close(10)
    living.close(10)
    assert (lost_in(path), len(kinds_of(path))) == (0, 11)


@pytest.mark.parametrize("size", [0, 3])
def test_a_truncated_account_ends_no_process(path: Path, size: int) -> None:
    def put_truncated() -> None:
        sink = opened(path)
        put_records(sink, 4)
        (account,) = folder_of(path).iterdir()
        os.truncate(account, size)
        put_records(sink, 3)

    with locked(path):
        killed_after(put_truncated)
    write_records(path, 1)
    assert lost_in(path) == 7


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_long_file(path: Path) -> None:
    path.write_bytes(b"a file of another program")


def make_account(path: Path) -> None:
    path.write_bytes(b"\xff" * 8 + bytes(8))


OWN, FOREIGN, NO_TEXT = "producer_01", ".nfs000", os.fsdecode(b"producer_\xff")


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (make_fifo, OWN),
        (make_long_file, OWN),
        (Path.touch, OWN),
        (Path.mkdir, OWN),
        (make_account, FOREIGN),
        (make_account, NO_TEXT),
    ],
)
def test_what_is_no_account_is_left_alone(
    path: Path, make: Callable[[Path], None], name: str
) -> None:
    folder_of(path).mkdir()
    stray = folder_of(path) / name
    make(stray)
    assert unreported(path, {}) == 0
    write_records(path, 2)
    assert kinds_of(path) == ["decision"] * 2
    assert list(folder_of(path).iterdir()) == [stray]


def test_a_child_does_not_hold_its_parents_account(path: Path) -> None:
    def fork(pipe: int) -> None:
        put_records(opened(path), 4)
        if not os.fork():
            os.write(pipe, b".")  # a child that has not begun to run holds its parent's lock still
            time.sleep(2)
            os._exit(0)

    with locked(path):
        process, pipe = start(fork)
        assert os.read(pipe, 1) == b"."
        kill(process)
        os.close(pipe)
    write_records(path, 1)
    assert lost_in(path) == 4


def test_what_comes_after_the_end_is_counted_as_lost(path: Path) -> None:
    def put_closed() -> None:
        sink = opened(path)
        put_records(sink, 2)
        sink.close(10)
        put_records(sink, 3)

    killed_after(put_closed)
    write_records(path, 1)
    assert lost_in(path) == 3


@pytest.fixture(scope="module")
def with_loss(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of real records behind the loss of six."""
    path = tmp_path_factory.mktemp("loss") / "d.jsonl"
    key_of(path, make=True)
    killed_with(path, 6)
    record_calls(path, ())
    return path


def test_a_statement_has_what_killed_processes_lost(with_loss: Path) -> None:
    predicate = statement([with_loss], key_of(with_loss))["predicate"]
    decisions = sum(predicate["decisions"].values())
    assert (predicate["lines"] - decisions, predicate["lost"]) == (1, 6)


def test_a_loss_is_no_decision_to_replay(with_loss: Path) -> None:
    assert all(each.same for each in replayed(with_loss, stock()))


@pytest.mark.parametrize("words", [["replay"], ["coverage"]])
def test_commands_print_what_killed_processes_lost(with_loss: Path, words: list[str]) -> None:
    found = CliRunner().invoke(app, ["policy", *words, "--from", str(with_loss)])
    assert found.exit_code == 0
    assert "6 decisions were lost before they were written" in found.output


def test_a_loss_is_printed_before_a_line_of_it_is_written(path: Path) -> None:
    record_calls(path, ())
    killed_with(path, 9)
    words = ["policy", "replay", "--from", str(path)]
    found = [CliRunner().invoke(app, words).output for _ in range(2)]
    assert all("9 decisions were lost before they were written" in each for each in found)


def test_a_loss_that_was_changed_is_found(path: Path) -> None:
    killed_with(path, 6)
    write_records(path, 1)
    path.write_bytes(path.read_bytes().replace(b'"taken":6', b'"taken":1'))
    with pytest.raises(ChainBroken):
        lost_in(path)


def test_a_living_writer_ends_a_torn_line_of_another(path: Path) -> None:
    sink = opened(path)
    put_records(sink, 1)
    assert sink.flush(10)
    with path.open("ab") as file:
        file.write(b'{"producer":"producer_of_a_killed_one","seq')
    put_records(sink, 1)
    sink.close(10)
    reading = Reading()
    assert len(lines_of(path, reading)) == 2
    assert len(reading.torn) == 1


def put_until_killed(path: Path, pipe: int) -> None:
    sink = opened(path)
    for number in range(1, 1_000_000):
        put_records(sink, 1)
        os.pwrite(pipe, _COUNT.pack(number), 0)
        if number % 50 == 0:
            time.sleep(0.002)


def killed_at_random(folder: Path, source: random.Random) -> int:
    """Kill a writer at any time, compare what is counted with what it counted itself, and return
    how many it lost.
    """
    folder.mkdir()
    path, counted = folder / "d.jsonl", folder / "counted"
    key_of(path, make=True)
    descriptor = os.open(counted, os.O_RDWR | os.O_CREAT)
    os.pwrite(descriptor, _COUNT.pack(0), 0)
    process, pipe = start(lambda _: put_until_killed(path, descriptor))
    time.sleep(source.uniform(0.02, 0.4))
    kill(process)
    (put,) = _COUNT.unpack(os.pread(descriptor, _COUNT.size, 0))
    os.close(descriptor)
    os.close(pipe)
    write_records(path, 1)
    lost = lost_in(path)
    # it may have been killed between the record and its own count of it
    assert kinds_of(path).count("decision") - 1 + lost - put in (0, 1)
    return lost


def test_a_writer_that_is_killed_at_any_time_is_counted(tmp_path: Path) -> None:
    source = random.Random(7)
    for number in range(3):
        killed_at_random(tmp_path / str(number), source)


@pytest.mark.slow
def test_many_kills_lose_nothing_that_is_not_counted(tmp_path: Path) -> None:
    source = random.Random(11)
    losses = [killed_at_random(tmp_path / str(number), source) for number in range(60)]
    assert any(losses)
