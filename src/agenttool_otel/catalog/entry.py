"""One tool of a catalog: governed, or only declared; what is known of it is read when somebody asks."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson

from agenttool_otel.catalog.declare import STATED_AS, policy_parts
from agenttool_otel.catalog.options import GovernOptions
from agenttool_otel.catalog.registry import HasSpec
from agenttool_otel.catalog.vocabulary import TABLES
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.names import Lifecycle, LoadingState, SchemaVisibility
from agenttool_otel.records import DeferredToolRef, ToolDeclaration
from agenttool_otel.records.base import JsonObject

Loader = Callable[[str], Any]
"""Makes the tool of a tool id: a governed tool, or one that can be governed."""

_RESTRICTING: Final[list[str]] = TABLES["restricting"]
"""What a declaration may say of when the tool is shown; none of it makes a tool harmless."""


class Origin(NamedTuple):
    """What entries that came together share."""

    provider: str = ""
    loader: Loader | None = None
    facts: tuple[tuple[str, Any], ...] = ()  # what the host states of the tools


@dataclass(slots=True, eq=False)
class Entry:
    """One tool of a catalog."""

    tool_id: str
    name: str
    namespace: str
    is_deferred: bool
    origin: Origin
    raw: bytes = b""  # the declaration as JSON, where the tool is only declared
    tool: HasSpec | None = None  # the governed tool, where the catalog keeps it
    alive: Callable[[], HasSpec | None] | None = None  # the same where whoever made it keeps it

    @property
    def governed(self) -> HasSpec | None:
        """The governed tool, if there is one."""
        return self.tool or (self.alive() if self.alive is not None else None)

    @property
    def qualified(self) -> str:
        """``namespace.name``."""
        return f"{self.namespace}.{self.name}"

    def document(self) -> JsonObject:
        """Return the declaration as JSON data."""
        tool = self.governed
        return tool.spec.declaration.to_json_object() if tool is not None else dict(orjson.loads(self.raw or b"{}"))

    def declaration(self) -> ToolDeclaration:
        """Return the declaration as a record; of a reference, as much of it as is known."""
        if (tool := self.governed) is not None:
            return tool.spec.declaration
        document = self.document()
        known = {"namespace": self.namespace, "description": document.get("search_hint") or self.name}
        return ToolDeclaration.from_json_object({**known, **document})

    def interface(self) -> JsonObject:
        """Return what is said of when the tool is shown."""
        if (tool := self.governed) is not None:
            stated: dict[str, Any] = tool.spec.interface.model_dump(include=set(_RESTRICTING))
            found = tool.spec.declaration
            return {**stated, "lifecycle": str(found.lifecycle), "capability_refs": found.capability_refs}
        document, facts = self.document(), dict(self.origin.facts)
        said = document.get("tool_interface")
        stated = dict(said) if isinstance(said, dict) else {}
        stated |= {STATED_AS.get(name, name): fact for name, fact in facts.items()}
        waits = {"lifecycle": document.get("lifecycle", Lifecycle.AVAILABLE.value)}
        return {**waits, "capability_refs": document.get("capability_refs", ()), **stated}

    def policy_parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return ``input.tool`` and ``input.permission_profile``; only what the host states makes a tool harmless."""
        if (tool := self.governed) is not None:
            return tool.spec.policy_tool, tool.spec.policy_profile
        return policy_parts(self.options())

    def options(self) -> GovernOptions:
        """Return what is stated of a declared tool: its identity in its own words, its facts in the host's."""
        document = self.document()
        named = ("aliases", "title", "description", "search_hint", "lifecycle", "tool_kind", "capability_refs")
        own = {name: document[name] for name in named if document.get(name) is not None}
        identity = {"tool_id": self.tool_id, "namespace": self.namespace, "name": self.name}
        return {**own, **dict(self.origin.facts), **identity}  # type: ignore[typeddict-item]

    def ref(self, state: LoadingState, reason: str = "") -> DeferredToolRef:
        """Return the deferred_tool_ref."""
        document = self.document()
        mappings = document.get("external_mappings") or [document.get("native_ref") or {}]
        return DeferredToolRef(
            tool_id=self.tool_id,
            name=self.name,
            namespace=self.namespace,
            search_hint=document.get("search_hint"),
            source=self.origin.provider or document.get("source"),
            schema_visibility=SchemaVisibility.LOADED if state is LoadingState.LOADED else SchemaVisibility.DEFERRED,
            loading_state=state,
            reason=reason or None,
            pending_provider_or_server=self.origin.provider if state is LoadingState.PENDING_PROVIDER else None,
            selection_ref=f"select:{self.name}",
            native_ref=mappings[0] or None,
        )


class Names:
    """Entries by id, and ids by name."""

    __slots__ = ("aliases", "entries", "names")

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.names: dict[str, str | None] = {}  # ``None`` for a name that several tools have
        self.aliases: set[str] = set()

    def put(self, entry: Entry, aliases: Iterable[str]) -> None:
        self.entries[entry.tool_id] = entry
        self.aliases.update(aliases)
        for name in {entry.name, entry.qualified, *aliases} - {entry.tool_id}:
            self.names[name] = None if self.names.get(name, entry.tool_id) != entry.tool_id else entry.tool_id

    def refuse_collisions(self, entry: Entry, aliases: Iterable[str]) -> None:
        for alias in aliases:
            if alias in self.names or alias in self.entries:
                raise ConfigurationError(f"the alias {alias!r} of {entry.tool_id!r} is another tool's name")
        for name in (entry.name, entry.qualified):
            if name in self.aliases:
                raise ConfigurationError(f"the name {name!r} of {entry.tool_id!r} is another tool's alias")


def declared_entry(document: Mapping[str, Any], origin: Origin) -> Entry:
    try:
        tool_id, name = document["tool_id"], document["name"]
        raw = bytes(memoryview(orjson.dumps(document)))  # a copy: the original keeps far more than it holds
    except (TypeError, KeyError, ValueError) as error:
        raise ConfigurationError(f"a declaration is a JSON object with tool_id and name: {error}") from None
    if not isinstance(tool_id, str) or not isinstance(name, str):
        raise ConfigurationError("tool_id and name of a declaration are texts")
    namespace = sys.intern(str(document.get("namespace") or origin.provider or "catalog"))
    facts = dict(origin.facts)
    # only the host may put a tool that is merely declared before every model
    waits = facts.get("defer", not facts.get("always_load", False))
    return Entry(tool_id, name, namespace, waits, origin, raw=raw)


def governed_entry(tool: HasSpec, origin: Origin, *, weakly: bool = False) -> Entry:
    spec = tool.spec
    declaration, interface = spec.declaration, spec.interface
    waits = interface.should_defer or declaration.lifecycle in (Lifecycle.DEFERRED, Lifecycle.DEPRECATED)
    return Entry(
        declaration.tool_id,
        declaration.name,
        declaration.namespace,
        waits and not interface.always_load,
        origin,
        tool=None if weakly else tool,
        alive=weakref.ref(tool) if weakly else None,
    )
