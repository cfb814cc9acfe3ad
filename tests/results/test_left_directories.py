"""What a killed process leaves in the temporary directory goes with the next one that needs one."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agenttool_otel.values.own_directory import OwnDirectory

WAITS = """
import sys
from agenttool_otel.values.own_directory import OwnDirectory
owner = OwnDirectory
own = OwnDirectory(sys.argv[1], owner)
open(own.path + "/content", "w").write("secret")
print(own.path, flush=True)
sys.stdin.read()
"""


class Owner:
    """What a directory belongs to."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def started(folder: Path, kind: str = "payloads") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WAITS, kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )


def path_of(process: subprocess.Popen[str]) -> Path:
    assert process.stdout is not None
    return Path(process.stdout.readline().strip())


def killed(folder: Path, kind: str = "payloads") -> Path:
    with started(folder, kind) as process:
        path = path_of(process)
        process.kill()
    assert (path / "content").exists()
    return path


@pytest.mark.parametrize("kind", ["payloads", "scratch"])
def test_what_a_killed_process_left_is_removed(folder: Path, kind: str) -> None:
    left = killed(folder, kind)
    OwnDirectory(kind, Owner)
    assert not left.exists()


def test_what_a_running_process_has_stays(folder: Path) -> None:
    with started(folder) as process:
        path = path_of(process)
        OwnDirectory("payloads", Owner)
        assert (path / "content").exists()
        process.communicate("")
    assert not path.exists()


def test_what_a_parent_has_stays_in_a_forked_child(folder: Path) -> None:
    own = OwnDirectory("payloads", Owner)
    child = os.fork()
    if child == 0:
        own.leave()
        OwnDirectory("payloads", Owner)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert os.path.isdir(own.path)


def test_an_owner_that_is_collected_takes_it_along() -> None:
    owner = Owner()
    own = OwnDirectory("payloads", owner)
    del owner
    assert not os.path.exists(own.path)


def test_processes_that_start_at_once_each_have_one(folder: Path) -> None:
    killed(folder)
    processes = [started(folder) for _ in range(6)]
    paths = {path_of(process) for process in processes}
    assert len(paths) == len(processes)
    assert all((path / "content").exists() for path in paths)
    for process in processes:
        process.communicate("")


def test_a_link_of_that_name_is_not_followed(folder: Path) -> None:
    kept = folder / "kept"
    kept.mkdir(mode=0o700)
    (folder / "agenttool-payloads-link").symlink_to(kept)
    OwnDirectory("payloads", Owner)
    assert kept.is_dir()


def test_a_directory_that_others_may_enter_stays(folder: Path) -> None:
    other = folder / "agenttool-payloads-other"
    other.mkdir()
    other.chmod(0o755)
    OwnDirectory("payloads", Owner)
    assert other.is_dir()


def test_a_file_system_without_locks_has_one_that_nobody_removes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import fcntl

    def fail(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", fail)
    own = OwnDirectory("payloads", Owner)
    OwnDirectory("payloads", Owner)
    assert os.path.isdir(own.path)


def test_it_is_made_again_where_it_was_taken_for_a_leftover(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    taken: list[str] = []
    lock = fcntl.flock

    def take(descriptor: int, operation: int) -> None:
        if not taken:
            taken.append(os.readlink(f"/proc/self/fd/{descriptor}"))
            os.rmdir(taken[0])
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", take)
    own = OwnDirectory("payloads", Owner)
    assert os.path.isdir(own.path)
    assert own.path != taken[0]
