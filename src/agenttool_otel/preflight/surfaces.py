"""Surfaces: which tools of the catalog a model is given, may find, or may not have, and why.

A surface is the same, by id and as an object, while nothing changes that it is made of. Tools whose
schemas wait are looked at when a caller asks about them: a policy answers for thousands of tools in
a second, not in a request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from cachetools import LRUCache
from opentelemetry import trace

from agenttool_otel.call.phases.permission import tool_input
from agenttool_otel.call.runtime import Runtime
from agenttool_otel.catalog import Catalog, Entry
from agenttool_otel.catalog.filters import EXCLUDED, Conditions, Hidden, not_loaded
from agenttool_otel.context.context import AgentContext, current_context
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.names import (
    EVENT_SOURCE,
    Attr,
    BlockReason,
    ErrorClass,
    Event,
    LoadingState,
    SurfaceScope,
)
from agenttool_otel.preflight.tool_lists import anthropic_tools, mcp_tools, openai_tools
from agenttool_otel.records import DeferredToolRef, ToolDeclaration, ToolSurface
from agenttool_otel.records.base import JsonObject, JsonValue, utc_now
from agenttool_otel.redaction.ids import shown_id
from agenttool_otel.telemetry.telemetry import package_version
from agenttool_otel.values.canonical import digest
from agenttool_otel.values.forks import cached_property, new_rlock

COUNTED: Final = 1_000
"""How many waiting tools are put before the policy only to count or list them."""

_KEPT: Final = 256
_LISTED: Final = 100  # of a surface's waiting tools, in the record that sinks get
_REASONS: Final = {str(reason): reason for reason in BlockReason}


class Visibility:
    """What one context may see under one policy, each tool looked at once."""

    def __init__(self, runtime: Runtime, conditions: Conditions, context: AgentContext) -> None:
        self._runtime = runtime
        self._conditions = conditions
        self._context = context
        self._known: dict[str, tuple[object, Hidden | None]] = {}

    def hidden(self, entry: Entry) -> Hidden | None:
        """Return why a tool may not be seen; ``None`` where it may."""
        tool = entry.governed
        # not the tool, which lives as long as its maker wants
        about = entry if tool is None else tool.spec
        known = self._known.get(entry.tool_id)
        if known is not None and known[0] is about:
            return known[1]
        found = self._look(entry)
        self._known[entry.tool_id] = (about, found)
        return found

    def _look(self, entry: Entry) -> Hidden | None:
        try:
            context = self._context
            found = self._conditions.hides(
                entry.interface(), context.agents, interactive=context.interactive
            )
            if found is not None:
                return found._replace(tool_id=entry.tool_id)
            session = self._runtime.sessions.of(context)
            document = tool_input(context, session, *entry.policy_parts())
            decider = self._runtime.decider
            if decider.visible(document):
                return None
            word = decider.why_hidden(document)
            return Hidden(
                entry.tool_id, _REASONS.get(word, BlockReason.POLICY_BLOCKED), "the policy hides it"
            )
        except Exception as error:  # what can't be looked at is not shown
            self._runtime.telemetry.losses.note("surface", error)
            return Hidden(
                entry.tool_id, BlockReason.POLICY_BLOCKED, "its declaration can't be read"
            )


@dataclass(frozen=True, kw_only=True)
class Request:
    """What was asked of a surface."""

    scope: str = SurfaceScope.SESSION.value
    conditions: Conditions
    limit: int | None = None
    tool_choice: JsonValue = "auto"
    tools: frozenset[str] | None = None  # ids; all of the catalog where ``None``
    loaded: frozenset[str] = frozenset()  # ids that count as loaded, beside those of the session


class Surface:
    """The tools of one context; made by ``Governor.surface``, and not changed any more.

    Attributes:
        surface_id: id, the same while the surface is.
        shelf: what made it.
        request: what was asked.
        context: whose surface it is.
        visibility: what may be seen.
    """

    def __init__(
        self, shelf: Surfaces, request: Request, context: AgentContext, visibility: Visibility
    ) -> None:
        self.shelf = shelf
        self.request = request
        self.context = context
        self.visibility = visibility
        self.created_at = utc_now()
        self.loaded_ids = shelf.runtime.sessions.of(context).loaded | request.loaded
        self._hidden: list[Hidden] = []
        kept: list[Entry] = []  # loaded in any case
        rest: list[Entry] = []  # loaded as far as the limit goes
        count = 0
        for entry in shelf.catalog:
            if not self._is_among(entry):
                continue
            count += 1
            is_loaded = entry.tool_id in self.loaded_ids
            if entry.is_deferred and not is_loaded:
                continue
            hidden = visibility.hidden(entry)
            if hidden is not None:
                self._hidden.append(hidden)
            elif not self.can_load(entry):
                continue
            elif is_loaded or _always(entry):
                kept.append(entry)
            else:
                rest.append(entry)
        if request.limit is not None:
            room = max(0, request.limit - len(kept))
            rest = rest[:room]
        self._loaded = {entry.tool_id: entry for entry in (*kept, *rest)}
        self.waiting_count = count - len(self._loaded) - len(self._hidden)
        self.surface_id = f"surface_{digest(self._inputs())[-32:]}"

    # --- what is on it ----------------------------------------------------------------------------

    @cached_property
    def loaded(self) -> tuple[ToolDeclaration, ...]:
        """The declarations of the tools whose schemas a model is given."""
        return tuple(entry.declaration() for entry in self._loaded.values())

    @cached_property
    def deferred(self) -> tuple[DeferredToolRef, ...]:
        """The tools that can be found and loaded; each is put before the policy."""
        return tuple(self.ref(entry) for entry in self._visible)

    @cached_property
    def blocked(self) -> tuple[Hidden, ...]:
        """The tools that are hidden by policy, setup or credentials."""
        return tuple(found for found in self._all_hidden if found.reason not in EXCLUDED)

    @cached_property
    def excluded(self) -> tuple[Hidden, ...]:
        """The tools that are left out by role, recursion, feature or model."""
        return tuple(found for found in self._all_hidden if found.reason in EXCLUDED)

    @cached_property
    def _all_hidden(self) -> list[Hidden]:
        found = list(self._hidden)
        for entry in self._waiting():
            hidden = self.visibility.hidden(entry)
            if hidden is not None:
                found.append(hidden)
        return found

    @cached_property
    def _visible(self) -> list[Entry]:
        return [entry for entry in self._waiting() if self.visibility.hidden(entry) is None]

    @cached_property
    def findable(self) -> int | None:
        """How many tools can be found and loaded; ``None`` where asking the policy of each would
        take too long.
        """
        return None if self.waiting_count > COUNTED else len(self._visible)

    @property
    def names(self) -> frozenset[str]:
        """The names of the tools whose schemas a model is given."""
        return frozenset(entry.name for entry in self._loaded.values())

    def ref(self, entry: Entry) -> DeferredToolRef:
        """Return the deferred_tool_ref of a tool that may be seen.

        Args:
            entry: the tool.
        """
        state, reason = self.shelf.catalog.provider_state(entry)
        if entry.tool_id in self._loaded:
            return entry.ref(LoadingState.LOADED)
        return entry.ref(
            state or LoadingState.DISCOVERABLE,
            reason or BlockReason.DEFERRED_UNTIL_DISCOVERED.value,
        )

    def find(self, name: str) -> Entry | None:
        """Return the tool of an id, name or alias, if it may be seen.

        Args:
            name: what it is called.
        """
        entry = self.shelf.catalog.resolve(name)
        if entry is None or not self.shows(entry):
            return None
        return entry

    def shows(self, entry: Entry) -> bool:
        """Return whether a tool may be seen.

        Args:
            entry: the tool.
        """
        return self._is_among(entry) and self.visibility.hidden(entry) is None

    def holds(self, tool_id: str) -> bool:
        """Return whether a tool's schema is given to a model.

        Args:
            tool_id: the tool.
        """
        return tool_id in self._loaded

    def refusal(self, tool_id: str, context: AgentContext) -> tuple[ErrorClass, str] | None:
        """Return why a tool can't be called from this surface as it is now; ``None`` where it can.

        Args:
            tool_id: the tool.
            context: who calls.
        """
        now = self.refresh(context)
        entry = self.shelf.catalog.get(tool_id)
        if entry is None or not now._is_among(entry):
            return ErrorClass.UNKNOWN_TOOL, "no tool of that name is on the surface"
        hidden = now.visibility.hidden(entry)
        if hidden is not None:
            message = f"the tool is not on the surface: {hidden.reason.value}, {hidden.detail}"
            return hidden.error_class, message
        if not now.holds(tool_id):
            return ErrorClass.SCHEMA_NOT_LOADED, not_loaded(entry.name)
        return None

    def refresh(self, context: AgentContext | None = None) -> Surface:
        """Return the surface as it is now: this one while nothing changed that it is made of.

        Args:
            context: whose; the one in force where not given.
        """
        return self.shelf.get(self.request, context, replaces=self)

    def with_loaded(self, tool_ids: Iterable[str]) -> Surface:
        """Return the surface on which further tools are loaded, where they may be.

        Args:
            tool_ids: the tools.
        """
        loaded = self.request.loaded.union(tool_ids)
        return (
            self
            if loaded == self.request.loaded
            else self.shelf.get(replace(self.request, loaded=loaded), None)
        )

    # --- as others want it ------------------------------------------------------------------------

    def record(self, *, most: int = COUNTED) -> ToolSurface:
        """Return the tool_surface record.

        Args:
            most: how many waiting tools are put before the policy to be listed; of more none is.
        """
        deferred: list[DeferredToolRef] = []
        hidden = self._hidden
        if self.waiting_count <= most:
            deferred = list(self.deferred)
            hidden = self._all_hidden
        request = self.request
        context = self.context
        owner = shown_id(context.actor) or "this context"
        session: list[str] = []
        if context.session_id:
            session.append(f"session:{shown_id(context.session_id)}")
        engines = self.shelf.runtime.decider.engines
        return ToolSurface(
            surface_id=self.surface_id,
            scope=request.scope,
            created_at=self.created_at,
            producer=f"{EVENT_SOURCE}@{package_version()}",
            tool_refs=[*self._loaded, *(ref.tool_id for ref in deferred)],
            loaded_tools=list(self._loaded),
            deferred_tools=[ref.to_json_object() for ref in deferred],
            blocked_tools=[_listed(tool) for tool in hidden if tool.reason not in EXCLUDED],
            excluded_tools=[_listed(tool) for tool in hidden if tool.reason in EXCLUDED],
            selection_policy={"limit": request.limit, "search": True, "outside": "refused"},
            default_tool_choice=request.tool_choice,
            capability_requirements=list(request.conditions.requires),
            model_capabilities=dict(request.conditions.model or {}) or None,
            role_constraints={"roles": list(context.roles), "agents": list(context.agents)},
            surface_reason=f"the tools that {owner} may see in mode {context.mode}",
            policy_refs=[f"policy:{engine.name}@{engine.revision}" for engine in engines],
            runtime_refs=session,
        )

    def openai_tools(self, *, defer_loading: bool = False) -> list[JsonObject]:
        """Return the tools for OpenAI: of Chat Completions, or of the Responses API with its own
        tool search.

        Args:
            defer_loading: hand over the waiting tools, too, for the provider's search; they count
                as loaded from then on, as that search is not seen here.
        """
        return openai_tools(self.loaded, self._handed_over() if defer_loading else None)

    def anthropic_tools(self, *, defer_loading: bool = False) -> list[JsonObject]:
        """Return the tools for Anthropic's Messages API.

        Args:
            defer_loading: as for ``openai_tools``.
        """
        return anthropic_tools(self.loaded, self._handed_over() if defer_loading else None)

    def mcp_tools(self) -> list[JsonObject]:
        """Return the tools as the answer to MCP's ``tools/list`` has them."""
        return mcp_tools(
            (each.declaration(), each.stated_facts()) for each in self._loaded.values()
        )

    def _handed_over(self) -> list[ToolDeclaration]:
        handed = [entry for entry in self._visible if self.can_load(entry)]
        self.shelf.runtime.sessions.of(self.context).load(entry.tool_id for entry in handed)
        return [entry.declaration() for entry in handed]

    def can_load(self, entry: Entry) -> bool:
        """Return whether nothing keeps a tool's provider from giving it.

        Args:
            entry: the tool.
        """
        return self.shelf.catalog.provider_state(entry)[0] is None

    # --- inside -----------------------------------------------------------------------------------

    def _is_among(self, entry: Entry) -> bool:
        return self.request.tools is None or entry.tool_id in self.request.tools

    def _waiting(self) -> Iterator[Entry]:
        """The tools that are deferred, or beyond the limit; those that are hidden may be
        among them.
        """
        out = {found.tool_id for found in self._hidden}.union(self._loaded)
        return (
            entry
            for entry in self.shelf.catalog
            if self._is_among(entry) and entry.tool_id not in out
        )

    def _inputs(self) -> list[Any]:
        request, context = self.request, self.context
        loaded = [(entry.tool_id, _digest(entry)) for entry in self._loaded.values()]
        asked = [
            request.scope,
            request.tool_choice,
            list(request.conditions.requires),
            request.conditions.model,
        ]
        who = [str(part) for part in context.identity]
        revisions = [engine.revision for engine in self.shelf.runtime.decider.engines]
        among = [
            self.shelf.digest_of_catalog(),
            sorted(request.tools) if request.tools is not None else None,
        ]
        return [asked, who, revisions, loaded, [list(found) for found in self._hidden], among]


