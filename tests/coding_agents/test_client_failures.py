"""Whatever goes wrong with the client, each agent takes for "blocked"."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from agent_rules import BLOCKED, outcome
from agents_served import FOLDERS, RECORDED, client_command, recorded

from agenttool_otel.coding_agents import client
from agenttool_otel.coding_agents.answers import HookOutput
from agenttool_otel.coding_agents.dialects import AGENTS, dialect_of
from agenttool_otel.coding_agents.installation import Installation
from agenttool_otel.coding_agents.trial import answering, blocks, run_command

GARBLED = {
    "no HTTP": b"hello\n",
    "no JSON": b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nyes!",
    "cut off": b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"exit": 0',
    "no length": b'HTTP/1.1 200 OK\r\n\r\n{"exit":0,"stdout":"","stderr":""}',
    "a list": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
    "a part": b'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{"exit":0}',
    "false for 0": (
        b'HTTP/1.1 200 OK\r\nContent-Length: 38\r\n\r\n{"exit":false,"stdout":"","stderr":""}'
    ),
    "a block without a reason": (
        b'HTTP/1.1 200 OK\r\nContent-Length: 34\r\n\r\n{"exit":2,"stdout":"","stderr":""}'
    ),
    "nothing": b"",
    "an error": b'HTTP/1.1 503 Busy\r\nContent-Length: 17\r\n\r\n{"detail":"busy"}',
}
"""Answers that permit nothing."""


def payload_of(agent: str) -> dict[str, object]:
    folder = RECORDED / FOLDERS.get(agent, agent)
    return recorded(agent, next(folder.glob(f"{dialect_of(agent).deciding}-*ls.json")).stem)


def command_of(agent: str, place: Path) -> str | list[str]:
    """Return what is installed; opencode's plugin starts the client without a shell."""
    event = dialect_of(agent).deciding
    if agent == "opencode":
        return client_command("decide", agent, event, place)
    return Installation(agent, Path("settings.json"), place, sys.executable).command(event, "")


@pytest.mark.parametrize("agent", AGENTS)
def test_no_decision_point_blocks(agent: str, tmp_path: Path) -> None:
    output = run_command(command_of(agent, tmp_path / "none.sock"), payload_of(agent))
    assert outcome(agent, *output) == BLOCKED
    assert "does not answer" in output.stderr


@pytest.mark.parametrize("agent", AGENTS)
def test_a_client_that_is_gone_blocks(agent: str, tmp_path: Path) -> None:
    command = command_of(agent, tmp_path / "none.sock")
    if isinstance(command, list):
        gone = [word.replace("client.py", "gone.py") for word in command]
        assert outcome(agent, *run_command(gone, payload_of(agent))) == BLOCKED
        return
    gone_client = command.replace("client.py", "gone.py")
    gone_python = command.replace(sys.executable, "/nonexistent/python")
    for each in (gone_client, gone_python):
        assert outcome(agent, *run_command(each, payload_of(agent))) == BLOCKED


@pytest.mark.parametrize("agent", [agent for agent in AGENTS if agent != "opencode"])
@pytest.mark.parametrize("crash", ["kill -9 $$", "exit 1", "exit 3", "echo half; exit 1"])
def test_a_client_that_crashes_blocks(agent: str, crash: str) -> None:
    event = dialect_of(agent).deciding
    command = Installation(agent, Path("settings.json"), Path("x")).command(event, "")
    guard = command[command.index("||") :]
    assert outcome(agent, *run_command(f"sh -c '{crash}' {guard}", {})) == BLOCKED


@pytest.mark.parametrize("kind", GARBLED)
def test_an_answer_of_another_form_blocks(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "s.sock"
    with answering(place, lambda _: GARBLED[kind]):
        output = run_command(client_command("decide", "codex", "PreToolUse", place), {})
    assert blocks(output)


def test_a_decision_point_that_hangs_blocks(tmp_path: Path) -> None:
    place = tmp_path / "s.sock"
    folder = str(Path(str(client.__file__)).parent)
    program = (
        f"import os, sys; sys.path.insert(0, {folder!r}); import client\n"
        f"client.DEADLINE_SECONDS = 1\n"
        f"os._exit(client.main(['decide', 'codex', 'PreToolUse', {str(place)!r}]))"
    )
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place))
        listening.listen()
        output = run_command([sys.executable, "-I", "-S", "-c", program], {})
    assert blocks(output)
    assert "too slow" in output.stderr


