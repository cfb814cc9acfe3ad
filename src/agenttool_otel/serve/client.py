"""A client of a decision point: what it can't get an answer about does not run.

It needs no package beside this one. Each request has a connection of its own, so that threads can
share a client.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlsplit

from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from pydantic import ValidationError

from agenttool_otel.context.context import AgentContext, Delegator, current_context
from agenttool_otel.errors import AgentToolError, ConfigurationError
from agenttool_otel.names import RemoteState
from agenttool_otel.serve.messages import (
    EVALUATION_PATH,
    INVOCATIONS_PATH,
    CallContext,
    EvaluationAnswer,
    Message,
    Problem,
    RemoteCall,
    StatedDelegator,
)
from agenttool_otel.values.ids import new_id

M = TypeVar("M", bound=Message)
NOTHING: Final[Any] = object()
"""Stands for "no result was given": ``None`` is one."""

_MAX_ANSWER_BYTES: Final = 16_000_000
_POLL_SECONDS: Final = 30.0
_TRACE: Final = TraceContextTextMapPropagator()


class DecisionPointError(AgentToolError, PermissionError):
    """There is no decision, so that the call must not run."""


class DecisionPointUnavailable(DecisionPointError):
    """The decision point is gone, or did not answer in time."""


class DecisionPointGarbled(DecisionPointError):
    """What answered is no decision point, or its answer is of another call."""


class DecisionPointRefused(DecisionPointError):
    """The decision point refused the request.

    Attributes:
        problem: why.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.title}: {problem.detail}")
        self.problem = problem


class RemoteNotPermitted(DecisionPointError):
    """The call may not run: it was refused, or no person has answered yet.

    Attributes:
        call: how it is.
    """

    def __init__(self, call: RemoteCall) -> None:
        super().__init__(f"{call.tool_id} is {call.state.value}: {call.reason}")
        self.call = call


