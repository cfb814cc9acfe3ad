"""Keys and credentials beside the code: no held body reads them, nor a command that it runs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from held_calls import held

from agenttool_otel import agent_context, enforcement
from agenttool_otel.enforcement import arun_command, run_command
from agenttool_otel.enforcement import secrets as module
from agenttool_otel.errors import SandboxUnavailable
from agenttool_otel.testing import Capture, capture

WORD = "v-31d1a0c5"


def read(path: str) -> str:
    """Read a file."""
    return Path(path).read_text("utf-8")


def read_by_command(path: str) -> str:
    """Read a file by a program."""
    return run_command(["cat", path]).stdout.decode()


async def aread_by_command(path: str) -> str:
    """Read a file by a program."""
    return (await arun_command(["cat", path])).stdout.decode()


BODIES: dict[str, Callable[..., Any]] = {
    "function": read,
    "command": read_by_command,
    "coroutine": aread_by_command,
}
SECRETS = [".env", "app/.env.production", "id_rsa", "deep/er/.aws/credentials", "server.pem"]


@pytest.fixture
def captured() -> Iterator[Capture]:
    proof = enforcement.available()["read"]
    if not proof.proven:
        pytest.skip(f"the profile read can't be had here: {proof.reason}")
    with capture(policy=held()) as captured:
        yield captured


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    for name in [*SECRETS, "notes.txt", "app/main.py"]:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(WORD, "utf-8")
    return root


def outcome(captured: Capture, body: Callable[..., Any], root: Path, name: str) -> str:
    """What a held body gives of a file in a root."""
    options = {"read_only": True, "access_kinds": [], "runs_commands": body is not read}
    tool = captured.governor.govern(body, name="read", **options)
    with agent_context(roots=[str(root)]):
        try:
            given = tool(str(root / name))
            return str(asyncio.run(given) if asyncio.iscoroutine(given) else given)
        except PermissionError:
            return ""


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_secret_in_a_root_is_not_read(
    captured: Capture, root: Path, body: Callable[..., Any], secret: str
) -> None:
    assert WORD not in outcome(captured, body, root, secret)


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_the_files_beside_it_are_read(
    captured: Capture, root: Path, body: Callable[..., Any]
) -> None:
    assert outcome(captured, body, root, "notes.txt") == WORD
    assert outcome(captured, body, root, "app/main.py") == WORD


def test_a_secret_that_came_after_a_call_is_not_read(captured: Capture, root: Path) -> None:
    assert outcome(captured, read, root, "app/main.py") == WORD
    late = root / "app" / "secrets.pem"
    late.write_text(WORD, "utf-8")
    assert outcome(captured, read, root, "app/secrets.pem") == ""


def test_a_crowded_directory_above_is_no_obstacle(captured: Capture, root: Path) -> None:
    # a machine's /tmp: each place in it is a rule of its own, because a secret lies below it
    for number in range(9000):
        (root.parent / str(number)).touch()
    assert outcome(captured, read, root, "notes.txt") == WORD
    assert outcome(captured, read, root, ".env") == ""


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_walk_that_is_cut_denies(
    captured: Capture, root: Path, monkeypatch: pytest.MonkeyPatch, body: Callable[..., Any]
) -> None:
    monkeypatch.setattr(module, "_walk", module.SecretWalk(limit=2))
    with pytest.raises(SandboxUnavailable, match="secrets may be among them"):
        outcome(captured, body, root, "notes.txt")


@pytest.mark.skipif(os.geteuid() == 0, reason="root lists every directory")
def test_a_directory_that_cannot_be_listed_is_masked(captured: Capture, root: Path) -> None:
    (root / "app").chmod(0o100)
    try:
        assert outcome(captured, read, root, "app/main.py") == ""
    finally:
        (root / "app").chmod(0o700)
