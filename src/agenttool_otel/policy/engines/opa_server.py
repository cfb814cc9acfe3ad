"""OpaServerEngine: decisions from a real OPA over HTTP.

A decision is one request on a kept-alive connection, with one deadline for everything and an answer
that is decoded strictly. Policies, data and health go through opa-python-client (``.client``, the
extra ``opa-server``): fast enough for people, but its timeout is for each read, and it takes an
undefined answer for a value.
"""

from __future__ import annotations

import asyncio
import re
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from agenttool_otel.errors import (
    PolicyError,
    PolicyEvaluationError,
    PolicyTimeout,
    PolicyUnavailable,
)
from agenttool_otel.names import EngineName, FailClosedCause
from agenttool_otel.policy.bundles.check import entry_path
from agenttool_otel.policy.engines.opa_address import OpaAddress, open_client
from agenttool_otel.policy.http import CircuitBreaker, HttpAnswer, HttpConnection
from agenttool_otel.policy.jsonio import (
    MAX_ANSWER_BYTES,
    MAX_INPUT_BYTES,
    decode_strict,
    encode_document,
)
from agenttool_otel.policy.rego.builtins import OPA_BUILTINS
from agenttool_otel.policy.types import EngineAnswer, EngineCapabilities, PolicyInput
from agenttool_otel.values.forks import new_lock

_QUERY: Final = "?provenance=true&strict-builtin-errors=true"
_TRANSIENT: Final = frozenset({429, 502, 503, 504})
_WORD: Final = re.compile(r"[A-Za-z0-9_]{1,64}")
_propagator: Final = TraceContextTextMapPropagator()


