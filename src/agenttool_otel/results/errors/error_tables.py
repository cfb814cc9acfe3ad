"""What a native error is to the standard: exception classes, HTTP statuses and error codes, each with
its error class.

A class of the taxonomy has a recoverability of its own; a verdict names another where the native
error is more definite: a missing file is a failed execution, and other arguments would mend it.
"""

from __future__ import annotations

import errno
from http import HTTPStatus
from typing import Final, NamedTuple

from agenttool_otel.names import ErrorClass, Recoverability


class Verdict(NamedTuple):
    """What a native error is to the standard."""

    error_class: ErrorClass
    # where the native error is more definite than the taxonomy's row of its class
    recoverability: Recoverability | None = None


TIMEOUT: Final = Verdict(ErrorClass.TIMEOUT)
DEPENDENCY_UNAVAILABLE: Final = Verdict(ErrorClass.DEPENDENCY_UNAVAILABLE)
SETUP_NEEDED: Final = Verdict(ErrorClass.EXECUTION_FAILED, Recoverability.SETUP_NEEDED)
WRONG_ARGUMENTS: Final = Verdict(ErrorClass.EXECUTION_FAILED, Recoverability.CHANGE_ARGUMENTS)
CAPABILITY_GAP: Final = Verdict(ErrorClass.CAPABILITY_GAP)
SETUP_REQUIRED: Final = Verdict(ErrorClass.SETUP_REQUIRED)
FAILED: Final = Verdict(ErrorClass.EXECUTION_FAILED)
UNTRUSTED_SERVER: Final = Verdict(ErrorClass.DEPENDENCY_UNAVAILABLE, Recoverability.SETUP_NEEDED)
CREDENTIAL_MISSING: Final = Verdict(ErrorClass.CREDENTIAL_MISSING)
INVALID_ARGUMENTS: Final = Verdict(ErrorClass.INVALID_ARGUMENTS)
UNKNOWN_TOOL: Final = Verdict(ErrorClass.UNKNOWN_TOOL)
BUDGET_SPENT: Final = Verdict(ErrorClass.RATE_LIMITED, Recoverability.NOT_RECOVERABLE)
RATE_LIMITED: Final = Verdict(ErrorClass.RATE_LIMITED)
CANCELED: Final = Verdict(ErrorClass.CANCELED)
SANDBOX_VIOLATION: Final = Verdict(ErrorClass.SANDBOX_VIOLATION)

