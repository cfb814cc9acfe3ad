"""JSON Schema checks, compiled once; an error names the place and the keyword, never the value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jsonschema_rs

from agenttool_otel.catalog.schema_words import told
from agenttool_otel.errors import ConfigurationError

__all__ = ["SchemaCheck"]


class SchemaCheck:
    """A compiled JSON Schema (draft 2020-12).

    Args:
        schema: the schema.

    Raises:
        ConfigurationError: it is not a valid schema.
    """

    __slots__ = ("_validator", "is_valid", "schema")

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = dict(schema)
        try:
            self._validator = jsonschema_rs.Draft202012Validator(self.schema, validate_formats=False)
        except (ValueError, jsonschema_rs.ValidationError) as error:
            raise ConfigurationError(f"not a valid JSON Schema: {error}") from None
        self.is_valid = self._validator.is_valid

    def problems(self, instance: Any, *, limit: int = 8) -> list[tuple[str, str]]:
        """Return what is wrong as pairs of JSON pointer and schema keyword.

        Args:
            instance: JSON data.
            limit: how many problems to name.
        """
        found: list[tuple[str, str]] = []
        for error in self._validator.iter_errors(instance):
            pointer = "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in error.instance_path)
            keyword = str(error.schema_path[-1]) if error.schema_path else "schema"
            found.append((pointer, keyword))
            if len(found) >= limit:
                break
        return found

    def told(self, instance: Any, *, limit: int = 8) -> list[str]:
        """Say what is wrong in words, for whoever has to correct it; no value of the instance is in them.

        Args:
            instance: JSON data.
            limit: how many problems to name.
        """
        return [told(error) for error, _ in zip(self._validator.iter_errors(instance), range(limit), strict=False)]
