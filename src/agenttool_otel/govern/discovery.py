"""What a Governor has of tools before they are called: the catalog, surfaces, and search."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from opentelemetry import trace

from agenttool_otel.call.recording.declared import declaration_of, declared_attributes
from agenttool_otel.call.runtime import Runtime
from agenttool_otel.catalog import Catalog, Entry
from agenttool_otel.catalog.filters import Check, Conditions
from agenttool_otel.catalog.search import DEFAULT_LIMIT
from agenttool_otel.catalog.spec import ToolSpec
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.govern.governed import govern_with
from agenttool_otel.names import Attr, Event, LoadingState
from agenttool_otel.records import ToolSearchResult
from agenttool_otel.records.base import JsonObject, JsonValue
from agenttool_otel.telemetry.telemetry import EventEmitter
from agenttool_otel.values.forks import cached_property

if TYPE_CHECKING:
    from agenttool_otel.govern.builtin_tools import OwnTool
    from agenttool_otel.preflight.surfaces import Surface, Surfaces


class Discovery(Runtime):
    """The part of a Governor that shows, finds and loads tools."""

    _tool_search: Any = None  # an OwnTool; type checkers would bind it as a method

    @cached_property
    def catalog(self) -> Catalog:
        """Every tool that is known here: those that are governed, and those that were added as
        declarations.
        """
        return Catalog(
            registries=lambda: self.registries,
            govern=partial(govern_with, self),
            declared=partial(_emit_declared, self),
        )

    @cached_property
    def surfaces(self) -> Surfaces:
        """What makes this Governor's surfaces."""
        from agenttool_otel.preflight.surfaces import Surfaces

        return Surfaces(self, self.catalog)

    def surface(
        self,
        scope: str = "session",
        *,
        tools: Iterable[Any] | None = None,
        model: Mapping[str, Any] | None = None,
        requires: Sequence[str] = (),
        limit: int | None = None,
        tool_choice: JsonValue = "auto",
        gates: Check = None,
        credentials: Check = None,
        setup: Check = None,
    ) -> Surface:
        """Return the surface of the context in force: which tools a model is given, may find, or
        may not have.

        Give it to ``agent_context(surface=...)``, and calls of other tools are refused.

        Args:
            scope: what it is for: turn, task, session, tenant, skill, peer_agent, workspace, role
              or model_request.
            tools: the tools that it is made of, by name or as governed tools; the whole catalog
              where not given.
            model: what the model supports, by name, for example ``{"vision": True}``.
            requires: capabilities of which a tool has to have one.
            limit: most schemas to give to a model; what is left over can be found.
            tool_choice: ``auto``, ``none``, ``required`` or a tool's name.
            gates: open feature gates: a function of a name, or the names.
            credentials: credentials that are there, in the same way.
            setup: what has been set up, in the same way.

        Returns:
            The surface; the same one while nothing changes that it is made of.

        Raises:
            ConfigurationError: the catalog has no such tool, or the limit is no number of tools.
        """
        from agenttool_otel.preflight.surfaces import Request

        if limit is not None and (not isinstance(limit, int) or limit < 0):
            raise ConfigurationError("the limit of a surface is a number of tools")
        conditions = Conditions(
            model=model, requires=requires, gates=gates, credentials=credentials, setup=setup
        )
        shelf = self.surfaces
        request = Request(
            scope=scope,
            conditions=shelf.conditions(conditions),
            limit=limit,
            tool_choice=tool_choice,
            tools=shelf.of(tools),
        )
        return shelf.get(request, None)

    def search(self, query: str, *, limit: int = DEFAULT_LIMIT) -> ToolSearchResult:
        """Search the tools of the surface in force, or of the whole catalog; what a policy hides is
        never found.

        Args:
            query: words, or ``select:`` and names with commas between.
            limit: most matches of a search by words.
        """
        from agenttool_otel.preflight.discovery import search

        return search(self.surfaces, self.surfaces.in_force(), query, limit)

    def load(self, names: Collection[str]) -> Surface:
        """Load deferred tools in the session of the context in force.

        Args:
            names: ids, names or aliases; those that may not be seen are passed over.

        Returns:
            The surface as it is now.

        Raises:
            ConfigurationError: a tool's loader made another tool.
        """
        from agenttool_otel.preflight.discovery import load

        load(self.surfaces, self.surfaces.in_force(), [names] if isinstance(names, str) else names)
        return self.surfaces.in_force()

    def tool_search_tool(self, *, limit: int = DEFAULT_LIMIT) -> OwnTool:
        """Return the governed tool ``tool_search``, with which a model finds and loads tools that
        are deferred.

        What it finds can be called from then on in the same session; give the model
        ``surface.refresh()``'s tools.

        Args:
            limit: most matches where the model gives none.

        Returns:
            The governed function ``tool_search(query, limit)``; the same one each time.
        """
        if self._tool_search is None:
            from agenttool_otel.govern.builtin_tools import tool_search_of

            self._tool_search = tool_search_of(self, self.surfaces, limit)
        tool: OwnTool = self._tool_search
        return tool


def _emit_declared(runtime: Runtime, entry: Entry) -> None:
    span = trace.get_current_span()
    events = runtime.telemetry.events
    if not events.wanted(span):
        return
    if entry.governed is not None:
        _emit_governed(events, span, entry.governed.spec)
        return
    if events.sinks:
        # before the event, which names it
        events.put(lambda: [_record_of(entry)])
    attributes = {Attr.TOOL_ID: entry.tool_id, Attr.TOOL_NAMESPACE: entry.namespace}
    events.emit(span, Event.DECLARED, attributes, tool_id=entry.tool_id)


def _emit_governed(events: EventEmitter, span: trace.Span, spec: ToolSpec) -> None:
    # a sink has the event beside the tool's records, each time that it needs them
    events.emit(
        span, Event.DECLARED, declared_attributes(spec), tool_id=spec.tool_id, to_sinks=False
    )
    if events.sinks:
        events.declare(spec.tool_id, declaration_of(spec))
        events.put(partial(_naming, spec.tool_id))


def _record_of(entry: Entry) -> tuple[str, JsonObject]:
    """Return the record of a tool that is declared elsewhere."""
    if entry.is_reference:
        return "deferred_tool_ref", entry.ref(LoadingState.DEFERRED).to_json_object()
    return "tool_declaration", entry.document()


def _naming(tool_id: str) -> list[tuple[str, JsonObject]]:
    """Return an entry that has a sink declare a tool, and nothing more."""
    return [("", {"tool_id": tool_id})]
