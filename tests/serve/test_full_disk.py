"""A disk that is full: what has to be kept and can't be, is not permitted."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from decision_points import Served, request, served

from agenttool_otel import ApprovalAnswer
from agenttool_otel.testing import capture

INVOCATIONS = "/v1/invocations"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 400 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False, timeout=60)
    except FileNotFoundError:
        pytest.skip("there is no mount here")
    if done.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True, timeout=60)


@pytest.fixture
def point(disk: Path, tmp_path: Path) -> Iterator[Served]:
    with (
        capture(approvals=f"sqlite:///{disk}/approvals.db") as captured,
        served(captured.governor, tmp_path) as point,
    ):
        yield point


def fill(disk: Path) -> Path:
    """Write until nothing more can be written."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 512)
    return filler


def test_a_question_that_can_not_be_kept_is_no_permission(point: Served, disk: Path) -> None:
    fill(disk)
    for _ in range(20):
        answer = point.ask("POST", INVOCATIONS, request("run_command", command="make"))
        assert answer.status == 503 or answer.json["state"] == "refused"


def test_an_answer_that_can_not_be_claimed_permits_nothing(point: Served, disk: Path) -> None:
    body = request("run_command", command="make")
    asked = point.ask("POST", INVOCATIONS, body).json
    assert asked["state"] == "waiting"
    store = point.governor.approvals.store
    store.answer(asked["request_id"], ApprovalAnswer(approved=True, answered_by="user:ann"))
    fill(disk)
    answer = point.ask("GET", f"{INVOCATIONS}/{asked['invocation_id']}?wait=1")
    assert answer.status == 503 or answer.json["state"] in ("waiting", "refused")


def test_with_room_again_questions_are_asked(point: Served, disk: Path) -> None:
    filler = fill(disk)
    point.ask("POST", INVOCATIONS, request("run_command", command="make"))
    filler.unlink()
    answer = point.ask("POST", INVOCATIONS, request("run_command", command="make"))
    assert answer.json["state"] == "waiting"
