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
_TRIO_CANCELLED: Final = frozenset({"trio.Cancelled", "trio._core._exceptions.Cancelled"})
_CANCELLATIONS: Final[tuple[tuple[type[BaseException], AbortReason], ...]] = (
    (asyncio.CancelledError, AbortReason.UNKNOWN),
    (concurrent.futures.CancelledError, AbortReason.UNKNOWN),
    (KeyboardInterrupt, AbortReason.USER_INTERRUPTION),
    (GeneratorExit, AbortReason.ABANDONED),
    (SystemExit, AbortReason.RUNTIME_SHUTDOWN),
)


def control_flow(exception: BaseException, extra: frozenset[str] = frozenset()) -> bool:
    """Return whether an exception is a framework's pause or jump, which passes through untouched and
    is no error.

    A group counts when all of its members do.

    Args:
        exception: what the tool raised.
        extra: qualified names of further classes that are pauses.
    """
    if isinstance(exception, BaseExceptionGroup):
        members = exception.exceptions
        return bool(members) and all(control_flow(member, extra) for member in members)
    for name in mro_names(type(exception)):
        if name in extra:
            return True
        identity = _identity(name)
        if identity in PAUSES:
            return True
        if identity in _MCP_ERRORS:
            # McpError is any error of the protocol; -32042 asks the user to open a URL
            return mcp_code(exception) == _MCP_URL_ELICITATION
    return False


def jump(exception: BaseException) -> bool:
    """Return whether a control-flow exception ends the tool for good and goes on elsewhere, instead
    of pausing it.
    """
    names = mro_names(type(exception))
    return any(_identity(name) == ("langgraph", "ParentCommand") for name in names)


def _identity(name: str) -> tuple[str, str]:
    """Return the package and the class of a qualified name."""
    return name.partition(".")[0], name.rpartition(".")[2]


def cancellation(exception: BaseException) -> AbortReason | None:
    """Return why the call was stopped, or ``None`` for an exception that is no cancellation.

    ``asyncio.CancelledError`` does not name who cancelled; a caller who has it (a timeout, a failed
    sibling, a shutdown) replaces the reason. A group counts when all of its members do; the first
    member's reason stands.
    """
    if isinstance(exception, BaseExceptionGroup):
        reasons = [cancellation(member) for member in exception.exceptions]
        return None if None in reasons else reasons[0]
    for base, reason in _CANCELLATIONS:
        if isinstance(exception, base):
            return reason
    # trio is not imported for it
    if _TRIO_CANCELLED.isdisjoint(mro_names(type(exception))):
        return None
    return AbortReason.UNKNOWN


def mcp_code(exception: BaseException) -> int | None:
    """Return the JSON-RPC code of an MCP SDK error (1.x ``McpError`` and 2.x ``MCPError``), if it
    has any.
    """
    error = peek(exception, "error")
    code = peek(error, "code")
    return code if type(code) is int else None
