"""What one client can cost the approvals page: hidden requests, slow clients, many connections,
much to read.
"""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

import pytest
from approval_helpers import ARGS, a_request

from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.approvals.web import app, connections
from agenttool_otel.approvals.web.server import ApprovalsServer

FORM_TYPE = "Content-Type: application/x-www-form-urlencoded\r\n"


@pytest.fixture
def server(server: ApprovalsServer) -> ApprovalsServer:
    fetch(server)  # it runs
    return server


def fetch(server: ApprovalsServer, path: str = "/login", cookie: str = "") -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("GET", path, headers={"Cookie": cookie} if cookie else {})
    status = connection.getresponse().status
    connection.close()
    return status


def sign_in(server: ApprovalsServer) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    connection.request("POST", "/login", urlencode({"token": server.token}), headers)
    return connection.getresponse().headers["set-cookie"].split(";")[0]


def connect(server: ApprovalsServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=60)


def statuses(server: ApprovalsServer, data: bytes) -> list[str]:
    """Send bytes and return the status of every answer until the page closes the connection."""
    received = b""
    with connect(server) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(data)
        while more := connection.recv(65536):
            received += more
    return re.findall(r"HTTP/1\.1 (\d+)", received.decode("latin-1"))


def is_cut(connection: socket.socket, seconds: float) -> bool:
    """Tell whether the page closes a connection within a time."""
    connection.settimeout(seconds)
    try:
        while connection.recv(65536):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


HIDDEN = "GET /login HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"
BODIES = {
    "GET with a length": ("GET /login", "Content-Length: {length}\r\n", "{hidden}", "200"),
    "GET with chunks": ("GET /login", "Transfer-Encoding: chunked\r\n", "0\r\n\r\n{hidden}", "200"),
    "GET of nothing there": ("GET /nowhere", "Content-Length: {length}\r\n", "{hidden}", "303"),
    "form of no session": (
        "POST /logout",
        FORM_TYPE + "Content-Length: {length}\r\n",
        "{hidden}",
        "401",
    ),
    "form of another type": ("POST /login", "Content-Length: {length}\r\n", "{hidden}", "415"),
    "form with chunks": (
        "POST /login",
        FORM_TYPE + "Transfer-Encoding: chunked\r\n",
        "0\r\n\r\n{hidden}",
        "415",
    ),
    "form of another site": (
        "POST /login",
        "Origin: http://x\r\nContent-Length: {length}\r\n",
        "{hidden}",
        "403",
    ),
    "form that is too large": (
        "POST /login",
        FORM_TYPE + "Content-Length: 9999999\r\n",
        "{hidden}",
        "413",
    ),
    "unknown method": ("PUT /login", "Content-Length: {length}\r\n", "{hidden}", "405"),
    "foreign host": (
        "GET /login",
        "Host: evil.example\r\nContent-Length: {length}\r\n",
        "{hidden}",
        "421",
    ),
    "nothing but another request": ("GET /login", "", "{hidden}", "200"),
}


@pytest.mark.parametrize("case", BODIES)
def test_what_follows_a_request_is_not_another_one(server: ApprovalsServer, case: str) -> None:
    line, headers, body, status = BODIES[case]
    hidden = HIDDEN.format(port=server.port)
    host = "" if "Host:" in headers else f"Host: 127.0.0.1:{server.port}\r\n"
    request = f"{line} HTTP/1.1\r\n{host}{headers.format(length=len(hidden))}\r\n{body.format(hidden=hidden)}"
    assert statuses(server, request.encode()) == [status]


def test_a_body_of_two_lengths_is_refused(server: ApprovalsServer) -> None:
    lengths = "Content-Length: 0\r\nContent-Length: 40\r\n"
    request = f"GET /login HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n{lengths}\r\n" + "x" * 40
    assert statuses(server, request.encode()) == ["400"]


def test_three_hundred_slow_clients_leave_it_answering(server: ApprovalsServer) -> None:
    threads = threading.active_count()
    slow = [connect(server) for _ in range(300)]
    dripping = True

    def drip() -> None:
        while dripping:
            for one in slow:
                with contextlib.suppress(OSError):
                    one.sendall(b"x")
            time.sleep(0.05)

    for one in slow:
        with contextlib.suppress(OSError):
            one.sendall(b"GET / HTTP/1.1\r\nHost: x")
    dripper = threading.Thread(target=drip)
    dripper.start()
    cookie = sign_in(server)
    took = []
    for _ in range(5):
        started = time.monotonic()
        assert fetch(server, "/", cookie) == 200
        took.append(time.monotonic() - started)
    held = threading.active_count() - threads
    dripping = False
    dripper.join()
    for one in slow:
        one.close()
    assert min(took) <= 0.5
    assert held <= app.MAX_THREADS + 1  # and the one that drips
    assert len(server._uvicorn.server_state.connections) <= connections.MAX_CONNECTIONS


def test_many_requests_at_once_share_few_threads(server: ApprovalsServer) -> None:
    cookie = sign_in(server)
    before = {thread.ident for thread in threading.enumerate()}
    with ThreadPoolExecutor(30, thread_name_prefix="client") as clients:
        assert set(clients.map(lambda _: fetch(server, "/", cookie), range(120))) == {200}
    new = [
        one
        for one in threading.enumerate()
        if one.ident not in before and not one.name.startswith("client")
    ]
    assert len(new) <= app.MAX_THREADS


