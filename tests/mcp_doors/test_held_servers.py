"""A server's process runs under a profile that the kernel holds, or not at all."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from proxy_program import Proxy
from typer.testing import CliRunner

from agenttool_otel import ConfigurationError
from agenttool_otel.cli.mcp import app
from agenttool_otel.enforcement import available, own, proofs
from agenttool_otel.enforcement.own import OwnLimits, OwnProfile, define_profiles
from agenttool_otel.enforcement.types import Proof
from agenttool_otel.errors import SandboxUnavailable
from agenttool_otel.integrations.mcp.calls import McpServerFailed
from agenttool_otel.integrations.mcp.held import held_server
from agenttool_otel.integrations.mcp.upstream import Upstream, server_process
from agenttool_otel.integrations.mcp.wrapping import ClientConfig, wrapped
from agenttool_otel.names import SandboxProfile

COMMAND = (sys.executable, "-S", "-E", str(Path(__file__).with_name("held_server.py")))


@pytest.fixture
def readable() -> None:
    proof = available()["read"]
    if not proof.proven:
        pytest.skip(f"the profile read can't be had here: {proof.reason}")


@pytest.fixture
def undefined() -> Iterator[None]:
    """Profiles that other tests do not see."""
    yield
    for name in own.own_profiles():
        proofs._proofs.pop(name, None)
    own._own.clear()


@pytest.fixture
def unproven(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that has not proven the profile."""
    monkeypatch.setitem(proofs._proofs, "read", Proof(False, "landlock", "no kernel"))


def texts(root: Path, calls: list[tuple[str, str]]) -> list[tuple[str, bool]]:
    """Return the text of each call of a held server, and whether it failed."""

    async def use() -> list[tuple[str, bool]]:
        server = held_server(server_process(COMMAND), "read", [root])
        found = []
        async with Upstream(server, timeout=60) as upstream:
            for name, path in calls:
                result: Any = await upstream.request(_call(name, path))
                found.append((result.content[0].text, result.is_error is True))
        return found

    return asyncio.run(use())


def _call(name: str, path: str) -> Callable[[Client], Any]:
    return lambda client: client.call_tool(name, {"path": path})


@pytest.mark.usefixtures("readable")
def test_a_server_can_only_read(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("the notes", "utf-8")
    outside = tmp_path / "new.txt"
    read, written, connected = texts(
        tmp_path, [("read", str(tmp_path / "notes.txt")), ("write", str(outside)), ("connect", "")]
    )
    assert read == ("the notes", False)
    assert written == ("PermissionError", True)
    assert connected == ("PermissionError", True)
    assert not outside.exists()


@pytest.mark.usefixtures("readable")
def test_a_server_reads_no_secret_below_its_roots(tmp_path: Path) -> None:
    secret = tmp_path / ".env"
    secret.write_text("KEY=1", "utf-8")
    assert texts(tmp_path, [("read", str(secret))]) == [("PermissionError", True)]


@pytest.mark.usefixtures("readable")
def test_a_server_has_a_temporary_directory(tmp_path: Path) -> None:
    ((kept, failed),) = texts(tmp_path, [("keep", "")])
    assert not failed
    # it goes with the server
    assert not Path(kept).exists()


@pytest.mark.usefixtures("readable")
def test_what_a_held_server_started_ends_with_it(tmp_path: Path) -> None:
    ((pid, failed),) = texts(tmp_path, [("start", "")])
    assert not failed
    assert _is_gone(int(pid))


def _is_gone(pid: int) -> bool:
    for _ in range(50):
        with suppress(FileNotFoundError):
            # a zombie is the reaper's
            if Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z":
                time.sleep(0.02)
                continue
        return True
    return False


@pytest.mark.usefixtures("readable")
def test_a_held_server_has_no_variables_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTTOOL_APPROVALS_URL", "sqlite:///a.db")
    ((names, _),) = texts(tmp_path, [("variables", "")])
    assert "AGENTTOOL_APPROVALS_URL" not in names


@pytest.mark.usefixtures("readable")
def test_the_sdks_own_client_can_not_start_it_unheld(tmp_path: Path) -> None:
    server: Any = held_server(server_process(["touch", str(tmp_path / "started")]), "read")

    async def start() -> None:
        async with Client(server):
            pass

    with pytest.raises(TypeError, match="HeldServer"):
        asyncio.run(start())
    assert not (tmp_path / "started").exists()


@pytest.mark.usefixtures("readable")
def test_a_held_server_that_is_killed_starts_again(tmp_path: Path) -> None:
    async def use() -> str:
        server = held_server(server_process(COMMAND), "read", [tmp_path])
        async with Upstream(server, timeout=60) as upstream:
            await upstream.request(_call("variables", ""))
            for pid in _children():
                os.kill(pid, 9)
            with suppress(McpServerFailed):
                await upstream.request(_call("variables", ""))
            return str((await upstream.request(_call("write", "/x"))).content[0].text)

    assert asyncio.run(use()) == "PermissionError"


def _children() -> list[int]:
    found = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    pids = {int(pid) for task in found for pid in task.read_text().split()}
    return [pid for pid in pids if b"held_server" in Path(f"/proc/{pid}/cmdline").read_bytes()]


@pytest.mark.usefixtures("unproven")
def test_nothing_starts_where_a_profile_is_not_proven() -> None:
    with pytest.raises(SandboxUnavailable, match="no kernel"):
        held_server(server_process(COMMAND), "read")


@pytest.mark.usefixtures("readable")
def test_a_profile_that_is_lost_later_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = held_server(server_process(["touch", str(tmp_path / "started")]), "read", [tmp_path])
    monkeypatch.setitem(proofs._proofs, "read", Proof(False, "landlock", "no kernel"))

    async def use() -> None:
        async with Upstream(server, timeout=60) as upstream:
            await upstream.request(_call("variables", ""))

    with pytest.raises(BaseExceptionGroup) as caught:
        asyncio.run(use())
    assert caught.group_contains(McpServerFailed, match="SandboxUnavailable")


@pytest.mark.usefixtures("undefined")
@pytest.mark.parametrize("profile", ["write", "rehearse", "unknown", "short"])
def test_a_profile_that_holds_no_server_is_refused(profile: str) -> None:
    define_profiles({"short": OwnProfile(SandboxProfile.READ, limits=OwnLimits(seconds=5))})
    with pytest.raises(SandboxUnavailable, match=profile):
        held_server(server_process(COMMAND), profile)


def test_a_wrapped_server_gets_the_profile() -> None:
    config = json.dumps({"mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git"]}}})
    entry = json.loads(wrapped(config, ["agenttool"], profile="read"))["mcpServers"]["git"]
    assert entry["args"] == [
        "mcp", "proxy", "--server=git", "--profile=read", "--", "uvx", "mcp-server-git",
    ]  # fmt: skip


