"""What a model is shown and may find (standard, "Tool Surface", "Deferred Loading and Tool
Search").
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agenttool_otel.names import LoadingState, NextAction, QueryType, SchemaVisibility, SurfaceScope
from agenttool_otel.records.base import (
    OPEN,
    JsonObject,
    JsonValue,
    Record,
    Timestamp,
    id_field,
    utc_now,
)


class DeferredToolRef(Record):
    """A tool that can be found, but whose schema is not loaded.

    Attributes:
        tool_id: the tool.
        name: its name.
        namespace: its namespace.
        search_hint: words for discovery.
        source: where it comes from.
        schema_visibility: who may see its schema.
        loading_state: how far it is loaded.
        reason: why it is deferred.
        pending_provider_or_server: who is still connecting.
        selection_ref: the words that select it.
        native_ref: native ids.
    """

    tool_id: str
    name: str
    namespace: str | None = None
    search_hint: str | None = None
    source: str | None = None
    schema_visibility: SchemaVisibility = SchemaVisibility.DEFERRED
    loading_state: LoadingState = LoadingState.DISCOVERABLE
    reason: str | None = None
    pending_provider_or_server: str | None = None
    selection_ref: str | None = None
    native_ref: JsonObject | None = None


class ToolSurface(Record):
    """The set of tools visible in a context; not the catalog.

    Attributes:
        surface_id: id.
        scope: context it applies to.
        created_at: when it was made.
        producer: who made it.
        tool_refs: tools that can be considered.
        loaded_tools: tools whose schemas are visible now.
        deferred_tools: discoverable tools.
        blocked_tools: hidden tools with their reasons.
        excluded_tools: removed tools with their reasons.
        selection_policy: how tools may be selected.
        default_tool_choice: ``auto``, ``none``, ``required`` or a tool's name.
        capability_requirements: capabilities that the context needs.
        model_capabilities: what the provider supports.
        role_constraints: roles it applies to.
        surface_reason: why it was made.
        policy_refs: policies behind it.
        runtime_refs: session, task or sandbox.
    """

    surface_id: str = id_field("surface")
    scope: Annotated[SurfaceScope, OPEN] = SurfaceScope.SESSION
    created_at: Timestamp = Field(default_factory=utc_now)
    producer: str | None = None
    tool_refs: list[str] = Field(default_factory=list)
    loaded_tools: list[JsonValue] = Field(default_factory=list)
    deferred_tools: list[JsonValue] = Field(default_factory=list)
    blocked_tools: list[JsonObject] = Field(default_factory=list)
    excluded_tools: list[JsonObject] = Field(default_factory=list)
    selection_policy: JsonObject | None = None
    default_tool_choice: JsonValue = None
    capability_requirements: list[str] = Field(default_factory=list)
    model_capabilities: JsonObject | None = None
    role_constraints: JsonObject | None = None
    surface_reason: str | None = None
    policy_refs: list[str] = Field(default_factory=list)
    runtime_refs: list[str] = Field(default_factory=list)


class ToolSearchResult(Record):
    """What a search for tools found; a miss is one, too.

    Attributes:
        query: as it was asked.
        query_type: ``select`` by name, or ``keyword``.
        matches: ``tool_id``, ``name``, ``score``, ``reason`` and ``ref`` (a deferred_tool_ref) of
          each, best first.
        total_deferred_tools: how many tools could be found here; not given where counting them would
          take too long.
        pending_providers: who is still connecting.
        missing_names: selected names that no tool has which may be shown.
        next_action: what to do now.
    """

    query: str
    query_type: QueryType
    matches: list[JsonObject] = Field(default_factory=list)
    # None where counting them would take too long: a server with 10,000 tools
    total_deferred_tools: int | None = None
    pending_providers: list[str] = Field(default_factory=list)
    missing_names: list[str] = Field(default_factory=list)
    next_action: NextAction
