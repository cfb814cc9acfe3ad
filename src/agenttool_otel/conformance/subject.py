"""The requests to a subject, and the checks of its replies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, Protocol

import jsonschema_rs

from agenttool_otel.conformance.process import SubjectBrokenError
from agenttool_otel.records.base import JsonObject
from agenttool_otel.values.tables import load_table

PROTOCOL_VERSION: Final = 1
METHODS: Final = (
    "initialize",
    "declare",
    "surface",
    "search",
    "load",
    "invoke",
    "answer",
    "records",
)
SCENARIO_SCHEMA: Final = "scenario.schema.json"
PROTOCOL_SCHEMA: Final = "protocol.schema.json"
_BASE: Final = "https://conformance.invalid/"  # only so that one schema can refer to the other


class Connection(Protocol):
    """What answers requests: a process, or an object of a test."""

    def request(self, method: str, params: JsonObject) -> Any:
        """Return the result of a request.

        Args:
            method: the request's name.
            params: its content.

        Raises:
            SubjectError: there is no result.
        """


def ask(connection: Connection, method: str, params: JsonObject) -> Any:
    """Return the result of a request, which fits the protocol.

    Args:
        connection: to whom the request goes.
        method: one of METHODS.
        params: its content.

    Raises:
        SubjectBrokenError: the reply does not fit the protocol.
        SubjectError: there is no result.
    """
    result = connection.request(method, params)
    problems = misfits(f"{method}_result", result)
    if problems:
        raise SubjectBrokenError(f"the reply to {method} does not fit the protocol: {problems[0]}")
    return result


def misfits(message: str, value: Any) -> Sequence[str]:
    """Return where a message does not fit the protocol's schema.

    Args:
        message: name of the message: ``declare_params``, ``declare_result`` and so on.
        value: its content.
    """
    found = []
    for error in _validator(PROTOCOL_SCHEMA, f"#/$defs/{message}").iter_errors(value):
        place = "/".join(str(part) for part in error.instance_path)
        found.append(f"/{place}: {error.message}"[:300])
    return found


def scenario_misfits(scenario: Any) -> Sequence[str]:
    """Return where a scenario does not fit its schema.

    Args:
        scenario: the content of a scenario's file.
    """
    found = []
    for error in _validator(SCENARIO_SCHEMA, "#").iter_errors(scenario):
        place = "/".join(str(part) for part in error.instance_path)
        found.append(f"/{place}: {error.message}"[:300])
    return found


@lru_cache
def _validator(file: str, fragment: str) -> jsonschema_rs.Draft202012Validator:
    resources = []
    for name in (SCENARIO_SCHEMA, PROTOCOL_SCHEMA):
        resources.append((_BASE + name, load_table(__package__, name)))
    return jsonschema_rs.Draft202012Validator(
        {"$ref": f"{_BASE}{file}{fragment}"},
        registry=jsonschema_rs.Registry(resources),
    )
