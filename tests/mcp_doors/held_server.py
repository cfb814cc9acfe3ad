"""An MCP server without the SDK that a test starts under a profile; each tool tries one thing.

A refusal is a failed result with the error's name.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


def write(path: str) -> str:
    Path(path).write_text("written", "utf-8")
    return path


def read(path: str) -> str:
    return Path(path).read_text("utf-8")


def keep(path: str) -> str:
    with tempfile.NamedTemporaryFile("w", delete=False) as file:
        file.write("kept")
    return file.name


def connect(path: str) -> str:
    return str(socket.socket().fileno())


def start(path: str) -> str:
    """Start a process of a session of its own, which outlives this one."""
    command = [sys.executable, "-S", "-E", "-c", "import time; time.sleep(600)"]
    return str(subprocess.Popen(command, start_new_session=True).pid)


def variables(path: str) -> str:
    return ",".join(sorted(os.environ))


TOOLS: dict[str, Callable[[str], str]] = {
    tool.__name__: tool for tool in (write, read, keep, connect, start, variables)
}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "held", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [{"name": name, "inputSchema": SCHEMA} for name in TOOLS]}
    try:
        text, failed = TOOLS[params["name"]](params["arguments"].get("path", "")), False
    except OSError as error:
        text, failed = type(error).__name__, True
    return {"content": [{"type": "text", "text": text}], "isError": failed}


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answered: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "server/discover":
        answered["error"] = {"code": -32601, "message": "Method not found"}
    else:
        answered["result"] = answer(message["method"], message.get("params", {}))
    print(json.dumps(answered), flush=True)
