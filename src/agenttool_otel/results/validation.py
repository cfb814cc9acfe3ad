"""Structured output against the output contract's JSON Schema."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

import jsonschema_rs

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.records.pointers import escape_token

__all__ = ["OutputValidator"]

_MAX_ERRORS: Final = 10


class OutputValidator:
    """A compiled schema.

    Args:
        schema: JSON Schema, draft 2020-12 unless it says otherwise. References to other documents are not followed.

    Raises:
        ConfigurationError: it is no valid schema.
    """

    def __init__(self, schema: dict[str, Any]) -> None:
        try:
            self._validator = jsonschema_rs.validator_for(schema)
        except (ValueError, jsonschema_rs.ValidationError) as error:
            raise ConfigurationError(f"not a JSON Schema: {type(error).__name__}") from None

    def check(self, data: Any) -> list[str]:
        """Return where the data does not fit, as ``pointer: keyword``; empty when it does.

        Names and keywords only: a validator's own messages quote the values.

        Args:
            data: plain JSON data.
        """
        try:
            found = islice(self._validator.iter_errors(data), _MAX_ERRORS)
            return [f"{_pointer(error.instance_path)}: {_keyword(error.schema_path)}" for error in found]
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            return [f": {type(error).__name__}"]


def _pointer(path: list[Any]) -> str:
    return "".join(f"/{escape_token(str(token))}" for token in path)


def _keyword(path: list[Any]) -> str:
    return str(path[-1]) if path else "schema"
