"""The tables behind error mapping (errors.toml): exception classes by qualified name, HTTP
statuses, JSON-RPC codes.
"""

from __future__ import annotations

import errno
from functools import cache
from http import HTTPStatus
from typing import Any, Final

from agenttool_otel.names import ErrorClass, Recoverability
from agenttool_otel.values.tables import load_table

Verdict = tuple[ErrorClass, Recoverability | None]
"""An error class, and a recoverability where the native error says more than the class's row of the
taxonomy.
"""


@cache
def _verdict(text: str) -> Verdict:
    error_class, _, recoverability = text.partition(" ")
    return ErrorClass(error_class), Recoverability(recoverability) if recoverability else None


def _verdicts(kind: str) -> dict[Any, Verdict]:
    return {entry: _verdict(text) for text, entries in _TABLES[kind].items() for entry in entries}


_TABLES: Final[dict[str, Any]] = load_table(__package__, "errors.toml")
FAILED: Final = _verdict("execution_failed")
BY_NAME: Final = _verdicts("names")
BY_ERRNO: Final = {
    getattr(errno, name, None): verdict for name, verdict in _verdicts("errno").items()
}
BY_MCP_CODE: Final = _verdicts("mcp")
BY_GRPC_CODE: Final = _verdicts("grpc")
NEVER_RETRIED: Final = frozenset(map(ErrorClass, _TABLES["never_retried"]))
PAUSES: Final = frozenset(
    (package, name) for package, names in _TABLES["pauses"].items() for name in names
)
_BY_HTTP_STATUS: Final = _verdicts("http")


def for_http_status(status: int) -> Verdict:
    """Return the verdict for an HTTP status of 400 and above."""
    unavailable = status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return _BY_HTTP_STATUS.get(
        status, _verdict("dependency_unavailable") if unavailable else FAILED
    )
