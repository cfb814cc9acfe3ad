"""The hooks of an agent tried: what the installed command answers, and whether its failures block."""

from __future__ import annotations

import json
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from agenttool_otel.coding_agents.answers import HookOutput
from agenttool_otel.coding_agents.dialects import Dialect, KnownTool
from agenttool_otel.coding_agents.installation import Installation

_SECONDS: Final = 120
_SAMPLES: Final = {"string": "agenttool-doctor", "number": 1, "boolean": False, "array": []}
_PATCH: Final = "*** Begin Patch\n*** Add File: agenttool-doctor\n+x\n*** End Patch"
_GARBAGE: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nyes!\n"


class Trial(NamedTuple):
    """One thing that was tried.

    Attributes:
        what: what was tried.
        holds: whether it is as it should be.
        found: what happened.
    """

    what: str
    holds: bool
    found: str


def payload_of(dialect: Dialect, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an agent would send before a call.

    Args:
        dialect: the agent's dialect.
        tool: the tool.
        arguments: its arguments.
    """
    fields = dialect.fields
    values = {
        fields.session: "agenttool-doctor",
        fields.call: f"agenttool-doctor-{tool}",
        fields.cwd: tempfile.gettempdir(),
        fields.tool: tool,
        fields.arguments: dict(arguments),
    }
    payload: dict[str, Any] = {}
    # opencode, whose payloads name no event, does not mind
    payload["hook_event_name"] = dialect.deciding
    for pointers, value in values.items():
        if pointers:
            _put(payload, pointers[0], value)
    return payload


def _put(payload: dict[str, Any], pointer: str, value: Any) -> None:
    *parents, last = pointer[1:].split("/")
    for name in parents:
        payload = payload.setdefault(name, {})
    payload[last] = value


def sample_of(known: KnownTool) -> dict[str, Any]:
    """Return arguments that a tool could be called with.

    Args:
        known: the tool.
    """
    sample = {name: _SAMPLES[kind] for name, kind in known.arguments.items()}
    return {**sample, known.patch: _PATCH} if known.patch else sample


def run_command(command: str | list[str], payload: Mapping[str, Any]) -> HookOutput:
    """Run a hook's command as an agent does: a text by the shell.

    Args:
        command: the command.
        payload: what it gets on standard input.
    """
    done = subprocess.run(  # noqa: S603 - the very command that is in the settings
        command,
        shell=isinstance(command, str),
        input=json.dumps(payload).encode(),
        capture_output=True,
        timeout=_SECONDS,
        check=False,
    )
    return HookOutput(done.returncode, done.stdout.decode(), done.stderr.decode())


def blocks(output: HookOutput) -> bool:
    """Return whether every agent takes an answer for "blocked".

    Args:
        output: the answer.
    """
    return output.exit == 2 and output.stdout == "" and output.stderr.strip() != ""


def try_failures(installation: Installation) -> Iterator[Trial]:
    """Try what the hook does without a decision point: for each tool with none there, and for one
    with one that answers garbage, and with a client that is gone.

    Args:
        installation: the hooks.
    """
    dialect = installation.dialect
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "serve.sock"
        command = _command(installation, place)
        for name, known in dialect.tools.items():
            output = run_command(command, payload_of(dialect, name, sample_of(known)))
            yield _blocked(f"{name}, no decision point", output)
        name, known = next(iter(dialect.tools.items()))
        payload = payload_of(dialect, name, sample_of(known))
        with answering(place, lambda _: _GARBAGE):
            yield _blocked(f"{name}, garbage for an answer", run_command(command, payload))
        yield _blocked(f"{name}, no payload", run_command(command, {}))
        if isinstance(command, str):
            gone = command.replace("client.py", "client-that-is-gone.py")
            yield _blocked(f"{name}, no client", run_command(gone, payload))


def try_decision_point(installation: Installation) -> Trial:
    """Try whether the decision point denies a command that destroys everything.

    Args:
        installation: the hooks.
    """
    dialect = installation.dialect
    shell = next(name for name, known in dialect.tools.items() if "command_args" in known.facts)
    payload = payload_of(dialect, shell, {"command": "rm -rf /"})
    output = run_command(_command(installation, installation.socket_path), payload)
    reason = _reason(output)
    decided = reason != "" and "decided nothing" not in reason
    return Trial(f"{shell}: rm -rf /", decided, reason or "it would run")


def _command(installation: Installation, place: Path) -> str | list[str]:
    other = Installation(installation.agent, installation.path, place, installation.python)
    event = installation.dialect.deciding
    if installation.dialect.settings.kind == "plugin":
        return other.words(event)
    return other.command(event, "")


def _blocked(what: str, output: HookOutput) -> Trial:
    return Trial(what, blocks(output), "blocked" if blocks(output) else "IT WOULD RUN")


def _reason(output: HookOutput) -> str:
    """Return why a call is denied or asked about; empty where it may run."""
    if output.exit != 0:
        return output.stderr.splitlines()[0] if output.stderr else ""
    try:
        answer = json.loads(output.stdout)["hookSpecificOutput"]
        return str(answer["permissionDecisionReason"])
    except (ValueError, KeyError, TypeError):
        return ""


@contextmanager
def answering(place: Path, answer: Callable[[bytes], bytes]) -> Iterator[None]:
    """Listen at a socket, and give each connection the same kind of answer.

    Args:
        place: the socket.
        answer: makes an answer of a request's first bytes.
    """
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place))
        listening.listen()
        thread = threading.Thread(target=_answer_all, args=(listening, answer), daemon=True)
        thread.start()
        try:
            yield
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def _answer_all(listening: socket.socket, answer: Callable[[bytes], bytes]) -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        with connection:
            connection.sendall(answer(connection.recv(65_536)))
