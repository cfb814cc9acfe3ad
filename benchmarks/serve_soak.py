"""Two hundred clients at once at ``agenttool serve``, and what one call of a hook costs.

``python -m benchmarks.serve_soak [SECONDS]`` (120) starts the process, and asks it by 200 clients that
each decide a call, check that the answer is theirs, and hand in its result. Then it runs the program
that a coding agent's hook starts, and prints the CPU time of both sides for a call. Everything is on
a Unix socket of this machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from agenttool_otel.coding_agents import client

CLIENTS: Final = 200
MOST_TIMES_THE_MEDIAN: Final = 5.0
MOST_HOOK_CPU_MS: Final = 30.0
_SERVE: Final = (sys.executable, "-c", "from agenttool_otel.cli import main; main()", "serve")
_ROOT: Final = "/srv/project"
_TOOLS: Final = {
    "read_file": {
        "description": "Read a file.",
        "tool_kind": "file_operation",
        "read_only": True,
        "access_kinds": ["file_read"],
        "path_args": ["path"],
        "model_input_schema": {
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
            "additionalProperties": False,
        },
    }
}


@dataclass
class Soak:
    """What clients saw.

    Attributes:
        seconds: how long each decision took.
        lost: calls without an answer, or with one that is no decision.
        crossed: calls whose answer was another's.
    """

    seconds: list[float] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    crossed: list[str] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The median of the decisions' times, in seconds."""
        return statistics.median(self.seconds)

    @property
    def p99(self) -> float:
        """What all but one in a hundred decisions took at most, in seconds."""
        return statistics.quantiles(self.seconds, n=100)[98]


@contextmanager
def serving(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run ``agenttool serve`` until it answers, and end it.

    Args:
        folder: where its socket is; only its user may enter it.
    """
    folder.chmod(0o700)
    tools = folder / "tools.json"
    tools.write_text(json.dumps(_TOOLS))
    words = [*_SERVE, "--tools", str(tools), "--socket", str(folder / "serve.sock")]
    running = subprocess.Popen(
        [*words, "--agent", "claude-code"],
        env={**os.environ, "HOME": str(folder)},
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(folder / "serve.sock")
        yield running
    finally:
        running.kill()
        running.wait()


def wait_for(place: Path) -> None:
    """Wait until a process listens at a socket.

    Args:
        place: the socket.

    Raises:
        TimeoutError: none does after 200 s.
    """
    until = time.monotonic() + 200
    while time.monotonic() < until:
        with socket.socket(socket.AF_UNIX) as connection, contextlib.suppress(OSError):
            connection.connect(str(place))
            return
        time.sleep(0.1)
    raise TimeoutError(f"nothing listens at {place}")


async def soak(place: Path, seconds: float, clients: int = CLIENTS) -> Soak:
    """Let clients decide calls for some time.

    Args:
        place: the socket.
        seconds: how long.
        clients: how many at once.
    """
    found = Soak()
    await asyncio.gather(*[_one_call(place, found, number, 0) for number in range(clients)])
    found = Soak()
    until = time.monotonic() + seconds
    await asyncio.gather(*[_client(place, found, number, until) for number in range(clients)])
    return found


async def _client(place: Path, found: Soak, number: int, until: float) -> None:
    turn = 0
    while time.monotonic() < until:
        turn += 1
        await _one_call(place, found, number, turn)


async def _one_call(place: Path, found: Soak, number: int, turn: int) -> None:
    call_id = f"c-{number}-{turn}"
    is_allowed = turn % 3 != 0
    path = f"{_ROOT}/{call_id}.txt" if is_allowed else f"/home/agent/.ssh/{call_id}"
    started = time.monotonic()
    try:
        call = await _asked(place, "/v1/invocations", _body(number, call_id, path))
        found.seconds.append(time.monotonic() - started)
        expected = "permitted" if is_allowed else "refused"
        if call["state"] != expected:
            found.lost.append(f"{call_id}: {call['state']}")
            return
        if call["call_id"] != call_id or (is_allowed and call["arguments"] != {"path": path}):
            found.crossed.append(call_id)
            return
        if is_allowed:
            ended = f"/v1/invocations/{call['invocation_id']}/result"
            done = await _asked(place, ended, {"result": f"text of {call_id}"})
            if done["call_id"] != call_id or f"text of {call_id}" not in json.dumps(done["result"]):
                found.crossed.append(f"{call_id}: its result")
    except (OSError, ValueError, KeyError, asyncio.IncompleteReadError) as error:
        found.lost.append(f"{call_id}: {error!r}")


def _body(number: int, call_id: str, path: str) -> dict[str, Any]:
    return {
        "subject": {"type": "agent", "id": f"client-{number}"},
        "action": {"name": "read_file"},
        "resource": {"type": "tool_call", "id": call_id, "properties": {"path": path}},
        "context": {"session_id": f"s-{number}", "roots": [_ROOT], "cwd": _ROOT},
    }


async def _asked(place: Path, path: str, body: Any) -> Any:
    """Post a body by a connection of its own, as a hook does, and return the answer's."""
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Connection: close\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    reader, writer = await asyncio.open_unix_connection(str(place))
    try:
        writer.write(head.encode() + data)
        answer = await reader.read()
    finally:
        writer.close()
    found, _, text = answer.partition(b"\r\n\r\n")
    if not found.startswith(b"HTTP/1.1 200 "):
        raise ValueError(answer[:200])
    return json.loads(text)


def hook_cpu(place: Path, server: int, calls: int = 50) -> tuple[float, float]:
    """Return the CPU time of one call of a hook in milliseconds: of its client, and of the server.

    Args:
        place: the socket.
        server: the server's process.
        calls: how many are measured, after ten that are not.
    """
    for number in range(10):
        _run_hook(place, f"warm-{number}")
    of_server, of_clients = _cpu_of(server), _cpu_of_children()
    for number in range(calls):
        _run_hook(place, f"call-{number}")
    client_ms = (_cpu_of_children() - of_clients) * 1000 / calls
    return client_ms, (_cpu_of(server) - of_server) * 1000 / calls


def bare_cpu(calls: int = 50) -> float:
    """Return the CPU time in milliseconds of starting a Python that does nothing."""
    before = _cpu_of_children()
    for _ in range(calls):
        subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True)
    return (_cpu_of_children() - before) * 1000 / calls


