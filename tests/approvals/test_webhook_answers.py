"""``POST /answers`` over real HTTP: signed, fresh, once, and no more than its sender may."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from approval_helpers import ARGS, a_request
from standardwebhooks import Webhook
from webhook_receiver import running_receiver

from agenttool_otel.approvals.notify.answering import (
    KEPT_SECONDS,
    MAX_BODY_BYTES,
    AnswersEndpoint,
    answers_server,
)
from agenttool_otel.approvals.notify.signatures import Signer, new_secret
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.approvals.types import ApprovalRequest
from agenttool_otel.names import AnswerWay
from agenttool_otel.names import ApprovalStatus as Status

SECRET = new_secret()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApprovalStore]:
    store = ApprovalStore(tmp_path_factory.mktemp("answers") / "a.db", max_pending_per_session=0)
    yield store
    store.close()


@pytest.fixture(scope="module")
def rejected() -> list[str]:
    return []


@pytest.fixture(scope="module")
def port(store: ApprovalStore, rejected: list[str]) -> Iterator[int]:
    endpoint = AnswersEndpoint(
        store, Signer(SECRET), roles=("operator",), on_rejected=rejected.append
    )
    server = answers_server(endpoint)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        server.should_exit = True
        thread.join(10)


@pytest.fixture
def asked(store: ApprovalStore) -> ApprovalRequest:
    return store.create(a_request(), ARGS)


def body_of(asked: ApprovalRequest, **changes: Any) -> bytes:
    body = {
        "request_id": asked.request_id,
        "ticket": Signer(SECRET).ticket(asked),
        "approved": True,
        "answered_by": "user:ada",
        "roles": ["operator"],
        **changes,
    }
    return json.dumps({key: value for key, value in body.items() if value is not ...}).encode()


def signed(
    body: bytes, *, message_id: str = "", secret: str = SECRET, age: float = 0
) -> dict[str, str]:
    at = datetime.now(UTC) - timedelta(seconds=age)
    message_id = message_id or f"msg_{time.monotonic_ns()}"
    return {
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(secret).sign(message_id, at, body.decode("utf-8", "replace")),
    }


def post(port: int, body: bytes, headers: dict[str, str]) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/answers", body, headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, json.loads(text)


def test_a_signed_answer_is_recorded(
    port: int, store: ApprovalStore, asked: ApprovalRequest
) -> None:
    body = body_of(asked)
    assert post(port, body, signed(body)) == (200, {"status": "approved", "still_needed": 0})
    answer = store.stored_call(asked.request_id).answer
    assert answer is not None
    assert (answer.answered_by, answer.roles) == ("user:ada", ("operator",))
    assert answer.way is AnswerWay.WEBHOOK


def test_a_rejection_ends_the_call(
    port: int, store: ApprovalStore, asked: ApprovalRequest, rejected: list[str]
) -> None:
    body = body_of(asked, approved=False, reason="too much")
    assert post(port, body, signed(body))[0] == 200
    assert store.get(asked.request_id).answer_reason == "too much"
    assert rejected == [asked.request_id]


def test_what_follows_a_rejection_can_not_undo_it(
    store: ApprovalStore, asked: ApprovalRequest, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(request_id: str) -> None:
        raise RuntimeError("secret")

    body = body_of(asked, approved=False)
    endpoint = AnswersEndpoint(store, Signer(SECRET), roles=("operator",), on_rejected=fails)
    answered = endpoint._answer(signed(body), body)
    assert (answered.status_code, store.get(asked.request_id).status) == (200, Status.REJECTED)
    assert "RuntimeError" in caplog.text
    assert "secret" not in caplog.text


def test_of_two_people_each_answers_for_one(port: int, store: ApprovalStore) -> None:
    asked = store.create(a_request(approvals_needed=2), ARGS)
    body = body_of(asked)
    assert post(port, body, signed(body)) == (200, {"status": "pending", "still_needed": 1})
    assert post(port, body, signed(body))[0] == 409
    body = body_of(asked, answered_by="user:bob")
    assert post(port, body, signed(body))[1]["status"] == "approved"


def test_a_message_is_taken_once(port: int, store: ApprovalStore) -> None:
    asked = store.create(a_request(approvals_needed=2), ARGS)
    body = body_of(asked)
    headers = signed(body, message_id="msg_same")
    assert post(port, body, headers)[0] == 200
    for again in (body, body_of(asked, answered_by="user:bob")):
        status, problem = post(port, again, signed(again, message_id="msg_same"))
        assert (status, problem) == (409, {"error": "this message was taken before"})
    assert store.get(asked.request_id).status is Status.PENDING


HEADERS: list[tuple[str, dict[str, str | None]]] = [
    ("none", {"webhook-id": None, "webhook-timestamp": None, "webhook-signature": None}),
    ("no id", {"webhook-id": None}),
    ("another id", {"webhook-id": "msg_other"}),
    ("no signature", {"webhook-signature": ""}),
    ("half a signature", {"webhook-signature": "v1"}),
    ("no base64", {"webhook-signature": "v1,%%%"}),
    ("another version", {"webhook-signature": "v2,AAAA"}),
    ("no time", {"webhook-timestamp": "nan"}),
    ("a time without end", {"webhook-timestamp": "1e400"}),
]


@pytest.mark.parametrize(
    "changes", [row[1] for row in HEADERS], ids=[row[0].replace(" ", "_") for row in HEADERS]
)
def test_an_unsigned_answer_is_refused(
    port: int, store: ApprovalStore, asked: ApprovalRequest, changes: dict[str, str | None]
) -> None:
    body = body_of(asked)
    headers = {
        key: value for key, value in {**signed(body), **changes}.items() if value is not None
    }
    assert post(port, body, headers)[0] == 401
    assert store.get(asked.request_id).status is Status.PENDING


@pytest.mark.parametrize("age", [360, -360])
def test_an_old_or_future_message_is_refused(port: int, asked: ApprovalRequest, age: float) -> None:
    body = body_of(asked)
    assert post(port, body, signed(body, age=age))[0] == 401


def test_another_secret_or_body_is_refused(
    port: int, store: ApprovalStore, asked: ApprovalRequest
) -> None:
    body, other = body_of(asked), body_of(asked, answered_by="user:eve")
    assert post(port, body, signed(body, secret=new_secret()))[0] == 401
    assert post(port, other, signed(body))[0] == 401
    assert store.get(asked.request_id).status is Status.PENDING


def test_a_role_that_the_sender_has_not_is_refused(port: int, asked: ApprovalRequest) -> None:
    body = body_of(asked, roles=["operator", "admin"])
    assert post(port, body, signed(body))[0] == 403


def test_the_ticket_of_another_request_is_refused(
    port: int, store: ApprovalStore, asked: ApprovalRequest
) -> None:
    other = store.create(a_request(), ARGS)
    for ticket in ("", "x", "\ud800", Signer(SECRET).ticket(other)):
        body = body_of(asked, ticket=ticket)
        assert post(port, body, signed(body))[0] == 403
    changed = other.model_copy(update={"args_digest": "sha256:0"})
    assert Signer(SECRET).ticket(changed) != Signer(SECRET).ticket(other)


@pytest.mark.parametrize(
    "changes",
    [
        {"approved": "yes"},
        {"approved": 1},
        {"approved": ...},
        {"answered_by": None},
        {"roles": "operator"},
        {"roles": [1]},
        {"ticket": ...},
        {"edited_input": {"path": "x"}},
        {"remember": 0},
    ],
)
def test_what_is_no_answer_is_refused(
    port: int, store: ApprovalStore, asked: ApprovalRequest, changes: dict[str, Any]
) -> None:
    body = body_of(asked, **changes)
    assert post(port, body, signed(body))[0] == 400
    assert store.get(asked.request_id).status is Status.PENDING


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b'{"approved":true,"approved":false}'])
def test_a_body_that_is_no_object_is_refused(port: int, body: bytes) -> None:
    assert post(port, body, signed(body))[0] in {400, 401}


def test_the_stores_refusals_have_their_status(port: int, store: ApprovalStore) -> None:
    asked = store.create(a_request(actor_id="user:ada"), ARGS)
    body = body_of(asked)
    assert post(port, body, signed(body))[0] == 409  # the requesting actor
    body = body_of(asked, request_id="appr_none")
    assert post(port, body, signed(body))[0] == 404
    late = store.create(a_request(ttl=0.001), ARGS)
    body = body_of(late)
    assert post(port, body, signed(body))[0] == 410


def test_only_small_json_is_read(port: int, asked: ApprovalRequest) -> None:
    body = body_of(asked, reason="x" * MAX_BODY_BYTES)
    assert post(port, body, signed(body))[0] == 413
    body = body_of(asked)
    assert post(port, body, {**signed(body), "Content-Type": "text/plain"})[0] == 415


def test_a_body_in_chunks_is_refused_before_it_is_read(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), 60) as connection:
        # the length would be small; nothing of the chunks has to arrive
        connection.sendall(
            b"POST /answers HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: 10\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        assert connection.recv(400).startswith(b"HTTP/1.1 413 ")


def test_a_body_beyond_its_length_is_not_kept(store: ApprovalStore) -> None:
    # another server than uvicorn may count otherwise
    read, status = 0, 0

    async def receive() -> dict[str, Any]:
        nonlocal read
        read += 1
        return {"type": "http.request", "body": b"x" * MAX_BODY_BYTES, "more_body": read < 100}

    async def send(message: Any) -> None:
        nonlocal status
        status = message.get("status", status)

    headers = [(b"content-type", b"application/json"), (b"content-length", b"10")]
    scope = {"type": "http", "method": "POST", "path": "/answers", "headers": headers}
    application = AnswersEndpoint(store, Signer(SECRET)).application()
    asyncio.run(application(scope, receive, send))
    assert (status, read) == (413, 2)


def test_ids_of_messages_are_forgotten_once_they_can_not_return(tmp_path: Path) -> None:
    now = [0.0]
    store = ApprovalStore(tmp_path / "a.db")
    endpoint = AnswersEndpoint(store, Signer(SECRET), now=lambda: now[0])
    endpoint._use("msg_1")
    now[0] = KEPT_SECONDS + 1
    endpoint._use("msg_2")
    assert list(endpoint._seen) == ["msg_2"]
    store.close()


@pytest.mark.slow
def test_the_command_asks_and_takes_the_answer(tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path / "a.db")
    out, answers = new_secret(), new_secret()
    environment = {
        **os.environ,
        "AGENTTOOL_APPROVALS_NOTIFY_SECRET": out,
        "AGENTTOOL_APPROVALS_ANSWERS_SECRET": answers,
    }
    command = [sys.executable, "-m", "agenttool_otel.cli", "approvals", "notify"]
    command += ["-u", str(tmp_path / "a.db"), "--page", "https://approvals.example.com"]
    command += ["--answers-port", "0", "--role", "operator", "--interval", "0.1"]
    with running_receiver() as receiver:
        command += ["--to", receiver.url, "--state", str(tmp_path / "state.json")]
        program = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        assert program.stderr is not None
        try:
            port = int(program.stderr.readline().split()[-1])
            asked = store.create(a_request(), ARGS)
            wait_for(lambda: receiver.received)
            event = Webhook(out).verify(receiver.received[0].body, receiver.received[0].headers)
            body = body_of(asked, ticket=event["data"]["ticket"])
            status, said = post(port, body, signed(body, secret=answers))
            assert (status, said["status"]) == (200, "approved")
            assert store.get(asked.request_id).status is Status.APPROVED
            wait_for(lambda: len(receiver.received) > 1)
            assert b"agenttool.approval.answered" in receiver.received[1].body
        finally:
            program.send_signal(signal.SIGINT)
            ended = program.wait(60)
            program.stderr.close()
    assert ended == 0
    store.close()


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
