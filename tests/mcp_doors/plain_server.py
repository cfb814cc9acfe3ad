"""An MCP server without the SDK, which a test starts as a process: it starts at once, and writes bytes
of a test's choice at one place of its first life.

``python plain_server.py PLACE BYTES CALLS``: the method before whose answer it writes, a file of the
bytes (none are left for its next life), and a file to which it adds the name of each tool called.
The place ``silent`` is a first life without any answer.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

place, bytes_file, calls_file = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
schema = {"type": "object"}
tools = [{"name": name, "inputSchema": schema} for name in ("read", "drop")]
results: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "plain", "version": "1"},
    },
    "tools/list": {"tools": tools},
    "tools/call": {"content": [{"type": "text", "text": "done"}]},
}


def write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def taken() -> bytes:
    data = bytes_file.read_bytes()
    bytes_file.write_bytes(b"")
    return data


def answer(message: dict[str, Any]) -> None:
    method = message["method"]
    answered: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
    if method in results:
        answered["result"] = results[method]
    else:
        answered["error"] = {"code": -32601, "message": "Method not found"}
    write(json.dumps(answered).encode() + b"\n")


silent = place == "silent" and taken()
if place == "start":
    write(taken())
for line in sys.stdin:
    received = json.loads(line)
    if silent:
        continue
    if received.get("method") == "tools/call":
        with calls_file.open("a") as file:
            file.write(received["params"]["name"] + "\n")
    if received.get("method") == place:
        write(taken())
    if "id" in received and "method" in received:
        answer(received)