@pytest.mark.parametrize(
    "start",
    [
        "",
        "GET /login HTTP/1.1\r\n",
        "GET /login HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX: ",
        "POST /login HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        + FORM_TYPE
        + "Content-Length: 9000\r\n\r\ntoken=",
    ],
    ids=["nothing", "a line", "headers", "a body"],
)
def test_a_request_that_drips_is_cut(
    server: ApprovalsServer, monkeypatch: pytest.MonkeyPatch, start: str
) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.5)
    with connect(server) as connection:
        started = time.monotonic()
        connection.sendall(start.format(port=server.port).encode())
        while time.monotonic() - started < 60 and not is_cut(connection, 0.1):
            with contextlib.suppress(ConnectionError):
                connection.sendall(b"x" if start else b"")
        assert 0.4 < time.monotonic() - started < 30


def test_an_open_stream_ends_with_its_connection(
    server: ApprovalsServer, store: ApprovalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    cookie = sign_in(server)
    request = f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nCookie: {cookie}\r\n\r\n".encode()
    for module, name in ((app, "STREAM_SECONDS"), (connections, "CONNECTION_SECONDS")):
        with monkeypatch.context() as patch, connect(server) as connection:
            patch.setattr(module, name, 0.5)
            connection.sendall(request)
            assert not is_cut(connection, 0.2)
            assert is_cut(connection, 5)


def test_an_unfinished_request_gives_way_and_a_stream_stays(
    server: ApprovalsServer, store: ApprovalStore
) -> None:
    cookie = sign_in(server)
    stream = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    stream.request("GET", "/events", headers={"Cookie": cookie})
    answer = stream.getresponse()
    assert answer.readline() == b"event: change\n"
    first = connect(server)
    others = [connect(server) for _ in range(connections.MAX_CONNECTIONS)]
    assert is_cut(first, 5)
    assert not is_cut(others[-1], 0.2)
    answer.readline(), answer.readline()
    store.create(a_request(), ARGS)
    assert answer.readline() == b"event: change\n"
    for one in (stream, *others):
        one.close()


def test_the_streams_of_all_clients_are_bounded(server: ApprovalsServer) -> None:
    cookie = sign_in(server)
    streams = []
    for _ in range(app.MAX_STREAMS):
        stream = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        stream.request("GET", "/events", headers={"Cookie": cookie})
        answer = stream.getresponse()
        answer.readline()
        streams.append((stream, answer))
    assert fetch(server, "/events", cookie) == 503
    for stream, answer in streams:
        answer.close()
        stream.close()
    deadline = time.monotonic() + 5
    while (status := fetch(server, "/events", cookie)) == 503 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert status == 200


def test_headers_without_end_are_refused(server: ApprovalsServer) -> None:
    start = f"GET /login HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nX: ".encode()
    with connect(server) as connection:
        sent = 0
        with contextlib.suppress(ConnectionError):
            connection.sendall(start)
            while sent < 10_000_000:
                connection.sendall(b"x" * 10_000)
                sent += 10_000
        assert sent < 10_000_000
        assert is_cut(connection, 5)


def test_a_login_form_has_to_be_small(server: ApprovalsServer) -> None:
    length = app.MAX_LOGIN_BYTES + 1
    head = f"POST /login HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n{FORM_TYPE}Content-Length: {length}\r\n\r\n"
    assert statuses(server, head.encode()) == ["413"]


@pytest.mark.parametrize(("length", "status"), [(500_000, b"413 "), (-1, b"400 ")])
def test_an_answer_arrives_although_the_page_reads_no_more(
    server: ApprovalsServer, monkeypatch: pytest.MonkeyPatch, length: int, status: bytes
) -> None:
    monkeypatch.setattr(connections, "LINGER_SECONDS", 30.0)  # a busy machine is slow
    head = f"POST /login HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n{FORM_TYPE}Content-Length: {length}\r\n\r\n"
    with connect(server) as connection:
        connection.sendall(head.encode() + b"a" * 500_000)
        answer = b""
        while more := connection.recv(65536):  # a reset raises here
            answer += more
    assert answer.startswith(b"HTTP/1.1 " + status)


def test_what_follows_an_answer_is_read_for_a_bounded_time(
    server: ApprovalsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "LINGER_SECONDS", 0.1)
    with connect(server) as connection:
        connection.sendall(b"GET /login HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % server.port)
        while connection.recv(65536):
            pass
        deadline = time.monotonic() + 60
        with contextlib.suppress(ConnectionError):
            while time.monotonic() < deadline:
                connection.sendall(b"x")
                time.sleep(0.1)
        assert time.monotonic() < deadline


def test_a_client_that_is_gone_is_no_failure_of_the_page(
    server: ApprovalsServer, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(50):
        with connect(server) as connection:
            connection.sendall(b"GET /login HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % server.port)
            # close with a reset
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    assert fetch(server) == 200
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_a_slow_reader_gets_the_whole_answer(
    store: ApprovalStore, server: ApprovalsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "LINGER_SECONDS", 0.1)
    for number in range(50):
        store.create(a_request(session_id=f"s-{number}"), ARGS)
    # what isn't read stays with the page
    server._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    cookie = sign_in(server)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", server.port))
        head = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nCookie: {cookie}\r\n\r\n"
        connection.sendall(head.encode())
        time.sleep(1)
        answer = b""
        while more := connection.recv(65536):
            answer += more
    length = re.search(rb"content-length: (\d+)", answer, re.IGNORECASE)
    assert length is not None
    assert len(answer.partition(b"\r\n\r\n")[2]) == int(length[1]) > 10_000
