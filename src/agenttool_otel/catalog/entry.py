"""One tool of a catalog: governed, or only declared; what is known of it is read when
it is asked for.
"""

from __future__ import annotations

import sys
import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson

from agenttool_otel.catalog.declare import STATED_AS, policy_parts
from agenttool_otel.catalog.identity import check_identity, spelt
from agenttool_otel.catalog.options import GovernOptions
from agenttool_otel.catalog.registry import HasSpec
from agenttool_otel.catalog.spec import ToolSpec
from agenttool_otel.catalog.vocabulary import TABLES
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.names import Lifecycle, LoadingState, SchemaVisibility
from agenttool_otel.records import DeferredToolRef, ToolDeclaration
from agenttool_otel.records.base import JsonObject

Loader = Callable[[str], Any]
"""Makes the tool of a tool id: a governed tool, or one that can be governed."""

_RESTRICTING: Final[list[str]] = TABLES["restricting"]
"""What a declaration may state of when the tool is shown; none of it makes a tool harmless."""


_DECLARING: Final = frozenset({"input_contract", "tool_kind"})
"""What a declaration has, and a reference to a tool has not."""

_EFFECTS: Final = ("read_only", "destructive", "open_world")


class Origin(NamedTuple):
    """What entries that came together share."""

    provider: str = ""
    loader: Loader | None = None
    facts: tuple[tuple[str, Any], ...] = ()  # what the host states of the tools


def restrictions(spec: ToolSpec) -> JsonObject:
    """Return when a governed tool is shown, as ``Conditions.hides`` reads it.

    Args:
        spec: what is known of the tool.
    """
    stated: dict[str, Any] = spec.interface.model_dump(include=set(_RESTRICTING))
    stated["lifecycle"] = str(spec.declaration.lifecycle)
    stated["capability_refs"] = spec.declaration.capability_refs
    return stated


