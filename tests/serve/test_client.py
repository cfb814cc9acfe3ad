"""The client: the same words as in process, and an error wherever there is no decision."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from decision_points import Served, served

from agenttool_otel import ApprovalAnswer, agent_context
from agenttool_otel.serve import (
    DecisionPointError,
    DecisionPointGarbled,
    DecisionPointRefused,
    DecisionPointUnavailable,
    RemoteGovernor,
    RemoteNotPermitted,
)
from agenttool_otel.testing import StaticEngine, capture


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with agent_context(
        actor="agent:coder", session_id="s-1", roots=["/srv/project"], cwd="/srv/project"
    ):
        yield


@pytest.fixture
def remote(point: Served) -> RemoteGovernor:
    return RemoteGovernor(point.socket_path)


def test_a_permitted_body_runs_once(remote: RemoteGovernor) -> None:
    ran: list[str] = []
    done = remote.run("read_file", {"path": "notes.txt"}, lambda path: ran.append(path) or "text")
    assert ran == ["notes.txt"]
    assert done.result["content"][0]["text"] == "text"


def test_a_refused_body_does_not_run(remote: RemoteGovernor) -> None:
    with pytest.raises(RemoteNotPermitted, match="sensitive"):
        remote.run("read_file", {"path": "/etc/shadow"}, pytest.fail)


def test_an_unanswered_body_does_not_run(remote: RemoteGovernor) -> None:
    with pytest.raises(RemoteNotPermitted) as refused:
        remote.run("run_command", {"command": "rm notes.txt"}, pytest.fail)
    assert refused.value.call.state == "waiting"


def test_an_approved_body_runs(remote: RemoteGovernor, point: Served) -> None:
    call = remote.decide("run_command", {"command": "rm notes.txt"}, call_id="approved")
    approved = ApprovalAnswer(approved=True, answered_by="user:ada")
    point.governor.approvals.store.answer(str(call.request_id), approved)
    ran: list[str] = []
    remote.run(
        "run_command",
        {"command": "rm notes.txt"},
        lambda command: ran.append(command),
        call_id="approved",
        wait=30,
    )
    assert ran == ["rm notes.txt"]


def test_the_error_of_a_body_is_its_callers(remote: RemoteGovernor) -> None:
    def body(path: str) -> str:
        raise FileNotFoundError(path)

    with pytest.raises(FileNotFoundError):
        remote.run("read_file", {"path": "notes.txt"}, body)


def test_a_check_is_that_of_authzen(remote: RemoteGovernor) -> None:
    assert remote.check("read_file", {"path": "notes.txt"}).decision
    assert not remote.check("read_file", {"path": "/etc/shadow"}).decision


async def test_it_can_be_awaited(remote: RemoteGovernor) -> None:
    with agent_context(actor="agent:coder", roots=["/srv/project"], cwd="/srv/project"):
        call = await remote.adecide("read_file", {"path": "notes.txt"})
    done = await remote.acomplete(call.invocation_id, "text")
    assert done.state == "completed"


def test_it_asks_through_the_port(point: Served) -> None:
    remote = RemoteGovernor(url=point.server.url, token_file=point.token_file)
    assert remote.check("read_file", {"path": "notes.txt"}).decision


def test_a_wrong_token_is_no_decision(point: Served, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("a" * 43)
    with pytest.raises(DecisionPointRefused, match="token"):
        RemoteGovernor(url=point.server.url, token_file=token).check("read_file", {})


# --- no decision ----------------------------------------------------------------------------------


def test_a_missing_server_is_no_decision(tmp_path: Path) -> None:
    with pytest.raises(DecisionPointUnavailable):
        RemoteGovernor(tmp_path / "none.sock").run("read_file", {"path": "a"}, pytest.fail)


def receive(connection: socket.socket) -> None:
    """Read a request whole: whoever closes before its end breaks the client's pipe."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    [length] = re.findall(rb"(?i)content-length: *(\d+)", head) or [b"0"]
    while len(body) < int(length):
        body += connection.recv(65536)


@contextmanager
def answering(path: Path, answer: Callable[[socket.socket], None]) -> Iterator[RemoteGovernor]:
    """A server that takes one connection and does what it should not."""
    with closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind(str(path))
        listening.listen()

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                receive(connection)
                answer(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield RemoteGovernor(path, timeout=1.0)
        thread.join(30)


def reply(status: str, body: bytes, length: int | None = None) -> Callable[[socket.socket], None]:
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body) if length is None else length}\r\n\r\n"
    return lambda connection: connection.sendall(head.encode() + body)


