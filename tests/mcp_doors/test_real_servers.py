"""Servers of other people, unmodified, behind the proxy; ``make servers`` installs them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from proxy_program import Proxy, meta

import servers
from agenttool_otel.integrations.mcp import Pins

pytestmark = pytest.mark.slow
EVERYTHING: Any = {
    "echo": {"read_only": True},
    "trigger-long-running-operation": {"read_only": True},
}


def program(name: str) -> str:
    """Return the path of a server's program, or skip the test."""
    try:
        return str(servers.path(name))
    except servers.ServerUnavailable as reason:
        pytest.skip(str(reason))


def text(result: Any) -> str:
    return str(result.content[0].text)


# --- filesystem -----------------------------------------------------------------------------------


def test_filesystem_reads_and_a_secret_file_is_denied(tmp_path: Path) -> None:
    command = [program("mcp-server-filesystem"), str(tmp_path)]
    (tmp_path / "notes.txt").write_text("buy milk")
    (tmp_path / ".env").write_text("TOKEN=x")

    async def use(client: Client) -> tuple[Any, Any]:
        notes = await client.call_tool("read_text_file", {"path": str(tmp_path / "notes.txt")})
        return notes, await client.call_tool("read_text_file", {"path": str(tmp_path / ".env")})

    notes, secret = Proxy(tmp_path, {}).run(use, "--reviewed", "filesystem", command=command)
    assert text(notes) == "buy milk"
    assert meta(secret)["status"] in {"denied", "pending"}
    assert "TOKEN" not in text(secret)


def test_filesystem_writes_after_an_approval_by_command(tmp_path: Path) -> None:
    command = [program("mcp-server-filesystem"), str(tmp_path)]
    proxy = Proxy(tmp_path, {})
    proxy.env["AGENTTOOL_APPROVALS_URL"] = f"sqlite:///{tmp_path / 'approvals.db'}"
    written = tmp_path / "written.txt"
    arguments = {"path": str(written), "content": "done"}

    async def use(client: Client) -> tuple[bool, Any]:
        waits = meta(await client.call_tool("write_file", arguments))
        assert waits["status"] == "pending"
        before = written.exists()
        words = ("approvals", "approve", waits["request_id"], "--yes")
        answered = await anyio.to_thread.run_sync(proxy.agenttool, *words)
        assert answered.returncode == 0, answered.stderr
        return before, await client.call_tool("write_file", arguments)

    before, passed = proxy.run(use, "--reviewed", "filesystem", command=command)
    assert not before
    assert not passed.is_error
    assert written.read_text() == "done"


# --- everything -----------------------------------------------------------------------------------


def test_a_changed_tool_of_everything_is_quarantined(tmp_path: Path) -> None:
    command = [program("mcp-server-everything"), "stdio"]
    proxy = Proxy(tmp_path, EVERYTHING)
    assert proxy.pins("accept", *command).returncode == 0
    lock = tmp_path / "mcp.lock.json"
    accepted = json.loads(lock.read_text())
    # as if the server had changed since
    accepted["servers"]["files"]["echo"]["description"] = "Echoes"
    lock.write_text(json.dumps(accepted))
    Pins.read(lock)

    async def use(client: Client) -> tuple[list[str], Any]:
        names = [tool.name for tool in (await client.list_tools()).tools]
        return names, await client.call_tool("echo", {"message": "x"})

    names, echo = proxy.run(use, "--pins", "mcp.lock.json", command=command)
    assert "echo" not in names
    assert len(names) > 5
    assert "quarantined" in text(echo)


def test_everything_killed_in_mid_call_is_a_failed_result(tmp_path: Path) -> None:
    command = [program("mcp-server-everything"), "stdio"]
    results: list[Any] = []

    async def use(client: Client) -> Any:
        echo = await client.call_tool("echo", {"message": "first"})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lasting, client)
            await anyio.sleep(3)
            for pid in processes(str(tmp_path)):
                os.kill(pid, signal.SIGKILL)
        return echo, await client.call_tool("echo", {"message": "second"})

    async def lasting(client: Client) -> None:
        arguments = {"duration": 600, "steps": 2}
        results.append(await client.call_tool("trigger-long-running-operation", arguments))

    first, second = Proxy(tmp_path, EVERYTHING).run(use, command=command)
    assert "first" in text(first)
    assert "ended during the request" in text(results[0])
    assert "second" in text(second)


def processes(folder: str) -> list[int]:
    """Return the node processes that run in a directory."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            here = os.readlink(entry / "cwd") == folder
            name = (entry / "comm").read_text().strip()
        except OSError:
            continue
        # Node calls its main thread so from version 22 on
        if here and name in {"node", "MainThread"}:
            found.append(int(entry.name))
    return found


# --- git ------------------------------------------------------------------------------------------


def test_git_shows_its_status_and_a_commit_waits(tmp_path: Path) -> None:
    command = [program("mcp-server-git"), "--repository", str(tmp_path)]
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)

    async def use(client: Client) -> tuple[Any, Any]:
        repo = {"repo_path": str(tmp_path)}
        status = await client.call_tool("git_status", repo)
        return status, await client.call_tool("git_commit", {**repo, "message": "x"})

    status, commit = Proxy(tmp_path, {}).run(use, "--reviewed", "git", command=command)
    assert "No commits yet" in text(status)
    assert meta(commit)["status"] == "pending"