@dataclass(slots=True, eq=False)
class Entry:
    """One tool of a catalog."""

    tool_id: str
    name: str
    namespace: str
    is_deferred: bool
    origin: Origin
    aliases: tuple[str, ...] = ()
    raw: bytes = b""  # the declaration as JSON, where the tool is only declared
    tool: HasSpec | None = None  # the governed tool, where the catalog keeps it
    alive: Callable[[], HasSpec | None] | None = None  # the same where its maker keeps it

    @property
    def governed(self) -> HasSpec | None:
        """The governed tool, if there is one."""
        return self.tool or (self.alive() if self.alive is not None else None)

    @property
    def is_declared(self) -> bool:
        """Whether the tool came as a declaration; its loader may have made it since."""
        return bool(self.raw)

    @property
    def qualified(self) -> str:
        """``namespace.name``."""
        return f"{self.namespace}.{self.name}"

    @property
    def is_reference(self) -> bool:
        """Whether no more is known of the tool than its name and hints: its schema is elsewhere."""
        if self.governed is not None:
            return False
        document = self.document()
        return "loading_state" in document or _DECLARING.isdisjoint(document)

    def document(self) -> JsonObject:
        """Return the declaration as JSON data."""
        tool = self.governed
        return (
            tool.spec.declaration.to_json_object()
            if tool is not None
            else dict(orjson.loads(self.raw or b"{}"))
        )

    def declaration(self) -> ToolDeclaration:
        """Return the declaration as a record; of a reference, as much of it as is known."""
        if (tool := self.governed) is not None:
            return tool.spec.declaration
        document = self.document()
        known = {
            "namespace": self.namespace,
            "description": document.get("search_hint") or self.name,
        }
        return ToolDeclaration.from_json_object({**known, **document})

    def interface(self) -> JsonObject:
        """Return when the tool is shown, as its declaration states it."""
        tool = self.governed
        if tool is not None:
            return restrictions(tool.spec)
        document = self.document()
        stated = {
            "lifecycle": document.get("lifecycle", Lifecycle.AVAILABLE.value),
            "capability_refs": document.get("capability_refs", ()),
        }
        interface = document.get("tool_interface")
        if isinstance(interface, dict):
            stated.update(interface)
        for name, fact in self.origin.facts:
            stated[STATED_AS.get(name, name)] = fact
        return stated

    def stated_facts(self) -> JsonObject:
        """Return what the host stated of the tool's effects, by name: ``{"read_only": True}``.

        What a declaration of others states is a hint of theirs, and none of these.
        """
        if (tool := self.governed) is None:
            return dict(self.origin.facts)
        interface = tool.spec.interface
        facts = interface.model_dump(include={f"is_{name}" for name in _EFFECTS})
        return {
            name: facts[f"is_{name}"] for name in _EFFECTS if name not in (interface.inferred or ())
        }

    def policy_parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return ``input.tool`` and ``input.permission_profile``; only what the host states makes a
        tool harmless.
        """
        if (tool := self.governed) is not None:
            return tool.spec.policy_tool, tool.spec.policy_profile
        return policy_parts(self.options())

    def options(self) -> GovernOptions:
        """Return what is stated of a declared tool: its identity in its own words, its facts in the
        host's.
        """
        document = self.document()
        named = (
            "aliases",
            "title",
            "description",
            "search_hint",
            "lifecycle",
            "tool_kind",
            "capability_refs",
        )
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
            schema_visibility=SchemaVisibility.LOADED
            if state is LoadingState.LOADED
            else SchemaVisibility.DEFERRED,
            loading_state=state,
            reason=reason or None,
            pending_provider_or_server=self.origin.provider
            if state is LoadingState.PENDING_PROVIDER
            else None,
            selection_ref=f"select:{self.name}",
            native_ref=mappings[0] or None,
        )


class Names:
    """Entries by id, and ids by name."""

    __slots__ = ("aliases", "entries", "names")

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        # one id, or the ids of all that have the name
        self.names: dict[str, str | frozenset[str]] = {}
        self.aliases: Counter[str] = Counter()

    def put(self, entry: Entry) -> None:
        """Add an entry."""
        self.entries[entry.tool_id] = entry
        self.aliases.update(entry.aliases)
        for name in _names_of(entry):
            ids = self.named(name)
            self.names[name] = ids | {entry.tool_id} if ids - {entry.tool_id} else entry.tool_id

    def remove(self, tool_id: str) -> Entry:
        """Take an entry out, and return it."""
        entry = self.entries.pop(tool_id)
        self.aliases -= Counter(entry.aliases)
        for name in _names_of(entry):
            ids = self.named(name) - {tool_id}
            if ids:
                self.names[name] = ids
            else:
                self.names.pop(name, None)
        return entry

    def named(self, name: str) -> frozenset[str]:
        """Return the ids of the entries that have a name or alias."""
        found = self.names.get(name, frozenset())
        return frozenset((found,)) if isinstance(found, str) else found

    def holders(self, name: str) -> frozenset[str]:
        """Return the ids of the entries that have an id, name or alias."""
        return self.named(name) | ({name} if name in self.entries else frozenset())

    def refuse_collisions(self, entry: Entry) -> None:
        """Refuse an alias that is another tool's name, and a name that is another tool's alias.

        What is governed gives way to nothing that is merely declared: the name belongs to neither
        then.
        """
        for alias in entry.aliases:
            if self._is_taken(alias, entry):
                raise ConfigurationError(
                    f"the alias {alias!r} of {entry.tool_id!r} is another tool's name"
                )
        for name in (entry.name, entry.qualified, entry.tool_id):
            if name in self.aliases and self._is_taken(name, entry):
                raise ConfigurationError(
                    f"the name {name!r} of {entry.tool_id!r} is another tool's alias"
                )

    def _is_taken(self, name: str, entry: Entry) -> bool:
        others = [self.entries[tool_id] for tool_id in self.holders(name) - {entry.tool_id}]
        return any(entry.is_declared or not other.is_declared for other in others)


def _names_of(entry: Entry) -> set[str]:
    return {entry.name, entry.qualified, *entry.aliases} - {entry.tool_id}


def declared_entry(document: Mapping[str, Any], origin: Origin) -> Entry:
    """Make the entry of a declaration from elsewhere.

    Args:
        document: a tool_declaration or deferred_tool_ref.
        origin: where it comes from.

    Raises:
        ConfigurationError: it is none, or is called by something outside the alphabet.
    """
    try:
        tool_id, name = document["tool_id"], document["name"]
        # a copy: the original keeps far more than it holds
        raw = bytes(memoryview(orjson.dumps(document)))
    except (TypeError, KeyError, ValueError) as error:
        raise ConfigurationError(
            f"a declaration is a JSON object with tool_id and name: {error}"
        ) from None
    aliases = document.get("aliases") or ()
    if not isinstance(aliases, (list, tuple)):
        raise ConfigurationError("the aliases of a declaration are a list of texts")
    namespace = document.get("namespace") or spelt(origin.provider) or "catalog"
    check_identity(tool_id, namespace, name, aliases)
    facts = dict(origin.facts)
    # only the host may put a tool that is merely declared before every model
    waits = facts.get("defer", not facts.get("always_load", False))
    return Entry(tool_id, name, sys.intern(namespace), waits, origin, tuple(aliases), raw=raw)


def governed_entry(tool: HasSpec, origin: Origin, *, weakly: bool = False) -> Entry:
    """Make the entry of a governed tool.

    Args:
        tool: the tool.
        origin: where it comes from.
        weakly: whether its maker keeps it.
    """
    spec = tool.spec
    return Entry(
        spec.tool_id,
        spec.name,
        spec.namespace,
        spec.waits,
        origin,
        spec.aliases,
        tool=None if weakly else tool,
        alive=weakref.ref(tool) if weakly else None,
    )