class Surfaces:
    """Makes the surfaces of one Governor, and keeps those that are in use.

    Args:
        runtime: the Governor.
        catalog: its tools.
    """

    def __init__(self, runtime: Runtime, catalog: Catalog) -> None:
        self.runtime = runtime
        self.catalog = catalog
        self._surfaces: LRUCache[Any, Surface] = LRUCache(_KEPT)
        self._visibilities: LRUCache[Any, Visibility] = LRUCache(_KEPT)
        self._conditions: LRUCache[Any, Conditions] = LRUCache(_KEPT)
        self._digest = (-1, "")
        self._lock = new_rlock()
        self.default = Request(conditions=Conditions())

    def get(
        self, request: Request, context: AgentContext | None, *, replaces: Surface | None = None
    ) -> Surface:
        """Return the surface of a request and context as it is now.

        Args:
            request: what is asked.
            context: whose; the one in force where ``None``.
            replaces: the surface that it takes the place of.
        """
        runtime = self.runtime
        context = runtime.effective(current_context() if context is None else context)
        conditions = request.conditions
        revisions = tuple(engine.revision for engine in runtime.decider.engines)
        loaded = runtime.sessions.of(context).loaded | request.loaded
        asked = (
            id(conditions),
            request.scope,
            request.limit,
            repr(request.tool_choice),
            request.tools,
            loaded,
        )
        sees = (id(conditions), revisions, context.identity, conditions.answers())
        with self._lock:
            known = self._surfaces.get((asked, self.catalog.version, sees))
            if known is not None:
                return known
            visibility = self._visibilities.get(sees)
            if visibility is None:
                visibility = Visibility(runtime, conditions, context)
                self._visibilities[sees] = visibility
        made = Surface(self, request, context, visibility)
        # what was asked about meanwhile belongs to what the surface is made of
        sees = (*sees[:3], conditions.answers())
        with self._lock:
            self._visibilities.setdefault(sees, visibility)
            self._surfaces.setdefault((asked, self.catalog.version, sees), made)
        self._report(made, replaces)
        return made

    def conditions(self, conditions: Conditions) -> Conditions:
        """Return the conditions in use that are the same as these, if there are any.

        Args:
            conditions: some conditions.
        """
        with self._lock:
            return self._conditions.setdefault(conditions.key, conditions)

    def digest_of_catalog(self) -> str:
        """Return a digest of the ids of all tools of the catalog."""
        now = self.catalog.version
        if self._digest[0] != now:
            self._digest = now, digest([entry.tool_id for entry in self.catalog])
        return self._digest[1]

    def in_force(self) -> Surface:
        """Return the surface of the context in force, as it is now; one of the whole catalog where
        there is none.
        """
        surface = current_context().surface_in_force
        if isinstance(surface, Surface) and surface.shelf is self:
            return self.get(surface.request, None)
        return self.get(self.default, None)

    def of(self, names: Iterable[Any] | None) -> frozenset[str] | None:
        """Return the ids of tools given by name or as objects.

        Args:
            names: ids, names, or governed tools.

        Raises:
            ConfigurationError: there is no such tool.
        """
        if names is None:
            return None
        return frozenset(self._named(name).tool_id for name in names)

    def _named(self, name: Any) -> Entry:
        if isinstance(name, str):
            text = name
            entry = self.catalog.resolve(name)
        else:
            # a governed function has its handle itself, a framework's tool in its class
            handle = getattr(name, "tool", None) or getattr(type(name), "agenttool", name)
            spec = getattr(handle, "spec", None)
            text = getattr(spec, "tool_id", "")
            entry = self.catalog.get(text)
        if entry is None:
            shown = text or type(name).__name__
            raise ConfigurationError(f"the catalog has no tool {shown!r}")
        return entry

    def _report(self, made: Surface, replaces: Surface | None) -> None:
        if replaces is not None and replaces.surface_id == made.surface_id:
            return
        name = Event.SURFACE_CREATED if replaces is None else Event.SURFACE_UPDATED
        attributes: dict[str, Any] = {
            Attr.SURFACE_ID: made.surface_id,
            Attr.SURFACE_SCOPE: str(made.request.scope),
            Attr.SURFACE_LOADED: len(made.names),
            Attr.SURFACE_DEFERRED: made.waiting_count,
        }
        events = self.runtime.telemetry.events
        events.emit(trace.get_current_span(), name, attributes)
        if events.sinks:
            # here: the sink's thread must not ask the policy
            record = made.record(most=_LISTED).to_json_object()
            events.put(lambda: [("tool_surface", record)])


def _always(entry: Entry) -> bool:
    tool = entry.governed
    return tool is not None and tool.spec.interface.always_load


def _digest(entry: Entry) -> str:
    tool = entry.governed
    return tool.spec.digest if tool is not None else digest(entry.document())


def _listed(tool: Hidden) -> JsonObject:
    return {"tool_id": tool.tool_id, "reason": tool.reason.value, "detail": tool.detail}