# By qualified name, so that no library is imported; the nearest class in the method resolution order
# counts.
BY_NAME: Final[dict[str, Verdict]] = {
    "builtins.TimeoutError": TIMEOUT,
    "builtins.ConnectionError": DEPENDENCY_UNAVAILABLE,
    # the operating system refused the tool; no policy decided that
    "builtins.PermissionError": SETUP_NEEDED,
    "builtins.FileNotFoundError": WRONG_ARGUMENTS,
    "builtins.FileExistsError": WRONG_ARGUMENTS,
    "builtins.IsADirectoryError": WRONG_ARGUMENTS,
    "builtins.NotADirectoryError": WRONG_ARGUMENTS,
    "builtins.ArithmeticError": WRONG_ARGUMENTS,
    # KeyError and IndexError: the tool was given a name that it does not have
    "builtins.LookupError": WRONG_ARGUMENTS,
    "builtins.ValueError": WRONG_ARGUMENTS,
    "builtins.NotImplementedError": CAPABILITY_GAP,
    "builtins.ImportError": SETUP_REQUIRED,
    "builtins.MemoryError": FAILED,
    "builtins.RecursionError": FAILED,
    "socket.gaierror": DEPENDENCY_UNAVAILABLE,
    "socket.herror": DEPENDENCY_UNAVAILABLE,
    "ssl.SSLError": DEPENDENCY_UNAVAILABLE,
    # its base, ssl.SSLError, is a dependency that failed; here trust has to be set up
    "ssl.SSLCertVerificationError": UNTRUSTED_SERVER,
    "queue.Empty": TIMEOUT,
    "subprocess.TimeoutExpired": TIMEOUT,
    "http.client.HTTPException": DEPENDENCY_UNAVAILABLE,
    # HTTPError is one too, and is read by its status before
    "urllib.error.URLError": DEPENDENCY_UNAVAILABLE,
    "sqlite3.OperationalError": DEPENDENCY_UNAVAILABLE,
    "sqlite3.DataError": WRONG_ARGUMENTS,
    "sqlite3.IntegrityError": WRONG_ARGUMENTS,
    "requests.exceptions.Timeout": TIMEOUT,
    "requests.exceptions.ConnectionError": DEPENDENCY_UNAVAILABLE,
    "requests.exceptions.ChunkedEncodingError": DEPENDENCY_UNAVAILABLE,
    "urllib3.exceptions.TimeoutError": TIMEOUT,
    "urllib3.exceptions.HTTPError": DEPENDENCY_UNAVAILABLE,
    "httpx.TimeoutException": TIMEOUT,
    "httpx.TransportError": DEPENDENCY_UNAVAILABLE,
    "httpx.UnsupportedProtocol": WRONG_ARGUMENTS,
    "httpx.InvalidURL": WRONG_ARGUMENTS,
    "httpcore.TimeoutException": TIMEOUT,
    "httpcore.NetworkError": DEPENDENCY_UNAVAILABLE,
    "aiohttp.client_exceptions.ServerTimeoutError": TIMEOUT,
    "aiohttp.client_exceptions.ClientConnectionError": DEPENDENCY_UNAVAILABLE,
    "aiohttp.client_exceptions.ClientPayloadError": DEPENDENCY_UNAVAILABLE,
    "azure.core.exceptions.ServiceRequestError": DEPENDENCY_UNAVAILABLE,
    "azure.core.exceptions.ClientAuthenticationError": CREDENTIAL_MISSING,
    "botocore.exceptions.ReadTimeoutError": TIMEOUT,
    "botocore.exceptions.ConnectTimeoutError": TIMEOUT,
    "botocore.exceptions.EndpointConnectionError": DEPENDENCY_UNAVAILABLE,
    "botocore.exceptions.NoCredentialsError": CREDENTIAL_MISSING,
    "botocore.exceptions.PartialCredentialsError": CREDENTIAL_MISSING,
    "fastmcp.exceptions.ToolError": FAILED,
    "fastmcp.exceptions.ValidationError": INVALID_ARGUMENTS,
    "fastmcp.exceptions.NotFoundError": UNKNOWN_TOOL,
    "google.auth.exceptions.DefaultCredentialsError": CREDENTIAL_MISSING,
    "google.auth.exceptions.RefreshError": CREDENTIAL_MISSING,
    "langchain_core.tools.base.ToolException": FAILED,
    "langgraph.prebuilt.tool_node.ToolInvocationError": INVALID_ARGUMENTS,
    # raised by a tool's own body; the SDK reports it as isError
    "mcp.server.fastmcp.exceptions.ToolError": FAILED,
    "mcp.server.mcpserver.exceptions.ToolError": FAILED,
    "playwright._impl._errors.TimeoutError": TIMEOUT,
    "playwright._impl._errors.TargetClosedError": DEPENDENCY_UNAVAILABLE,
    "psycopg.OperationalError": DEPENDENCY_UNAVAILABLE,
    "pydantic_ai.exceptions.ToolFailed": FAILED,
    # how a pydantic-ai tool asks the model for other arguments
    "pydantic_ai.exceptions.ModelRetry": WRONG_ARGUMENTS,
    # the run's own budget: waiting does not help
    "pydantic_ai.exceptions.UsageLimitExceeded": BUDGET_SPENT,
    "redis.exceptions.TimeoutError": TIMEOUT,
    "redis.exceptions.ConnectionError": DEPENDENCY_UNAVAILABLE,
    "redis.exceptions.AuthenticationError": CREDENTIAL_MISSING,
    "sqlalchemy.exc.TimeoutError": TIMEOUT,
    "sqlalchemy.exc.OperationalError": DEPENDENCY_UNAVAILABLE,
    "sqlalchemy.exc.DataError": WRONG_ARGUMENTS,
    "sqlalchemy.exc.IntegrityError": WRONG_ARGUMENTS,
}

# An OSError without a class of its own: ``OSError(errno.ENOSPC, "No space left on device")``.
BY_ERRNO: Final[dict[int | None, Verdict]] = {
    errno.ENOSPC: SETUP_NEEDED,
    errno.EDQUOT: SETUP_NEEDED,
    errno.EROFS: SETUP_NEEDED,
    errno.EMFILE: DEPENDENCY_UNAVAILABLE,
    errno.ENFILE: DEPENDENCY_UNAVAILABLE,
    errno.EAGAIN: DEPENDENCY_UNAVAILABLE,
    errno.EBUSY: DEPENDENCY_UNAVAILABLE,
    errno.ENETDOWN: DEPENDENCY_UNAVAILABLE,
    errno.ENETUNREACH: DEPENDENCY_UNAVAILABLE,
    errno.EHOSTUNREACH: DEPENDENCY_UNAVAILABLE,
    errno.EHOSTDOWN: DEPENDENCY_UNAVAILABLE,
    errno.EADDRNOTAVAIL: DEPENDENCY_UNAVAILABLE,
    errno.ENAMETOOLONG: WRONG_ARGUMENTS,
    errno.EINVAL: WRONG_ARGUMENTS,
}

