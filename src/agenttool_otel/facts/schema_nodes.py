"""What a tool's schema states of each place, compiled to nodes along which a call's arguments are
walked.
"""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from agenttool_otel.facts.argument_names import (
    FactKind,
    is_content,
    kind_of_format,
    kind_of_name,
    names_content,
    path_access,
)
from agenttool_otel.names import AccessKind, PathAccess, ToolKind, WriteEffect
from agenttool_otel.values.pointers import escape_token, unescape_token

ABSENT: Final = object()
"""Stands for a default that a schema does not state."""

_FILES: Final = frozenset({AccessKind.FILE_READ, AccessKind.FILE_WRITE})
_NETWORK: Final = frozenset({AccessKind.NETWORK, AccessKind.BROWSER})
_MAX_SCHEMA_NODES: Final = 5_000


@dataclass(slots=True)
class Node:
    """What a schema states of the values at a place."""

    kind: FactKind | None = None  # what the value is, or each element when it is a list
    access: PathAccess = PathAccess.UNKNOWN  # what is done with it, when it is a path
    default: Any = ABSENT  # the schema's default, or ``ABSENT``
    nullable: bool = False  # whether ``None`` stands for no value
    types: frozenset[str] = frozenset()  # JSON types that the place takes; empty for all
    properties: dict[str, Node] = field(default_factory=dict)  # by key
    items: Node | None = None  # of every element of a list
    prefix: list[Node] = field(default_factory=list)  # of the first elements of a list
    others: Node | None = None  # of keys that are not in ``properties``
    variants: list[Node] = field(default_factory=list)  # further nodes for the same value
    free: bool = False  # keys of any name may come; the names are looked at when called
    # named like a path in a tool without file access: a text that starts like a path is a path
    placed: bool = False
    # no name or schema determines what the texts here are: they are looked at when called
    probe: bool = False

    def places(self, pointer: str = "") -> list[tuple[str, Node]]:
        """Return all nodes below, with the patterns of their pointers.

        Args:
            pointer: the pattern of this node's own.
        """
        found: list[tuple[str, Node]] = []
        for name, child in self.properties.items():
            found.append((f"{pointer}/{escape_token(name)}", child))
        for element in (self.items, self.others, *self.prefix):
            if element is not None:
                found.append((f"{pointer}/*", element))
        for variant in self.variants:
            found.append((pointer, variant))
        return found


class Effects(NamedTuple):
    """What the tool does, by its declaration."""

    write_effects: tuple[str, ...]  # of the declaration
    access_kinds: tuple[str, ...]  # of the declaration
    read_only: bool  # of the declaration
    sql: bool  # whether SQL is about, so that ``query`` is no search
    tool_kind: str = ""  # of the declaration
    file_access: bool = True  # whether a name alone may mark an argument as a local path

    def access(self, name: str) -> PathAccess:
        """Return what is done with a path argument of this name."""
        return path_access(
            name,
            write_effects=self.write_effects,
            access_kinds=self.access_kinds,
            read_only=self.read_only,
        )

    def kind(self, name: str) -> FactKind | None:
        """Return what an argument is by its name."""
        kind = kind_of_name(name, sql=self.sql)
        if kind is FactKind.PATH and not self.file_access:
            return None
        return kind

    def places(self, name: str) -> bool:
        """Return whether an argument is named like a path that the tool can't open by itself."""
        return not self.file_access and kind_of_name(name, sql=self.sql) is FactKind.PATH

    @property
    def files(self) -> bool:
        """Whether the tool uses files."""
        if self.tool_kind == ToolKind.FILE_OPERATION:
            return True
        return not _FILES.isdisjoint(self.access_kinds)

    @property
    def network(self) -> bool:
        """Whether the tool connects to hosts that its arguments may name."""
        return not _NETWORK.isdisjoint(self.access_kinds)

    @property
    def sending(self) -> bool:
        """Whether the tool may write or send, so that it matters where each value came from.

        A tool that states neither effects nor that it only reads may do anything.
        """
        if not self.read_only:
            return True
        return any(effect != WriteEffect.NONE for effect in self.write_effects)


FREE: Final = Node(free=True)
"""Data whose keys no schema lists."""


