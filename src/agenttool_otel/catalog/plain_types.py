"""Types that most parameters have, ``str`` or ``list[int] | None``: their readers and JSON Schemas
are made once for all tools.

A pydantic model for each tool's arguments takes a millisecond and some kilobytes, which a program
with 10,000 tools feels. What is no plain type takes that way, and the schemas are the same.
"""

from __future__ import annotations

import types
from collections.abc import Hashable, Mapping
from typing import Any, Final, Literal, NamedTuple, Union, get_args, get_origin

import orjson
from pydantic import TypeAdapter

_SCALARS: Final = (str, int, float, bool, type(None))
_BARE: Final = (*_SCALARS, list, dict, Any)
_DEFAULTS: Final = (str, int, bool, type(None))
_MOST: Final = 1024


class PlainType(NamedTuple):
    """A type that can be described without a model."""

    adapter: TypeAdapter[Any] | None  # pydantic's reader; ``None`` where there is nothing to read
    schema: bytes  # its JSON Schema


_known: dict[Hashable, PlainType] = {}


def plain_type(annotation: Any) -> PlainType | None:
    """Return what is known of a type; ``None`` where it is no plain one.

    Args:
        annotation: the type as it is written in a signature.
    """
    key = _key_of(annotation)
    if key is None:
        return None
    found = _known.get(key)
    if found is None:
        found = _described(annotation)
        if len(_known) < _MOST:
            _known[key] = found
    return found


def plain_property(plain: PlainType, default: Any, description: str | None) -> dict[str, Any]:
    """Return the JSON Schema of an argument, with its members in pydantic's order.

    Args:
        plain: its type.
        default: its default; ``Ellipsis`` where it has none.
        description: what it is for.
    """
    schema: dict[str, Any] = orjson.loads(plain.schema)  # each tool's own: hosts change theirs
    if default is not ...:
        schema["default"] = default
    if description:
        schema["description"] = description
    return {name: schema[name] for name in sorted(schema)}


def plain_object(
    properties: Mapping[str, dict[str, Any]], required: list[str], *, takes_others: bool
) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments.

    Args:
        properties: the schemas of the arguments.
        required: those that have no default.
        takes_others: whether arguments of other names are taken.
    """
    schema: dict[str, Any] = {"additionalProperties": takes_others, "properties": dict(properties)}
    if required:
        schema["required"] = required
    schema["type"] = "object"
    return schema


def is_plain_default(default: Any) -> bool:
    """Return whether a default is its own JSON.

    Args:
        default: the default.
    """
    return type(default) in _DEFAULTS


def _described(annotation: Any) -> PlainType:
    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    schema = orjson.dumps(adapter.json_schema())
    return PlainType(None if annotation is Any else adapter, schema)


def _key_of(annotation: Any) -> Hashable:
    """Return what distinguishes a plain type from others; ``None`` where it is none.

    The type itself would not do: ``int | str`` equals ``str | int``, and ``Literal[1]`` has the
    hash of ``Literal[True]``, but they read ``"1"`` in different ways.
    """
    if any(annotation is bare for bare in _BARE):
        return str(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return _key_of_words(arguments)
    if origin is list and len(arguments) == 1:
        return _key_of_parts("list", arguments)
    if origin is dict and arguments[:1] == (str,):
        return _key_of_parts("dict", arguments)
    if origin in (Union, types.UnionType):
        return _key_of_parts("union", arguments)
    return None


def _key_of_words(words: tuple[Any, ...]) -> Hashable:
    if all(type(word) in (str, int, bool) for word in words):
        return ("literal", *((type(word).__name__, word) for word in words))
    return None  # a member of an enumeration


def _key_of_parts(name: str, parts: tuple[Any, ...]) -> Hashable:
    keys = tuple(_key_of(part) for part in parts)
    return None if None in keys else (name, *keys)
