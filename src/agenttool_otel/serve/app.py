"""The decision point as a web application: AuthZEN, and the calls of clients."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

from opentelemetry import context as otel_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agenttool_otel.errors import AgentToolError
from agenttool_otel.govern.governor import Governor
from agenttool_otel.names import INSTRUMENTATION_NAME, ProblemType
from agenttool_otel.serve.bodies import read, read_authzen
from agenttool_otel.serve.calls import RemoteCalls
from agenttool_otel.serve.evaluations import evaluate, evaluate_all
from agenttool_otel.serve.guard import Guard
from agenttool_otel.serve.hooks import HookCalls
from agenttool_otel.serve.limits import Limits
from agenttool_otel.serve.messages import (
    EVALUATION_PATH,
    EVALUATIONS_PATH,
    CancelRequest,
    EvaluationRequest,
    EvaluationsRequest,
    Health,
    HookAnswer,
    HookPayload,
    Message,
    Metadata,
    RehearsalEnd,
    RehearsalStart,
    RemoteCall,
    ResultRequest,
)
from agenttool_otel.serve.operations import OPERATIONS, Operation, openapi
from agenttool_otel.serve.problems import Refusal, refusal_of
from agenttool_otel.serve.rehearsals import AgentRehearsals

_LOG = logging.getLogger(f"{INSTRUMENTATION_NAME}.serve")

_SWEEP_SECONDS: Final = 5.0
_TRACE: Final = TraceContextTextMapPropagator()
_PROBLEM_OF_STATUS: Final = {
    404: (ProblemType.NOT_FOUND, "there is no such path"),
    405: (ProblemType.UNSUPPORTED, "this path has another method"),
}


class DecisionPoint:
    """What answers the clients of one Governor.

    Args:
        governor: who decides.
        limits: how much there may be of everything.
        url: where clients reach it, for AuthZEN's discovery.
        agents: the coding agents whose hooks are answered.
        socket_path: the Unix socket; ``None`` where there is none.
    """

    def __init__(
        self,
        governor: Governor,
        limits: Limits,
        url: str,
        agents: Sequence[str] = (),
        socket_path: Path | None = None,
    ) -> None:
        self._governor = governor
        self._limits = limits
        self._url = url
        self._openapi = openapi()
        self.calls = RemoteCalls(governor, limits)
        self.rehearsals = AgentRehearsals(governor, self.calls, socket_path)
        self.hooks = HookCalls(governor, self.calls, agents, self.rehearsals)

    def application(self, *, token: str, port: int | None) -> Starlette:
        """Return the ASGI application.

        Args:
            token: the token of the loopback address.
            port: its port; ``None`` where there is none.
        """
        guard = Middleware(Guard, token=token, port=port, limits=self._limits)
        routes = [self._route(operation) for operation in OPERATIONS]
        application = Starlette(
            routes=[*routes, Route("/openapi.json", self._document)],
            middleware=[guard],
            exception_handlers={HTTPException: _on_http_error, Refusal: _on_refusal},
            lifespan=self._living,
        )
        application.router.redirect_slashes = False
        return application

    def _route(self, operation: Operation) -> Route:
        answer: Callable[[Request], Awaitable[Response]] = getattr(self, operation.name)
        endpoint = partial(_answered, answer)
        return Route(operation.path, endpoint, methods=[operation.method], name=operation.name)

    @asynccontextmanager
    async def _living(self, _: Starlette) -> AsyncIterator[None]:
        sweeping = asyncio.create_task(self._sweep())
        try:
            yield
        finally:
            sweeping.cancel()
            with suppress(asyncio.CancelledError):
                await sweeping

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            try:
                await self.calls.sweep()
            except Exception as error:  # the next sweep may succeed
                _LOG.error("calls could not be ended: %s", type(error).__name__)

    # --- AuthZEN ----------------------------------------------------------------------------------

    async def evaluate(self, request: Request) -> Response:
        """Answer ``POST /access/v1/evaluation``."""
        asked, ignored = await read_authzen(request, EvaluationRequest)
        answer = await evaluate(self._governor, asked)
        answer.context.ignored = ignored
        return _json(answer)

    async def evaluate_all(self, request: Request) -> Response:
        """Answer ``POST /access/v1/evaluations``."""
        batch, ignored = await read_authzen(request, EvaluationsRequest)
        answers = await evaluate_all(self._governor, batch)
        for answer in answers.evaluations:
            answer.context.ignored = ignored
        if batch.evaluations:
            return _json(answers)
        # without a list it is one evaluation, and so is the answer (AuthZEN 1.0, section 7)
        return _json(answers.evaluations[0])

    async def metadata(self, request: Request) -> Response:
        """Answer AuthZEN's discovery."""
        del request
        return _json(
            Metadata(
                policy_decision_point=self._url,
                access_evaluation_endpoint=f"{self._url}{EVALUATION_PATH}",
                access_evaluations_endpoint=f"{self._url}{EVALUATIONS_PATH}",
            )
        )

    # --- calls of clients -------------------------------------------------------------------------

    async def decide(self, request: Request) -> Response:
        """Answer ``POST /v1/invocations``."""
        return _call(await self.calls.decide(await read(request, EvaluationRequest)))

    async def wait(self, request: Request) -> Response:
        """Answer ``GET /v1/invocations/ID``."""
        return _call(await self.calls.wait(_id_of(request), _seconds(request)))

    async def complete(self, request: Request) -> Response:
        """Answer ``POST /v1/invocations/ID/result``."""
        result = await read(request, ResultRequest)
        return _call(await self.calls.complete(_id_of(request), result))

    async def cancel(self, request: Request) -> Response:
        """Answer ``POST /v1/invocations/ID/cancel``."""
        asked = await read(request, CancelRequest)
        return _call(await self.calls.cancel(_id_of(request), asked.reason))

    async def hook(self, request: Request) -> Response:
        """Answer ``POST /v1/hooks/AGENT/EVENT``."""
        payload = await read(request, HookPayload)
        output = await self.hooks.answer(
            str(request.path_params["agent"]),
            str(request.path_params["event"]),
            payload.model_extra or {},
            request.query_params.get("project", ""),
        )
        return _json(HookAnswer(**output._asdict()))

    async def begin_rehearsal(self, request: Request) -> Response:
        """Answer ``POST /v1/rehearsals/begin``."""
        return _json(await self.rehearsals.begin(await read(request, RehearsalStart)))

    async def settle_rehearsal(self, request: Request) -> Response:
        """Answer ``POST /v1/rehearsals/settle``."""
        return _json(await self.rehearsals.settle(await read(request, RehearsalEnd)))

    # --- the process ------------------------------------------------------------------------------

    async def health(self, request: Request) -> Response:
        """Answer ``GET /healthz``."""
        del request
        return _json(Health(status="ok"))

    async def ready(self, request: Request) -> Response:
        """Answer ``GET /readyz``."""
        del request
        status = await self._status()
        found = Health(
            status=status,
            policy_revision=self._governor.decider.revision,
            tools=len(self._governor.registry),
        )
        return JSONResponse(found.model_dump(), 200 if status == "ok" else 503)

    async def _status(self) -> str:
        if self.calls.closing.is_set():
            return "stopping"
        if self._governor.settings.problems:
            return "a setting can't be used"
        for engine in self._governor.decider.engines:
            healthy = getattr(engine, "healthy", None)
            if healthy is not None and not await asyncio.to_thread(healthy):
                return "the policy engine does not answer"
        return "ok"

    async def _document(self, request: Request) -> Response:
        del request
        return JSONResponse(self._openapi)