def is_nullable(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema takes ``null``, or has it as its default."""
    if "null" in types_of(schema) or schema.get("default", ABSENT) is None:
        return True
    for keyword in ("anyOf", "oneOf"):
        for variant in _list(schema.get(keyword)):
            if isinstance(variant, Mapping) and variant.get("type") == "null":
                return True
    return False


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def is_useful(root: Node) -> bool:
    """Return whether any place below a node could give a fact."""
    stack = [root]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.kind is not None or node.free or node.probe:
            return True
        stack += [child for _, child in node.places()]
    return False


def resolved(schema: Mapping[str, Any], reference: Any) -> Mapping[str, Any] | None:
    """Return what a reference within a schema leads to, ``None`` for any other."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    place: Any = schema
    for token in reference[1:].split("/")[1:]:
        if not isinstance(place, Mapping):
            return None
        place = place.get(unescape_token(token))
    return place if isinstance(place, Mapping) else None


_ANYTHING: Final[Mapping[str, Any]] = {}


def compile_schema(schema: Mapping[str, Any], effects: Effects) -> Node:
    """Return the node of a tool's whole argument schema."""
    return _Compiler(schema, effects).node(schema, "")


def accepts(node: Node, value: Any) -> bool:
    """Return whether a value is of a type that a node takes."""
    if not node.types:
        others = [variant for variant in node.variants if variant is not node]
        return not node.variants or any(accepts(variant, value) for variant in others)
    if value is None:
        return "null" in node.types
    if isinstance(value, Mapping):
        return "object" in node.types
    if isinstance(value, list | tuple | set | frozenset):
        return "array" in node.types
    if isinstance(value, str | pathlib.PurePath):
        return "string" in node.types
    return not node.types <= {"null", "object", "array", "string"}


class _Compiler:
    """Turns a schema into nodes; a recursive schema becomes a graph."""

    def __init__(self, schema: Mapping[str, Any], effects: Effects) -> None:
        self._schema = schema
        self._effects = effects
        self._made: dict[tuple[int, str], Node] = {}

    def node(self, schema: Any, name: str) -> Node:
        """Return the node of a part of the schema."""
        if schema is True:
            schema = _ANYTHING
        if not isinstance(schema, Mapping):
            return Node()
        key = (id(schema), name)
        if key in self._made:
            return self._made[key]
        node = Node()
        self._made[key] = node
        if len(self._made) > _MAX_SCHEMA_NODES:
            node.free = True  # too large to plan for: the names are looked at when called
            return node
        self._fill(node, schema, name)
        return node

    def _fill(self, node: Node, schema: Mapping[str, Any], name: str) -> None:
        node.nullable = is_nullable(schema)
        node.types = frozenset(types_of(schema))
        node.default = schema.get("default", ABSENT)
        self._add_variants(node, schema, name)
        node.kind = self._kind(schema, name)
        node.access = self._effects.access(name)
        if node.kind is not None:
            # The list as a whole goes to the collector, which follows it.
            return
        node.placed = self._effects.places(name)
        node.probe = node.placed or self._probes(schema, name)
        self._add_elements(node, schema, name)
        self._add_members(node, schema, name)

    def _add_variants(self, node: Node, schema: Mapping[str, Any], name: str) -> None:
        target = resolved(self._schema, schema.get("$ref"))
        if target is not None:
            node.variants.append(self.node(target, name))
        for keyword in ("anyOf", "oneOf", "allOf"):
            for variant in _list(schema.get(keyword)):
                node.variants.append(self.node(variant, name))
        for keyword in ("then", "else"):
            if keyword in schema:
                node.variants.append(self.node(schema[keyword], name))

    def _add_elements(self, node: Node, schema: Mapping[str, Any], name: str) -> None:
        items = schema.get("items")
        if isinstance(items, list):  # before draft 2020-12, a list has one schema for each element
            node.prefix = [self.node(item, name) for item in items]
        elif items is not None and items is not False:
            node.items = self.node(items, name)
        for item in _list(schema.get("prefixItems")):
            node.prefix.append(self.node(item, name))

    def _add_members(self, node: Node, schema: Mapping[str, Any], name: str) -> None:
        properties = schema.get("properties")
        if isinstance(properties, Mapping):
            for key, child in properties.items():
                node.properties[str(key)] = self.node(child, str(key))
        others = schema.get("additionalProperties")
        if isinstance(others, Mapping):
            node.others = self.node(others, name)
        patterns = schema.get("patternProperties")
        if isinstance(patterns, Mapping):
            for child in patterns.values():
                node.variants.append(Node(others=self.node(child, name)))
        node.free = _is_free(schema, others)

    def _kind(self, schema: Mapping[str, Any], name: str) -> FactKind | None:
        found = kind_of_format(schema)
        if found is not None:
            return found
        if not name or is_content(schema) or not _may_be_text(schema):
            return None
        return self._effects.kind(name)

    def _probes(self, schema: Mapping[str, Any], name: str) -> bool:
        """Return whether texts here are looked at when the tool is called."""
        if not (self._effects.files or self._effects.network):
            return False
        if "enum" in schema or "const" in schema:
            return False  # a closed set was written by the developer
        if is_content(schema) or names_content(name):
            return False  # a letter that mentions /etc/passwd opens nothing
        return bool(name) and _may_be_text(schema)


def types_of(schema: Mapping[str, Any]) -> set[str]:
    """Return the types that a schema names; no types where it takes any."""
    types = schema.get("type")
    if isinstance(types, str):
        return {types}
    return {name for name in _list(types) if isinstance(name, str)}


def _may_be_text(schema: Mapping[str, Any]) -> bool:
    """Return whether a value of this very schema can be text or a list of texts; its variants are
    looked at apart.
    """
    types = types_of(schema)
    if not types:
        return _COMPOUND.isdisjoint(schema)
    if "string" in types:
        return True
    if "array" not in types:
        return False
    items = schema.get("items", True)
    if isinstance(items, list):
        return False
    return not isinstance(items, Mapping) or _may_be_text(items)


_REFERRING: Final = frozenset({"$ref", "anyOf", "oneOf", "allOf"})
_COMPOUND: Final = _REFERRING | {"properties", "const"}
"""Keywords of a schema without a type whose values are described elsewhere, or are no text."""


def _is_free(schema: Mapping[str, Any], others: Any) -> bool:
    """Return whether keys of any name may come of which the schema states nothing."""
    if others is True:
        return True
    types = types_of(schema)
    if types == {"array"} and schema.get("items") in (None, True, {}):
        return "prefixItems" not in schema
    if types and "object" not in types:
        return False
    if not types and ("enum" in schema or not _REFERRING.isdisjoint(schema)):
        return False
    if "properties" in schema or "patternProperties" in schema:
        return False
    return others is None
