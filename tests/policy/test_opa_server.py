"""Decisions from a server: a misbehaving one (raw sockets on loopback), and a real OPA."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp  # noqa: F401 - imported now, so that no deadline pays for it
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from opa_program import OpaServer, free_port, opa_server
from opentelemetry import baggage, trace
from opentelemetry.context import attach, detach
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags
from policy_inputs import make_document

from agenttool_otel.errors import (
    ConfigurationError,
    PolicyError,
    PolicyEvaluationError,
    PolicyUnavailable,
)
from agenttool_otel.names import Behavior, FailClosedCause
from agenttool_otel.policy.bundles.bundle import default_bundle_path
from agenttool_otel.policy.bundles.bundle_files import bundle_files, write_archive
from agenttool_otel.policy.bundles.load import load_bundle
from agenttool_otel.policy.decider import Decider
from agenttool_otel.policy.engines.opa_server import OpaServerEngine
from agenttool_otel.policy.http import CircuitBreaker

DECISION = "data.agenttool.permission.decision"
GOOD = {
    "result": {"behavior": "allow"},
    "decision_id": "d-1",
    "provenance": {"bundles": {"b": {"revision": "r9"}}},
}


def response(body: bytes | Any, status: str = "200 OK", **headers: str) -> bytes:
    """An HTTP answer."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = {"Content-Type": "application/json", "Content-Length": str(len(content)), **headers}
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + content


class FakeOpa:
    """Answers every request with what ``answer`` writes to the socket."""

    def __init__(
        self, answer: Callable[[socket.socket], None], *, tls: ssl.SSLContext | None = None
    ) -> None:
        self.answer = answer
        self.requests: list[bytes] = []
        self.connections = 0
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            with connection:
                data = b""
                while True:
                    while b"\r\n\r\n" not in data:
                        if not (chunk := connection.recv(65536)):
                            return
                        data += chunk
                    head, _, rest = data.partition(b"\r\n\r\n")
                    length = next(
                        (
                            int(line[15:])
                            for line in head.lower().split(b"\r\n")
                            if line.startswith(b"content-length:")
                        ),
                        0,
                    )
                    while len(rest) < length:
                        rest += connection.recv(65536)
                    self.requests.append(head + b"\r\n\r\n" + rest[:length])
                    data = rest[length:]
                    self.answer(connection)
        except OSError:
            return

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def fake() -> Iterator[Callable[..., FakeOpa]]:
    servers: list[FakeOpa] = []

    def make(answer: bytes | Callable[[socket.socket], None], **options: Any) -> FakeOpa:
        write = (
            (lambda connection: connection.sendall(answer)) if isinstance(answer, bytes) else answer
        )
        servers.append(FakeOpa(write, **options))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


def close_at_once(connection: socket.socket) -> None:
    connection.close()


def half_a_body(connection: socket.socket) -> None:
    whole = response(GOOD)
    connection.sendall(whole[:-10])
    connection.close()


def drip(connection: socket.socket) -> None:
    for byte in response(GOOD):
        connection.sendall(bytes([byte]))
        time.sleep(0.03)


def never(connection: socket.socket) -> None:
    time.sleep(30)


