"""A server of the SDK's releases 1.x: its handlers of tools behind what decides.

2.x has middleware for that. 1.x looks its handlers up in a dictionary, with ``get`` for a request of a
client, and by index for its own list of tools, which has to stay whole.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import mcp.types as wire
from opentelemetry import context as otel_context
from opentelemetry import propagate
from pydantic import BaseModel

from agenttool_otel.integrations.mcp.sdk import INVALID_PARAMS, protocol_error

if TYPE_CHECKING:
    types: Any
else:
    types = wire

_REQUESTS: Final[dict[str, Any]] = {
    "tools/list": types.ListToolsRequest,
    "tools/call": types.CallToolRequest,
}
_METHODS: Final = {request: method for method, request in _REQUESTS.items()}
_RESULTS: Final[dict[str, Any]] = {
    "tools/list": types.ListToolsResult,
    "tools/call": types.CallToolResult,
}

_Handler = Callable[[Any], Awaitable[Any]]
_Decides = Callable[[Any, Callable[[Any], Awaitable[Any]]], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class RequestContext:
    """What of a request 2.x gives to its middleware."""

    method: str
    params: Mapping[str, Any] | None
    request_id: str | int | None
    session: Any
    protocol_version: str
    request: Any  # that of HTTP


def put_before(server: Any, decides: _Decides) -> None:
    """Let a server's tools be listed and called by what decides, those of later handlers, too.

    Args:
        server: A ``Server`` or ``FastMCP``.
        decides: Takes the request's context, and what runs the handler.
    """
    low_level = getattr(server, "_mcp_server", server)
    low_level.request_handlers = _Handlers(low_level, decides)


class _Handlers(dict[type, _Handler]):
    """A server's handlers by the class of their request."""

    def __init__(self, server: Any, decides: _Decides) -> None:
        super().__init__(server.request_handlers)
        self._server = server
        self._decides = decides

    def get(self, key: type, default: Any = None) -> Any:
        """Return the handler of a client's request.

        Args:
            key: The request's class.
            default: Returned where there is none.
        """
        method = _METHODS.get(key)
        if method is None or key not in self:
            return super().get(key, default)
        return partial(self._decided, method)

    async def _decided(self, method: str, request: Any) -> Any:
        params = None if request is None else _as_dict(request).get("params")
        if (params or {}).get("task") is not None:
            # its result would be had by tasks/result, as the tool gave it
            raise protocol_error(INVALID_PARAMS, "a governed server runs no tasks")
        around = self._server.request_context
        context = RequestContext(
            method=method,
            params=params,
            request_id=around.request_id,
            session=around.session,
            protocol_version=_version(around.session),
            request=around.request,
        )
        # a client that sends no trace leaves the span of an HTTP server around the call
        meta = (params or {}).get("_meta") or {}
        token = otel_context.attach(propagate.extract(meta, otel_context.get_current()))
        try:
            result = await self._decides(context, self._run)
        finally:
            otel_context.detach(token)
        if isinstance(result, BaseModel):
            return result
        return types.ServerResult(_RESULTS[method].model_validate(result))

    async def _run(self, context: RequestContext) -> Any:
        kind = _REQUESTS[context.method]
        request = kind.model_validate({"method": context.method, "params": context.params})
        return _as_dict(await self[kind](request))


def _as_dict(model: Any) -> dict[str, Any]:
    found: dict[str, Any] = model.model_dump(by_alias=True, mode="json", exclude_none=True)
    return found


def _version(session: Any) -> str:
    """Return the version of the protocol that a session speaks; empty of one without a handshake."""
    params = session.client_params
    if params is None:
        return ""
    from mcp.shared.version import (  # type: ignore[import-not-found]
        SUPPORTED_PROTOCOL_VERSIONS,
    )

    asked = str(params.protocolVersion)
    return asked if asked in SUPPORTED_PROTOCOL_VERSIONS else str(types.LATEST_PROTOCOL_VERSION)
