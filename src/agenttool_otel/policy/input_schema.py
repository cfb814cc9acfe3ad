"""The JSON Schema of the policy input, made from the TypedDicts of the contract, and its validation.

The schema serves twice: ``policies/schemas/input.json`` lets ``opa check --strict --schema`` type-check every rule
that reads ``input``, and every document is validated before a query, because a wrongly typed field makes a deny rule
undefined rather than true. It is generated here rather than through pydantic, which refuses
``typing.TypedDict`` below Python 3.12, and it is inlined, because OPA's type checker reads a subset of JSON Schema.
``tools/policy_input.py`` adds what each member is, in the file that is shipped.
"""

from __future__ import annotations

import json
import types
from functools import cache
from pathlib import Path
from typing import Any, Final, Union, get_args, get_origin, get_type_hints, is_typeddict

import jsonschema_rs

from agenttool_otel.errors import PolicyEvaluationError
from agenttool_otel.names import FailClosedCause
from agenttool_otel.policy.bundles.bundle import default_bundle_path
from agenttool_otel.policy.types import PolicyInput

INPUT_SCHEMA_ID: Final = "urn:agenttool-otel:policy-input:0.2.0"
"""``$id`` of the schema of the policy input."""

_PRIMITIVES: Final[dict[Any, dict[str, Any]]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    type(None): {"type": "null"},
}


def schema_of(annotation: Any) -> dict[str, Any]:
    """Return the JSON Schema of one annotation of the contract."""
    if annotation is Any:
        return {}
    if annotation in _PRIMITIVES:
        return dict(_PRIMITIVES[annotation])
    if is_typeddict(annotation):
        hints = get_type_hints(annotation)
        schema: dict[str, Any] = {
            "type": "object",
            "title": annotation.__name__,
            "properties": {name: schema_of(hint) for name, hint in hints.items()},
            "required": sorted(annotation.__required_keys__),
            "additionalProperties": False,
        }
        if annotation.__doc__:
            schema["description"] = " ".join(annotation.__doc__.replace("`", "").split())
        return schema
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is list:
        return {"type": "array", "items": schema_of(args[0])}
    if origin is dict and args[0] is str:
        # OPA takes an object schema with neither properties nor constraints for "any object"
        return {"type": "object"} if args[1] is Any else {"type": "object", "additionalProperties": schema_of(args[1])}
    if origin in (Union, types.UnionType):
        # anyOf, not a list of types: OPA's checker would take only the first of a list
        return {"anyOf": [schema_of(arg) for arg in args]}
    raise TypeError(f"no JSON Schema for {annotation!r}")


@cache
def _schema_text() -> str:
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "$id": INPUT_SCHEMA_ID, **schema_of(PolicyInput)}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def input_schema() -> dict[str, Any]:
    """Return a fresh copy of the schema of the policy input (JSON Schema draft 7)."""
    schema: dict[str, Any] = json.loads(_schema_text())
    return schema


def write_input_schema(path: str | Path) -> None:
    """Write the schema with what each member is, as the stock bundle ships it, to a file."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text((default_bundle_path() / "schemas" / "input.json").read_text("utf-8"), encoding="utf-8")


@cache
def _validator() -> jsonschema_rs.Draft7Validator:
    return jsonschema_rs.Draft7Validator(input_schema())


def validate_input(document: Any) -> None:
    """Check a policy input against its schema."""
    try:
        if _validator().is_valid(document):
            return
        error = next(iter(_validator().iter_errors(document)), None)
        # the schema's path, not the document's: keys of the document can be argument content
        rule = "" if error is None else "/".join(str(part) for part in error.schema_path)
    except (ValueError, TypeError, RecursionError):
        rule = "type"
    raise PolicyEvaluationError(f"policy input does not fit its schema: {rule}", cause=FailClosedCause.INPUT_INVALID)
