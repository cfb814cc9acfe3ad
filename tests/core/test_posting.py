"""A message is sent to its address, within a time, and nowhere else."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest
from webhook_receiver import Receiver, running_receiver

from agenttool_otel.values.posting import post

BODY = b'{"a": 1}'


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running_receiver() as running:
        yield running


def answering(listening: socket.socket, head: bytes, ended: threading.Event) -> None:
    """Answer with a head, and then a byte at a time."""
    connection, _ = listening.accept()
    with connection:
        connection.recv(100_000)
        try:
            connection.sendall(head)
            while not ended.wait(0.02):
                connection.sendall(b"x")
        except OSError:
            pass  # the other end has had enough


@pytest.fixture(params=[b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\n\r\n", b""])
def dripping(request: pytest.FixtureRequest) -> Iterator[tuple[str, bytes]]:
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answering, args=(listening, request.param, ended))
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/", request.param
        ended.set()
        thread.join(10)


def test_the_status_is_returned(receiver: Receiver) -> None:
    receiver.statuses = [202, 500]
    statuses = [post(receiver.url, BODY, {"X-Key": "k"}, seconds=5) for _ in range(2)]
    assert statuses == [202, 500]
    assert receiver.received[0].body == BODY
    assert receiver.received[0].headers["x-key"] == "k"


def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    receiver.statuses = [307]
    assert post(receiver.url, BODY, {}, seconds=5) == 307
    assert len(receiver.received) == 1


def test_an_answer_that_drips_has_its_time(dripping: tuple[str, bytes]) -> None:
    url, head = dripping
    began = time.monotonic()
    if head.endswith(b"\r\n\r\n"):
        # its head is complete, and its body is not read
        assert post(url, BODY, {}, seconds=0.3) == 200
    else:
        with pytest.raises(TimeoutError):
            post(url, BODY, {}, seconds=0.3)
    assert time.monotonic() - began < 5


def test_what_goes_to_this_machine_has_no_proxy(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with running_receiver() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        assert post(receiver.url, BODY, {}, seconds=5) == 200
        assert post("http://far.example/", BODY, {}, seconds=5) == 200
        assert [received.path for received in proxy.received] == ["http://far.example/"]
    assert len(receiver.received) == 1
