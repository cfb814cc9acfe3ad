"""The tables behind error mapping: exception classes by qualified name, HTTP statuses, JSON-RPC codes."""

from __future__ import annotations

import errno
from http import HTTPStatus
from typing import Final

from agenttool_otel.names import ErrorClass, Recoverability

_E, _R = ErrorClass, Recoverability

Verdict = tuple[ErrorClass, Recoverability | None]
"""An error class, and a recoverability where the native error says more than the class's row of the taxonomy."""

FAILED: Final[Verdict] = (_E.EXECUTION_FAILED, None)
# The values that the tool got are the likely cause; whether they came from the arguments, only the tool knows.
FAILED_BY_VALUES: Final[Verdict] = (_E.EXECUTION_FAILED, _R.CHANGE_ARGUMENTS)
FAILED_BY_SETUP: Final[Verdict] = (_E.EXECUTION_FAILED, _R.SETUP_NEEDED)
TIMEOUT: Final[Verdict] = (_E.TIMEOUT, None)
UNAVAILABLE: Final[Verdict] = (_E.DEPENDENCY_UNAVAILABLE, None)
CREDENTIAL: Final[Verdict] = (_E.CREDENTIAL_MISSING, None)

BY_NAME: Final[dict[str, Verdict]] = {
    # Python's own. An operating system's PermissionError is a failure of the tool; nobody's policy decided it.
    "builtins.TimeoutError": TIMEOUT,
    "builtins.ConnectionError": UNAVAILABLE,
    "builtins.PermissionError": FAILED_BY_SETUP,
    "builtins.FileNotFoundError": FAILED_BY_VALUES,
    "builtins.FileExistsError": FAILED_BY_VALUES,
    "builtins.IsADirectoryError": FAILED_BY_VALUES,
    "builtins.NotADirectoryError": FAILED_BY_VALUES,
    "builtins.NotImplementedError": (_E.CAPABILITY_GAP, None),
    "builtins.ImportError": (_E.SETUP_REQUIRED, None),
    "builtins.ArithmeticError": FAILED_BY_VALUES,
    "builtins.LookupError": FAILED_BY_VALUES,
    "builtins.ValueError": FAILED_BY_VALUES,
    "builtins.MemoryError": FAILED,
    "builtins.RecursionError": FAILED,
    "socket.gaierror": UNAVAILABLE,
    "socket.herror": UNAVAILABLE,
    "ssl.SSLCertVerificationError": (_E.DEPENDENCY_UNAVAILABLE, _R.SETUP_NEEDED),
    "ssl.SSLError": UNAVAILABLE,
    "http.client.HTTPException": UNAVAILABLE,
    "subprocess.TimeoutExpired": TIMEOUT,
    "queue.Empty": TIMEOUT,
    "sqlite3.OperationalError": UNAVAILABLE,
    "sqlite3.DataError": FAILED_BY_VALUES,
    "sqlite3.IntegrityError": FAILED_BY_VALUES,
    # HTTP clients, where there is no status
    "requests.exceptions.Timeout": TIMEOUT,
    "requests.exceptions.ConnectionError": UNAVAILABLE,
    "requests.exceptions.ChunkedEncodingError": UNAVAILABLE,
    "urllib3.exceptions.TimeoutError": TIMEOUT,
    "urllib3.exceptions.HTTPError": UNAVAILABLE,
    "urllib.error.URLError": UNAVAILABLE,
    "httpx.TimeoutException": TIMEOUT,
    "httpx.TransportError": UNAVAILABLE,
    "httpx.UnsupportedProtocol": FAILED_BY_VALUES,
    "httpx.InvalidURL": FAILED_BY_VALUES,
    "aiohttp.client_exceptions.ServerTimeoutError": TIMEOUT,
    "aiohttp.client_exceptions.ClientConnectionError": UNAVAILABLE,
    "aiohttp.client_exceptions.ClientPayloadError": UNAVAILABLE,
    "httpcore.TimeoutException": TIMEOUT,
    "httpcore.NetworkError": UNAVAILABLE,
    # data stores and clouds
    "sqlalchemy.exc.OperationalError": UNAVAILABLE,
    "sqlalchemy.exc.TimeoutError": TIMEOUT,
    "sqlalchemy.exc.DataError": FAILED_BY_VALUES,
    "sqlalchemy.exc.IntegrityError": FAILED_BY_VALUES,
    "psycopg.OperationalError": UNAVAILABLE,
    "redis.exceptions.TimeoutError": TIMEOUT,
    "redis.exceptions.ConnectionError": UNAVAILABLE,
    "redis.exceptions.AuthenticationError": CREDENTIAL,
    "botocore.exceptions.NoCredentialsError": CREDENTIAL,
    "botocore.exceptions.PartialCredentialsError": CREDENTIAL,
    "botocore.exceptions.EndpointConnectionError": UNAVAILABLE,
    "botocore.exceptions.ReadTimeoutError": TIMEOUT,
    "botocore.exceptions.ConnectTimeoutError": TIMEOUT,
    "google.auth.exceptions.DefaultCredentialsError": CREDENTIAL,
    "google.auth.exceptions.RefreshError": CREDENTIAL,
    "azure.core.exceptions.ClientAuthenticationError": CREDENTIAL,
    "azure.core.exceptions.ServiceRequestError": UNAVAILABLE,
    # agent frameworks
    "langchain_core.tools.base.ToolException": FAILED,
    "langgraph.prebuilt.tool_node.ToolInvocationError": (_E.INVALID_ARGUMENTS, None),
    "mcp.server.fastmcp.exceptions.ToolError": FAILED,
    "mcp.server.mcpserver.exceptions.ToolError": FAILED,
    "fastmcp.exceptions.ToolError": FAILED,
    "fastmcp.exceptions.ValidationError": (_E.INVALID_ARGUMENTS, None),
    "fastmcp.exceptions.NotFoundError": (_E.UNKNOWN_TOOL, None),
    "pydantic_ai.exceptions.ModelRetry": (_E.INVALID_ARGUMENTS, None),
    "pydantic_ai.exceptions.ToolFailed": FAILED,
    "pydantic_ai.exceptions.UsageLimitExceeded": (_E.RATE_LIMITED, _R.NOT_RECOVERABLE),
    "playwright._impl._errors.TimeoutError": TIMEOUT,
    "playwright._impl._errors.TargetClosedError": UNAVAILABLE,
}
"""Verdicts by qualified class name; the nearest base in the method resolution order counts."""

