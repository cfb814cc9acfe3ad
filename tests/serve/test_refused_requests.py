"""Who may not ask, and what is too much: other users, browsers, wrong tokens, large and slow
requests.
"""

from __future__ import annotations

import socket
import stat
import struct
import sys
from pathlib import Path
from typing import Any

import pytest
from decision_points import Served, request, served

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.govern.governor import Governor
from agenttool_otel.serve import server, sockets
from agenttool_otel.serve.limits import Limits
from agenttool_otel.serve.server import DecisionServer
from agenttool_otel.serve.tools import declare_tools
from agenttool_otel.testing import StaticEngine, capture

EVALUATION = "/access/v1/evaluation"


def body() -> dict[str, Any]:
    return request("read_file", path="notes.txt")


def test_the_token_opens_the_port(point: Served) -> None:
    assert point.ask_port("POST", EVALUATION, body()).json["decision"] is True


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer x", "Basic eDp5", "Bearer " + "a" * 43], ids=str
)
def test_a_wrong_token_is_refused(point: Served, header: str) -> None:
    answer = point.ask_port("POST", EVALUATION, body(), Authorization=header)
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "localhost:1", ""])
def test_another_host_is_refused(point: Served, host: str) -> None:
    assert point.ask_port("POST", EVALUATION, body(), Host=host).status in {400, 403}


@pytest.mark.parametrize("name", ["Origin", "Sec-Fetch-Site"])
def test_a_page_of_a_browser_is_refused(point: Served, name: str) -> None:
    headers = {name: "http://127.0.0.1" if name == "Origin" else "same-origin"}
    answer = point.ask_port("POST", EVALUATION, body(), **headers)
    assert answer.status == 403
    assert "access-control-allow-origin" not in answer.headers


def test_a_preflight_of_a_browser_is_refused(point: Served) -> None:
    headers = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    assert point.ask_port("OPTIONS", EVALUATION, None, **headers).status == 403


def test_a_form_is_refused(point: Served) -> None:
    kind = "application/x-www-form-urlencoded"
    assert point.ask("POST", "/v1/invocations", b"a=1", Content_Type=kind).status == 415


def test_health_needs_no_token(point: Served) -> None:
    assert point.ask_port("GET", "/healthz", Authorization="").json["status"] == "ok"
    assert point.ask_port("GET", "/readyz", Authorization="").json["tools"] == 2


def test_a_large_body_is_refused_unread(point: Served) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        connection.connect(point.socket_path)
        head = (
            f"POST {EVALUATION} HTTP/1.1\r\nHost: localhost\r\n"
            "Content-Type: application/json\r\nContent-Length: 100000000\r\n\r\n"
        )
        connection.sendall(head.encode())
        assert b" 413 " in connection.recv(65536)


def test_a_body_of_no_stated_length_is_refused(point: Served) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        connection.connect(point.socket_path)
        head = (
            f"POST {EVALUATION} HTTP/1.1\r\nHost: localhost\r\n"
            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        connection.sendall(head.encode())
        assert b" 413 " in connection.recv(65536)


def test_another_method_is_a_problem(point: Served) -> None:
    answer = point.ask("GET", EVALUATION)
    assert answer.json["type"] == "urn:agenttool:problem:unsupported"


def test_another_path_is_a_problem(point: Served) -> None:
    assert point.ask("GET", "/nowhere").json["type"] == "urn:agenttool:problem:not-found"


def test_another_user_is_dropped(point: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "peer_uid", lambda connection: 12345)
    with pytest.raises(ConnectionError):
        point.ask("GET", "/healthz")


def test_the_peer_of_a_socket_is_known(point: Served) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(point.socket_path)
        assert sockets.peer_uid(connection) == Path(point.socket_path).stat().st_uid


class MacConnection:
    """What getsockopt gives of a connection on macOS: struct xucred of sys/ucred.h."""

    def __init__(self, uid: int, *, version: int = 0, length: int = 76) -> None:
        groups = [20, 12, 61, *[0] * 13]
        self._found = struct.pack("IIh2x16I", version, uid, 3, *groups)[:length]

    def getsockopt(self, level: int, option: int, length: int) -> bytes:
        assert (level, option) == (0, 1)  # SOL_LOCAL, LOCAL_PEERCRED
        return self._found[:length]


def test_the_peer_is_known_by_the_form_of_macos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "SO_PEERCRED")
    connection: Any = MacConnection(501)
    assert sockets.peer_uid(connection) == 501


