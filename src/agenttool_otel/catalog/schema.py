"""JSON Schema checks, compiled once, and what is wrong in words that a model can act on: ``/x must
be integer``.

The words hold what the schema wants, never what was given: a value may be a secret. Names that only
the data has are left out for the same reason; places are JSON pointers, as everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.values.pointers import escape_token, unescape_token

_MAX_SHOWN_CHARS: Final = 160


class SchemaCheck:
    """A compiled JSON Schema (draft 2020-12).

    Args:
        schema: the schema.
        derived: whether it was made of plain types, so that it is valid and nobody else's: then it
            is compiled when it is first used.
    """

    __slots__ = ("_validator", "is_valid", "schema")

    def __init__(self, schema: Mapping[str, Any], *, derived: bool = False) -> None:
        self.schema = dict(schema)
        if not derived:
            self._compile()

    def __getattr__(self, name: str) -> Any:
        """Compile the schema when it is first used."""
        if name not in ("_validator", "is_valid"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self._compile()
        return object.__getattribute__(self, name)

    def _compile(self) -> None:
        import jsonschema_rs

        try:
            self._validator = jsonschema_rs.Draft202012Validator(
                self.schema, validate_formats=False
            )
        except (ValueError, jsonschema_rs.ValidationError) as error:
            raise ConfigurationError(f"not a valid JSON Schema: {error}") from None
        self.is_valid = self._validator.is_valid

    def problems(self, instance: Any, *, limit: int = 8) -> list[tuple[str, str]]:
        """Return what is wrong: the JSON pointer of each place, and what is wanted there."""
        found: list[tuple[str, str]] = []
        for error in islice(self._validator.iter_errors(instance), limit):
            kind: Any = error.kind
            if kind.name == "required":
                found.append(
                    (f"{_pointer(error)}/{escape_token(str(kind.property))}", "Field required")
                )
            else:
                found.append((_pointer(error), _wanted(error.kind, error)))
        return found

    def misfits(self, problems: Sequence[tuple[str, str]]) -> frozenset[str]:
        """Return the arguments that problems are about.

        Args:
            problems: from ``problems``.
        """
        return frozenset(
            unescape_token(pointer.split("/", 2)[1]) for pointer, _ in problems if pointer
        )

    def messages(self, instance: Any, *, limit: int = 8) -> list[str]:
        """Return what is wrong in words, for its correction; no value of the instance is in
        them.
        """
        found: list[str] = []
        for error in islice(self._validator.iter_errors(instance), limit):
            place = _pointer(error) or "/"
            found.append(f"{place} {_wanted(error.kind, error)}")
        return found


def _pointer(error: Any) -> str:
    return "".join(f"/{escape_token(str(part))}" for part in error.instance_path)


def _wanted(kind: Any, error: Any) -> str:
    name: str = getattr(kind, "name", "")
    value: Any = getattr(kind, "value", None)
    match name:
        case "required":
            return f"lacks the required {value}"
        case "type":
            return f"must be {_or(value)}"
        case "enum":
            return f"must be one of {_shown(value)}"
        case "const":
            return f"must be {_shown([value])}"
        case "additionalProperties" | "unevaluatedProperties":
            return "has members that the schema does not have"
        case "minLength" | "maxLength":
            return f"must have {_bound(name)} {value} characters"
        case "minItems" | "maxItems":
            return f"must have {_bound(name)} {value} entries"
        case "minProperties" | "maxProperties":
            return f"must have {_bound(name)} {value} members"
        case "minimum" | "maximum":
            return f"must be {_bound(name)} {value}"
        case "exclusiveMinimum":
            return f"must be above {value}"
        case "exclusiveMaximum":
            return f"must be below {value}"
        case "multipleOf":
            return f"must be a multiple of {value}"
        case "pattern":
            return f"must match the pattern {_cut(str(value))}"
        case "format":
            return f"must have the format {_cut(str(value))}"
        case "uniqueItems":
            return "must not hold an entry twice"
        case "anyOf" | "oneOf":
            types = _types(value)
            return (
                f"must be {_or(types)}"
                if types
                else "fits none of the forms that the schema allows"
            )
    keyword = name or (str(error.schema_path[-1]) if error.schema_path else "schema")
    return f"does not meet {keyword!r}"


def _types(branches: Any) -> list[str]:
    """The types that an ``anyOf`` allows, where a type is all that every branch asks for."""
    found: list[str] = []
    for branch in branches if isinstance(branches, (list, tuple)) else ():
        kinds = [
            problem.kind for problem in branch if not problem.instance_path or len(branch) == 1
        ]
        if len(branch) != 1 or getattr(kinds[0], "name", "") != "type":
            return []
        found += kinds[0].value
    return list(dict.fromkeys(found))


def _or(words: Sequence[str]) -> str:
    return " or ".join(sorted(words, key=lambda word: (word == "null", word)))


def _bound(name: str) -> str:
    return "at least" if name.startswith("min") else "at most"


def _shown(options: Sequence[Any]) -> str:
    return _cut(
        ", ".join(json.dumps(option, ensure_ascii=False, default=str) for option in options)
    )


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN_CHARS else f"{text[:_MAX_SHOWN_CHARS]}..."
