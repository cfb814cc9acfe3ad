"""What differs between the releases 2.x and 1.x of MCP's Python SDK. The proxy needs 2.x."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import mcp
from mcp import ClientSession

IS_FIRST: Final = not hasattr(mcp, "Client")
"""Whether 1.x is installed."""

if TYPE_CHECKING or not IS_FIRST:
    from mcp import Client, MCPError
    from mcp_types import (
        INTERNAL_ERROR,
        INVALID_PARAMS,
        SERVER_INFO_META_KEY,
        CallToolResult,
        ElicitResult,
        ListToolsResult,
        PaginatedRequestParams,
        Tool,
    )
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS
else:
    from mcp import McpError as MCPError
    from mcp.types import (
        INTERNAL_ERROR,
        INVALID_PARAMS,
        CallToolResult,
        ElicitResult,
        ListToolsResult,
        PaginatedRequestParams,
        Tool,
    )

    MODERN_PROTOCOL_VERSIONS = ()
    SERVER_INFO_META_KEY = ""  # of 2.x alone

    class Client:
        """Stands for the class that 1.x does not have: its only client is a session."""


__all__ = [
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "IS_FIRST",
    "MODERN_PROTOCOL_VERSIONS",
    "SERVER_INFO_META_KEY",
    "CallToolResult",
    "Client",
    "ClientSession",
    "ElicitResult",
    "ListToolsResult",
    "MCPError",
    "PaginatedRequestParams",
    "Tool",
    "client_capabilities",
    "client_info",
    "keep_version",
    "method_of",
    "next_cursor",
    "protocol_error",
    "protocol_version",
]


def protocol_error(code: int, message: str) -> MCPError:
    """Return an error of the protocol, to be raised by a server.

    Args:
        code: Its number.
        message: Its text.
    """
    if not IS_FIRST:
        return MCPError(code=code, message=message)
    from mcp.types import ErrorData

    first: Any = MCPError
    error: MCPError = first(ErrorData(code=code, message=message))
    return error


def next_cursor(page: ListToolsResult) -> str | None:
    """Return where a list of tools goes on.

    Args:
        page: One page of it.
    """
    found: Any = page
    cursor: str | None = found.nextCursor if IS_FIRST else found.next_cursor
    return cursor


_agreed: Final[WeakKeyDictionary[Any, str]] = WeakKeyDictionary()
"""By sessions of 1.x, which do not keep it: the version of the protocol that they agreed on."""


def keep_version(session: Any, initialized: Any) -> None:
    """Keep the version of the protocol that a client's session has agreed on with its server.

    Args:
        session: A session of the SDK.
        initialized: What its ``initialize`` returned.
    """
    if IS_FIRST:
        _agreed[session] = str(initialized.protocolVersion)


def protocol_version(session: Any) -> str:
    """Return the version of the protocol that a client's session has agreed on; empty where it is not known.

    Args:
        session: A session of the SDK.
    """
    if IS_FIRST:
        return _agreed.get(session, "")
    return getattr(session, "protocol_version", None) or ""


def method_of(request: Any) -> str | None:
    """Return the method of a request that a client sends.

    Args:
        request: The request; in 1.x it may be in a ``ClientRequest``.
    """
    return getattr(getattr(request, "root", request), "method", None)


def client_capabilities(session: Any) -> Any:
    """Return what the client of a server's session can do; ``None`` where it has not been asked.

    Args:
        session: The session of a request.
    """
    if not IS_FIRST:
        return session.client_capabilities
    params = session.client_params
    return None if params is None else params.capabilities


def client_info(session: Any) -> Any:
    """Return what the client of a server's session calls itself; ``None`` where it does not.

    Args:
        session: The session of a request.
    """
    params = session.client_params
    if params is None:
        return None
    return params.clientInfo if IS_FIRST else params.client_info