@pytest.mark.parametrize(
    "connection",
    [MacConnection(0, length=0), MacConnection(0, length=8), MacConnection(0, version=1)],
)
def test_a_peer_in_another_form_is_nobody(connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "SO_PEERCRED")
    with pytest.raises(OSError, match="the system shows"):
        sockets.peer_uid(connection)


def test_a_system_that_shows_no_peers_has_no_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(socket, "SO_PEERCRED")
    monkeypatch.setattr(sys, "platform", "sunos5")
    with pytest.raises(ConfigurationError, match="use the port alone"):
        sockets.SocketFile(tmp_path / "serve.sock")


def test_the_socket_and_the_token_are_of_this_user_alone(point: Served) -> None:
    assert stat.S_IMODE(Path(point.socket_path).stat().st_mode) == 0o600
    assert stat.S_IMODE(point.token_file.stat().st_mode) == 0o600


def test_requests_at_once_are_bounded(tmp_path: Path) -> None:
    with (
        capture(policy=StaticEngine("allow")) as captured,
        served(captured.governor, tmp_path, limits=Limits(requests=0)) as point,
    ):
        answer = point.ask("POST", EVALUATION, body())
    assert answer.status == 503
    assert answer.headers["retry-after"] == "1"


# --- where it does not listen ---------------------------------------------------------------------


@pytest.fixture
def governor() -> Governor:
    return Governor(StaticEngine("allow"))


def test_a_folder_of_others_is_refused(governor: Governor, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with pytest.raises(ConfigurationError, match="chmod 700"):
        DecisionServer(governor, [], socket_path=tmp_path / "s.sock")


def test_one_process_serves_a_socket(point: Served, governor: Governor) -> None:
    with pytest.raises(ConfigurationError, match="another process"):
        DecisionServer(governor, [], socket_path=point.socket_path)


def test_an_address_of_others_is_refused(governor: Governor, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="this machine only"):
        DecisionServer(governor, [], port=0, host="0.0.0.0", token_file=tmp_path / "t")


def test_a_port_without_a_token_is_refused(governor: Governor) -> None:
    with pytest.raises(ConfigurationError, match="token file"):
        DecisionServer(governor, [], port=0)


@pytest.mark.parametrize(
    "url",
    [
        "http://pdp.example",
        "https://",
        "https://pdp.example?a",
        "https://pdp.example#a",
        "https://[",
    ],
)
def test_another_public_url_is_refused(governor: Governor, tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigurationError, match="public URL"):
        DecisionServer(governor, [], socket_path=tmp_path / "s.sock", public_url=url)


@pytest.mark.parametrize(("text", "mode"), [("short", 0o600), ("a" * 40, 0o644)])
def test_a_weak_token_is_refused(tmp_path: Path, text: str, mode: int) -> None:
    token = tmp_path / "token"
    token.write_text(text)
    token.chmod(mode)
    with pytest.raises(ConfigurationError):
        sockets.read_token(token)


@pytest.mark.parametrize("text", ["{}", '{"read_*": {}}', '{"read": 1}', "["])
def test_a_file_that_declares_no_tool_is_refused(
    governor: Governor, tmp_path: Path, text: str
) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(text)
    with pytest.raises(ConfigurationError):
        declare_tools(str(tools), governor)


def test_a_stopped_one_leaves_no_socket(tmp_path: Path) -> None:
    # its tools take the place of others of the same Governor
    with (
        capture(policy=StaticEngine("allow")) as captured,
        served(captured.governor, tmp_path, port=None) as point,
    ):
        assert Path(point.socket_path).exists()
    assert not Path(point.socket_path).exists()
