"""Shapes of the policy's input, of its data, and of the decision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Final

from agenttool_otel.authoring.words.shapes import (
    A_LIST,
    A_NUMBER,
    A_TEXT,
    A_TRUTH,
    ANY,
    LIST,
    NULL,
    NUMBER,
    OBJECT,
    OF_KINDS,
    TEXT,
    TRUTH,
    Shape,
    Words,
    union,
)
from agenttool_otel.names import (
    Behavior,
    PersistenceStrategy,
    ReasonType,
    SandboxNetwork,
)
from agenttool_otel.policy.bundles.input_schema import input_schema
from agenttool_otel.policy.normalise import DECISION_KEYS

_KINDS: Final[Mapping[str, str]] = {
    "string": TEXT,
    "integer": NUMBER,
    "number": NUMBER,
    "boolean": TRUTH,
    "null": NULL,
    "array": LIST,
    "object": OBJECT,
}
"""By type of JSON Schema, the type of the value in Rego."""


@cache
def input_shape() -> Shape:
    """Return the shape of the policy's input."""
    return of_schema(input_schema(), "input")


def of_schema(schema: Mapping[str, Any], name: str, *, words: bool = True) -> Shape:
    """Return the shape of what fits a schema.

    Args:
        schema: the schema, with the words that ``tools/policy_input.py`` writes.
        name: what a message calls the value.
        words: whether its ``examples`` are a vocabulary, as in the schema of the input.
    """
    branches = schema.get("anyOf")
    if branches:
        return union(of_schema(branch, name, words=words) for branch in branches).called(name)
    kinds = schema.get("type", ())
    if isinstance(kinds, str):
        kinds = (kinds,)
    if not kinds or not all(kind in _KINDS for kind in kinds):
        return ANY.called(name)
    return Shape(
        frozenset(_KINDS[kind] for kind in kinds),
        words=_words_of(schema, words),
        members=_members_of(schema, name, words),
        others=_others_of(schema, name, words),
        items=_items_of(schema, name, words),
        name=name,
    )


def _words_of(schema: Mapping[str, Any], vocabulary: bool) -> Words | None:
    if "enum" in schema:
        words = schema["enum"]
    elif vocabulary and "examples" in schema and schema.get("type") == "string":
        words = schema["examples"]
    else:
        return None
    if not all(isinstance(word, str) for word in words):
        return None
    return Words(frozenset(words), open="enum" not in schema)


def _members_of(schema: Mapping[str, Any], name: str, words: bool) -> Mapping[str, Shape] | None:
    properties = schema.get("properties")
    if properties is None:
        return None
    return {
        key: of_schema(member, f"{name}.{key}", words=words) for key, member in properties.items()
    }


def _others_of(schema: Mapping[str, Any], name: str, words: bool) -> Shape | None:
    others = schema.get("additionalProperties", True)
    if others is False or schema.get("type", "object") != "object":
        return None
    if isinstance(others, Mapping):
        return of_schema(others, f"{name}[_]", words=words)
    return ANY


def _items_of(schema: Mapping[str, Any], name: str, words: bool) -> Shape | None:
    if isinstance(schema.get("items"), Mapping):
        return of_schema(schema["items"], f"{name}[_]", words=words)
    others = schema.get("additionalProperties")
    if "properties" not in schema and isinstance(others, Mapping):
        return of_schema(others, f"{name}[_]", words=words)
    return None


def of_value(value: Any, name: str) -> Shape:
    """Return the shape of a value of a data file.

    Args:
        value: the value, plain JSON data.
        name: what a message calls it.
    """
    if isinstance(value, Mapping):
        members = {key: of_value(member, f"{name}.{key}") for key, member in value.items()}
        return Shape(OF_KINDS[OBJECT].kinds, members=members, name=name)
    if isinstance(value, (list, tuple)):
        items = union(of_value(item, f"{name}[_]") for item in value) if value else None
        return Shape(A_LIST.kinds, items=items, name=name)
    if isinstance(value, bool):
        return Shape(A_TRUTH.kinds, name=name, value=value)
    if isinstance(value, (int, float)):
        return Shape(A_NUMBER.kinds, name=name, value=value)
    if isinstance(value, str):
        words = Words(frozenset({value}), stated=True)
        return Shape(A_TEXT.kinds, words=words, name=name)
    # null in a data file stands for any value that somebody gives later
    return ANY.called(name)


def texts(words: Iterable[str], *, stated: bool = False) -> Shape:
    """Return the shape of a text that is one of some words."""
    return Shape(A_TEXT.kinds, words=Words(frozenset(map(str, words)), stated=stated))


def list_of(items: Shape) -> Shape:
    """Return the shape of a list of values of one shape."""
    return Shape(A_LIST.kinds, items=items)


def or_null(shape: Shape) -> Shape:
    """Return the shape of a value that may be null, too."""
    return union((shape, OF_KINDS[NULL]))


def obligations_shape() -> Shape:
    """Return the shape of a finding's obligations."""
    pointers = or_null(list_of(A_TEXT))
    members = {
        "redact_input": pointers,
        "redact_result": pointers,
        "max_inline_chars": or_null(A_NUMBER),
        "persistence": or_null(texts(PersistenceStrategy)),
        "sandbox": or_null(_sandbox_shape()),
    }
    return Shape(OF_KINDS[OBJECT].kinds, members=members)


def _sandbox_shape() -> Shape:
    # profiles of one's own are known where the rules run, and not where they are written
    members = {"profile": A_TEXT, "profiles": list_of(A_TEXT), "network": texts(SandboxNetwork)}
    return Shape(OF_KINDS[OBJECT].kinds, members=members)


def decision_shape(rules: Iterable[str] | None) -> Shape:
    """Return the shape of ``data.agenttool.permission.decision``.

    Args:
        rules: the names of all rules; ``None`` where some are put together by a rule.
    """
    rule = A_TEXT if rules is None else texts(rules)
    reason = Shape(
        OF_KINDS[OBJECT].kinds,
        members={"type": texts(ReasonType), "rule_ref": rule, "message": A_TEXT},
    )
    members = dict.fromkeys(DECISION_KEYS, ANY)
    members["behavior"] = texts(Behavior)
    members["reason"] = reason
    members["rule_refs"] = list_of(rule)
    members["obligations"] = obligations_shape()
    members["approver_roles"] = list_of(A_TEXT)
    members["approvals_needed"] = A_NUMBER
    members["required_roles"] = list_of(A_TEXT)
    members["open_questions"] = list_of(rule)
    members["alternatives"] = A_LIST
    members["suggested_updates"] = A_LIST
    whole = Shape(OF_KINDS[OBJECT].kinds, members=members)
    return _named(whole, "the decision")


def _named(shape: Shape, name: str) -> Shape:
    """Return a shape whose members are called by their path."""
    if shape.members is None:
        return shape.called(name)
    members = {key: _named(member, f"{name}.{key}") for key, member in shape.members.items()}
    return replace(shape, members=members, name=name)
