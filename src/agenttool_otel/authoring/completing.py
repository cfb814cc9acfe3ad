"""A part of a policy input, completed with values that no rule can take for permission."""

from __future__ import annotations

import types
from datetime import UTC, datetime
from typing import Any, Final, Union, get_args, get_origin, get_type_hints, is_typeddict

from agenttool_otel.errors import PolicyEvaluationError
from agenttool_otel.names import SCHEMA_VERSION, FailClosedCause
from agenttool_otel.policy.bundles.input_schema import validate_input
from agenttool_otel.policy.types import PolicyInput

_STATED: Final = (
    "read_only",
    "destructive",
    "open_world",
    "concurrency_safe",
    "requires_user_interaction",
)


def complete_input(part: Any) -> tuple[PolicyInput, list[str]]:
    """Complete a policy input.

    What is missing becomes the dangerous or the unknown value: not read-only, destructive, open to
    the world, high risk, nobody there to be asked, no facts, and every unstated fact of the tool
    marked as inferred.
    """
    if not isinstance(part, dict):
        raise PolicyEvaluationError(
            "the input is not an object", cause=FailClosedCause.INPUT_INVALID
        )
    given = part.get("tool")
    tool: dict[str, Any] = given if isinstance(given, dict) else {}
    if not (tool.get("name") or tool.get("id")):
        raise PolicyEvaluationError(
            "the input names no tool: tool.name or tool.id", cause=FailClosedCause.INPUT_INVALID
        )
    filled: list[str] = []
    document = _filled(part, _defaults(tool), "", filled)
    validate_input(document)
    complete: PolicyInput = document
    return complete, filled


def _defaults(tool: dict[str, Any]) -> dict[str, Any]:
    empty: dict[str, Any] = _empty(PolicyInput)
    name, namespace = tool.get("name"), tool.get("namespace")
    full = ".".join(part for part in (namespace, name) if isinstance(part, str) and part)
    identifier = tool.get("id")
    if not full and isinstance(identifier, str):
        namespace, _, name = identifier.rpartition(".")
    empty["schema_version"] = SCHEMA_VERSION
    empty["time"] = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    empty["invocation"] |= {"id": "inv_explain", "attempt": 1}
    empty["tool"] |= {
        "id": full,
        "namespace": namespace or "",
        "name": name or "",
        "kind": "function",
        "lifecycle": "available",
        "ownership": "custom",
        "destructive": True,
        "open_world": True,
        "inferred": [fact for fact in _STATED if fact not in tool],
    }
    empty["permission_profile"]["risk_level"] = "high"
    empty["actor"] |= {"id": "unknown", "kind": "unknown"}
    empty["session"] |= {"mode": "default", "context": "none"}
    return empty


def _empty(annotation: Any) -> Any:
    if is_typeddict(annotation):
        return {name: _empty(hint) for name, hint in get_type_hints(annotation).items()}
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        return None if type(None) in get_args(annotation) else _empty(get_args(annotation)[0])
    return {str: "", int: 0, float: 0.0, bool: False, list: [], dict: {}}[origin or annotation]


def _filled(part: Any, defaults: Any, place: str, filled: list[str]) -> Any:
    # an empty default object is a map or the arguments: whatever is given stands as it is
    if not isinstance(part, dict) or not isinstance(defaults, dict) or not defaults:
        return part
    result = dict(part)
    for name, value in defaults.items():
        here = f"{place}.{name}" if place else name
        if name not in part:
            result[name] = value
            filled.append(here)
        else:
            result[name] = _filled(part[name], value, here, filled)
    return result
