"""What keeps other programs and web sites out of the approvals page, over real HTTP."""

from __future__ import annotations

import http.client
import socket
import time
from typing import Any
from urllib.parse import urlencode

import pytest
from approval_helpers import ARGS, a_request, yes
from page_client import FORM, Client

from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.approvals.web.server import ApprovalsServer
from agenttool_otel.approvals.web.sessions import Sessions
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.names import ApprovalStatus as Status


@pytest.fixture
def client(server: ApprovalsServer) -> Client:
    return Client(server)


@pytest.fixture
def signed_in(client: Client) -> Client:
    client.sign_in()
    return client


def test_nothing_is_shown_or_answered_without_a_session(
    client: Client, store: ApprovalStore
) -> None:
    request = store.create(a_request(), ARGS)
    for path in ("/", f"/requests/{request.request_id}", "/nowhere"):
        status, headers, body = client("GET", path)
        assert (status, headers["location"], body) == (303, "/login", "")
    assert client("GET", "/events")[0] == 401
    for cookie in (
        "",
        f"{client.server.page.cookie}=guess",
        f"{client.server.page.cookie}={client.server.token}",
        "a=b; =",
    ):
        client.cookie = cookie
        assert client("POST", f"/requests/{request.request_id}/approve", {"csrf": "x"})[0] == 401
    assert store.get(request.request_id).status is Status.PENDING


@pytest.mark.parametrize("token", ["", "wrong", "x" * 5000, "\ud800", "é"])
def test_a_wrong_token_gives_no_session(client: Client, token: str) -> None:
    body = urlencode({"token": token.encode("utf-8", "surrogatepass")}).encode()
    status, headers, _ = client("POST", "/login", body=body, **FORM)
    assert status in {400, 403}
    assert "set-cookie" not in headers


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(client: Client) -> None:
    _, headers, _ = client("POST", "/login", {"token": client.server.token})
    for part in ("HttpOnly", "SameSite=Strict", "Path=/"):
        assert part in headers["set-cookie"]
    assert client.server.token not in headers["set-cookie"]


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost.evil.example:{port}",
        "127.0.0.1:{port}.evil",
        "",
    ],
)
def test_another_host_name_is_refused(signed_in: Client, host: str) -> None:
    status, _, body = signed_in("GET", "/", Host=host.format(port=signed_in.server.port))
    assert status == 421
    assert "Pending" not in body


def test_two_host_headers_are_refused(server: ApprovalsServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as raw:
        good = f"Host: 127.0.0.1:{server.port}\r\n"
        raw.sendall(f"GET /login HTTP/1.1\r\n{good}Host: evil.example\r\n\r\n".encode())
        assert raw.recv(1000).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "none"},
    ],
)
def test_a_form_from_another_origin_is_refused(
    signed_in: Client, store: ApprovalStore, headers: dict[str, str]
) -> None:
    request = store.create(a_request(), ARGS)
    form = {"csrf": signed_in.csrf(request.request_id)}
    assert signed_in("POST", f"/requests/{request.request_id}/approve", form, **headers)[0] == 403
    assert store.get(request.request_id).status is Status.PENDING


def test_a_form_needs_the_token_of_its_own_session_and_request(
    signed_in: Client, store: ApprovalStore
) -> None:
    request, other = (store.create(a_request(), ARGS) for _ in range(2))
    stranger = Client(signed_in.server)
    stranger.sign_in()
    tokens = ["", "x", signed_in.csrf(other.request_id), stranger.csrf(request.request_id), "é"]
    for token in tokens:
        assert (
            signed_in("POST", f"/requests/{request.request_id}/approve", {"csrf": token})[0] == 403
        )
    assert signed_in("POST", f"/requests/{request.request_id}/approve", {})[0] == 403
    assert signed_in("GET", f"/requests/{request.request_id}/approve")[0] == 405
    assert store.get(request.request_id).status is Status.PENDING


