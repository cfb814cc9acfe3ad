"""The bodies of requests: JSON in one form only, strict, or as AuthZEN reads it."""

from __future__ import annotations

import json
from typing import Any, Final, TypeVar

from pydantic import ValidationError
from starlette.requests import Request

from agenttool_otel.context.validate import did_you_mean
from agenttool_otel.errors import PolicyEvaluationError
from agenttool_otel.names import ProblemType
from agenttool_otel.policy.jsonio import decode_strict
from agenttool_otel.serve.messages import CallContext, Message
from agenttool_otel.serve.problems import Refusal, bad_request

M = TypeVar("M", bound=Message)

_MOST_SHOWN: Final = 20
_SLIP: Final = 0.85
"""How near a slip is to the word that was meant: "root" and "roots" 0.89, "source" and "resources" 0.8."""


async def read(request: Request, model: type[M]) -> M:
    """Read a body of which every member is understood.

    Args:
        request: the request.
        model: its form.

    Raises:
        Refusal: it is not JSON, or of another form.
    """
    body = await request.body()
    _decoded(body)
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise bad_request(error) from None


async def read_authzen(request: Request, model: type[M]) -> tuple[M, list[str]]:
    """Read a body as AuthZEN 1.0 asks for: what is not understood is ignored.

    A slip in the context is refused: ``root`` for ``roots`` would widen what is decided.

    Args:
        request: the request.
        model: its form.

    Returns:
        The message, and places of members that were ignored.

    Raises:
        Refusal: it is not JSON, or what is understood of it is of another form.
    """
    body = await request.body()
    value = _decoded(body)
    try:
        return model.model_validate_json(body), []
    except ValidationError as error:
        unknown = [found["loc"] for found in error.errors() if found["type"] == "extra_forbidden"]
        if not unknown or any(map(_is_slip, unknown)):
            raise bad_request(error) from None
    for place in unknown:
        _remove(value, place)
    try:
        message = model.model_validate_json(json.dumps(value, allow_nan=False))
    except ValidationError as error:
        raise bad_request(error) from None
    except ValueError:  # 1e400
        raise Refusal(ProblemType.BAD_REQUEST, "a number that JSON lacks") from None
    places = ["/" + "/".join(str(part)[:80] for part in place) for place in unknown]
    return message, places[:_MOST_SHOWN]


def _decoded(body: bytes) -> Any:
    try:
        # refuses a member that stands twice, of which readers take different ones
        return decode_strict(body, what="body", limit=len(body))
    except PolicyEvaluationError as error:
        raise Refusal(ProblemType.BAD_REQUEST, str(error)) from None


def _is_slip(place: tuple[int | str, ...]) -> bool:
    if "context" not in place[:-1]:
        return False
    return bool(did_you_mean(place[-1], CallContext.model_fields, cutoff=_SLIP))


def _remove(value: Any, place: tuple[int | str, ...]) -> None:
    *path, last = place
    for part in path:
        value = value[part]
    del value[last]