async def _answered(answer: Callable[[Request], Awaitable[Response]], request: Request) -> Response:
    """Answer inside of the client's trace; what goes wrong is a problem."""
    token = otel_context.attach(_TRACE.extract(dict(request.headers)))
    try:
        response = await answer(request)
    except AgentToolError as error:
        raise refusal_of(error) from None
    finally:
        otel_context.detach(token)
    request_id = request.headers.get("x-request-id", "")
    # AuthZEN 1.0: an id of the request is given back
    if request_id and request_id.isascii() and request_id.isprintable():
        response.headers["X-Request-ID"] = request_id[:256]
    return response


def _json(message: Message, headers: dict[str, str] | None = None) -> Response:
    return Response(message.model_dump_json(), 200, headers, "application/json")


def _call(call: RemoteCall) -> Response:
    """Answer with a call, and with the span of its latest part as ``traceparent``."""
    for ref in call.result.get("telemetry_refs", ()):
        if "trace_id" in ref and "span_id" in ref:
            trace = f"00-{ref['trace_id']}-{ref['span_id']}-01"
            return _json(call, {"traceparent": trace})
    return _json(call)


def _id_of(request: Request) -> str:
    return str(request.path_params["invocation_id"])[:256]


def _seconds(request: Request) -> float:
    try:
        seconds = float(request.query_params.get("wait", "0"))
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds) or seconds < 0:
        raise Refusal(ProblemType.BAD_REQUEST, "wait: a number of seconds")
    return seconds


async def _on_http_error(request: Request, error: Exception) -> Response:
    del request
    status = error.status_code if isinstance(error, HTTPException) else 404
    kind, detail = _PROBLEM_OF_STATUS.get(status, _PROBLEM_OF_STATUS[404])
    return Refusal(kind, detail).response


async def _on_refusal(request: Request, error: Exception) -> Response:
    del request
    if isinstance(error, Refusal):
        return error.response
    raise error