def endless_headers(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        connection.sendall(b"X-A: b\r\n")
        time.sleep(0.01)


DEEP = b'{"result": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
BAD_ANSWERS: list[tuple[str, Any, FailClosedCause]] = [
    ("undefined: no result", response({}), FailClosedCause.UNDEFINED),
    ("null", response({"result": None}), FailClosedCause.UNDEFINED),
    ("another path: a boolean", response({"result": True}), FailClosedCause.MALFORMED),
    ("another path: the package", response({"result": {"decision": {"behavior": "allow"}}}), FailClosedCause.MALFORMED),
    ("a string", response({"result": "allow"}), FailClosedCause.MALFORMED),
    ("unknown word", response({"result": {"behavior": "ALLOW"}}), FailClosedCause.UNKNOWN_BEHAVIOR),
    ("html", response(b"<html>sign in</html>", Content_Type="text/html"), FailClosedCause.MALFORMED),
    ("a list", response([]), FailClosedCause.MALFORMED),
    ("nothing", response(b""), FailClosedCause.MALFORMED),
    ("duplicate keys", response(b'{"result": {"behavior": "deny", "behavior": "allow"}}'), FailClosedCause.MALFORMED),
    ("two results", response(b'{"result": {}, "result": {"behavior": "allow"}}'), FailClosedCause.MALFORMED),
    ("NaN", response(b'{"result": {"behavior": "allow", "x": NaN}}'), FailClosedCause.MALFORMED),
    ("deep", response(DEEP), FailClosedCause.MALFORMED),
    ("not UTF-8", response(b'{"result": {"behavior": "allow\xff"}}'), FailClosedCause.MALFORMED),
    ("too large", response({"result": {"behavior": "allow", "x": "y" * 2_000_000}}), FailClosedCause.MALFORMED),
    ("500", response({"code": "internal_error", "message": "hunter2"}, "500 Error"), FailClosedCause.ENGINE_ERROR),
    ("400", response({"code": "invalid_parameter"}, "400 Bad"), FailClosedCause.ENGINE_ERROR),
    ("404", response(b"not here", "404 Not Found"), FailClosedCause.ENGINE_ERROR),
    ("200 with an error", response({"code": "x", "message": "y"}), FailClosedCause.UNDEFINED),
    ("401", response({}, "401 Unauthorized"), FailClosedCause.UNAVAILABLE),
    ("503", response(b"", "503 Unavailable"), FailClosedCause.UNAVAILABLE),
    ("not HTTP", b"SSH-2.0-OpenSSH\r\n\r\n", FailClosedCause.MALFORMED),
    ("closes", close_at_once, FailClosedCause.UNAVAILABLE),
    ("half a body", half_a_body, FailClosedCause.UNAVAILABLE),
    ("drips", drip, FailClosedCause.TIMEOUT),
    ("hangs", never, FailClosedCause.TIMEOUT),
    ("endless headers", endless_headers, FailClosedCause.TIMEOUT),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize(
    ("answer", "cause"), [case[1:] for case in BAD_ANSWERS], ids=[case[0] for case in BAD_ANSWERS]
)
async def test_a_misbehaving_server_is_a_deny_in_bounded_time(
    fake: Callable[..., FakeOpa], mode: str, answer: Any, cause: FailClosedCause
) -> None:
    engine = OpaServerEngine(fake(answer).url, retries=1)
    # short where the time limit is what ends it; on a busy machine a short one would hide the other
    # causes
    decider = Decider([engine], timeout=0.4 if cause is FailClosedCause.TIMEOUT else 60)
    started = time.monotonic()
    verdict = (
        decider.decide(make_document())
        if mode == "sync"
        else await decider.adecide(make_document())
    )
    assert time.monotonic() - started < 20
    assert verdict.behavior is Behavior.DENY
    assert verdict.fail_closed is cause
    assert "hunter2" not in verdict.message
    engine.close()


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_redirects_are_refused(fake: Callable[..., FakeOpa], mode: str) -> None:
    target = fake(response(GOOD))
    engine = OpaServerEngine(
        fake(response(b"", "307 Moved", Location=f"{target.url}/v1/data/x")).url
    )
    decider = Decider([engine], timeout=60)
    verdict = (
        decider.decide(make_document())
        if mode == "sync"
        else await decider.adecide(make_document())
    )
    assert verdict.fail_closed is FailClosedCause.MALFORMED
    assert "redirects" in verdict.message
    assert target.requests == []
    engine.close()


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_what_is_sent_and_what_is_read(
    fake: Callable[..., FakeOpa], mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token is ours whatever netrc and proxies say; the trace context goes along, baggage does
    not.
    """
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login u password p\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    token = "-".join(["token", "of", "tests"])
    file = tmp_path / "token"
    file.write_text(f"{token}\n")
    server = fake(response(GOOD))
    engine = OpaServerEngine(f"{server.url}/opa", token_file=file)
    span = NonRecordingSpan(SpanContext(0x1234, 0x5678, is_remote=False, trace_flags=TraceFlags(1)))
    scope = attach(baggage.set_baggage("secret", "x", trace.set_span_in_context(span)))
    try:
        if mode == "sync":
            answer = engine.evaluate(DECISION, make_document({"input": {"a": "é"}}), timeout=60)
        else:
            answer = await engine.aevaluate(
                DECISION, make_document({"input": {"a": "é"}}), timeout=60
            )
    finally:
        detach(scope)
    assert (answer.value, answer.revision, answer.decision_id) == (
        {"behavior": "allow"},
        "r9",
        "d-1",
    )
    assert engine.revision == "r9"
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    text = head.decode().lower()
    assert text.startswith(
        "post /opa/v1/data/agenttool/permission/decision?provenance=true&strict-builtin-errors=true "
    )
    assert f"authorization: bearer {token}" in text
    assert f"traceparent: 00-{0x1234:032x}-{0x5678:016x}-01" in text
    assert "baggage" not in text
    assert json.loads(body) == {"input": make_document({"input": {"a": "é"}})}
    file.write_text("rotated-token")
    await engine.aevaluate(DECISION, make_document(), timeout=60)
    assert b"Bearer rotated-token" in server.requests[1]
    file.unlink()
    with pytest.raises(PolicyUnavailable, match="token file"):
        await engine.aevaluate(DECISION, make_document(), timeout=60)
    engine.close()


@pytest.mark.parametrize(
    "entry",
    [
        "data.a.b/../../policies/x",
        "data.a..b",
        "data",
        "a.b",
        "data.a?x=1",
        "data.a%2fb",
        "data.é",
        "data.a b",
        "",
    ],
)
def test_paths_are_validated(fake: Callable[..., FakeOpa], entry: str) -> None:
    server = fake(response(GOOD))
    with pytest.raises(PolicyError):
        OpaServerEngine(server.url).evaluate(entry, make_document(), timeout=60)
    assert server.requests == []


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("localhost:8181", {}),
        ("ftp://x", {}),
        ("http://u:p@x", {}),
        ("http://x/?a=b", {}),
        ("http://x", {"ca_file": "x.pem"}),
        ("https://x", {"ca_file": "no/such.pem"}),
        ("http://x", {"token": "a", "token_file": "b"}),
        ("http://x", {"token": ""}),
        ("http://x", {"token": "a\r\nX: y"}),
    ],
)
def test_settings_that_can_not_be_used(url: str, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        OpaServerEngine(url, **options)


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_failures_before_an_answer_are_retried_in_the_deadline(
    fake: Callable[..., FakeOpa], mode: str
) -> None:
    counter = iter(range(100))

    def flaky(connection: socket.socket) -> None:
        if next(counter) < 2:
            connection.close()
        else:
            connection.sendall(response(GOOD))

    engine = OpaServerEngine(fake(flaky).url, retries=2)
    if mode == "sync":
        assert engine.evaluate(DECISION, make_document(), timeout=60).value == {"behavior": "allow"}
    else:
        assert (await engine.aevaluate(DECISION, make_document(), timeout=60)).value == {
            "behavior": "allow"
        }
    engine.close()


def test_an_answer_is_never_asked_for_twice(fake: Callable[..., FakeOpa]) -> None:
    server = fake(response({"code": "internal_error"}, "500 Error"))
    with pytest.raises(PolicyEvaluationError, match="internal_error"):
        OpaServerEngine(server.url).evaluate(DECISION, make_document(), timeout=60)
    assert len(server.requests) == 1


def test_connections_are_kept_and_a_dead_one_is_replaced(fake: Callable[..., FakeOpa]) -> None:
    served = iter(range(100))
    closed = threading.Event()

    def answer(connection: socket.socket) -> None:
        connection.sendall(response(GOOD))
        if next(served) == 2:
            connection.close()
            closed.set()

    server = fake(answer)
    engine = OpaServerEngine(server.url, retries=0)
    for number in range(6):
        assert engine.evaluate(DECISION, make_document(), timeout=60).value == {"behavior": "allow"}
        assert number != 2 or closed.wait(60)
    assert server.connections == 2


class TestCircuitBreaker:
    """Known to be down: said at once; up again: noticed by itself."""

    def test_states(self) -> None:
        now = [0.0]
        breaker = CircuitBreaker(threshold=2, reset_after=10, clock=lambda: now[0])
        breaker.failed()
        breaker.enter()
        breaker.succeeded()
        breaker.failed()
        breaker.failed()
        assert breaker.state == "open"
        with pytest.raises(PolicyUnavailable) as caught:
            breaker.enter()
        assert caught.value.cause is FailClosedCause.CIRCUIT_OPEN
        now[0] = 10.0
        assert breaker.state == "half_open"
        breaker.enter()
        with pytest.raises(PolicyUnavailable):
            breaker.enter()  # one trial at a time
        breaker.failed()
        assert breaker.state == "open"
        now[0] = 20.0
        breaker.enter()
        breaker.succeeded()
        assert breaker.state == "closed"
        breaker.enter()

    def test_while_the_server_is_down_denies_cost_no_time(self) -> None:
        engine = OpaServerEngine(
            f"http://127.0.0.1:{free_port()}",
            retries=0,
            breaker=CircuitBreaker(threshold=3, reset_after=60),
        )
        decider = Decider([engine], timeout=60)
        causes = [decider.decide(make_document()).fail_closed for _ in range(5)]
        assert causes == [FailClosedCause.UNAVAILABLE] * 3 + [FailClosedCause.CIRCUIT_OPEN] * 2
        started = time.perf_counter()
        for _ in range(200):
            assert decider.decide(make_document()).behavior is Behavior.DENY
        assert (time.perf_counter() - started) / 200 < 0.05


def certificates(folder: Path) -> dict[str, str]:
    """A CA, a server and a client certificate, made now."""
    now = datetime.now(UTC)
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test ca")])

    def issue(name: str, key: ec.EllipticCurvePrivateKey, *, ca: bool = False) -> x509.Certificate:
        subject = ca_name if ca else x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject).issuer_name(ca_name).public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        )  # fmt: skip
        if ca:
            usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
            builder = builder.add_extension(usage, critical=True)
        else:
            import ipaddress

            names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
            builder = builder.add_extension(names, critical=False)
        return builder.sign(ca_key, hashes.SHA256())

    paths: dict[str, str] = {}
    for name in ("ca", "server", "client"):
        key = ca_key if name == "ca" else ec.generate_private_key(ec.SECP256R1())
        certificate = issue(name, key, ca=name == "ca")
        (folder / f"{name}.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        (folder / f"{name}.key").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        paths[name], paths[f"{name}_key"] = str(folder / f"{name}.pem"), str(folder / f"{name}.key")
    return paths


# --- a real OPA -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpaServer]:
    archive = tmp_path_factory.mktemp("stock") / "bundle.tar.gz"
    archive.write_bytes(write_archive(bundle_files(load_bundle(default_bundle_path()))))
    with opa_server("-b", str(archive), "--set", "decision_logs.console=true") as server:
        yield server


@pytest.mark.opa
class TestRealOpa:
    """The same, on OPA itself."""

    async def test_it_decides_with_revision_and_decision_id(self, stock: OpaServer) -> None:
        engine = OpaServerEngine(stock.url)
        assert engine.healthy()
        revision = load_bundle(default_bundle_path()).revision
        for answer in (
            engine.evaluate(DECISION, make_document(), timeout=60),
            await engine.aevaluate(DECISION, make_document(), timeout=60),
        ):
            assert answer.value["behavior"] in {"allow", "ask", "deny"}
            assert answer.revision == revision
            assert answer.decision_id
        engine.close()

    def test_what_does_not_exist_is_undefined(self, stock: OpaServer) -> None:
        with pytest.raises(PolicyEvaluationError) as caught:
            OpaServerEngine(stock.url).evaluate(
                "data.agenttool.no.such.rule", make_document(), timeout=60
            )
        assert caught.value.cause is FailClosedCause.UNDEFINED

    def test_the_packages_client_follows_no_redirect_to_another_host(
        self, fake: Callable[..., FakeOpa]
    ) -> None:
        target = fake(response({"result": []}))
        engine = OpaServerEngine(
            fake(response(b"", "307 Moved", Location=f"{target.url}/v1/policies")).url
        )
        with pytest.raises(PolicyUnavailable, match="redirects to another host"):
            engine.client.get_policies_list()
        assert target.requests == []

    def test_the_packages_client_does_policies_and_data(self) -> None:
        with opa_server() as server:
            engine = OpaServerEngine(server.url)
            assert engine.client.check_health() is True
            assert engine.client.update_policy_from_string(
                'package agenttool.permission\n\ndecision := {"behavior": data.x.word}\n', "p"
            )
            with pytest.raises(PolicyEvaluationError):
                engine.evaluate(DECISION, make_document(), timeout=60)
            engine.client.update_or_create_data({"word": "allow"}, "x")
            engine.client.patch_data("x", [{"op": "replace", "path": "/word", "value": "ask"}])
            assert Decider([engine], timeout=60).decide(make_document()).behavior is Behavior.ASK
            engine.close()
            with pytest.raises(PolicyUnavailable, match="closed"):
                engine.evaluate(DECISION, make_document(), timeout=60)

    def test_a_builtin_error_in_a_deny_rule_is_no_allow(self) -> None:
        policy = (
            'package agenttool.permission\n\ndefault decision := {"behavior": "allow"}\n\n'
            'decision := {"behavior": "deny"} if to_number(input.input.amount) > 10\n'
        )
        with opa_server() as server:
            engine = OpaServerEngine(server.url)
            engine.client.update_policy_from_string(policy, "p")
            verdict = Decider([engine], timeout=60).decide(
                make_document({"input": {"amount": "a lot"}})
            )
            assert (verdict.behavior, verdict.fail_closed) == (
                Behavior.DENY,
                FailClosedCause.ENGINE_ERROR,
            )

    @pytest.mark.parametrize("authentication", ["token", "tls"])
    async def test_tls_with_own_authority_and_credentials(
        self, tmp_path: Path, authentication: str
    ) -> None:
        files = certificates(tmp_path)
        token = "-".join(["tls", "test", "token"])
        identity = token if authentication == "token" else "CN=client"
        policy = tmp_path / "p.rego"
        policy.write_text('package agenttool.permission\n\ndecision := {"behavior": "deny"}\n')
        authz = tmp_path / "authz.rego"
        authz.write_text(
            f'package system.authz\n\ndefault allow := false\n\nallow if input.identity == "{identity}"\n'
        )
        arguments = [
            "--tls-cert-file", files["server"], "--tls-private-key-file", files["server_key"],
            "--authentication", authentication, "--authorization", "basic", str(policy), str(authz),
        ]  # fmt: skip
        trust = {"ca_file": files["ca"]}
        pair = {"client_cert": files["client"], "client_key": files["client_key"]}
        good, bad = {**trust, "token": token}, [({**trust, "token": "wrong-token"}, "credentials")]
        if authentication == "tls":
            arguments += ["--tls-ca-cert-file", files["ca"]]
            good, bad = {**trust, **pair}, [(trust, "connection|certificate")]
        bad.append(({key: value for key, value in good.items() if key != "ca_file"}, "certificate"))
        with opa_server(*arguments, scheme="https") as server:
            engine = OpaServerEngine(server.url, **good)
            assert engine.evaluate(DECISION, make_document(), timeout=60).value == {
                "behavior": "deny"
            }
            assert (await engine.aevaluate(DECISION, make_document(), timeout=60)).value == {
                "behavior": "deny"
            }
            assert "p.rego" in str(engine.client.get_policies_list())
            engine.close()
            for options, message in bad:
                other = OpaServerEngine(server.url, retries=0, **options)
                with pytest.raises(PolicyUnavailable, match=message):
                    other.evaluate(DECISION, make_document(), timeout=60)
                with pytest.raises(PolicyUnavailable):
                    await other.aevaluate(DECISION, make_document(), timeout=60)
                other.close()

    @pytest.mark.slow
    def test_killing_and_restarting_it_under_load_loses_no_deny(self, tmp_path: Path) -> None:
        """Every call gets a verdict; those that policy denies never become an allow; it recovers by
        itself.
        """
        policy = tmp_path / "p.rego"
        policy.write_text(
            'package agenttool.permission\n\ndecision := {"behavior": "deny"} if input.tool.destructive\n\n'
            'decision := {"behavior": "allow"} if not input.tool.destructive\n'
        )
        server = OpaServer(str(policy))
        server.start()
        engine = OpaServerEngine(server.url, breaker=CircuitBreaker(threshold=3, reset_after=0.1))
        decider = Decider([engine], timeout=1.0)
        stop = threading.Event()
        good, bad = make_document(), make_document({"tool.destructive": True})
        seen: list[tuple[bool, Any]] = []

        def work(number: int) -> None:
            while not stop.is_set():
                destructive = number % 2 == 0
                seen.append((destructive, decider.decide(bad if destructive else good)))

        with ThreadPoolExecutor(6) as pool:
            futures = [pool.submit(work, number) for number in range(6)]
            for _ in range(5):
                time.sleep(0.3)
                server.kill()
                time.sleep(0.2)
                server.start()
            time.sleep(0.5)
            stop.set()
            for future in futures:
                future.result()
        recovered = time.monotonic() + 20
        while decider.decide(good).behavior is not Behavior.ALLOW:
            assert time.monotonic() < recovered, "it did not recover by itself"
            time.sleep(0.05)
        server.kill()
        allowed = sum(verdict.behavior is Behavior.ALLOW for _, verdict in seen)
        failed = [verdict for _, verdict in seen if verdict.fail_closed is not None]
        assert allowed > 50
        assert failed
        for destructive, verdict in seen:
            assert verdict.behavior in (Behavior.ALLOW, Behavior.DENY)
            assert not (destructive and verdict.behavior is Behavior.ALLOW)
            if verdict.fail_closed is not None:
                assert verdict.behavior is Behavior.DENY


def test_importing_the_engine_imports_no_http_library() -> None:
    code = (
        "import sys; import agenttool_otel.policy.engines.opa_server as m; m.OpaServerEngine('http://127.0.0.1:1');"
        "print(sorted({'requests', 'aiohttp', 'opa_client'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