def test_an_answer_is_recorded_with_the_pages_identity_and_roles(
    signed_in: Client, store: ApprovalStore
) -> None:
    request = store.create(a_request(), ARGS)
    form = {
        "csrf": signed_in.csrf(request.request_id),
        "answered_by": "user:root",
        "roles": "admin",
        "remember": "",
    }
    status, headers, _ = signed_in("POST", f"/requests/{request.request_id}/approve", form)
    assert (status, headers["location"]) == (303, f"/requests/{request.request_id}?done=approved")
    call = store.stored_call(request.request_id)
    assert call.answer is not None
    assert (call.answer.answered_by, call.answer.roles) == ("user:ada", ("operator",))


def test_a_hidden_character_is_spelt_out_and_marked(
    signed_in: Client, store: ApprovalStore
) -> None:
    hidden = "<i>\u202e"
    request = store.create(
        a_request(arguments_preview={"path": hidden}, tool_name=hidden, message=hidden), ARGS
    )
    for path in ("/", f"/requests/{request.request_id}"):
        _, _, body = signed_in("GET", path)
        assert body.count("&lt;i&gt;<mark>\\u{202e}</mark>") >= 3
        assert "\u202e" not in body
        assert "<i>" not in body


CONFLICTS: list[tuple[str, dict[str, str], str]] = [
    ("approve", {"remember": "3"}, "suggest"),
    ("approve", {"remember": "-1"}, "suggest"),
    ("approve", {"remember": "٣"}, "suggest"),
    ("reject", {"reason": " "}, "Give a reason"),
    ("edit", {"arguments": ""}, "JSON"),
    ("edit", {"arguments": "[1]"}, "JSON object"),
    ("edit", {"arguments": '{"a": NaN}'}, "JSON"),
    ("edit", {}, "JSON"),
    ("edit", {"arguments": '{"path": "notes.txt", "content": "hello"}'}, "Nothing was changed"),
    ("edit", {"arguments": '{"path": 5}'}, "schema"),
]


@pytest.mark.parametrize(("action", "fields", "why"), CONFLICTS)
def test_a_form_that_does_not_fit_is_shown_again_with_the_reason(
    signed_in: Client, store: ApprovalStore, action: str, fields: dict[str, str], why: str
) -> None:
    schema = {"properties": {"path": {"type": "string"}}}
    request = store.create(a_request(input_schema=schema), ARGS)
    form = {"csrf": signed_in.csrf(request.request_id), **fields}
    status, _, body = signed_in("POST", f"/requests/{request.request_id}/{action}", form)
    assert status == 409
    assert why in body
    assert store.get(request.request_id).status is Status.PENDING


def test_a_second_answer_is_told_who_was_first(signed_in: Client, store: ApprovalStore) -> None:
    request = store.create(a_request(), ARGS)
    store.answer(request.request_id, yes(answered_by="user:first"))
    form = {"csrf": signed_in.csrf(request.request_id), "reason": "late"}
    status, _, body = signed_in("POST", f"/requests/{request.request_id}/reject", form)
    assert status == 409
    assert "user:first" in body
    assert store.get(request.request_id).status is Status.APPROVED


def test_every_answer_forbids_scripts_frames_and_caches(
    signed_in: Client, store: ApprovalStore
) -> None:
    request = store.create(a_request(tool_name='"><script>x</script>', message="<b>&amp;"), ARGS)
    for path in ("/", f"/requests/{request.request_id}", "/login", "/static/live.js", "/nowhere"):
        _, headers, body = signed_in("GET", path)
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert "<script>x" not in body
        assert "<b>" not in body
        assert "Python" not in headers["server"]


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"csrf=a&csrf=b", FORM, 400),
        (b"\xff\xfe=1", FORM, 400),
        (b"&".join(b"a%d=1" % n for n in range(50)), FORM, 400),
        (b"{}", {"Content-Type": "application/json"}, 415),
        (b"csrf=a", {"Content-Type": "text/plain"}, 415),
        (b"csrf=a", {**FORM, "Content-Length": "99999999"}, 413),
        (b"csrf=a", {**FORM, "Content-Length": "-1"}, 400),
    ],
)
def test_a_broken_body_is_refused(
    signed_in: Client, body: bytes, headers: dict[str, str], status: int
) -> None:
    sent = {name.replace("-", "_"): value for name, value in headers.items()}
    assert signed_in("POST", "/logout", body=body, **sent)[0] == status