BY_ERRNO: Final[dict[int, Verdict]] = {
    errno.ENOSPC: FAILED_BY_SETUP,
    errno.EDQUOT: FAILED_BY_SETUP,
    errno.EROFS: FAILED_BY_SETUP,
    errno.EMFILE: UNAVAILABLE,
    errno.ENFILE: UNAVAILABLE,
    errno.EAGAIN: UNAVAILABLE,
    errno.EBUSY: UNAVAILABLE,
    errno.ENETDOWN: UNAVAILABLE,
    errno.ENETUNREACH: UNAVAILABLE,
    errno.EHOSTUNREACH: UNAVAILABLE,
    errno.EHOSTDOWN: UNAVAILABLE,
    errno.EADDRNOTAVAIL: UNAVAILABLE,
    errno.ENAMETOOLONG: FAILED_BY_VALUES,
    errno.EINVAL: FAILED_BY_VALUES,
}
"""Verdicts for an OSError that has no class of its own."""

BY_MCP_CODE: Final[dict[int, Verdict]] = {
    -32700: FAILED,
    -32600: FAILED,
    -32601: (_E.UNKNOWN_TOOL, None),
    -32602: (_E.INVALID_ARGUMENTS, None),
    -32603: FAILED,
    -32001: TIMEOUT,
    -32000: UNAVAILABLE,
    -32002: FAILED_BY_VALUES,
    408: TIMEOUT,
}
"""JSON-RPC and MCP error codes (JSON-RPC 2.0 section 5.1; MCP: -32002 resource not found, -32000 connection closed,
-32001 and, in the 1.x SDK, 408 request timeout)."""

BY_GRPC_CODE: Final[dict[str, Verdict]] = {
    "INVALID_ARGUMENT": (_E.INVALID_ARGUMENTS, None),
    "OUT_OF_RANGE": (_E.INVALID_ARGUMENTS, None),
    "NOT_FOUND": FAILED_BY_VALUES,
    "ALREADY_EXISTS": FAILED_BY_VALUES,
    "UNAUTHENTICATED": CREDENTIAL,
    "PERMISSION_DENIED": CREDENTIAL,
    "DEADLINE_EXCEEDED": TIMEOUT,
    "RESOURCE_EXHAUSTED": (_E.RATE_LIMITED, None),
    "UNAVAILABLE": UNAVAILABLE,
    "UNIMPLEMENTED": (_E.CAPABILITY_GAP, None),
    "CANCELLED": (_E.CANCELED, None),
}
"""gRPC status codes by name; others are plain failures."""

_HTTP: Final[dict[int, Verdict]] = {
    HTTPStatus.BAD_REQUEST: (_E.INVALID_ARGUMENTS, None),
    HTTPStatus.UNAUTHORIZED: CREDENTIAL,
    HTTPStatus.PAYMENT_REQUIRED: (_E.SETUP_REQUIRED, None),
    HTTPStatus.FORBIDDEN: CREDENTIAL,
    HTTPStatus.NOT_FOUND: FAILED_BY_VALUES,
    HTTPStatus.METHOD_NOT_ALLOWED: (_E.CAPABILITY_GAP, None),
    HTTPStatus.PROXY_AUTHENTICATION_REQUIRED: CREDENTIAL,
    HTTPStatus.REQUEST_TIMEOUT: TIMEOUT,
    HTTPStatus.CONFLICT: FAILED_BY_VALUES,
    HTTPStatus.GONE: FAILED_BY_VALUES,
    HTTPStatus.PRECONDITION_FAILED: FAILED_BY_VALUES,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: (_E.INVALID_ARGUMENTS, None),
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: (_E.INVALID_ARGUMENTS, None),
    HTTPStatus.UNPROCESSABLE_ENTITY: (_E.INVALID_ARGUMENTS, None),
    HTTPStatus.LOCKED: UNAVAILABLE,
    HTTPStatus.TOO_EARLY: UNAVAILABLE,
    HTTPStatus.TOO_MANY_REQUESTS: (_E.RATE_LIMITED, None),
    HTTPStatus.NOT_IMPLEMENTED: (_E.CAPABILITY_GAP, None),
    HTTPStatus.GATEWAY_TIMEOUT: TIMEOUT,
}


def for_http_status(status: int) -> Verdict:
    """Return the verdict for an HTTP status of 400 and above."""
    known = _HTTP.get(status)
    if known is not None:
        return known
    return UNAVAILABLE if status >= HTTPStatus.INTERNAL_SERVER_ERROR else FAILED
