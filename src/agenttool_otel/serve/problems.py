"""Refused requests: each is a problem (RFC 9457) with its HTTP status."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from pydantic import ValidationError
from starlette.responses import Response

from agenttool_otel.errors import (
    AgentToolError,
    ApprovalConflict,
    ApprovalError,
    ApprovalExpired,
    ApprovalNotFound,
    ApprovalStoreError,
    ConfigurationError,
    InvocationConflict,
    InvocationNotFound,
    PayloadInvalid,
    ResultInvalid,
    ToolChanged,
    UnknownTool,
)
from agenttool_otel.names import ProblemType
from agenttool_otel.serve.messages import Problem

PROBLEM_MEDIA_TYPE: Final = "application/problem+json"
_RETRY_SECONDS: Final = "1"
_STATUSES: Final = {
    ProblemType.BAD_REQUEST: HTTPStatus.BAD_REQUEST,
    ProblemType.UNAUTHORIZED: HTTPStatus.UNAUTHORIZED,
    ProblemType.FOREIGN_ORIGIN: HTTPStatus.FORBIDDEN,
    ProblemType.NOT_FOUND: HTTPStatus.NOT_FOUND,
    ProblemType.CONFLICT: HTTPStatus.CONFLICT,
    ProblemType.TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    ProblemType.UNSUPPORTED: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    ProblemType.BUSY: HTTPStatus.SERVICE_UNAVAILABLE,
    ProblemType.FAILED: HTTPStatus.INTERNAL_SERVER_ERROR,
}
_PROBLEM_OF: Final[tuple[tuple[type[AgentToolError], ProblemType], ...]] = (
    (InvocationNotFound, ProblemType.NOT_FOUND),
    (ApprovalNotFound, ProblemType.NOT_FOUND),
    (InvocationConflict, ProblemType.CONFLICT),
    (ApprovalConflict, ProblemType.CONFLICT),
    (ApprovalExpired, ProblemType.CONFLICT),
    (ToolChanged, ProblemType.CONFLICT),
    (UnknownTool, ProblemType.CONFLICT),
    (ResultInvalid, ProblemType.BAD_REQUEST),
    (PayloadInvalid, ProblemType.BAD_REQUEST),
    (ConfigurationError, ProblemType.BAD_REQUEST),
    (ApprovalStoreError, ProblemType.BUSY),
    # a number that JSON lacks, such as 1e400
    (ApprovalError, ProblemType.BAD_REQUEST),
)


class Refusal(Exception):
    """A request is refused; nothing was decided by it.

    Attributes:
        problem: why.
    """

    def __init__(self, kind: ProblemType, detail: str) -> None:
        super().__init__(detail)
        status = _STATUSES[kind]
        self.problem = Problem(type=kind, title=status.phrase, status=status.value, detail=detail)

    @property
    def response(self) -> Response:
        """The refusal as an HTTP response."""
        headers = {}
        if self.problem.type is ProblemType.UNAUTHORIZED:
            headers["WWW-Authenticate"] = "Bearer"
        if self.problem.type is ProblemType.BUSY:
            headers["Retry-After"] = _RETRY_SECONDS
        body = self.problem.model_dump_json()
        return Response(body, self.problem.status, headers, PROBLEM_MEDIA_TYPE)


def refusal_of(error: AgentToolError) -> Refusal:
    """Return how an error of this package is shown to a client."""
    for kind, problem in _PROBLEM_OF:
        if isinstance(error, kind):
            return Refusal(problem, str(error))
    return Refusal(ProblemType.FAILED, type(error).__name__)


def bad_request(error: ValidationError) -> Refusal:
    """Return which places of a request are wrong; never what stands there."""
    places = []
    for found in error.errors(include_input=False, include_url=False, include_context=False):
        place = "/".join(str(part)[:80] for part in found["loc"])
        places.append(f"/{place}: {found['type']}")
    return Refusal(ProblemType.BAD_REQUEST, "; ".join(places[:10]))