# JSON-RPC 2.0, section 5.1; MCP: -32002 resource not found, -32000 connection closed, -32001 and, in
# the 1.x SDK, 408 request timeout.
BY_MCP_CODE: Final[dict[int, Verdict]] = {
    -32700: FAILED,
    -32600: FAILED,
    -32603: FAILED,
    -32601: UNKNOWN_TOOL,
    -32602: INVALID_ARGUMENTS,
    -32001: TIMEOUT,
    408: TIMEOUT,
    -32000: DEPENDENCY_UNAVAILABLE,
    -32002: WRONG_ARGUMENTS,
}

# gRPC status codes by name; others are plain failures.
BY_GRPC_CODE: Final[dict[str, Verdict]] = {
    "INVALID_ARGUMENT": INVALID_ARGUMENTS,
    "OUT_OF_RANGE": INVALID_ARGUMENTS,
    "NOT_FOUND": WRONG_ARGUMENTS,
    "ALREADY_EXISTS": WRONG_ARGUMENTS,
    "UNAUTHENTICATED": CREDENTIAL_MISSING,
    "PERMISSION_DENIED": CREDENTIAL_MISSING,
    "DEADLINE_EXCEEDED": TIMEOUT,
    "RESOURCE_EXHAUSTED": RATE_LIMITED,
    "UNAVAILABLE": DEPENDENCY_UNAVAILABLE,
    "UNIMPLEMENTED": CAPABILITY_GAP,
    "CANCELLED": CANCELED,
}

_BY_HTTP_STATUS: Final[dict[int, Verdict]] = {
    HTTPStatus.BAD_REQUEST: INVALID_ARGUMENTS,
    HTTPStatus.UNAUTHORIZED: CREDENTIAL_MISSING,
    HTTPStatus.PAYMENT_REQUIRED: SETUP_REQUIRED,
    HTTPStatus.FORBIDDEN: CREDENTIAL_MISSING,
    HTTPStatus.NOT_FOUND: WRONG_ARGUMENTS,
    HTTPStatus.METHOD_NOT_ALLOWED: CAPABILITY_GAP,
    HTTPStatus.PROXY_AUTHENTICATION_REQUIRED: CREDENTIAL_MISSING,
    HTTPStatus.REQUEST_TIMEOUT: TIMEOUT,
    HTTPStatus.CONFLICT: WRONG_ARGUMENTS,
    HTTPStatus.GONE: WRONG_ARGUMENTS,
    HTTPStatus.PRECONDITION_FAILED: WRONG_ARGUMENTS,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: INVALID_ARGUMENTS,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: INVALID_ARGUMENTS,
    HTTPStatus.UNPROCESSABLE_ENTITY: INVALID_ARGUMENTS,
    HTTPStatus.LOCKED: DEPENDENCY_UNAVAILABLE,
    HTTPStatus.TOO_EARLY: DEPENDENCY_UNAVAILABLE,
    HTTPStatus.TOO_MANY_REQUESTS: RATE_LIMITED,
    HTTPStatus.NOT_IMPLEMENTED: CAPABILITY_GAP,
    HTTPStatus.GATEWAY_TIMEOUT: TIMEOUT,
}

# What a policy or a person decided, or what the same call can't change, is never retried, whatever a
# profile lists in ``retry_on``.
NEVER_RETRIED: Final = frozenset(
    {
        ErrorClass.PERMISSION_DENIED,
        ErrorClass.APPROVAL_REJECTED,
        ErrorClass.POLICY_BLOCKED,
        ErrorClass.HOOK_BLOCKED,
        ErrorClass.BLOCKED_TOOL,
        ErrorClass.UNKNOWN_TOOL,
        ErrorClass.SCHEMA_NOT_LOADED,
        ErrorClass.SCHEMA_VALIDATION_FAILED,
        ErrorClass.SANDBOX_VIOLATION,
        ErrorClass.CANCELED,
        ErrorClass.SIBLING_CANCELED,
    }
)

# Exceptions that are no errors but a framework's pause: top-level package and class name. The modules
# between them move from release to release: ``langgraph.errors.GraphInterrupt``.
PAUSES: Final = frozenset(
    {
        ("agenttool_otel", "ApprovalRequired"),
        ("agenttool_otel", "ResultRequired"),
        ("langgraph", "GraphBubbleUp"),
        ("langgraph", "GraphInterrupt"),
        ("langgraph", "NodeInterrupt"),
        ("langgraph", "ParentCommand"),
        ("llama_index", "WaitingForEvent"),
        ("mcp", "InputRequiredError"),
        ("mcp", "UrlElicitationRequiredError"),
        ("pydantic_ai", "ApprovalRequired"),
        ("pydantic_ai", "CallDeferred"),
        ("pydantic_ai", "SkipToolExecution"),
        ("workflows", "WaitingForEvent"),
    }
)


def for_http_status(status: int) -> Verdict:
    """Return the verdict for an HTTP status of 400 and above."""
    known = _BY_HTTP_STATUS.get(status)
    if known is not None:
        return known
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return DEPENDENCY_UNAVAILABLE
    return FAILED