class RemoteGovernor:
    """Asks a decision point about the calls that this process runs.

    Who calls is taken from ``agent_context``, as in process.

    Args:
        socket_path: the Unix socket of ``agenttool serve``.
        url: its loopback address, instead.
        token_file: the file with the token of that address.
        timeout: seconds that one answer may take, beside the time that a person has.

    Raises:
        ConfigurationError: neither or both are named, or the token can't be read.
    """

    def __init__(
        self,
        socket_path: str | Path | None = None,
        *,
        url: str | None = None,
        token_file: str | Path | None = None,
        timeout: float = 10.0,
    ) -> None:
        if (socket_path is None) == (url is None):
            raise ConfigurationError("a client needs a socket or a URL")
        self._socket_path = None if socket_path is None else os.fspath(socket_path)
        self._address = urlsplit(url or "http://localhost")
        if self._address.scheme not in {"http", "https"} or not self._address.hostname:
            raise ConfigurationError("the URL of a decision point begins with http:// or https://")
        self._timeout = timeout
        self._token = "" if token_file is None else _token(token_file)

    # --- asking -----------------------------------------------------------------------------------

    def check(self, tool: str, arguments: Mapping[str, Any]) -> EvaluationAnswer:
        """Return what would be decided; nothing runs, counts or is asked.

        Args:
            tool: the tool's name.
            arguments: its JSON arguments.

        Raises:
            DecisionPointError: there is no answer.
        """
        body = _request(tool, arguments, new_id("check"))
        return self._ask("POST", EVALUATION_PATH, EvaluationAnswer, body)

    def decide(
        self, tool: str, arguments: Mapping[str, Any], *, call_id: str | None = None
    ) -> RemoteCall:
        """Decide a call. Where its state is ``permitted``, run it with ``call.arguments``, and hand
        its result to ``complete``.

        Args:
            tool: the tool's name.
            arguments: its JSON arguments.
            call_id: the model's id of the call; the same one again is the same call. A new one where
              not given.

        Raises:
            DecisionPointError: there is no decision.
        """
        call_id = new_id("call") if call_id is None else call_id
        body = _request(tool, arguments, call_id)
        call = self._ask("POST", INVOCATIONS_PATH, RemoteCall, body)
        if call.call_id != call_id or (call.state is RemoteState.PERMITTED) != (
            call.arguments is not None
        ):
            raise DecisionPointGarbled("the answer is of another call")
        return call

    def wait(self, invocation_id: str, seconds: float = 0.0) -> RemoteCall:
        """Return how a call is, after a person's answer or the given time.

        Args:
            invocation_id: the call.
            seconds: how long to wait for a person.

        Raises:
            DecisionPointError: there is no answer.
        """
        until = time.monotonic() + seconds
        while True:
            left = max(0.0, min(until - time.monotonic(), _POLL_SECONDS))
            path = f"{_path(invocation_id)}?wait={left:.3f}"
            call = self._about(invocation_id, "GET", path, extra=left)
            if call.state is not RemoteState.WAITING or time.monotonic() >= until:
                return call

    def complete(
        self, invocation_id: str, result: Any = NOTHING, *, error: str | None = None
    ) -> RemoteCall:
        """Hand in how a permitted call ended; ``result`` of the answer is what a model may see.

        Args:
            invocation_id: the call.
            result: what the tool returned, as JSON data.
            error: what went wrong, instead of a result.

        Raises:
            DecisionPointError: it was not taken.
            TypeError: neither a result nor an error was given, or both.
        """
        if (result is NOTHING) == (error is None):
            raise TypeError("a call is completed with a result or with an error")
        body = {"result": result} if error is None else {"error": error}
        return self._about(invocation_id, "POST", f"{_path(invocation_id)}/result", body)

    def cancel(self, invocation_id: str, reason: str) -> RemoteCall:
        """End a call that waits.

        Args:
            invocation_id: the call.
            reason: why.

        Raises:
            DecisionPointError: it was not ended.
        """
        path = f"{_path(invocation_id)}/cancel"
        return self._about(invocation_id, "POST", path, {"reason": reason})

    def run(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        body: Callable[..., Any],
        *,
        call_id: str | None = None,
        wait: float = 0.0,
    ) -> RemoteCall:
        """Decide a call, run it with the arguments that were permitted, and hand in its result.

        Args:
            tool: the tool's name.
            arguments: its JSON arguments.
            body: what runs, called with the permitted arguments by name.
            call_id: the model's id of the call.
            wait: how long to wait for a person, in seconds.

        Returns:
            The completed call.

        Raises:
            RemoteNotPermitted: it may not run.
            DecisionPointError: there is no decision, or the result was not taken.
        """
        call = self.decide(tool, arguments, call_id=call_id)
        if call.state is RemoteState.WAITING and wait > 0:
            call = self.wait(call.invocation_id, wait)
        if call.state is not RemoteState.PERMITTED or call.arguments is None:
            raise RemoteNotPermitted(call)
        try:
            result = body(**call.arguments)
        except Exception as error:
            self.complete(call.invocation_id, error=f"{type(error).__name__}: {error}")
            raise
        return self.complete(call.invocation_id, result)

    # --- the same without blocking the event loop -------------------------------------------------

    async def acheck(self, tool: str, arguments: Mapping[str, Any]) -> EvaluationAnswer:
        """As ``check``.

        Args:
            tool: the tool's name.
            arguments: its JSON arguments.
        """
        return await asyncio.to_thread(self.check, tool, arguments)

    async def adecide(
        self, tool: str, arguments: Mapping[str, Any], *, call_id: str | None = None
    ) -> RemoteCall:
        """As ``decide``.

        Args:
            tool: the tool's name.
            arguments: its JSON arguments.
            call_id: the model's id of the call.
        """
        return await asyncio.to_thread(self.decide, tool, arguments, call_id=call_id)

    async def await_answer(self, invocation_id: str, seconds: float = 0.0) -> RemoteCall:
        """As ``wait``.

        Args:
            invocation_id: the call.
            seconds: how long to wait for a person.
        """
        return await asyncio.to_thread(self.wait, invocation_id, seconds)

    async def acomplete(
        self, invocation_id: str, result: Any = NOTHING, *, error: str | None = None
    ) -> RemoteCall:
        """As ``complete``.

        Args:
            invocation_id: the call.
            result: what the tool returned, as JSON data.
            error: what went wrong, instead of a result.
        """
        return await asyncio.to_thread(self.complete, invocation_id, result, error=error)

    async def acancel(self, invocation_id: str, reason: str) -> RemoteCall:
        """As ``cancel``.

        Args:
            invocation_id: the call.
            reason: why.
        """
        return await asyncio.to_thread(self.cancel, invocation_id, reason)

    # --- the wire ---------------------------------------------------------------------------------

    def _about(
        self, invocation_id: str, method: str, path: str, body: Any = None, extra: float = 0.0
    ) -> RemoteCall:
        call = self._ask(method, path, RemoteCall, body, extra)
        if call.invocation_id != invocation_id:
            raise DecisionPointGarbled("the answer is of another call")
        return call

    def _ask(
        self, method: str, path: str, model: type[M], body: Any = None, extra: float = 0.0
    ) -> M:
        """Ask once; whatever does not end in a well-formed answer is an error."""
        try:
            data = None if body is None else json.dumps(body, allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise DecisionPointGarbled(f"this has no JSON form: {error}") from None
        try:
            status, answer = self._exchange(method, path, data, self._timeout + extra)
        except (OSError, http.client.HTTPException) as error:
            name = type(error).__name__
            raise DecisionPointUnavailable(f"the decision point does not answer: {name}") from None
        return _read(status, answer, model)

    def _exchange(
        self, method: str, path: str, data: bytes | None, timeout: float
    ) -> tuple[int, bytes]:
        connection = self._connection(timeout)
        try:
            connection.request(method, path, data, self._headers())
            response = connection.getresponse()
            return response.status, _limited(response, timeout)
        finally:
            connection.close()

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        _TRACE.inject(headers)
        return headers

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        if self._socket_path is not None:
            return _UnixConnection(self._socket_path, timeout)
        host, port = self._address.hostname or "", self._address.port
        if self._address.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=timeout)
        return http.client.HTTPConnection(host, port, timeout=timeout)


