"""Records against the standard's own JSON Schemas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

import jsonschema_rs

from agenttool_otel.values.tables import load_table

_FILES: Final[dict[str, str]] = load_table(__package__, "objects.json")
"""The file of each object's schema."""


def misfits_of(kind: str, record: Mapping[str, Any]) -> list[str]:
    """Return where a record misses its schema: object, place and keyword.

    Args:
        kind: name of the object, as ``tool_result``; one without a schema fits.
        record: the record.
    """
    # the standard has no schema for a tool_search_result
    if kind not in _FILES:
        return []
    validator = _validator(_FILES[kind])
    misfits = []
    for error in validator.iter_errors(record):
        # tool_result /content/0/type: enum
        parts = map(str, error.instance_path)
        place = "/".join(parts)
        misfits.append(f"{kind} /{place}: {error.kind.name}")
    return misfits


def problems_of(lines: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return where records miss their schemas: object, place and keyword.

    Args:
        lines: records as ``{"object": its name, "record": it}``.
    """
    problems = []
    for line in lines:
        kind = line["object"]
        problems += misfits_of(kind, line["record"])
    return problems


@lru_cache
def _validator(name: str) -> jsonschema_rs.Draft202012Validator:
    schema = load_table(__package__, f"schemas/agenttool-{name}.schema.json")
    return jsonschema_rs.Draft202012Validator(schema)
