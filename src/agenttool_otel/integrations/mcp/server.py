"""A server under governance: each call of its tools is decided before the tool runs."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import ValidationError

from agenttool_otel.approvals.identity import args_digest
from agenttool_otel.approvals.types import ApprovalAnswer
from agenttool_otel.call.runtime import Runtime
from agenttool_otel.call.sandbox import ProcessSandbox
from agenttool_otel.call.tool import GovernedTool
from agenttool_otel.catalog import GovernOptions
from agenttool_otel.errors import AgentToolError, ApprovalError
from agenttool_otel.integrations.mcp.asking import (
    ANSWER_KEY,
    FORM,
    answer_of,
    answers_later,
    can_ask,
    client_name,
    question,
    question_text,
)
from agenttool_otel.integrations.mcp.calls import McpCall, McpServerFailed, text_result
from agenttool_otel.integrations.mcp.listing import MAX_PAGES, ServerTools
from agenttool_otel.integrations.mcp.pins import Pins
from agenttool_otel.integrations.mcp.sdk import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    IS_FIRST,
    SERVER_INFO_META_KEY,
    ListToolsResult,
    MCPError,
    Tool,
    protocol_error,
)
from agenttool_otel.names import Mcp
from agenttool_otel.records import McpMapping

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.mcpserver import MCPServer

    _Context = ServerRequestContext[Any, Any]

_logger = logging.getLogger("agenttool_otel.mcp")

_LIST: Final = "tools/list"
_CALL: Final = "tools/call"
_STATE: Final = "agenttool:"
"""Beginning of a request state that stands for a question, and not for the tool's own."""
_MAX_OPEN: Final = 1_000
"""Questions whose answers may come back; the oldest are forgotten, and wait in the store."""

AnyServer = TypeVar("AnyServer", bound="MCPServer | Server[Any]")
_Send = Callable[[dict[str, Any]], Awaitable[Any]]


def govern_server(
    server: AnyServer,
    governor: Runtime | None = None,
    *,
    name: str = "",
    facts: Mapping[str, GovernOptions] | None = None,
    pins: Pins | None = None,
    one_client: bool = False,
) -> AnyServer:
    """Govern the tools of a server of the SDK, those that it gets later included.

    Args:
        server: The server; it is changed, and returned.
        governor: The Governor; ``None`` for the default one.
        name: A part of its tools' namespace; the server's name where not given.
        facts: Facts of its tools, by name or glob.
        pins: What was accepted of its tools; without it any description is taken.
        one_client: Whether all requests are one client's, as over standard input. The same call,
            made again, then goes on with the one that waits for a person.
    """
    tools = ServerTools(governor, name or server.name, facts=facts, pins=pins)
    decide_calls(server, tools, one_client=one_client)
    return server


def decide_calls(
    server: MCPServer | Server[Any],
    tools: ServerTools,
    *,
    one_client: bool,
    process: ProcessSandbox | None = None,
) -> None:
    """Let the calls of a server be decided.

    Args:
        server: The server; it is changed.
        tools: Its tools.
        one_client: Whether all requests are one client's.
        process: What holds the process behind a proxy, which the proxy has started.
    """
    stamp = getattr(server, "server_info_stamp", None)
    calls = GovernedCalls(tools, one_client=one_client, stamp=stamp, process=process)
    if IS_FIRST:
        from agenttool_otel.integrations.mcp.first_sdk import put_before

        put_before(server, calls)
    else:
        server.middleware.append(calls)


