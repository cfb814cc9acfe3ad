"""A schema as it may leave the process: without the values of what is secret.

"``defaults`` where safe" (standard, "Input contract"). A declaration is in records, in the tools
that a model is offered and in what a person is shown, and ``def connect(password="hunter2")`` puts
a secret into its schema. What runs keeps the default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from agenttool_otel.values.pointers import unescape_token

IsSecret = Callable[[str, Any], bool]
"""Whether the value of an argument must not be shown, by its name and the value."""

_VALUES: Final = frozenset({"default", "examples", "example"})
_NAMED: Final = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_SHORTEST_TOKEN: Final = 12
_MAX_DEPTH: Final = 32


def secrets_of(sensitive: Sequence[str]) -> IsSecret:
    """Return the check for the secret values of a tool.

    Args:
        sensitive: the tool's sensitive arguments, by name or JSON pointer.
    """
    stated = {_last_name(pointer) for pointer in sensitive}

    def is_secret(name: str, value: Any) -> bool:
        if value is None or isinstance(value, bool):
            return False
        # a pointer to a part hides that part wherever it is: "/login/pin" hides every "pin"
        if name in stated or "*" in stated:
            return True
        if isinstance(value, Mapping):
            return any(is_secret(str(part), item) for part, item in value.items())
        if isinstance(value, list | tuple):
            return any(is_secret(name, item) for item in value)
        return isinstance(value, str) and _is_secret_text(name, value)

    return is_secret


def without_secrets(schema: Mapping[str, Any], is_secret: IsSecret) -> dict[str, Any]:
    """Return a schema without the defaults and examples that are secret."""
    return _node(schema, "", is_secret, _MAX_DEPTH)


def without_secret_members(example: Any, is_secret: IsSecret) -> Any:
    """Return an example of arguments without those that are secret."""
    if not isinstance(example, Mapping):
        return example
    shown: dict[str, Any] = {}
    for name, item in example.items():
        if not is_secret(name, item):
            shown[name] = item
    return shown


def _node(schema: Mapping[str, Any], name: str, is_secret: IsSecret, depth: int) -> dict[str, Any]:
    node: dict[str, Any] = {}
    for key, item in schema.items():
        if key in _VALUES:
            if not is_secret(name, item):
                node[key] = item
        elif key in _NAMED and isinstance(item, Mapping):
            node[key] = _named_parts(item, is_secret, depth)
        else:
            node[key] = _part(item, name, is_secret, depth)
    return node


def _named_parts(parts: Mapping[str, Any], is_secret: IsSecret, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, item in parts.items():
        found[name] = _part(item, name, is_secret, depth)
    return found


def _part(item: Any, name: str, is_secret: IsSecret, depth: int) -> Any:
    """Return a part of a schema: ``items`` and ``anyOf`` are of the same name."""
    if not isinstance(item, Mapping | list):
        return item
    if depth <= 0:
        # a default below may be secret, and nobody has looked
        if isinstance(item, list):
            return []
        return {}
    if isinstance(item, Mapping):
        return _node(item, name, is_secret, depth - 1)
    found = []
    for each in item:
        found.append(_part(each, name, is_secret, depth - 1))
    return found


def _is_secret_text(name: str, text: str) -> bool:
    if not text:
        return False
    # only a default that is a text needs them, and they read large tables
    from agenttool_otel.readers.urls.credentials import holds_credential
    from agenttool_otel.redaction.keys import KeyClass, classify, fits_class, is_service

    found = classify(name)
    if found is not KeyClass.NONE:
        value = text.encode("utf-8", "replace")
        if fits_class(found, value, service=is_service(name)):
            return True
    return len(text) >= _SHORTEST_TOKEN and holds_credential(text)


def _last_name(pointer: str) -> str:
    last = pointer.removeprefix("#").rsplit("/", 1)[-1]
    return unescape_token(last)