def test_no_profile_holds_a_server_behind_a_url() -> None:
    config = json.dumps({"mcpServers": {"api": {"url": "https://mcp.example.com/mcp"}}})
    with pytest.raises(ConfigurationError, match="no profile holds"):
        wrapped(config, ["agenttool"], profile="read")


@pytest.mark.slow
@pytest.mark.usefixtures("readable")
def test_the_proxys_server_is_held(tmp_path: Path) -> None:
    async def use(client: Client) -> Any:
        return await client.call_tool("write", {"path": str(tmp_path / "new")})

    proxy = Proxy(tmp_path, {"write": {"read_only": True}})
    result = proxy.run(use, "--profile", "read", command=COMMAND)
    assert result.content[0].text == "PermissionError"
    assert not (tmp_path / "new").exists()


@pytest.mark.usefixtures("unproven")
@pytest.mark.parametrize("words", ["proxy", "pins diff", "pins accept"])
def test_a_command_that_can_not_hold_starts_nothing(words: str, tmp_path: Path) -> None:
    started = tmp_path / "started"
    command = [*words.split(), "--profile", "read", "--", "touch", str(started)]
    ended = CliRunner().invoke(app, command)
    assert ended.exit_code == 125
    assert "nothing ran" in ended.stderr
    assert not started.exists()


@pytest.mark.usefixtures("unproven")
def test_a_profile_that_is_not_held_wraps_nothing(tmp_path: Path) -> None:
    config = tmp_path / ".mcp.json"
    config.write_text('{"mcpServers": {"git": {"command": "uvx"}}}', "utf-8")
    ended = CliRunner().invoke(app, ["wrap", str(config), "--profile", "read"])
    assert ended.exit_code == 125
    assert [path.name for path in tmp_path.iterdir()] == [".mcp.json"]


@pytest.mark.usefixtures("readable")
def test_undo_brings_back_a_file_with_profiles(tmp_path: Path) -> None:
    config = tmp_path / ".mcp.json"
    before = '{"mcpServers": {"git": {"command": "uvx"}}}'
    config.write_text(before, "utf-8")
    file = ClientConfig(config)
    file.wrap(profile="read")
    file.undo()
    assert config.read_text("utf-8") == before


def test_a_profile_for_a_url_is_refused() -> None:
    ended = CliRunner().invoke(app, ["proxy", "--profile", "read", "--http", "http://a.example"])
    assert ended.exit_code == 1
    assert "no profile holds" in ended.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("readable")
def test_pins_are_listed_by_a_held_server(tmp_path: Path) -> None:
    ended = Proxy(tmp_path).agenttool("mcp", "pins", "accept", "--profile", "read", "--", *COMMAND)
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "mcp.lock.json").exists()
