"""Addresses in every spelling, clients that read differently, and connections that go where the
check went.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import http.server
import ipaddress
import json
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import ada_url
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenttool_otel.facts import AddressChanged, connect_pinned
from agenttool_otel.facts.types import FactEnvironment
from agenttool_otel.names import AddressClass
from agenttool_otel.readers.types import UrlFact
from agenttool_otel.readers.urls import url_fact
from agenttool_otel.readers.urls.addresses import address_class, hosts_data

ENV = FactEnvironment(allowed_hosts=("docs.python.org", ".example.org"))
HERE = frozenset({"loopback"})


def fact_of(value: Any, env: FactEnvironment = ENV) -> UrlFact:
    return url_fact(value, argument="/url", surroundings=env)


def resolving(addresses: dict[str, list[str]], **kwargs: Any) -> FactEnvironment:
    def resolver(host: str, port: int) -> Sequence[str]:
        return addresses[host]

    return FactEnvironment(resolve_dns=True, resolver=resolver, **kwargs)


# --- spellings ------------------------------------------------------------------------------------


def spellings(address: ipaddress.IPv4Address) -> list[str]:
    number = int(address)
    a, b, c, d = address.packed
    return [
        str(address),
        str(number),
        hex(number),
        f"0{number:o}",
        f"{a}.{number & 0xFFFFFF}",
        f"{a}.{b}.{number & 0xFFFF}",
        f"0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}",
        f"0{a:o}.0{b:o}.0{c:o}.0{d:o}",
        f"0{a:o}.0x{b:x}.{c}.{d}",
        f"{address}.",
        str(address).translate({ord(str(digit)): 0xFF10 + digit for digit in range(10)}),
        str(address).replace(".", "\u3002"),
        "".join(f"%{ord(letter):02x}" for letter in str(address)),
        f"[::ffff:{address}]",
        f"[::ffff:{a:02x}{b:02x}:{c:02x}{d:02x}]",
        f"[64:ff9b::{address}]",
        f"[2002:{a:02x}{b:02x}:{c:02x}{d:02x}::1]",
        f"[2001:0:{a:02x}{b:02x}:{c:02x}{d:02x}:0:0:0:0]",
        f"[fe80::5efe:{address}]",
        f"{address}.nip.io",
        f"x-{a}-{b}-{c}-{d}.sslip.io",
        f"{number:08x}.nip.io",
    ]


@settings(max_examples=200, deadline=None)
@given(st.ip_addresses(v=4))
def test_no_spelling_of_a_private_address_is_public_or_a_name(
    address: ipaddress.IPv4Address,
) -> None:
    if address_class(address) is AddressClass.PUBLIC:
        return
    for spelling in spellings(address):
        fact = fact_of(f"http://{spelling}/")
        refused = not fact["valid"] or fact["disagreement"]
        assert refused or fact["address_class"] not in {"public", "name"}, spelling


LINK_TOKENS = (
    *("reset_token", "resetToken", "reset-token", "reset_password_token", "password_reset_token"),
    *("recovery_token", "activation_token", "confirmation_token", "confirm_token"),
    *("verification_token", "verify_token", "invite_token", "invitation_token", "magic_token"),
    *("magic_link_token", "login_token", "unlock_token", "one_time_token", "signup_token"),
    *("registration_token", "reset_key", "activation_key"),
)
"""Parameters of the links in mails, whose token is the right to do what the link is for."""


@pytest.mark.parametrize(
    "text", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "0.0.0.0", "192.168.0.1"]
)
def test_the_spellings_that_clients_take_are_the_address(text: str) -> None:
    address = ipaddress.IPv4Address(text)
    wanted = fact_of(f"http://{text}/")["address_class"]
    for spelling in spellings(address)[:9]:
        fact = fact_of(f"http://{spelling}/")
        assert (fact["address"], fact["address_class"]) == (text, wanted), spelling
        # Zeros at the front are base eight for some readers and nothing for others.
        pieces = spelling.split(".")
        zeros = all(map(str.isdecimal, pieces)) and any(
            piece[0] == "0" and len(piece) > 2 for piece in pieces
        )
        assert fact["disagreement"] == zeros, spelling


@settings(max_examples=500)
@given(st.ip_addresses())
def test_public_is_never_what_the_library_calls_not_global(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if not address.is_global:
        mapped = getattr(address, "ipv4_mapped", None)
        inner = mapped if mapped is not None else address
        if not inner.is_global and address not in ipaddress.ip_network("64:ff9b::/96"):
            assert address_class(address) is not AddressClass.PUBLIC


@settings(max_examples=200)
@given(
    st.sampled_from(
        sorted(
            text
            for kind, texts in hosts_data()["networks"].items()
            if kind != "public_v6"
            for text in texts
        )
    ),
    st.data(),
)
def test_no_address_of_a_special_network_is_public(network: str, data: st.DataObject) -> None:
    address = data.draw(st.ip_addresses(network=network))
    assert address_class(address) is not AddressClass.PUBLIC


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("8.8.8.8", "public"),
        ("2606:4700:4700::1111", "public"),
        ("::ffff:8.8.8.8", "public"),
        ("64:ff9b::8.8.8.8", "public"),
        ("64:ff9b::169.254.169.254", "metadata"),
        ("2002:7f00:1::", "loopback"),
        ("2002:808:808::", "reserved"),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "reserved"),
        ("2001:0:0a00:0001:0:0:0:0", "private"),
        ("::7f00:1", "loopback"),
        ("fd00:ec2::254", "metadata"),
        ("100.100.100.200", "metadata"),
        ("100.64.0.1", "private"),
        ("0.1.2.3", "unspecified"),
        ("fec0::1", "private"),
        ("ff02::1", "multicast"),
        ("3fff::1", "reserved"),
        ("5f00::1", "reserved"),
        ("1000::1", "reserved"),
    ],
)
def test_an_address_is_of_its_class(address: str, kind: str) -> None:
    assert address_class(ipaddress.ip_address(address)).value == kind


def test_a_host_of_an_unknown_scheme_is_read_as_an_address_too() -> None:
    fact = fact_of("redis://0x7f000001:6379/0")
    assert (fact["scheme"], fact["port"], fact["address"], fact["address_class"]) == (
        "redis",
        6379,
        "127.0.0.1",
        "loopback",
    )
    assert fact_of("postgres://u@10.0.0.1/db")["address_class"] == "private"
    assert fact_of("redis:x")["port"] is None or not fact_of("redis:x")["host"]


# --- hosts ----------------------------------------------------------------------------------------


def test_an_allowed_host_is_known_exactly_or_below_a_leading_dot() -> None:
    assert fact_of("https://DOCS.python.org./x")["allowed_host"]
    assert fact_of("https://a.b.example.org/")["allowed_host"]
    assert not fact_of("https://example.org/")["allowed_host"]
    assert not fact_of("https://x.docs.python.org/")["allowed_host"]
    assert not fact_of("https://docs.python.org.evil.example/")["allowed_host"]


def test_a_lookalike_names_whom_it_imitates() -> None:
    assert fact_of("https://docs.pyth\u043en.org/")["lookalike"] == "docs.python.org"
    assert fact_of("https://docs.python.org.evil.example/")["lookalike"] == "docs.python.org"
    assert fact_of("https://github.com.login.example.net/")["lookalike"] == "github.com"
    assert (
        fact_of("https://docs.spring.io.artifact-login.top/reference/")["lookalike"] == "spring.io"
    )
    assert fact_of("https://www.paypa1.com/")["lookalike"] == "paypal.com"
    assert fact_of("https://rnicrosoft.com/")["lookalike"] == "microsoft.com"
    assert fact_of("https://\u0455\u0441\u043e\u0440\u0435.io/")["lookalike"] == "scope.io"
    for genuine in (
        "docs.python.org",
        "www.paypal.com",
        "login.microsoft.com",
        "netflix.com",
        "exam.org",
        "docs.spring.io",
    ):
        assert fact_of(f"https://{genuine}/")["lookalike"] is None, genuine


@pytest.mark.parametrize(
    ("host", "imitated"),
    [
        ("docs.pyhton.org", "python.org"),
        ("gihub.com", "github.com"),
        ("docs.kubernnetes.io", "kubernetes.io"),
        ("files.pythonhosted.org.pkg-cache.io", "pythonhosted.org"),
        ("slak.com", None),  # a short name is too near to others
        ("ithub.com", None),
        ("python.com", None),
        ("raw.githubusercontent.co", "githubusercontent.com"),
        ("docs.crate.io", None),
    ],
)
def test_a_slip_of_the_hand_imitates_a_longer_name(host: str, imitated: str | None) -> None:
    assert fact_of(f"https://{host}/")["lookalike"] == imitated


@pytest.mark.parametrize(
    ("url", "relay"),
    [
        ("https://bit.ly/3hQzWm8", True),
        ("https://webhook.site/0d9c7b1e?f=1", True),
        ("https://a1b2.oast.fun/", True),
        ("https://abcd-12.ngrok-free.app/", True),
        ("https://www.google.com/url?q=https://simple-index.xyz/p.sh&sa=D", True),
        ("https://docs.google.com/forms/d/e/1FAIpQLSd8x/formResponse?entry.1=a", True),
        ("https://discord.com/api/v10/webhooks/1/x", True),
        ("https://www.google.com/search?q=url", False),
        ("https://docs.google.com/document/d/1/edit", False),
        ("https://orbit.ly.example.org/", False),
        ("https://rabbit.ly/", False),
        ("https://discord.com/developers/docs/resources/webhook", False),
        ("https://ngrok.com/docs/", False),
        ("https://docs.ntfy.sh/", False),
        ("https://maps.google.com//%75rl?q=https://x.example", True),
        ("https://l.wl.co/l?u=https://x.example", True),
    ],
)
def test_a_shortener_a_tunnel_and_a_collector_pass_on(url: str, relay: bool) -> None:
    assert fact_of(url)["relay"] is relay


@pytest.mark.parametrize(
    ("host", "kind"),
    [
        ("internal-alb-1.eu-central-1.elb.amazonaws.com", "private"),
        ("nexus.clinic.intern", "private"),
        ("alb-1.eu-central-1.elb.amazonaws.com", "name"),
        ("example.technology", "name"),
    ],
)
def test_a_name_of_an_inner_zone_is_private(host: str, kind: str) -> None:
    assert fact_of(f"http://{host}/")["address_class"] == kind


@pytest.mark.parametrize(
    "host", ["tplinkwifi.net", "fritz.box", "nas.fritz.box", "routerlogin.net"]
)
def test_a_name_that_a_router_answers_is_private(host: str) -> None:
    assert fact_of(f"http://{host}/")["address_class"] == "private"


def test_a_host_as_user_information_is_an_imitation() -> None:
    assert fact_of("https://docs.python.org@evil.example/")["lookalike"] == "docs.python.org"
    assert fact_of("https://docs.python.org:443@evil.example/")["lookalike"] == "docs.python.org"
    assert fact_of("https://docs.python.org%2f@93.184.216.34/")["lookalike"] == "docs.python.org"
    assert fact_of("https://user:secret@example.com/")["lookalike"] is None


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        ("k=AKIA" + "Q7ZX3MNB5TRWK2LD", True),
        ("d=%41KIA" + "Q7ZX3MNB5TRWK2LD", True),
        ("note=gh" + "p_" + "a1B2" * 9, True),
        ("d=" + "LS0tLS1CRUdJTi" + "BPUEVOU1NIIFBSSVZBVEUg", True),
        ("X-Amz-Credential=AKIA" + "Q7ZX3MNB5TRWK2LD" + "%2F20240101", False),
        (
            "id=550e8400-e29b-41d4-a716-446655440000&sha=da39a3ee5e6b4b0d3255bfef95601890afd80709",
            False,
        ),
        ("q=how+to+rotate+AKIA+keys", False),
        ("q=Bern&appid=" + "9de243494c0b295c" * 2, True),
        ("appid=440", False),
        ("token=rel-9f2c41d7&TARGET=prod", True),
        ("token=ETH&page_token=CAUQAA12345678", False),
        ("api_key=DEMO_KEY", False),
        ("q=postgres%3A%2F%2Fadmin%3AhXk29fQ%40db.example.com%2Fbilling", True),
        ("q=postgres%253A%252F%252Fadmin%253AhXk29fQ%2540db.example.com", True),
        ("q=how+to+write+postgres%3A%2F%2Fhost%3A5432", False),
        ("u=root%3Ax%3A0%3A0%3Aroot%3A%2Froot%3A%2Fbin%2Fbash", True),
        ("q=what+is+root:x:0:0:root", False),
        ("q=DB_PASSWORD%3Dhunter2hunter2", True),
        ("q=TOKEN%3Dnone+in+bash", False),
        ("k=${AWS_SECRET_ACCESS_KEY}&h=$(hostname)", True),
        ("q=$HOME+in+bash", False),
        ("q=export+$GITHUB_TOKEN+not+set", False),
        ("token=0xdac17f958d2ee523a2206206994597c13d831ec7", False),
        ("token=your-token-here-1", False),
        ("session_id=cs_test_a1b2c3d4e5f6", False),
        ("q=postgresql://user:password@localhost/db", False),
        *((f"{name}=x9", True) for name in LINK_TOKENS),
        *((f"user_{name}=hT7kQ92mzXw0", False) for name in ("id", "name")),
        ("page_token=hT7kQ92mzXw0", False),
        ("password_reset=1", False),
        ("q=http://localhost:3000+user@example.com", False),
        ("q=PRIMARY_KEY=user_id1+MAX_TOKEN=4096tokens", False),
        ("state=eyJ0b2tlbiI6ICJhYmMifQ", False),
    ],
)
def test_a_credential_in_the_query_is_one_by_any_name(query: str, sent: bool) -> None:
    assert fact_of(f"https://example.com/p?{query}")["credentials"] is sent


@pytest.mark.parametrize(
    ("hidden", "sent"),
    [
        ("AWS_SECRET_ACCESS" + "_KEY=wJalrXUtnFEMI", True),
        ('{"password": "hunter2hunter2"}', True),
        ("gh" + "p_" + "a1B2" * 9, True),
        ("xox" + "b-" + "a1B2c3-" * 4, True),
        ("the weather of tomorrow in Lisbon", False),
        ("page=3&sort=name&secretary=none", False),
    ],
)
def test_a_credential_that_is_encoded_is_one(hidden: str, sent: bool) -> None:
    for encode in (base64.b64encode, base64.urlsafe_b64encode, base64.b32encode, base64.b16encode):
        text = encode(hidden.encode()).decode()
        for url in (
            f"https://example.com/p.gif?d={text}",
            f"https://example.com/p/{text.rstrip('=')}",
        ):
            assert fact_of(url)["credentials"] is sent, url


@pytest.mark.parametrize(
    ("rest", "sent"),
    [
        (f"{b'db_password=hunter2'.hex()}.c7k2.example.com/", True),
        (base64.b32encode(b"db_password=hunter2").decode().rstrip("=") + ".example.com/", True),
        ("example.com/callback#access_token=ya29.a0Af" + "8aB3dE" * 2 + "&token_type=Bearer", True),
        ("docs.example.com/oauth#access_token", False),
        (f"{b'weather of tomorrow'.hex()}.example.com/", False),
    ],
)
def test_a_credential_in_the_host_name_or_the_fragment_is_one(rest: str, sent: bool) -> None:
    assert fact_of(f"https://{rest}")["credentials"] is sent


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        (
            "https://x.s3.eu-central-1.amazonaws.com/a.csv?X-Amz-Date=1&X-Amz-Signature=9c1b0f3d7e",
            True,
        ),
        ("https://s3.amazonaws.com/x/a.csv?Signature=9c1b0f3d7e", True),
        ("https://x.blob.core.windows.net/a.zip?sv=2022-11-02&sp=r&sig=k3Fq%2B", True),
        ("https://mainnet.infura.io/v3/" + "0a1b2c3d" * 4, True),
        ("https://x.s3.amazonaws.com/a.csv?list-type=2", False),
        # of a public release
        ("https://objects.githubusercontent.com/a?X-Amz-Signature=9c1b0f3d7e", False),
        ("https://docs.infura.io/v3/api", False),
        ("https://storage.googleapis.com/a/b.csv?GoogleAccessId=x@y.example&Signature=Q2Fm", True),
        ("https://ci.example.com/api?circle-token=" + "9a8b" * 10, True),
        ("https://example.com/?hdr=Basic%20bWlyYTpXbjdrcTJadDl4", True),
        ("https://example.com/a/basic-authentication-2026", False),
        ("https://example.com/list?page_token=CAoQAA9x2", False),
    ],
)
def test_a_signed_link_to_a_bucket_carries_its_credential(url: str, sent: bool) -> None:
    assert fact_of(url)["credentials"] is sent


def test_the_host_is_shown_in_both_forms() -> None:
    fact = fact_of("http://examp\u0142e.com/")
    assert (fact["host"], fact["host_unicode"]) == ("xn--exampe-7db.com", "examp\u0142e.com")


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("log/gh" + "p_" + "a1B2" * 9 + "/done", True),
        ("log/gh%70_" + "a1B2" * 9, True),
        ("bot123456789:" + "A1b2_" * 7 + "/getMe", True),
        ("services/T0A1B2C3D/B0A1B2C3D/" + "aB3d" * 6, True),
        ("api/webhooks/112233445566778899/" + "aB3-" * 17, True),
        ("v1/sk-" + "proj-" + "aB3d" * 9, True),
        ("badge/AWS__SECRET__ACCESS__KEY-" + "wJalrXUt2FEMI%2FK7MDENG%2FbPxR" + "-red", True),
        ("%67lpat%2D" + "8xQz1n" * 3, True),
        ("shp" + "at_" + "a1B2" * 8, True),
        ("docs/api_key/how-to-rotate-them-in-2026", False),
        ("docs/gsk_concepts-of-2026-for-everybody-and-more", False),
        ("news/sk-hynix-announces-memory-of-2026-for-everybody-and-more", False),
        ("services/TRAINING/BUSINESS/introduction-to-this", False),
        ("blob/da39a3ee5e6b4b0d3255bfef95601890afd80709/src/a.py", False),
    ],
)
def test_a_credential_in_the_path_is_one_by_its_shape(path: str, sent: bool) -> None:
    assert fact_of(f"https://example.com/{path}")["credentials"] is sent


@pytest.mark.parametrize("value", [None, 3, b"http://a/", object(), ["http://a/"], {}])
def test_what_is_no_text_is_said_to_be_none(value: object) -> None:
    fact = fact_of(value)
    assert (fact["valid"], fact["rejected"], fact["certain"]) == (False, "not_text", False)


def test_well_known_hosts_are_themselves_no_lookalikes() -> None:
    for host in hosts_data()["well_known"]:
        assert fact_of(f"https://{host}/", FactEnvironment())["lookalike"] is None, host
        assert fact_of(f"https://www.{host}/", FactEnvironment())["lookalike"] is None, host


# --- resolution -----------------------------------------------------------------------------------


def test_resolved_addresses_are_classed_each() -> None:
    fact = fact_of(
        "https://a.example.net/", resolving({"a.example.net": ["8.8.8.8", "127.0.0.1", "junk"]})
    )
    assert [entry["address_class"] for entry in fact["resolved"]] == [
        "public",
        "loopback",
        "unknown",
    ]
    assert fact["certain"]


def test_an_address_resolves_to_itself_without_a_resolver() -> None:
    fact = fact_of("http://0x7f.1/", resolving({}))
    assert fact["resolved"] == [{"address": "127.0.0.1", "address_class": "loopback"}]


@pytest.mark.parametrize("failure", [OSError, KeyError, UnicodeError, RecursionError])
def test_a_resolver_that_fails_makes_the_fact_uncertain(failure: type[Exception]) -> None:
    def resolver(host: str, port: int) -> Sequence[str]:
        raise failure("no")

    fact = fact_of("https://a.example.net/", FactEnvironment(resolve_dns=True, resolver=resolver))
    assert (fact["valid"], fact["certain"], fact["resolved"]) == (True, False, [])


def test_a_resolver_that_hangs_is_left_behind_at_the_deadline() -> None:
    release = threading.Event()

    def resolver(host: str, port: int) -> Sequence[str]:
        release.wait(20)
        return ["8.8.8.8"]

    env = FactEnvironment(resolve_dns=True, resolver=resolver, dns_timeout=0.05)
    try:
        before = time.perf_counter()
        # more than may hang at once: the last ones fail at once instead of starting more threads
        facts = [fact_of("https://a.example.net/", env) for _ in range(20)]
        assert time.perf_counter() - before < 15
        assert not any(fact["certain"] for fact in facts)
        assert sum(thread.name == "agenttool-dns" for thread in threading.enumerate()) <= 16
    finally:
        release.set()
    deadline = time.monotonic() + 5
    while (
        any(thread.name == "agenttool-dns" for thread in threading.enumerate())
        and time.monotonic() < deadline
    ):
        time.sleep(0.01)
    assert fact_of("https://a.example.net/", resolving({"a.example.net": ["8.8.8.8"]}))["certain"]


def test_the_system_s_resolver_is_asked_where_none_is_given() -> None:
    fact = fact_of("http://localhost:80/", FactEnvironment(resolve_dns=True))
    assert {entry["address_class"] for entry in fact["resolved"]} <= {"loopback"}


# --- connections ----------------------------------------------------------------------------------


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *args: object) -> None:
        return


@pytest.fixture(scope="module")
def server() -> Iterator[int]:
    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    yield httpd.server_address[1]
    httpd.shutdown()
    httpd.server_close()
    thread.join(5)


def fetch(fact: UrlFact, path: str) -> http.client.HTTPResponse:
    """A small fetch tool that connects to nothing but what was checked."""
    connection = http.client.HTTPConnection(fact["host"], fact["port"] or 80)
    connection.sock = connect_pinned(fact, timeout=5, classes=HERE)
    connection.request("GET", path)
    return connection.getresponse()


def test_a_fetch_connects_to_the_checked_address_of_a_moved_name(server: int) -> None:
    answers = [["127.0.0.1"], ["203.0.113.1"]]

    def moving(host: str, port: int) -> Sequence[str]:
        return answers.pop(0)

    env = FactEnvironment(resolve_dns=True, resolver=moving)
    fact = fact_of(f"http://site.example.net:{server}/", env)
    response = fetch(fact, "/")
    assert (response.status, response.read()) == (200, b"ok")
    assert len(answers) == 1  # the name was looked up once, and not again to connect


@pytest.mark.parametrize(
    "addresses", [["127.0.0.1"], ["8.8.8.8", "10.0.0.1"], ["8.8.8.8", "junk"], []]
)
def test_an_address_that_may_not_be_connected_to_stops_all(addresses: list[str]) -> None:
    fact = fact_of("http://a.example.net/", resolving({"a.example.net": addresses}))
    with pytest.raises(AddressChanged):
        connect_pinned(fact, timeout=1)


def test_a_fact_without_resolution_pins_nothing() -> None:
    with pytest.raises(AddressChanged):
        connect_pinned(fact_of("https://docs.python.org/"), timeout=1)


# --- any text -------------------------------------------------------------------------------------

NASTY = st.text(
    alphabet=st.sampled_from(
        list("htps:/\\@#?[]%.0127aexml-_~ \t\n\r\x00\u3002\uff0f\u24db\u00ad\u200b\ud800fil|,;&=")
    ),
    max_size=40,
)
URLISH = st.builds(
    lambda scheme, rest: scheme + rest,
    st.sampled_from(
        [
            "http://",
            "https://",
            "HTTP:/",
            "ftp://",
            "file:",
            "//",
            "http:",
            "x:",
            "https://a.example",
        ]
    ),
    NASTY | st.text(max_size=40),
)


@settings(max_examples=500, deadline=None)
@given(st.text(max_size=300) | NASTY | URLISH)
def test_no_text_makes_it_raise_and_every_fact_can_be_encoded(text: str) -> None:
    fact = fact_of(text)
    assert set(fact) == set(UrlFact.__annotations__)
    json.dumps(fact).encode("utf-8")
    assert fact["rejected"] != "internal"
    assert fact["valid"] == (fact["rejected"] is None)
    if fact["certain"]:
        assert fact["valid"]
        assert fact["host"]


@settings(max_examples=500, deadline=None)
@given(st.text(max_size=200) | URLISH)
def test_normalising_twice_changes_nothing(text: str) -> None:
    with contextlib.suppress(ValueError):
        once = str(ada_url.URL(text).href)
        first, again = fact_of(text), fact_of(once)
        if first["valid"] and again["valid"]:
            for key in ("scheme", "host", "port", "address", "address_class", "lookalike", "path"):
                assert first[key] == again[key], key  # type: ignore[literal-required]


@settings(max_examples=300, deadline=None)
@given(URLISH)
def test_where_readers_agree_a_client_goes_to_the_facts_host(text: str) -> None:
    httpx = pytest.importorskip("httpx")
    fact = fact_of(text)
    if fact["certain"] and fact["scheme"] in {"http", "https"}:
        try:
            host = httpx.URL(text).raw_host.decode("ascii").strip("[]").rstrip(".").lower()
        except (httpx.InvalidURL, UnicodeError):
            return  # the client refuses it: no connection, no harm
        if fact["address"] is None:
            assert host == fact["host"]


@pytest.mark.speed
@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "a.",
        "/",
        "@",
        "\\",
        "%",
        "%41",
        "?a=1&",
        "#",
        "[",
        ":",
        "é",
        "\u24db",
        "xn--a",
        "xn--a.",
        "1.",
        "\u0301",
        "\ud800",
        "&token=a",
        "-1-1-1-1",
    ],
)
@pytest.mark.parametrize("prefix", ["", "http://", "http://a/", "http://a/?"])
def test_a_megabyte_of_anything_takes_bounded_time(prefix: str, piece: str) -> None:
    for size in (16_000, 1_000_000):
        text = prefix + (piece * (size // len(piece) + 1))[: size - len(prefix)]
        before = time.thread_time()
        fact_of(text)
        assert time.thread_time() - before < 3


@pytest.mark.parametrize(
    "host", ["\u0142\u00f3d\u017a.pl", "\u00f8re.dk", "g\u0131da.com.tr", "m\u00fcnchen.de"]
)
def test_a_host_in_a_national_alphabet_imitates_nobody(host: str) -> None:
    assert fact_of(f"https://{host}/")["lookalike"] is None


def test_a_national_letter_in_a_known_name_imitates_it() -> None:
    assert fact_of("https://paypa\u0131.com/")["lookalike"] == "paypal.com"


@pytest.mark.parametrize(
    ("text", "host", "kind"),
    [
        ("www.python.org", "www.python.org", "name"),
        ("docs.python.org/3/library?q=1", "docs.python.org", "name"),
        ("example.com:8443/x", "example.com", "name"),
        ("localhost:5000/health", "localhost", "loopback"),
        ("127.0.0.1/x", "127.0.0.1", "loopback"),
        ("169.254.169.254/latest/meta-data", "169.254.169.254", "metadata"),
        ("10.0.0.1.nip.io", "10.0.0.1.nip.io", "private"),
    ],
)
def test_a_host_without_a_scheme_is_read_as_https(text: str, host: str, kind: str) -> None:
    fact = fact_of(text)
    assert (fact["valid"], fact["scheme"], fact["host"], fact["address_class"]) == (
        True,
        "https",
        host,
        kind,
    )
    assert fact == fact_of(f"https://{text}")


@pytest.mark.parametrize(
    "text",
    ["//evil.example/x", "report", "a b.example", "user@www.example.org", "javascript:alert(1)"],
)
def test_other_texts_without_a_scheme_are_no_hosts(text: str) -> None:
    fact = fact_of(text)
    assert not fact["valid"] or fact["scheme"] == "javascript"


@pytest.mark.speed
@pytest.mark.parametrize(
    "piece",
    [
        base64.b64encode(b"-_" * 1500 + b"secret").decode(),
        (b"secret-_" * 400).hex() + "." + (b"sk-" * 1000).hex(),
        "sk-" * 5000,
        "_eyJaaaaaaaa" * 1300,
        "token=a?" * 2000,
        "SECRET=" * 2300,
        "a+b://" * 2600,
        "Basic aA1" * 1700,
        "?sig=&" * 2600,
        "Signature=" * 1600,
    ],
    ids=range(10),
)
def test_a_url_is_read_in_little_time_whatever_it_holds(piece: str) -> None:
    started = time.thread_time()
    fact_of(f"https://example.com/?q={piece}"[:16_000])
    assert time.thread_time() - started < 1