@pytest.mark.parametrize(
    "path",
    [
        "/requests/nope",
        "/requests/%00",
        "/requests/..%2f..%2fetc",
        "/static/../server.py",
        "/requests/",
    ],
)
def test_unknown_addresses_show_nothing(signed_in: Client, path: str) -> None:
    assert signed_in("GET", path)[0] == 404


def test_signing_out_ends_the_session(signed_in: Client) -> None:
    token = signed_in.server.page.sessions.form_token(signed_in.cookie.split("=", 1)[1], "logout")
    assert signed_in("POST", "/logout", {"csrf": "wrong"})[0] == 403
    assert signed_in("POST", "/logout", {"csrf": token})[0] == 303
    assert signed_in("GET", "/")[1]["location"] == "/login"


def test_a_session_ends_by_itself_and_their_number_is_bounded() -> None:
    now = [0.0]
    sessions = Sessions("t" * 30, now=lambda: now[0])
    first = sessions.sign_in("t" * 30)
    assert first is not None
    assert sessions.is_signed_in(first)
    for _ in range(40):
        sessions.sign_in("t" * 30)
    assert not sessions.is_signed_in(first)
    last = sessions.sign_in("t" * 30)
    assert last is not None
    now[0] = 13 * 3600
    assert not sessions.is_signed_in(last)


def test_changes_arrive_as_events(signed_in: Client, store: ApprovalStore) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", signed_in.server.port, timeout=60)
    connection.request("GET", "/events", headers={"Cookie": signed_in.cookie})
    answer = connection.getresponse()
    assert answer.headers["Content-Type"] == "text/event-stream"
    assert answer.readline() == b"event: change\n"
    answer.readline(), answer.readline()
    store.create(a_request(), ARGS)
    started = time.monotonic()
    assert answer.readline() == b"event: change\n"
    assert time.monotonic() - started < 30
    connection.close()


def test_a_silent_connection_does_not_hold_up_others(server: ApprovalsServer) -> None:
    held = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
    assert Client(server)("GET", "/login")[0] == 200
    for one in held:
        one.close()


def test_a_store_that_fails_is_told_and_answers_nothing(
    signed_in: Client, store: ApprovalStore
) -> None:
    with store._db._gate:  # type: ignore[union-attr]  # another thread of this process holds the store
        store._db._timeout = 0.1
        status, _, body = signed_in("GET", "/")
    assert status == 503
    assert "busy" in body


@pytest.mark.parametrize(
    "options",
    [
        {"host": "0.0.0.0"},
        {"host": "192.0.2.1"},
        {"host": "example.com"},
        {"host": "0.0.0.0", "public_url": "http://approvals.example"},
        {"public_url": "https://"},
        {"token": "short"},
    ],
)
def test_an_address_that_others_can_reach_needs_a_tls_proxy(
    store: ApprovalStore, options: dict[str, Any]
) -> None:
    with pytest.raises(ConfigurationError):
        ApprovalsServer(store, **options)


def test_behind_a_tls_proxy_the_cookie_is_secure(store: ApprovalStore) -> None:
    with ApprovalsServer(store, public_url="https://approvals.example") as server:
        client = Client(server)
        _, headers, _ = client("POST", "/login", {"token": server.token}, Host="approvals.example")
        assert headers["set-cookie"].startswith("__Host-agenttool=")
        assert "; Secure" in headers["set-cookie"]
        assert server.sign_in_url.startswith("https://approvals.example/login#token=")


def test_what_follows_a_rejection_can_not_undo_it(store: ApprovalStore) -> None:
    def fails(request_id: str) -> None:
        raise RuntimeError("secret")

    asked = store.create(a_request(), ARGS)
    with ApprovalsServer(store, roles=("operator",), on_rejected=fails) as server:
        client = Client(server)
        client.sign_in()
        form = {"csrf": client.csrf(asked.request_id), "reason": "no"}
        status, headers, _ = client("POST", f"/requests/{asked.request_id}/reject", form)
    assert (status, headers["location"].endswith("done=rejected")) == (303, True)
    assert store.get(asked.request_id).status is Status.REJECTED
