"""A real decision point for tests: sockets, uvicorn in a thread, and raw requests."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from agenttool_otel.govern.governor import Governor
from agenttool_otel.serve.limits import Limits
from agenttool_otel.serve.server import DecisionServer
from agenttool_otel.serve.tools import declare_tools

PATH_SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}
COMMAND_SCHEMA = {
    "type": "object",
    "properties": {"command": {"type": "string"}},
    "required": ["command"],
    "additionalProperties": False,
}
TOOLS = {
    "read_file": {
        "description": "Read a file.",
        "tool_kind": "file_operation",
        "read_only": True,
        "access_kinds": ["file_read"],
        "path_args": ["path"],
        "model_input_schema": PATH_SCHEMA,
    },
    "run_command": {
        "description": "Run a command of a shell.",
        "tool_kind": "shell_command",
        "access_kinds": ["code_execution"],
        "command_args": ["command"],
        "model_input_schema": COMMAND_SCHEMA,
    },
}
"""The tools of the decision point: facts as an operator states them."""


_NUMBERS = count()


class Answer:
    """An answer over the wire."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class UnixConnection(http.client.HTTPConnection):
    """HTTP through a Unix socket, without anything of the package."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.path)


class Served:
    """A decision point that answers."""

    def __init__(self, server: DecisionServer, governor: Governor, folder: Path) -> None:
        self.server = server
        self.governor = governor
        self.socket_path = str(folder / "serve.sock")
        self.token_file = folder / "token"

    @property
    def token(self) -> str:
        return self.token_file.read_text()

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Ask through the Unix socket."""
        return exchange(UnixConnection(self.socket_path), method, path, body, headers)

    def ask_port(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Ask through the port; ``Authorization`` is the token's where not given."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        headers.setdefault("Authorization", f"Bearer {self.token}")
        return exchange(connection, method, path, body, headers)


def exchange(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: Any,
    headers: dict[str, str],
) -> Answer:
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    sent = {"Content-Type": "application/json"} if data is not None else {}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, data, sent)
        response = connection.getresponse()
        return Answer(response.status, dict(response.headers), response.read())
    finally:
        connection.close()


def request(tool: str, call_id: str = "", /, **arguments: Any) -> dict[str, Any]:
    """The body that asks about a call; of a new one where no id is given."""
    call_id = call_id or f"c-{next(_NUMBERS)}"
    return {
        "subject": {"type": "agent", "id": "coder"},
        "action": {"name": tool},
        "resource": {"type": "tool_call", "id": call_id, "properties": arguments},
        "context": {"session_id": "s-1", "roots": ["/srv/project"], "cwd": "/srv/project"},
    }


@contextmanager
def served(
    governor: Governor, folder: Path, *, limits: Limits | None = None, port: int | None = 0
) -> Iterator[Served]:
    """Serve a Governor's decisions, with the tools above."""
    folder.chmod(0o700)
    tools = folder / "tools.json"
    tools.write_text(json.dumps(TOOLS))
    server = DecisionServer(
        governor,
        declare_tools(str(tools), governor),
        socket_path=folder / "serve.sock",
        port=port,
        token_file=folder / "token",
        limits=limits,
    )
    with server:
        yield Served(server, governor, folder)
