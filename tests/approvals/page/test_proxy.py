"""Several people behind a reverse proxy: its header is believed of the proxy, and of nobody else."""

from __future__ import annotations

import http.client
from collections.abc import Iterator

import pytest
from approval_helpers import ARGS, a_request, yes
from page_client import Client
from starlette.requests import Request

from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.approvals.web.proxied import ProxyIdentity
from agenttool_otel.approvals.web.server import ApprovalsServer
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.names import ApprovalStatus as Status

SECRET = "proxy-secret-" + "x" * 20
ADA = {
    "X-Forwarded-User": "user:ada",
    "X-Forwarded-Groups": "operator, reader",
    "X-Agenttool-Proxy-Secret": SECRET,
}


@pytest.fixture
def server(store: ApprovalStore) -> Iterator[ApprovalsServer]:
    proxy = ProxyIdentity("X-Forwarded-User", "X-Forwarded-Groups", secret=SECRET)
    with ApprovalsServer(store, answered_by="user:server", roles=("admin",), proxy=proxy) as server:
        yield server


@pytest.fixture
def client(server: ApprovalsServer) -> Client:
    return Client(server)


def wire(text: str) -> str:
    """Return a header that http.client sends as the UTF-8 of a text."""
    return text.encode().decode("latin-1")


def token(client: Client, name: str, request_id: str) -> str:
    return client.server.page.sessions.form_token(f"proxy {name}", f"answer {request_id}")


def approve(client: Client, request_id: str, name: str, headers: dict[str, str]) -> int:
    form = {"csrf": token(client, name, request_id)}
    return client("POST", f"/requests/{request_id}/approve", form, **headers)[0]


def test_each_person_answers_in_their_own_name(client: Client, store: ApprovalStore) -> None:
    for name in ("user:ada", "user:bob"):
        asked = store.create(a_request(session_id=name), ARGS)
        headers = {**ADA, "X-Forwarded-User": name}
        assert f"Answering as <strong>{name}</strong>" in client("GET", "/", **headers)[2]
        assert approve(client, asked.request_id, name, headers) == 303
        answer = store.stored_call(asked.request_id).answer
        assert answer is not None
        assert (answer.answered_by, answer.roles) == (name, ("operator", "reader"))


@pytest.mark.parametrize(
    "changes",
    [
        {"X-Agenttool-Proxy-Secret": None},
        {"X-Agenttool-Proxy-Secret": ""},
        {"X-Agenttool-Proxy-Secret": SECRET[:-1]},
        {"X-Agenttool-Proxy-Secret": SECRET + "x"},
        {"X-Forwarded-User": None},
        {"X-Forwarded-User": " "},
        {"X-Forwarded-User": "user:eve, user:ada"},
        {"X-Forwarded-User": wire("user:ada\u00ad")},
        {"X-Forwarded-User": "user:zo\xeb"},
        {"X-Forwarded-Groups": "operator, pr\xfcfer"},
        {"X-Forwarded-Groups": wire("operator\u200b")},
        {"X-Forwarded-User": "x" * 201},
    ],
)
def test_what_the_proxy_did_not_state_is_refused(
    client: Client, store: ApprovalStore, changes: dict[str, str | None]
) -> None:
    asked = store.create(a_request(), ARGS)
    headers = {name: value for name, value in {**ADA, **changes}.items() if value is not None}
    for path in ("/", f"/requests/{asked.request_id}", "/events", "/login", "/static/style.css"):
        assert client("GET", path, **headers)[0] == 403
    assert approve(client, asked.request_id, "user:ada", headers) == 403
    assert store.get(asked.request_id).status is Status.PENDING


@pytest.mark.parametrize("name", ["user:zoë", "user:à", "user:Дмитрий", "user:李"])
def test_a_name_beyond_ascii_is_read_as_utf_8(
    client: Client, store: ApprovalStore, name: str
) -> None:
    headers = {
        **ADA,
        "X-Forwarded-User": wire(name),
        "X-Forwarded-Groups": wire("Prüfer, operator"),
    }
    own = store.create(a_request(actor_id=name), ARGS)
    assert approve(client, own.request_id, name, headers) == 409
    asked = store.create(a_request(approver_roles=["Prüfer"]), ARGS)
    assert approve(client, asked.request_id, name, headers) == 303
    assert store.get(asked.request_id).answered_by == name


