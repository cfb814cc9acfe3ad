"""``run_command``, with and without a profile."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from agenttool_otel import CommandResult, Limits, SandboxUnavailable, arun_command, run_command
from agenttool_otel.enforcement import available, hold, oblige_commands, proofs
from agenttool_otel.enforcement.processes import is_dead
from agenttool_otel.enforcement.types import Proof

PROOF = available()["read"]
HELD = pytest.param("read", marks=pytest.mark.skipif(not PROOF.proven, reason=PROOF.reason))
held_only = pytest.mark.skipif(not PROOF.proven, reason=PROOF.reason)
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")


@pytest.fixture(params=[None, HELD])
def profile(request: pytest.FixtureRequest) -> Iterator[str | None]:
    name = request.param
    with oblige_commands(name) if name else nullcontext():
        yield name


def test_a_line_and_a_program_run(profile: str | None) -> None:
    assert run_command("echo a; echo b >&2; exit 3").status == 3
    done = run_command(["printf", "%s", "a b"])
    assert (done.stdout, done.stderr, done.profile) == (b"a b", b"", profile)


def test_a_signal_is_stated(profile: str | None) -> None:
    assert run_command("kill -TERM $$").signal == signal.SIGTERM


def test_a_program_that_is_not_there_is_an_error(profile: str | None) -> None:
    with pytest.raises(FileNotFoundError):
        run_command(["/no/such/program"])


def test_input_arrives_and_ends(profile: str | None) -> None:
    text = "line\n" * 100_000
    assert run_command("wc -c", input=text).stdout.strip() == str(len(text)).encode()
    assert run_command("cat").stdout == b""


def test_a_program_that_reads_no_input_ends(profile: str | None) -> None:
    assert run_command("exit 0", input=b"x" * 10**7).status == 0


def test_variables_are_cut_to_the_list(
    profile: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "k")
    monkeypatch.setenv("PYTHONPATH", "/x")
    monkeypatch.setenv("LC_TIME", "C")
    shown = run_command("env", env={"MINE": "m"}).stdout.decode()
    names = {line.partition("=")[0] for line in shown.splitlines()}
    assert {"PATH", "LC_TIME", "MINE", "TMPDIR"} <= names
    assert not {"API_KEY", "PYTHONPATH"} & names


def test_a_temporary_directory_is_its_own_and_goes(profile: str | None) -> None:
    done = run_command("mkdir -p $TMPDIR/a/b && mkdir -m 0 $TMPDIR/a/c && echo $TMPDIR")
    assert done.status == 0
    assert not os.path.exists(done.stdout.decode().strip())


def test_a_deep_temporary_directory_goes(profile: str | None) -> None:
    # deeper than Python may recurse; one mkdir, as a process a level takes 16 s
    line = "cd $TMPDIR && mkdir -p $(printf 'd/%.0s' $(seq 1200)) && echo $TMPDIR"
    done = run_command(["bash", "-c", line])
    assert done.status == 0
    assert not os.path.exists(done.stdout.decode().strip())


def test_head_and_tail_of_an_output_are_kept(profile: str | None) -> None:
    done = run_command("seq 100000", limits=Limits(output_bytes=20))
    assert done.stdout.startswith(b"1\n2\n3\n4\n5\n")
    assert done.stdout.endswith(b"9999\n100000\n"[-10:])
    assert done.stdout_omitted == 588895 - 20


def test_time_ends_the_whole_group(profile: str | None) -> None:
    done = run_command("trap '' TERM; sleep 60 & echo $!; sleep 60", timeout=0.5)
    assert done.timed_out
    assert done.seconds < 30
    assert is_dead(int(done.stdout))


def test_what_stays_in_the_background_is_ended(profile: str | None) -> None:
    done = run_command("sleep 60 & echo $!")
    assert is_dead(int(done.stdout))
    assert done.seconds < 30


def test_another_group_of_the_session_is_ended(profile: str | None) -> None:
    done = run_command(["bash", "-c", "set -m; sleep 60 & echo $!"])
    assert is_dead(int(done.stdout))
    assert done.left == 1


@held_only
def test_under_a_profile_a_new_session_is_ended() -> None:
    with oblige_commands("read"):
        done = run_command("setsid sleep 60 & echo $!")
    assert is_dead(int(done.stdout))


def test_too_many_processes_end_it(profile: str | None) -> None:
    line = "for i in 1 2 3 4 5 6 7 8 9; do sleep 60 & done; wait"
    done = run_command(line, limits=Limits(processes=5))
    assert done.status != 0
    assert ("limit", "processes") in {(found.kind, found.target) for found in done.refusals}


def test_memory_is_limited(profile: str | None) -> None:
    code = "x = bytearray(1 << 32)"
    done = run_command(["/usr/bin/python3", "-S", "-c", code], limits=Limits(memory_bytes=1 << 30))
    assert b"MemoryError" in done.stderr


def test_a_line_is_the_same_with_a_limit_of_memory(profile: str | None) -> None:
    done = run_command("echo '$1' \"a  b\"", limits=Limits(memory_bytes=1 << 30))
    assert done.stdout == b"$1 a  b\n"


@held_only
def test_words_of_a_refusal_are_suspected_only(tmp_path: Path) -> None:
    with oblige_commands("read"):
        done = run_command(f"touch {tmp_path}/a; echo Permission denied >&2")
    assert {found.suspected for found in done.violations} == {True}
    assert done.refusals == ()


@held_only
def test_a_held_functions_command_is_held(tmp_path: Path) -> None:
    held = hold("read", run_command, (f"touch {tmp_path}/a",))
    assert isinstance(held.value, CommandResult)
    assert held.value.profile == "read"
    assert not (tmp_path / "a").exists()


@held_only
async def test_an_obliged_coroutines_command_is_held(tmp_path: Path) -> None:
    with oblige_commands("read"):
        done = await arun_command(f"touch {tmp_path}/a")
    assert done.profile == "read"
    assert not (tmp_path / "a").exists()


async def test_commands_run_beside_each_other(profile: str | None) -> None:
    done = await asyncio.gather(*(arun_command(f"sleep 0.2; echo {n}") for n in range(4)))
    assert [one.stdout for one in done] == [b"0\n", b"1\n", b"2\n", b"3\n"]


async def test_a_canceled_command_leaves_nothing(profile: str | None, tmp_path: Path) -> None:
    task = asyncio.create_task(arun_command("echo $$; sleep 4567.25"))
    await asyncio.sleep(0.5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await arun_command("pgrep -xf 'sleep 4567.25'")).stdout == b""


def test_an_unproven_profile_runs_no_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(proofs, "available", lambda: {"read": Proof(False, "landlock", "no")})
    with oblige_commands("read"), pytest.raises(SandboxUnavailable, match="no"):
        run_command(f"touch {tmp_path}/a")
    assert not (tmp_path / "a").exists()


def test_an_interrupted_caller_ends_its_command(profile: str | None) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_command("sleep 4568.25")
    finally:
        signal.signal(signal.SIGALRM, before)
    until = time.monotonic() + 10
    while run_command("pgrep -xf 'sleep 4568.25'").stdout and time.monotonic() < until:
        time.sleep(0.1)
    assert run_command("pgrep -xf 'sleep 4568.25'").stdout == b""