def test_the_client_gives_up_before_the_agent_does() -> None:
    for agent in AGENTS:
        timeout = dialect_of(agent).settings.timeout
        seconds = timeout / 1000 if agent in {"gemini", "qwen"} else timeout
        assert client.DEADLINE_SECONDS + 5 <= seconds <= 65


def test_a_closed_output_blocks(tmp_path: Path) -> None:
    place = tmp_path / "s.sock"
    answer = b'{"exit":0,"stdout":"{}","stderr":""}'
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(answer)}\r\n\r\n".encode()
    command = Installation("codex", Path("x"), place, sys.executable).command("PreToolUse", "")
    with answering(place, lambda _: head + answer):
        done = subprocess.run(
            f"({command.partition('||')[0]} >&- || {command.partition('||')[2]}\n)",
            shell=True,
            input=b"{}",
            capture_output=True,
            check=False,
        )
    assert blocks(HookOutput(done.returncode, done.stdout.decode(), done.stderr.decode()))


@pytest.mark.parametrize("kind", ["no HTTP", "nothing"])
def test_recording_never_disturbs_the_agent(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "s.sock"
    with answering(place, lambda _: GARBLED[kind]):
        output = run_command(client_command("record", "codex", "PostToolUse", place), {})
    assert output == (0, "", "")


def test_the_client_imports_nothing_heavy(tmp_path: Path) -> None:
    place = tmp_path / "s.sock"
    command = client_command("decide", "codex", "PreToolUse", place)
    with answering(place, lambda _: answer_of('{"exit":0,"stdout":"{}","stderr":""}')):
        done = subprocess.run(
            [command[0], "-X", "importtime", *command[1:]],
            input=b"{}",
            capture_output=True,
            check=False,
        )
    assert (done.returncode, done.stdout) == (0, b"{}")
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}
    assert "_socket" in imported
    heavy = {"site", "asyncio", "http", "ssl", "typing", "subprocess", "pathlib", "agenttool_otel"}
    heavy |= {"json", "re", "enum", "collections", "socket", "signal"}
    assert not heavy & {name.partition(".")[0] for name in imported}


def answer_of(body: str) -> bytes:
    data = body.encode("utf-8", "surrogatepass")
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data


SHORT = '{"exit":2,"stdout":"","stderr":"'


@pytest.mark.parametrize(
    "body",
    [
        '{"exit":2,"stdout":"a\\"b\\\\c","stderr":"\\u00fc \\ud83d\\ude00"}',
        '{"exit":2,"stdout":"ü","stderr":"\\/"}',
        '{"exit": 2, "stderr": "x", "stdout": ""}',
        f'{SHORT}x"}}',
        f'{SHORT}x"}} ',
        f'{SHORT}x"}}}}',
        f'{SHORT}x","stdout":"y"}}',
        f'{SHORT}x\n"}}',
        f'{SHORT}\\x"}}',
        f"{SHORT}x",
        f"{SHORT}\ud800",
        '{"exit":1,"stdout":"","stderr":"x"}',
        '{"exit":22,"stdout":"","stderr":"x"}',
    ],
)
def test_the_short_way_reads_what_json_reads(body: str) -> None:
    data = body.encode("utf-8", "surrogatepass")
    found = client._as_serve_writes_it(data)
    if found is not None:
        assert found == client._from_json(data, "200")


def test_the_client_needs_no_environment() -> None:
    done = subprocess.run(
        client_command("decide", "codex", "PreToolUse", Path("/nonexistent")),
        env={"PYTHONPATH": os.getcwd(), "PYTHONSTARTUP": "/nonexistent"},
        input=b"",
        capture_output=True,
        check=False,
    )
    assert done.returncode == client.BLOCKED