def test_one_person_in_two_ways_counts_once(client: Client, store: ApprovalStore) -> None:
    asked = store.create(a_request(approvals_needed=2), ARGS)
    store.answer(asked.request_id, yes(answered_by="user:zoë"))
    decomposed = "user:zoe\u0308"
    for name in ("user:zoë", decomposed):
        headers = {**ADA, "X-Forwarded-User": wire(name)}
        assert approve(client, asked.request_id, name, headers) == 409
    assert store.get(asked.request_id).status is Status.PENDING


def test_two_headers_of_one_name_are_refused(server: ApprovalsServer) -> None:
    for twice in ADA:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.putrequest("GET", "/")
        for name, value in ADA.items():
            connection.putheader(name, value)
        connection.putheader(twice, ADA[twice])
        connection.endheaders()
        refused = connection.getresponse()
        body = refused.read()
        connection.close()
        # two headers of roles are no roles
        allowed = 200 if twice == "X-Forwarded-Groups" else 403
        assert (refused.status, b"user:ada" in body) == (allowed, allowed == 200)


def test_without_the_roles_header_a_person_has_no_role(
    client: Client, store: ApprovalStore
) -> None:
    asked = store.create(a_request(), ARGS)
    headers = {**ADA}
    del headers["X-Forwarded-Groups"]
    assert approve(client, asked.request_id, "user:ada", headers) == 409


def test_the_form_of_one_person_is_not_anothers(client: Client, store: ApprovalStore) -> None:
    asked = store.create(a_request(), ARGS)
    assert approve(client, asked.request_id, "user:bob", ADA) == 403


def test_the_token_signs_nobody_in_behind_a_proxy(client: Client) -> None:
    status, headers, _ = client("POST", "/login", {"token": client.server.token})
    assert (status, "set-cookie" in headers) == (403, False)
    assert client("POST", "/login", {"token": client.server.token}, **ADA)[0] == 403


def test_the_requesting_actor_is_no_answerer_there(client: Client, store: ApprovalStore) -> None:
    asked = store.create(a_request(actor_id="user:ada"), ARGS)
    assert approve(client, asked.request_id, "user:ada", ADA) == 409


def from_peer(address: str, secret: str = "") -> Request:
    headers = [(b"x-forwarded-user", b"user:ada")]
    if secret:
        headers.append((b"x-agenttool-proxy-secret", secret.encode()))
    return Request({"type": "http", "client": (address, 1), "headers": headers})


@pytest.mark.parametrize(
    ("peer", "believed"),
    [("10.0.0.5", True), ("10.0.0.6", False), ("127.0.0.1", False), ("", False), ("x", False)],
)
def test_the_proxys_address_may_stand_for_its_secret(peer: str, believed: bool) -> None:
    proxy = ProxyIdentity("X-Forwarded-User", address="10.0.0.5")
    assert (proxy.person(from_peer(peer), ("operator",)) is not None) is believed


def test_a_socket_for_both_families_states_the_same_address() -> None:
    proxy = ProxyIdentity("X-Forwarded-User", address="10.0.0.5")
    assert proxy.person(from_peer("::ffff:10.0.0.5"), ()) is not None


def test_with_both_the_address_and_the_secret_have_to_fit() -> None:
    proxy = ProxyIdentity("X-Forwarded-User", address="127.0.0.1", secret=SECRET)
    assert proxy.person(from_peer("127.0.0.1", SECRET), ()) is not None
    assert proxy.person(from_peer("127.0.0.1"), ()) is None
    assert proxy.person(from_peer("127.0.0.2", SECRET), ()) is None


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"secret": "short"},
        {"address": "127.0.0.1"},
        {"address": "::1"},
        {"address": "::ffff:127.0.0.1"},
        {"address": "0.0.0.0"},
        {"address": "::", "secret": SECRET},
        {"address": "::ffff:0.0.0.0"},
        {"address": "proxy.example"},
        {"address": "10.0.0.0/8"},
        {"secret": SECRET, "header": ""},
        {"secret": SECRET, "roles_header": "X Groups"},
    ],
)
def test_settings_that_would_believe_anybody_are_refused(settings: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError):
        ProxyIdentity(**{"header": "X-Forwarded-User", **settings})


def test_the_secret_is_in_no_text_of_the_settings() -> None:
    assert SECRET not in repr(ProxyIdentity("X-Forwarded-User", secret=SECRET))
