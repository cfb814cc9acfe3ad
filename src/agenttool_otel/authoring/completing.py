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
    """Complete a policy input; return it with the paths that were filled in.

    What is missing becomes the dangerous or the unknown value: not read-only, destructive, open to
    the world, high risk, no person to ask, no facts, and every unstated fact of the tool marked as
    inferred.

    Args:
        part: A part of an input that names a tool: ``{"tool": {"name": "deploy"}}``.

    Raises:
        PolicyEvaluationError: It is no object, names no tool, or has a field of a wrong type.
    """
    if not isinstance(part, dict):
        raise _invalid("the input is not an object")
    tool = part.get("tool")
    if not isinstance(tool, dict) or not (tool.get("name") or tool.get("id")):
        raise _invalid("the input names no tool: tool.name or tool.id")
    filled: list[str] = []
    document = _filled(part, _defaults(tool), "", filled)
    validate_input(document)
    complete: PolicyInput = document
    return complete, filled


def _invalid(message: str) -> PolicyEvaluationError:
    return PolicyEvaluationError(message, cause=FailClosedCause.INPUT_INVALID)


def _defaults(tool: dict[str, Any]) -> dict[str, Any]:
    """A whole input about a tool, in which every field has its dangerous or unknown value."""
    empty: dict[str, Any] = _empty(PolicyInput)
    name = tool.get("name")
    namespace = tool.get("namespace")
    parts = [part for part in (namespace, name) if isinstance(part, str) and part]
    full = ".".join(parts)
    identifier = tool.get("id")
    if not full and isinstance(identifier, str):
        # shop.orders.refund
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
    """The empty value of a type: ``""``, ``0``, ``[]``; ``None`` where it may be ``None``."""
    if is_typeddict(annotation):
        hints = get_type_hints(annotation)
        # "effects" is there after a rehearsal only, and its presence is what makes a second decision
        return {name: _empty(hints[name]) for name in hints if name in annotation.__required_keys__}
    origin = get_origin(annotation)
    if origin not in (Union, types.UnionType):
        # list[str]() and dict[str, Any]() are an empty list and an empty dictionary
        return (origin or annotation)()
    members = get_args(annotation)
    if type(None) in members:
        return None
    return _empty(members[0])


def _filled(part: Any, defaults: Any, place: str, filled: list[str]) -> Any:
    if not isinstance(part, dict) or not isinstance(defaults, dict):
        return part
    # "input": {} by default: the arguments have no fields to be filled in
    if not defaults:
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
