"""What the decision point answers to: one table, of which its routes and its OpenAPI document are
made.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final

from pydantic.json_schema import models_json_schema

from agenttool_otel.serve.messages import (
    EVALUATION_PATH,
    EVALUATIONS_PATH,
    HOOKS_PATH,
    INVOCATIONS_PATH,
    REHEARSALS_PATH,
    CancelRequest,
    EvaluationAnswer,
    EvaluationRequest,
    EvaluationsAnswer,
    EvaluationsRequest,
    Health,
    HookAnswer,
    HookPayload,
    Message,
    Metadata,
    Problem,
    RehearsalAnswer,
    RehearsalEnd,
    RehearsalStart,
    RemoteCall,
    ResultRequest,
)
from agenttool_otel.serve.problems import PROBLEM_MEDIA_TYPE

_REF: Final = "#/components/schemas/{model}"


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that can be asked for.

    Attributes:
        name: its id, and the name of the method that answers it.
        method: the HTTP method.
        path: the path; what stands in braces is a parameter.
        summary: one sentence.
        answer: what is answered.
        request: what is asked with; ``None`` without a body.
        waits: whether it takes ``?wait=SECONDS``.
        of_project: whether it takes ``?project=FOLDER``.
    """

    name: str
    method: str
    path: str
    summary: str
    answer: type[Message]
    request: type[Message] | None = None
    waits: bool = False
    of_project: bool = False


OPERATIONS: Final = (
    Operation(
        "evaluate",
        "POST",
        EVALUATION_PATH,
        "AuthZEN: what would be decided of a call. Nothing runs, counts or is asked.",
        EvaluationAnswer,
        EvaluationRequest,
    ),
    Operation(
        "evaluate_all",
        "POST",
        EVALUATIONS_PATH,
        "AuthZEN: the same of several calls.",
        EvaluationsAnswer,
        EvaluationsRequest,
    ),
    Operation(
        "metadata",
        "GET",
        "/.well-known/authzen-configuration",
        "AuthZEN: where the evaluations are.",
        Metadata,
    ),
    Operation(
        "decide",
        "POST",
        INVOCATIONS_PATH,
        "Decide a call that the client will run. The same id again is the same call.",
        RemoteCall,
        EvaluationRequest,
    ),
    Operation(
        "wait",
        "GET",
        f"{INVOCATIONS_PATH}/{{invocation_id}}",
        "How a call is; wait until a person has answered.",
        RemoteCall,
        waits=True,
    ),
    Operation(
        "complete",
        "POST",
        f"{INVOCATIONS_PATH}/{{invocation_id}}/result",
        "Hand in the result of a permitted call; it comes back as a model may see it.",
        RemoteCall,
        ResultRequest,
    ),
    Operation(
        "cancel",
        "POST",
        f"{INVOCATIONS_PATH}/{{invocation_id}}/cancel",
        "End a call that waits.",
        RemoteCall,
        CancelRequest,
    ),
    Operation(
        "hook",
        "POST",
        f"{HOOKS_PATH}/{{agent}}/{{event}}",
        "What the hook of a coding agent prints: the agent's own payload in, its answer out.",
        HookAnswer,
        HookPayload,
        of_project=True,
    ),
    Operation(
        "begin_rehearsal",
        "POST",
        f"{REHEARSALS_PATH}/begin",
        "Whether a command that a hook has put on a layer may run there.",
        RehearsalAnswer,
        RehearsalStart,
    ),
    Operation(
        "settle_rehearsal",
        "POST",
        f"{REHEARSALS_PATH}/settle",
        "Decide what the command would change, and commit that or not.",
        RehearsalAnswer,
        RehearsalEnd,
    ),
    Operation("health", "GET", "/healthz", "Whether the process answers.", Health),
    Operation("ready", "GET", "/readyz", "Whether calls can be decided.", Health),
)


def openapi() -> dict[str, Any]:
    """Return the OpenAPI document of the decision point."""
    models: set[type[Message]] = {Problem}
    for operation in OPERATIONS:
        models.add(operation.answer)
        if operation.request is not None:
            models.add(operation.request)
    listed = sorted(models, key=lambda model: model.__name__)
    _, schemas = models_json_schema([(model, "validation") for model in listed], ref_template=_REF)
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "agenttool serve",
            "version": version("agenttool-otel"),
            "description": "Decides calls of agents' tools; docs/serve.md.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def _described(operation: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": {
            "200": _content("The answer.", operation.answer, "application/json"),
            "default": _content("The request was refused.", Problem, PROBLEM_MEDIA_TYPE),
        },
    }
    parameters = [
        _parameter(name, "path", {"type": "string"})
        for name in re.findall(r"\{(\w+)\}", operation.path)
    ]
    if operation.waits:
        seconds = {"type": "number", "minimum": 0, "default": 0}
        parameters.append(_parameter("wait", "query", seconds))
    if operation.of_project:
        parameters.append(_parameter("project", "query", {"type": "string"}))
    if parameters:
        described["parameters"] = parameters
    if operation.request is not None:
        body = _content("", operation.request, "application/json")
        described["requestBody"] = {"required": True, "content": body["content"]}
    return described


def _content(about: str, model: type[Message], media_type: str) -> dict[str, Any]:
    schema = {"$ref": _REF.format(model=model.__name__)}
    return {"description": about, "content": {media_type: {"schema": schema}}}


def _parameter(name: str, place: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": place, "required": place == "path", "schema": schema}
