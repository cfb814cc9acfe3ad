"""Take the steps of a scenario, and collect what the subject returned and recorded."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from agenttool_otel.conformance.process import SubjectBrokenError
from agenttool_otel.conformance.subject import Connection, ask
from agenttool_otel.records.base import JsonObject


@dataclass(slots=True)
class Observed:
    """What a subject did in one scenario: the input of the expectations."""

    setup: JsonObject = field(default_factory=dict)  # the params of declare
    declared: list[JsonObject] = field(default_factory=list)  # tool_declaration records
    surfaces: list[JsonObject] = field(default_factory=list)  # tool_surface records
    searches: list[JsonObject] = field(default_factory=list)  # tool_search_result records
    loaded: list[list[str]] = field(default_factory=list)  # tool ids, one list a load
    # as they were given, each with its `invocation_id` and its `replies`: a tool_result or null
    calls: list[JsonObject] = field(default_factory=list)
    results: list[JsonObject | None] = field(default_factory=list)  # the last reply to each call
    records: list[JsonObject] = field(default_factory=list)
    ran: list[JsonObject] = field(default_factory=list)  # bodies that began, and notes
    began_at: float = 0.0  # seconds since 1970
    ended_at: float = 0.0

    def to_json_object(self) -> JsonObject:
        """Return all of it as plain JSON data."""
        return asdict(self)


def run_steps(steps: Sequence[JsonObject], connection: Connection) -> Observed:
    """Take the steps of a scenario.

    Args:
        steps: each an object of one member, the step's kind.
        connection: the subject.

    Returns:
        What the subject returned and recorded.

    Raises:
        SubjectError: a step has no result.
    """
    observed = Observed(began_at=time.time())
    for step in steps:
        [(kind, params)] = step.items()
        _take(kind, params, connection, observed)
    recorded = ask(connection, "records", {})
    observed.records = recorded["records"]
    observed.ran = recorded["ran"]
    observed.results = [call["replies"][-1] for call in observed.calls]
    observed.ended_at = time.time()
    return observed


def _take(kind: str, params: JsonObject, connection: Connection, observed: Observed) -> None:
    if kind == "answer":
        _answer(params, connection, observed)
        return
    result = ask(connection, kind, params)
    match kind:
        case "declare":
            observed.setup = params
            observed.declared = result["declarations"]
        case "surface":
            observed.surfaces.append(result["surface"])
        case "search":
            observed.searches.append(result["search_result"])
        case "load":
            observed.loaded.append(result["loaded"])
        case "invoke":
            _add_calls(params, result["calls"], observed)


def _add_calls(params: JsonObject, ended: Sequence[Any], observed: Observed) -> None:
    if len(ended) != len(params["calls"]):
        raise SubjectBrokenError(
            f"the reply to invoke has {len(ended)} calls, not {len(params['calls'])}"
        )
    for call, reply in zip(params["calls"], ended, strict=True):
        observed.calls.append(
            {
                **call,
                "invocation_id": reply["invocation_id"],
                "replies": [reply["result"]],
            }
        )


def _answer(params: JsonObject, connection: Connection, observed: Observed) -> None:
    call = observed.calls[params["call"]]
    answer = {name: value for name, value in params.items() if name != "call"}
    answer["invocation_id"] = call["invocation_id"]
    reply = ask(connection, "answer", answer)
    call["replies"].append(reply["result"])
    call["answered_as"] = reply["invocation_id"]
