"""A client's configuration is wrapped and put back, and what is not understood is refused."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from proxy_program import PATIENCE, SERVER, Proxy, meta

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.integrations.mcp.wrapping import ClientConfig, wrapped

CONFIGS = {
    # as clients write them: two spaces, four, a tab, all on one line
    "claude_desktop_config.json": """{
  "globalShortcut": "Ctrl+Space",
  "mcpServers": {
    "git": {"command": "uvx", "args": ["mcp-server-git", "--repository", "/srv/é"]},
    "notes": {"command": "notes-server", "env": {"NOTES": "/srv/notes"}}
  }
}
""",
    ".mcp.json": """{
    "mcpServers": {
        "api": {"type": "http", "url": "https://mcp.example.com/mcp"},
        "git": {"type": "stdio", "command": "uvx", "args": ["mcp-server-git"], "env": {}}
    }
}""",
    "mcp.json": '{"mcpServers":{"web":{"url":"http://127.0.0.1:3000/mcp"}}}\r\n',
}


@pytest.mark.parametrize("name", CONFIGS)
def test_each_server_is_behind_the_proxy(name: str) -> None:
    before = json.loads(CONFIGS[name])
    after = json.loads(wrapped(CONFIGS[name], ["agenttool"]))
    for server, entry in before["mcpServers"].items():
        behind = after["mcpServers"][server]
        words = [entry["command"], *entry.get("args", [])] if "command" in entry else []
        tail = ["--", *words] if words else ["--http", entry["url"]]
        assert behind["command"] == "agenttool"
        assert behind["args"] == ["mcp", "proxy", f"--server={server}", *tail]
        assert behind.get("env") == entry.get("env")
        assert behind.get("type", "stdio") == "stdio"
    assert {**after, "mcpServers": 0} == {**before, "mcpServers": 0}


@pytest.mark.parametrize("name", CONFIGS)
def test_undo_brings_back_each_byte(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(CONFIGS[name].encode())
    path.chmod(0o600)
    assert "+" in ClientConfig(path).wrap()
    assert path.read_bytes() != CONFIGS[name].encode()
    ClientConfig(path).undo()
    assert path.read_bytes() == CONFIGS[name].encode()
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_a_file_that_was_changed_since_is_left(tmp_path: Path) -> None:
    path = tmp_path / ".mcp.json"
    path.write_text(CONFIGS[".mcp.json"])
    ClientConfig(path).wrap()
    changed = path.read_text().replace("api", "other")
    path.write_text(changed)
    with pytest.raises(ConfigurationError, match="changed since"):
        ClientConfig(path).undo()
    with pytest.raises(ConfigurationError, match="wrapped already"):
        ClientConfig(path).wrap()
    assert path.read_text() == changed


def test_wrapping_that_ended_half_way_is_done_again(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(CONFIGS["mcp.json"])
    file = ClientConfig(path)
    file.kept.write_bytes(path.read_bytes())
    file.wrap()
    file.undo()
    assert not file.kept.exists()


GIT: Any = {"command": "uvx", "args": ["mcp-server-git"]}


@pytest.mark.parametrize(
    "config",
    [
        "{",
        "[]",
        "{}",
        '{"mcpServers": {}}',
        '{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}',
        '{"mcpServers": {"a": {"command": "x"}} /* a comment */}',
        {"servers": {"git": GIT}},
        {"mcpServers": {"git": "uvx"}},
        {"mcpServers": {"git": {}}},
        {"mcpServers": {"git": {**GIT, "args": "mcp-server-git"}}},
        {"mcpServers": {"git": {**GIT, "args": [1]}}},
        {"mcpServers": {"git": {**GIT, "envFile": ".env"}}},
        {"mcpServers": {"git": {**GIT, "env": {"OTEL_SERVICE_NAME": "git"}}}},
        {"mcpServers": {"git": GIT, "api": {"type": "sse", "url": "https://example.com"}}},
        {"mcpServers": {"git": GIT, "api": {"url": "ws://example.com"}}},
        {"mcpServers": {"api": {"url": "https://example.com", "headers": {"X-Key": "k"}}}},
    ],
)
def test_what_is_not_understood_is_left(config: Any, tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    text = config if isinstance(config, str) else json.dumps(config)
    path.write_text(text)
    with pytest.raises(ConfigurationError):
        ClientConfig(path).wrap()
    assert path.read_text() == text
    assert [each.name for each in tmp_path.iterdir()] == ["mcp.json"]


def test_a_wrapped_server_is_not_wrapped_again() -> None:
    with pytest.raises(ConfigurationError, match="behind a proxy already"):
        wrapped(wrapped(CONFIGS["mcp.json"]))


@pytest.mark.slow
def test_a_client_reaches_a_wrapped_server(tmp_path: Path) -> None:
    path = tmp_path / ".mcp.json"
    entry = {"command": sys.executable, "args": [str(SERVER)], "env": {"NOTES": "x"}}
    path.write_text(json.dumps({"mcpServers": {"files": entry}}))
    agenttool = Proxy(tmp_path).agenttool
    shown = agenttool("mcp", "wrap", ".mcp.json")
    assert shown.returncode == 0, shown.stderr
    assert "--server=files" in shown.stdout

    async def call() -> Any:
        behind = json.loads(path.read_text())["mcpServers"]["files"]
        parameters = StdioServerParameters(**behind, cwd=tmp_path)
        async with Client(parameters, read_timeout_seconds=PATIENCE) as client:
            return await client.call_tool("write", {"path": "a.txt"})

    assert meta(asyncio.run(call()))["status"] == "pending"
    assert agenttool("mcp", "wrap", ".mcp.json", "--undo").returncode == 0
    assert json.loads(path.read_text())["mcpServers"]["files"] == entry