def _run_hook(place: Path, call_id: str) -> None:
    words = [sys.executable, "-I", "-S", str(client.__file__), "decide", "claude-code"]
    payload = {
        "session_id": "s-hook",
        "tool_use_id": call_id,
        "cwd": _ROOT,
        "hook_event_name": "PreToolUse",
        "permission_mode": "default",
        "tool_name": "Bash",
        "tool_input": {"command": f"cat {call_id}.txt"},
    }
    subprocess.run(
        [*words, "PreToolUse", str(place)], input=json.dumps(payload).encode(), check=True
    )


def _cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main(arguments: list[str]) -> int:
    """Measure and print; the exit status is 1 where a bar is not met."""
    seconds = float(arguments[0]) if arguments else 120.0
    console = Console(highlight=False)
    console.print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as name, serving(Path(name)) as server:
        place = Path(name) / "serve.sock"
        bare_ms = bare_cpu()
        client_ms, server_ms = hook_cpu(place, server.pid)
        before = _cpu_of(server.pid)
        found = asyncio.run(soak(place, seconds))
        spent = _cpu_of(server.pid) - before
    times = found.p99 / found.median
    calls = len(found.seconds)
    console.print(
        f"{CLIENTS} clients, {seconds:.0f} s: {calls:,} calls, {calls / seconds:.0f} a second"
    )
    console.print(f"lost {len(found.lost)}, crossed {len(found.crossed)}", *found.lost[:3])
    console.print(
        f"median {found.median * 1000:.0f} ms, p99 {found.p99 * 1000:.0f} ms: {times:.1f} x the median"
        f" (bar {MOST_TIMES_THE_MEDIAN:g})"
    )
    console.print(f"server's CPU a call, decision and result: {spent * 1000 / calls:.1f} ms")
    whole = client_ms + server_ms
    console.print(
        f"a hook's call, CPU: client {client_ms:.1f} ms, server {server_ms:.1f} ms, both {whole:.1f} ms"
        f" (bar {MOST_HOOK_CPU_MS:g})"
    )
    # on a busy machine the same work takes more CPU time
    console.print(f"starting a Python that does nothing, CPU: {bare_ms:.1f} ms")
    holds = not found.lost and not found.crossed and times <= MOST_TIMES_THE_MEDIAN
    return 0 if holds and whole <= MOST_HOOK_CPU_MS else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