class OpaServerEngine:
    """Asks a real OPA.

    Args:
        url: where it is, for example ``http://127.0.0.1:8181``.
        token: bearer token.
        token_file: file that holds the token and may be rotated.
        ca_file: certificates to trust instead of the system's.
        client_cert: client certificate for mutual TLS.
        client_key: its key.
        retries: how often a failure that can't have been an answer is tried again within the
          deadline.
        breaker: circuit breaker; ``None``: one with the defaults.
        max_answer_bytes: largest answer that is read.
        max_input_bytes: largest encoded input that is sent.
        max_idle_connections: connections that are kept open between decisions.

    Raises:
        ConfigurationError: a setting can't be used.
    """

    name = EngineName.OPA_SERVER.value
    capabilities = EngineCapabilities(
        builtins=OPA_BUILTINS, remote=True, tracing=True, coverage=True
    )

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        token_file: str | Path | None = None,
        ca_file: str | Path | None = None,
        client_cert: str | Path | None = None,
        client_key: str | Path | None = None,
        retries: int = 2,
        breaker: CircuitBreaker | None = None,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
        max_input_bytes: int = MAX_INPUT_BYTES,
        max_idle_connections: int = 32,
    ) -> None:
        self._address = OpaAddress.make(
            url,
            token=token,
            token_file=token_file,
            ca_file=ca_file,
            client_cert=client_cert,
            client_key=client_key,
        )
        self._retries = retries
        self._breaker = breaker or CircuitBreaker()
        self._max_answer_bytes = max_answer_bytes
        self._max_input_bytes = max_input_bytes
        self._max_idle = max_idle_connections
        self._idle: list[HttpConnection] = []
        # one for each event loop, so that neither a fork nor another loop waits for threads that
        # are not there
        self._threads: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, ThreadPoolExecutor] = (
            weakref.WeakKeyDictionary()
        )
        self._lock = new_lock()
        self._targets: dict[str, str] = {}
        self._client: Any = None
        self._revision = ""
        self._closed = False

    @property
    def revision(self) -> str:
        """Revision that the last answer stated; empty before the first one, or when OPA serves no
        bundle.
        """
        return self._revision

    @property
    def client(self) -> Any:
        """An ``opa_client.OpaClient`` for policies, data, health and status, without its holes."""
        with self._lock:
            if self._client is None:
                self._client = open_client(self._address)
            return self._client

    def healthy(self, *, timeout: float = 1.0) -> bool:
        """Ask OPA's health endpoint."""
        connection = HttpConnection(self._address.endpoint, limit=self._max_answer_bytes)
        target = f"{self._address.prefix}/health"
        try:
            answer = connection.request(
                "GET", target, None, {}, deadline=time.monotonic() + timeout
            )
        except PolicyError:
            return False
        finally:
            connection.close()
        return answer.status == 200

    # --- decisions --------------------------------------------------------------------------------

    def evaluate(self, entry_point: str, document: PolicyInput, *, timeout: float) -> EngineAnswer:
        """Ask; see ``PolicyEngine``."""
        deadline = time.monotonic() + timeout
        return self._ask(*self._prepare(entry_point, document), deadline)

    async def aevaluate(
        self, entry_point: str, document: PolicyInput, *, timeout: float
    ) -> EngineAnswer:
        """Ask on a thread of this event loop's, at most ``max_idle_connections`` at a time; as
        ``evaluate``.
        """
        deadline = time.monotonic() + timeout
        # here and not on the thread: the trace context is this task's
        request = self._prepare(entry_point, document)
        loop = asyncio.get_running_loop()
        if (threads := self._threads.get(loop)) is None:
            threads = self._threads[loop] = ThreadPoolExecutor(self._max_idle, "agenttool-opa")
        return await loop.run_in_executor(threads, self._ask, *request, deadline)

    def _ask(
        self, target: str, body: bytes, headers: dict[str, str], deadline: float
    ) -> EngineAnswer:
        attempt = 0
        while True:
            self._breaker.enter()
            try:
                answer = self._exchange(target, body, headers, deadline)
                if answer.status in _TRANSIENT:
                    raise PolicyUnavailable(
                        f"the policy server answered with status {answer.status}"
                    )
            except (PolicyUnavailable, PolicyTimeout) as error:
                self._breaker.failed()
                pause = self._pause(error, attempt, deadline)
                attempt += 1
                time.sleep(pause)
                continue
            self._breaker.succeeded()
            return self._read(answer.status, answer.body)

    def _exchange(
        self, target: str, body: bytes, headers: dict[str, str], deadline: float
    ) -> HttpAnswer:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = HttpConnection(self._address.endpoint, limit=self._max_answer_bytes)
        reused = connection.is_open
        try:
            answer = connection.request("POST", target, body, headers, deadline=deadline)
        except PolicyUnavailable:
            if not reused:
                raise
            # a kept-alive connection that the server closed meanwhile; the others are most likely
            # gone, too
            self._drop_idle()
            answer = connection.request("POST", target, body, headers, deadline=deadline)
        if connection.is_open and len(self._idle) < self._max_idle and not self._closed:
            self._idle.append(connection)
        else:
            connection.close()
        return answer

    def _prepare(
        self, entry_point: str, document: PolicyInput
    ) -> tuple[str, bytes, dict[str, str]]:
        if self._closed:
            raise PolicyUnavailable("the policy engine is closed")
        if (target := self._targets.get(entry_point)) is None:
            path = "/".join(entry_path(entry_point))
            target = self._targets[entry_point] = f"{self._address.prefix}/v1/data/{path}{_QUERY}"
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if (token := self._address.tokens.get()) is not None:
            headers["Authorization"] = f"Bearer {token}"
        # the trace context alone: baggage is the application's and none of the policy server's
        # business
        _propagator.inject(headers)
        return (
            target,
            b'{"input":' + encode_document(document, limit=self._max_input_bytes) + b"}",
            headers,
        )

    def _pause(self, error: PolicyError, attempt: int, deadline: float) -> float:
        """Return how long to wait before trying again, or raise when there is no point in it."""
        left = deadline - time.monotonic()
        pause = 0.02 * (1 << attempt)
        if isinstance(error, PolicyTimeout) or attempt >= self._retries or pause >= left:
            raise error
        return pause

    def _read(self, status: int, content: bytes) -> EngineAnswer:
        if 300 <= status < 400:
            raise PolicyEvaluationError(
                f"the policy server redirects (status {status}), which is refused",
                cause=FailClosedCause.MALFORMED,
            )
        if status in (401, 403):
            raise PolicyUnavailable(f"the policy server refuses the credentials (status {status})")
        if status != 200:
            raise PolicyEvaluationError(
                f"the policy server answered with status {status}{_code(content)}"
            )
        document = decode_strict(
            content, what="policy server's answer", limit=self._max_answer_bytes
        )
        if type(document) is not dict:
            raise PolicyEvaluationError(
                "the policy server's answer is not an object", cause=FailClosedCause.MALFORMED
            )
        if "result" not in document:
            raise PolicyEvaluationError(
                "the entry point is undefined on the policy server", cause=FailClosedCause.UNDEFINED
            )
        revision = _revision(document.get("provenance"))
        self._revision = revision
        decision_id = document.get("decision_id")
        if type(decision_id) is not str or len(decision_id) > 128:
            decision_id = None
        return EngineAnswer(document["result"], revision, decision_id)

    def _drop_idle(self) -> None:
        while self._idle:
            try:
                self._idle.pop().close()
            except IndexError:
                return

    def close(self) -> None:
        """Close the connections; further calls raise PolicyUnavailable."""
        self._closed = True
        self._drop_idle()
        if self._client is not None:
            self._client.close_connection()
        for threads in list(self._threads.values()):
            threads.shutdown(wait=False)


def _code(content: bytes) -> str:
    """Return OPA's error code, never its message, which can quote the input."""
    try:
        code = decode_strict(content)["code"]
    except (PolicyError, KeyError, TypeError):
        return ""
    return f" ({code})" if isinstance(code, str) and _WORD.fullmatch(code) else ""


def _revision(provenance: Any) -> str:
    """Return the bundles' revisions as one short text; with several bundles each with its name."""
    bundles = provenance.get("bundles") if type(provenance) is dict else None
    if type(bundles) is not dict:
        return ""
    revisions = {
        name: item["revision"]
        for name, item in bundles.items()
        if type(item) is dict and type(item.get("revision")) is str
    }
    if len(revisions) == 1:
        return str(next(iter(revisions.values())))[:128]
    return ",".join(f"{name}={revisions[name]}" for name in sorted(revisions))[:256]
