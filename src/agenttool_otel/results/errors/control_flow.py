"""Exceptions that are no errors: pauses of frameworks, and cancellation.

A framework's interrupt that is caught, wrapped or counted as a failure breaks the framework: the
graph does not pause, the approval is lost. They are recognised by the qualified names along their
class's bases, so that no framework is imported for it and subclasses count too.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from typing import Final

from agenttool_otel.names import AbortReason
from agenttool_otel.results.errors.error_tables import PAUSES
from agenttool_otel.results.errors.native_errors import peek
from agenttool_otel.values.inspection import mro_names

_MCP_ERRORS: Final = frozenset({("mcp", "McpError"), ("mcp", "MCPError")})
_MCP_URL_ELICITATION: Final = -32042
_CANCELLATIONS: Final[tuple[tuple[type[BaseException], AbortReason], ...]] = (
    (asyncio.CancelledError, AbortReason.UNKNOWN),
    (concurrent.futures.CancelledError, AbortReason.UNKNOWN),
    (KeyboardInterrupt, AbortReason.USER_INTERRUPTION),
    (GeneratorExit, AbortReason.ABANDONED),
    (SystemExit, AbortReason.RUNTIME_SHUTDOWN),
)


def control_flow(exception: BaseException, extra: frozenset[str] = frozenset()) -> bool:
    """Tell whether an exception is a framework's pause or jump, which passes through untouched and
    is no error.

    A group counts when all of its members do.
    """
    if isinstance(exception, BaseExceptionGroup):
        return bool(exception.exceptions) and all(
            control_flow(inner, extra) for inner in exception.exceptions
        )
    for name in mro_names(type(exception)):
        if name in extra:
            return True
        identity = (name.partition(".")[0], name.rpartition(".")[2])
        if identity in PAUSES:
            return True
        if identity in _MCP_ERRORS:
            return mcp_code(exception) == _MCP_URL_ELICITATION
    return False


def jump(exception: BaseException) -> bool:
    """Tell whether a control-flow exception ends the tool for good and goes on elsewhere, instead
    of pausing it.
    """
    return any(
        name.partition(".")[0] == "langgraph" and name.rpartition(".")[2] == "ParentCommand"
        for name in mro_names(type(exception))
    )


def cancellation(exception: BaseException) -> AbortReason | None:
    """Return why the call was stopped, or ``None`` for an exception that is no cancellation.

    ``asyncio.CancelledError`` does not say who cancelled; a caller who knows better (a timeout, a
    failed sibling, a shutdown) replaces the reason. A group counts when all of its members do; the
    first one's reason stands.
    """
    if isinstance(exception, BaseExceptionGroup):
        reasons = [cancellation(inner) for inner in exception.exceptions]
        return reasons[0] if reasons and all(reason is not None for reason in reasons) else None
    for base, reason in _CANCELLATIONS:
        if isinstance(exception, base):
            return reason
    if any(
        name in ("trio.Cancelled", "trio._core._exceptions.Cancelled")
        for name in mro_names(type(exception))
    ):
        return AbortReason.UNKNOWN
    return None


def mcp_code(exception: BaseException) -> int | None:
    """Return the JSON-RPC code of an MCP SDK error (1.x ``McpError`` and 2.x ``MCPError``), if it
    has one.
    """
    code = peek(peek(exception, "error"), "code")
    return code if type(code) is int else None
