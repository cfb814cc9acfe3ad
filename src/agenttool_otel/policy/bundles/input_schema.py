"""The JSON Schema of the policy input, and its validation.

The schema, ``policies/schemas/input.json``, serves twice: it lets ``opa check --strict --schema``
type-check every rule that reads ``input``, and every document is validated before a query, because
a wrongly typed field makes a deny rule undefined rather than true. ``tools/policy_input.py`` makes
it from the TypedDicts of the contract.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs

from agenttool_otel.errors import PolicyEvaluationError
from agenttool_otel.names import FailClosedCause
from agenttool_otel.policy.bundles.bundle import default_bundle_path


@cache
def schema_text() -> str:
    """Return the schema as the stock bundle ships it, with what each member is."""
    return (default_bundle_path() / "schemas" / "input.json").read_text("utf-8")


def input_schema() -> dict[str, Any]:
    """Return a fresh copy of the schema of the policy input (JSON Schema draft 7)."""
    return dict(json.loads(schema_text()))


def write_input_schema(path: str | Path) -> None:
    """Write the schema with what each member is, as the stock bundle ships it, to a file."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(schema_text(), encoding="utf-8")


def validating_schema() -> dict[str, Any]:
    """Return the schema that documents are validated against: any text is taken for a word, as one
    that nobody knows is the rules' to judge, and their answer has a reason.
    """
    return dict(_without_words(input_schema()))


@cache
def _validator() -> jsonschema_rs.Draft7Validator:
    return jsonschema_rs.Draft7Validator(validating_schema())


def _without_words(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_words(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {}
    for name, member in schema.items():
        # a member of the input may be called enum, and is an object then
        if name != "enum" or not isinstance(member, list):
            kept[name] = _without_words(member)
    return kept


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
    raise PolicyEvaluationError(
        f"policy input does not fit its schema: {rule}", cause=FailClosedCause.INPUT_INVALID
    )