class GovernedCalls:
    """What stands between a server's requests and their handlers.

    Args:
        tools: The tools of the server.
        one_client: Whether all requests are one client's.
        stamp: What the SDK writes into each result of this server: its name and version. They are the
            host's words, and none of the tool's.
        process: What holds the process that runs the tools, where the host has started it held.
    """

    def __init__(
        self,
        tools: ServerTools,
        *,
        one_client: bool,
        stamp: dict[str, Any] | None = None,
        process: ProcessSandbox | None = None,
    ) -> None:
        self._tools = tools
        self._one_client = one_client
        self._stamp = stamp
        self._process = process
        self._asked: dict[str, str] = {}  # invocation ids by request state, or by the call's digest

    async def __call__(self, ctx: _Context, call_next: CallNext) -> HandlerResult:
        """Decide a tool call, filter a list of tools, and pass on everything else.

        Args:
            ctx: The request's context.
            call_next: Runs the handler.
        """
        if ctx.method == _LIST:
            try:
                return await self._list(ctx, call_next)
            except McpServerFailed as error:
                raise protocol_error(INTERNAL_ERROR, str(error)) from None
        if ctx.method == _CALL:
            return self._complete(ctx, await self._call(ctx, call_next))
        return await call_next(ctx)

    # --- lists ------------------------------------------------------------------------------------

    async def _list(self, ctx: _Context, call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        whole = _as_dict(result)
        tools = _tools_of(whole)
        self._tools.take(tools)
        shown = {tool.name for tool in self._tools.shown(tools)}
        listed = [tool for tool in whole.get("tools", ()) if tool.get("name") in shown]
        # a result that is redacted or shortened need not fit a schema any more, and a client refuses
        # one that does not
        stripped = [_without(tool, "outputSchema") for tool in listed]
        whole["tools"] = stripped
        if "cacheScope" in whole:
            # the list is of this context's surface
            whole["cacheScope"] = "private"
        return whole

    async def _find(self, name: str, ctx: _Context, call_next: CallNext) -> GovernedTool:
        """Return a tool; where it was not listed yet, the server's own list is read."""
        found = self._tools.find(name)
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            if found is not None:
                return found
            # from 2026-07-28 on, each request has the protocol's version in its _meta
            params: dict[str, Any] = {"_meta": dict((ctx.params or {}).get("_meta") or {})}
            if cursor is not None:
                params["cursor"] = cursor
            whole = _as_dict(await call_next(replace(ctx, method=_LIST, params=params)))
            self._tools.take(_tools_of(whole))
            found = self._tools.find(name)
            cursor = whole.get("nextCursor")
            if not cursor:
                break
        return self._tools.unknown(name) if found is None else found

    # --- calls ------------------------------------------------------------------------------------

    async def _call(self, ctx: _Context, call_next: CallNext) -> HandlerResult:
        params = dict(ctx.params or {})
        name = params.get("name")
        if not isinstance(name, str):
            raise protocol_error(INVALID_PARAMS, "Invalid request parameters")
        try:
            tool = await self._find(name, ctx, call_next)
        except McpServerFailed as error:
            tool = self._tools.unlisted(name, str(error))
        arguments = params.get("arguments")
        if arguments is None:
            arguments = {}
        state = params.get("requestState")
        given: Any = None
        answered = isinstance(state, str) and state.startswith(_STATE)
        if answered:
            given = (params.pop("inputResponses", None) or {}).get(ANSWER_KEY)
            del params["requestState"]

        async def send(changed: dict[str, Any]) -> Any:
            changed_ctx = replace(ctx, params={**params, "arguments": changed})
            return self._unstamped(await call_next(changed_ctx))

        if answered:
            return await self._answered(ctx, tool, arguments, send, (str(state), given))
        call = self._new(ctx, tool, arguments)
        await self._go_on(call, arguments)
        result = await self._run(call, send)
        if not call.waits:
            return result
        return await self._ask(ctx, tool, call, arguments, send, result)

    def _unstamped(self, result: HandlerResult) -> HandlerResult:
        """Return a result without the stamp; one that a tool has written in its place stays."""
        meta = result.get("_meta") if isinstance(result, dict) else None
        if not isinstance(result, dict) or not isinstance(meta, dict):
            return result
        if self._stamp is None or meta.get(SERVER_INFO_META_KEY) != self._stamp:
            return result
        rest = _without(meta, SERVER_INFO_META_KEY)
        return {**result, "_meta": rest} if rest else _without(result, "_meta")

    def _complete(self, ctx: _Context, result: HandlerResult) -> HandlerResult:
        """Return a result with the members that protocol 2026-07-28 asks for: the name of its form,
        and the stamp.
        """
        if not answers_later(ctx) or not isinstance(result, dict):
            return result
        result.setdefault("resultType", "complete")
        meta = result.get("_meta", {})
        if self._stamp is not None and isinstance(meta, dict):
            result["_meta"] = {SERVER_INFO_META_KEY: dict(self._stamp), **meta}
        return result

    def _new(self, ctx: _Context, tool: GovernedTool, arguments: Any) -> McpCall:
        session_id = _session_id(ctx)
        attributes: dict[str, Any] = {
            Mcp.METHOD_NAME: _CALL,
            Mcp.PROTOCOL_VERSION: ctx.protocol_version,
        }
        if session_id is not None:
            attributes[Mcp.SESSION_ID] = session_id
        if isinstance(ctx.request_id, str):
            attributes[Mcp.REQUEST_ID] = ctx.request_id
        mapping = McpMapping(
            server_id=self._tools.server,
            mcp_session_id=session_id,
            mcp_protocol_version=ctx.protocol_version,
            method=_CALL,
            tool_name=tool.spec.name,
            jsonrpc_request_id=ctx.request_id,
        )
        return McpCall(
            tool,
            arguments,
            attributes=attributes,
            mapping=mapping,
            request_number=ctx.request_id if isinstance(ctx.request_id, int) else None,
            process=self._process,
        )

    async def _run(self, call: McpCall, send: _Send) -> dict[str, Any]:
        """Run a call; what a handler raises reaches the client redacted."""
        clean = self._tools.governor.clean
        try:
            return _as_dict(await call.arun(send))
        except McpServerFailed as error:
            return text_result(str(error), is_error=True)
        except MCPError as error:
            raise protocol_error(error.error.code, clean(error.error.message)) from None
        except ValidationError:
            raise  # the SDK answers it without its text
        except Exception as error:
            raise protocol_error(INTERNAL_ERROR, clean(str(error))) from error

    # --- questions --------------------------------------------------------------------------------

    async def _go_on(self, call: McpCall, arguments: Any) -> None:
        """Go on with an earlier call of the same arguments that waits, where it is the same client's."""
        if not self._one_client or not self._asked:
            return
        ref = self._asked.pop(_digest(call, arguments), None)
        if ref is None:
            return
        try:
            await asyncio.to_thread(call.resume, ref)
        except AgentToolError as error:
            # expired, or canceled elsewhere: it is a new call
            _logger.info("%s does not wait any more: %s", ref, type(error).__name__)

    async def _ask(
        self,
        ctx: _Context,
        tool: GovernedTool,
        call: McpCall,
        arguments: Any,
        send: _Send,
        pending: dict[str, Any],
    ) -> HandlerResult:
        """Ask the client's person; where that can't be done, answer that the call waits."""
        request = call.call.decision.request
        if request is None or not can_ask(ctx):
            return self._wait(call, arguments, pending)
        if answers_later(ctx):
            from mcp_types import InputRequiredResult

            state = _STATE + secrets.token_urlsafe(24)
            self._remember(state, call.call.id)
            later = InputRequiredResult(
                input_requests={ANSWER_KEY: question(request)}, request_state=state
            )
            return later.model_dump(by_alias=True, mode="json", exclude_none=True)
        try:
            given = await ctx.session.elicit_form(question_text(request), FORM, ctx.request_id)
        except (MCPError, ValidationError) as error:
            # {"action": "yes"} is no answer
            _logger.warning("the client could not ask: %s", type(error).__name__)
            return self._wait(call, arguments, pending)
        answer = answer_of(given, client_name(ctx))
        if answer is None or not await self._store(call.call.id, answer):
            return self._wait(call, arguments, pending)
        return await self._resume(ctx, tool, call.call.id, arguments, send)

    async def _answered(
        self,
        ctx: _Context,
        tool: GovernedTool,
        arguments: Any,
        send: _Send,
        response: tuple[str, Any],
    ) -> HandlerResult:
        """Go on with a call to which the client made the question's answer come back."""
        state, given = response
        ref = self._asked.pop(state, None)
        if ref is None:
            raise protocol_error(INVALID_PARAMS, "unknown requestState")
        answer = answer_of(given, client_name(ctx))
        if answer is not None:
            await self._store(ref, answer)
        return await self._resume(ctx, tool, ref, arguments, send)

    async def _resume(
        self, ctx: _Context, tool: GovernedTool, ref: str, arguments: Any, send: _Send
    ) -> HandlerResult:
        call = self._new(ctx, tool, arguments)
        try:
            await asyncio.to_thread(call.resume, ref)
        except AgentToolError as error:
            return text_result(f"{tool.spec.name} does not wait any more: {error}", is_error=True)
        result = await self._run(call, send)
        return self._wait(call, arguments, result) if call.waits else result

    async def _store(self, ref: str, answer: ApprovalAnswer) -> bool:
        """Store an answer; return whether it was taken."""
        approvals = self._tools.governor.approvals

        def store() -> None:
            request = approvals.waiting(ref).request
            approvals.store.answer(request.request_id, answer)

        try:
            await asyncio.to_thread(store)
        except ApprovalError as error:
            _logger.warning("the client's answer was not taken: %s", error)
            return False
        return True

    def _wait(self, call: McpCall, arguments: Any, pending: dict[str, Any]) -> dict[str, Any]:
        if self._one_client:
            self._remember(_digest(call, arguments), call.call.id)
        return pending

    def _remember(self, key: str, ref: str) -> None:
        self._asked[key] = ref
        if len(self._asked) > _MAX_OPEN:
            del self._asked[next(iter(self._asked))]


def _digest(call: McpCall, arguments: Any) -> str:
    return f"{call.call.spec.tool_id} {args_digest(arguments)}"


def _session_id(ctx: _Context) -> str | None:
    """Return the id of an HTTP session."""
    headers = getattr(ctx.request, "headers", None)
    return None if headers is None else headers.get("mcp-session-id")


def _as_dict(result: HandlerResult) -> dict[str, Any]:
    """Return a handler's result as it goes over the wire."""
    if result is None:
        return {}
    if isinstance(result, dict):
        return dict(result)
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


def _tools_of(whole: dict[str, Any]) -> list[Tool]:
    return ListToolsResult.model_validate(whole, by_name=False).tools


def _without(members: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {member: value for member, value in members.items() if member != name}