@pytest.mark.parametrize(
    "answer",
    [
        lambda connection: None,
        lambda connection: connection.sendall(b"garbage\r\n\r\n"),
        lambda connection: connection.recv(1),
        reply("200 OK", b"{}"),
        reply("200 OK", b'{"decision": true}'),
        reply("200 OK", b'{"state": "permitted"}'),
        reply("200 OK", b'{"decision": true, "con', length=500),
        reply("204 No Content", b""),
        reply("302 Found", b""),
        reply("500 Internal Server Error", b"<html>"),
        reply("503 Service Unavailable", b'{"decision": true}'),
    ],
    ids=["gone", "garbage", "slow", "{}", "half", "call", "cut", "204", "302", "html", "503"],
)
def test_what_is_no_answer_is_no_decision(
    tmp_path: Path, answer: Callable[[socket.socket], None]
) -> None:
    with (
        answering(tmp_path / "s.sock", answer) as remote,
        pytest.raises(DecisionPointError),
    ):
        remote.run("read_file", {"path": "a"}, pytest.fail)


def test_the_answer_to_another_call_is_no_decision(tmp_path: Path) -> None:
    body = (
        b'{"invocation_id": "inv_1", "call_id": "other", "state": "permitted",'
        b' "tool_id": "t", "arguments": {"path": "a"}}'
    )
    with (
        answering(tmp_path / "s.sock", reply("200 OK", body)) as remote,
        pytest.raises(DecisionPointGarbled, match="another call"),
    ):
        remote.run("read_file", {"path": "a"}, pytest.fail)


def test_a_restart_in_mid_call_leaves_a_decided_call(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/approvals.db"
    folder = tmp_path / "serve"
    folder.mkdir()
    remote = RemoteGovernor(folder / "serve.sock")
    with (
        capture(policy=StaticEngine("allow"), approvals=store) as captured,
        served(captured.governor, folder, port=None),
    ):
        call = remote.decide("read_file", {"path": "a"})
    with pytest.raises(DecisionPointUnavailable):
        remote.complete(call.invocation_id, "text")
    with (
        capture(policy=StaticEngine("deny"), approvals=store) as captured,
        served(captured.governor, folder, port=None),
    ):
        done = remote.complete(call.invocation_id, "text")
        again = remote.decide("read_file", {"path": "a"})
    assert done.state == "completed"
    assert again.state == "refused"


def test_a_restart_leaves_a_question_open(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/approvals.db"
    folder = tmp_path / "serve"
    folder.mkdir()
    remote = RemoteGovernor(folder / "serve.sock")
    with (
        capture(policy=StaticEngine("ask"), approvals=store) as captured,
        served(captured.governor, folder, port=None),
    ):
        call = remote.decide("read_file", {"path": "a"})
    with (
        capture(policy=StaticEngine("ask"), approvals=store) as captured,
        served(captured.governor, folder, port=None),
    ):
        assert remote.wait(call.invocation_id).state == "waiting"
        approved = ApprovalAnswer(approved=True, answered_by="user:ada")
        captured.governor.approvals.store.answer(str(call.request_id), approved)
        assert remote.wait(call.invocation_id, 30).state == "permitted"


def test_without_a_store_a_restart_forgets_the_call(tmp_path: Path) -> None:
    remote = RemoteGovernor(tmp_path / "serve.sock")
    for _ in range(2):
        with (
            capture(policy=StaticEngine("allow")) as captured,
            served(captured.governor, tmp_path, port=None),
        ):
            call = remote.decide("read_file", {"path": "a"})
    with (
        capture(policy=StaticEngine("allow")) as captured,
        served(captured.governor, tmp_path, port=None),
        pytest.raises(DecisionPointRefused, match="no call of that id"),
    ):
        remote.complete(call.invocation_id, "text")


def test_a_chain_goes_to_the_decision_point(point: Served) -> None:
    remote = RemoteGovernor(point.socket_path)
    with (
        agent_context(actor="agent:lead", roots=["/srv/project/src"]) as lead,
        agent_context(actor="agent:child", parent=lead, roots=["/srv/project"]),
    ):
        answer = remote.check("read_file", {"path": "/srv/project/src/a.py"})
    assert answer.context.rule == "agenttool.rules.delegation.wider"