class _UnixConnection(http.client.HTTPConnection):
    """An HTTP connection through a Unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _limited(response: http.client.HTTPResponse, timeout: float) -> bytes:
    """Read an answer of bounded size in bounded time, however slowly its bytes come."""
    until = time.monotonic() + timeout
    read = bytearray()
    while chunk := response.read1(65_536):
        read += chunk
        if len(read) > _MAX_ANSWER_BYTES:
            raise DecisionPointGarbled("the answer is too large")
        if time.monotonic() > until:
            raise TimeoutError
    # a server that was killed while it answered
    if response.length:
        raise http.client.IncompleteRead(bytes(read))
    return bytes(read)


def _read(status: int, answer: bytes, model: type[M]) -> M:
    try:
        if status != http.HTTPStatus.OK:
            raise DecisionPointRefused(Problem.model_validate_json(answer))
        return model.model_validate_json(answer)
    except ValidationError:
        raise DecisionPointGarbled(f"status {status} with an answer that can't be read") from None


def _path(invocation_id: str) -> str:
    return f"{INVOCATIONS_PATH}/{quote(invocation_id, safe='')}"


def _token(path: str | Path) -> str:
    try:
        return Path(path).read_text("utf-8").strip()
    except (OSError, ValueError):
        raise ConfigurationError(f"the token in {path} can't be read") from None


def _request(tool: str, arguments: Mapping[str, Any], call_id: str) -> dict[str, Any]:
    """Return the body that asks about a call in the context in force."""
    context = current_context()
    # a surface is an object of this process, which the decision point can't look at
    if context.surface_in_force is not None:
        raise ConfigurationError("a remote call can't be held to a surface")
    if not context.actor:
        raise ConfigurationError("a remote call needs an actor: use agent_context(actor=...)")
    kind, colon, name = context.actor.partition(":")
    if not colon:
        kind, name = "agent", context.actor
    properties = {"tenant": context.tenant, "roles": list(context.roles)}
    return {
        "subject": {"type": kind, "id": name, "properties": _stated(properties)},
        "action": {"name": tool},
        "resource": {"type": "tool_call", "id": call_id, "properties": dict(arguments)},
        "context": _context(context),
    }


def _context(context: AgentContext) -> dict[str, Any]:
    """Return what a context states, in the members that a request has."""
    stated = {}
    for name in CallContext.model_fields:
        value = getattr(context, name)
        stated[name] = list(value) if isinstance(value, tuple) else value
    stated["chain"] = [_delegator(each) for each in context.chain]
    return _stated(stated)


def _delegator(delegator: Delegator) -> dict[str, Any]:
    document = delegator.document()
    return {name: document[name] for name in StatedDelegator.model_fields}


def _stated(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value not in (None, "", [], {})}
