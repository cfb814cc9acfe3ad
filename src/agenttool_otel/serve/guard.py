"""Who may ask, and how much of everything a request may cost; around every path of the decision
point.

On the Unix socket the peer's user was checked when it connected. On loopback a request needs the
token, and must not come from a browser's page: a name that is not ours (DNS rebinding) and any
``Origin`` are refused, and there is no CORS.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agenttool_otel.approvals.web.hosts import asks_for, own_hosts
from agenttool_otel.names import INSTRUMENTATION_NAME, ProblemType
from agenttool_otel.serve.limits import Limits
from agenttool_otel.serve.messages import EVALUATION_PATH, EVALUATIONS_PATH
from agenttool_otel.serve.problems import Refusal

_LOG = logging.getLogger(f"{INSTRUMENTATION_NAME}.serve")
_OPEN_PATHS: Final = frozenset({"/healthz", "/readyz"})
_HEADERS: Final = {
    # one request for a connection: nothing that follows its body is read as another
    "Connection": "close",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """Refuses what may not ask, is too large or is too much, before any path is looked at.

    Args:
        app: what answers the others.
        token: the token of the loopback address; ``""`` where there is none.
        port: the port of the loopback address; ``None`` where there is none.
        limits: how much there may be.
    """

    def __init__(self, app: ASGIApp, *, token: str, port: int | None, limits: Limits) -> None:
        self._app = app
        self._token = _hashed(token) if token else None
        self._hosts = frozenset() if port is None else own_hosts(port)
        self._limits = limits
        self._active = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer it with a problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        self._active += 1
        try:
            self._check(scope)
            await self._app(scope, receive, send_with_headers)
        except Refusal as refused:
            _LOG.warning("a request was refused: %s", refused)
            await refused.response(scope, receive, send_with_headers)
        except ClientDisconnect:
            _LOG.debug("a connection broke")
        except Exception as error:  # its text may hold what must not be logged
            _LOG.error("a request failed: %s", type(error).__name__)
            if not started:
                failed = Refusal(ProblemType.FAILED, type(error).__name__)
                await failed.response(scope, receive, send_with_headers)
        finally:
            self._active -= 1

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        # a client of curl sends neither
        if "origin" in headers or "sec-fetch-site" in headers:
            raise Refusal(ProblemType.FOREIGN_ORIGIN, "browsers are not served")
        if not _is_local_user(scope):
            self._check_loopback(scope["path"], headers)
        if self._active > self._limits.requests:
            raise Refusal(ProblemType.BUSY, "too many requests at once")
        if scope["method"] == "POST":
            self._check_body(scope["path"], headers)

    def _check_loopback(self, path: str, headers: Headers) -> None:
        if not asks_for(headers.getlist("host"), self._hosts):
            raise Refusal(ProblemType.FOREIGN_ORIGIN, "not served under that host name")
        if path in _OPEN_PATHS:
            return
        given = headers.getlist("authorization")
        scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        fits = self._token is not None and hmac.compare_digest(_hashed(token), self._token)
        if scheme.lower() != "bearer" or not fits:
            raise Refusal(ProblemType.UNAUTHORIZED, "the token is missing or wrong")

    def _check_body(self, path: str, headers: Headers) -> None:
        kind = headers.get("content-type", "").split(";")[0].strip().lower()
        if kind != "application/json":
            # AuthZEN 1.0 has 400 where HTTP has 415
            authzen = path in (EVALUATION_PATH, EVALUATIONS_PATH)
            problem = ProblemType.BAD_REQUEST if authzen else ProblemType.UNSUPPORTED
            raise Refusal(problem, "a body has to be application/json")
        length = headers.get("content-length", "")
        # h11 reads no more than is stated
        if "transfer-encoding" in headers or not length.isdecimal():
            raise Refusal(ProblemType.TOO_LARGE, "a body needs a stated length")
        if len(length) > 12 or int(length) > self._limits.body_bytes:
            raise Refusal(ProblemType.TOO_LARGE, f"a body may have {self._limits.body_bytes} bytes")


def _is_local_user(scope: Scope) -> bool:
    """Return whether a request came through the Unix socket, which lets in this user alone."""
    server = scope.get("server")
    return server is not None and server[1] is None


def _hashed(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
