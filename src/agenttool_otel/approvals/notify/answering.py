"""``POST /answers``: signed answers of a program that has asked a person, for example in a chat.

The program vouches for who answers. So it needs a secret of its own, can state no more roles than
it was given, and answers with the ticket that came with the question.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from agenttool_otel.approvals.announcing import report_rejected
from agenttool_otel.approvals.notify.signatures import BadSignature, Signer
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.approvals.types import ApprovalAnswer
from agenttool_otel.errors import (
    ApprovalConflict,
    ApprovalError,
    ApprovalExpired,
    ApprovalNotFound,
    ConfigurationError,
)
from agenttool_otel.names import AnswerWay
from agenttool_otel.values.conversion import loads_unique
from agenttool_otel.values.forks import new_lock

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    from agenttool_otel.approvals.web.connections import server_config
except ModuleNotFoundError as error:
    raise ConfigurationError(
        f"taking answers needs the package {error.name}: pip install 'agenttool-otel[notify,web]'"
    ) from error

_LOG = logging.getLogger("agenttool_otel.approvals.notify")

MAX_BODY_BYTES: Final = 20_000
"""The largest answer that is read."""

KEPT_SECONDS: Final = 900.0
"""How long the id of a message is remembered, in memory; its signature is good for five minutes each
way. A process that starts again knows none: the ticket then bounds what a message can do.
"""

_MAX_REASON_CHARS: Final = 2000
_STATUS: Final[dict[type[ApprovalError], HTTPStatus]] = {
    ApprovalNotFound: HTTPStatus.NOT_FOUND,
    ApprovalExpired: HTTPStatus.GONE,
    ApprovalConflict: HTTPStatus.CONFLICT,
}


class _Refused(Exception):
    def __init__(self, status: HTTPStatus, problem: str) -> None:
        super().__init__(problem)
        self.status = status


class _Given(NamedTuple):
    """An answer as it arrives; these are all its members."""

    request_id: str
    ticket: str
    approved: bool
    answered_by: str
    roles: list[str]
    reason: str


_DEFAULTS: Final[Mapping[str, Any]] = {"roles": [], "reason": ""}


class AnswersEndpoint:
    """Takes signed answers for one store.

    Args:
        store: the store.
        signer: has the secret of who answers.
        roles: the roles that an answer may state.
        on_rejected: called with the id of each request that is rejected; its errors are logged.
        now: gives seconds that only grow; for tests.
    """

    def __init__(
        self,
        store: ApprovalStore,
        signer: Signer,
        *,
        roles: tuple[str, ...] = (),
        on_rejected: Callable[[str], None] | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._signer = signer
        self._roles = frozenset(roles)
        self._on_rejected = on_rejected
        self._now = now
        self._seen: dict[str, float] = {}
        self._lock = new_lock()

    def application(self) -> Starlette:
        """Return the ASGI application."""
        return Starlette(routes=[Route("/answers", self._post, methods=["POST"])])

    async def _post(self, request: Request) -> Response:
        try:
            body = await _read(request)
            return await run_in_threadpool(self._answer, dict(request.headers), body)
        except _Refused as refused:
            return _problem(refused.status, str(refused))
        except ClientDisconnect:
            return _problem(HTTPStatus.BAD_REQUEST, "the connection broke")

    def _answer(self, headers: dict[str, str], body: bytes) -> Response:
        try:
            message_id = self._signer.check(headers, body)
        except BadSignature:
            raise _Refused(
                HTTPStatus.UNAUTHORIZED, "this message is not signed as it has to be"
            ) from None
        given = _given(body)
        if not self._roles.issuperset(given.roles):
            raise _Refused(HTTPStatus.FORBIDDEN, "an answer here can't state these roles")
        self._use(message_id)
        try:
            return self._store_answer(given)
        except ApprovalError as error:
            status = _STATUS.get(type(error), HTTPStatus.SERVICE_UNAVAILABLE)
            if status is HTTPStatus.SERVICE_UNAVAILABLE:
                self._forget(message_id)
            return _problem(status, str(error))

    def _store_answer(self, given: _Given) -> Response:
        asked = self._store.get(given.request_id)
        if not self._signer.ticket_fits(asked, given.ticket):
            raise _Refused(HTTPStatus.FORBIDDEN, "the ticket is not that of this request")
        answer = ApprovalAnswer(
            approved=given.approved,
            answered_by=given.answered_by,
            roles=tuple(given.roles),
            reason=given.reason[:_MAX_REASON_CHARS],
            way=AnswerWay.WEBHOOK,
        )
        answered = self._store.answer(given.request_id, answer)
        if not given.approved:
            report_rejected(self._on_rejected, given.request_id)
        still_needed = answered.still_needed.people if answered.needs_several else 0
        return JSONResponse({"status": answered.status.value, "still_needed": still_needed})

    def _use(self, message_id: str) -> None:
        """Take a message once.

        Raises:
            _Refused: it was taken before.
        """
        with self._lock:
            now = self._now()
            for old, at in list(self._seen.items()):
                if now - at <= KEPT_SECONDS:
                    break
                del self._seen[old]
            if message_id in self._seen:
                raise _Refused(HTTPStatus.CONFLICT, "this message was taken before")
            self._seen[message_id] = now

    def _forget(self, message_id: str) -> None:
        """Let a message be sent again that the store could not take."""
        with self._lock:
            self._seen.pop(message_id, None)


def answers_server(endpoint: AnswersEndpoint) -> uvicorn.Server:
    """Return a server of the endpoint, to be run on a socket.

    Args:
        endpoint: the endpoint.
    """
    headers = [("Connection", "close"), ("Cache-Control", "no-store")]
    config = server_config(endpoint.application(), headers=headers, lifespan="off")
    return uvicorn.Server(config)


async def _read(request: Request) -> bytes:
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != "application/json":
        raise _Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "an answer is application/json")
    length = request.headers.get("content-length", "")
    # beside "Transfer-Encoding: chunked" a length means nothing
    if "transfer-encoding" in request.headers or not length.isdecimal():
        raise _too_large()
    if int(length) > MAX_BODY_BYTES:
        raise _too_large()
    body = b""
    # a server in front of this application may let through more than the stated length
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_BODY_BYTES:
            raise _too_large()
    return body


def _too_large() -> _Refused:
    return _Refused(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "an answer states its length, and is small"
    )


def _given(body: bytes) -> _Given:
    """Return the answer in a body.

    Raises:
        _Refused: it is none, or has a member that no answer has.
    """
    try:
        stated = loads_unique(body.decode())
    except (ValueError, RecursionError):
        stated = None
    if not isinstance(stated, dict) or set(stated) - set(_Given._fields):
        raise _malformed()
    values = {**_DEFAULTS, **stated}
    if values.keys() != set(_Given._fields):
        raise _malformed()
    given = _Given(**values)
    texts = (given.request_id, given.ticket, given.answered_by, given.reason)
    if type(given.approved) is not bool or not all(isinstance(text, str) for text in texts):
        raise _malformed()
    if not isinstance(given.roles, list) or not all(isinstance(role, str) for role in given.roles):
        raise _malformed()
    return given


def _malformed() -> _Refused:
    return _Refused(
        HTTPStatus.BAD_REQUEST, f"an answer is a JSON object with: {', '.join(_Given._fields)}"
    )


def _problem(status: HTTPStatus, problem: str) -> Response:
    return JSONResponse({"error": problem}, status)
