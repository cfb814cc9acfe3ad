"""Finding deferred tools by name or words, and loading them: only what a surface may show is ever
found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from opentelemetry import trace

from agenttool_otel.catalog import Entry
from agenttool_otel.catalog.search import DEFAULT_LIMIT, text_of, words_of
from agenttool_otel.names import Attr, Event, Lifecycle, LoadingState, NextAction, QueryType
from agenttool_otel.preflight.surfaces import Surface, Surfaces
from agenttool_otel.records import ToolSearchResult
from agenttool_otel.records.base import JsonObject

_SELECT: Final = "select:"
_MAX_LIMIT: Final = 50
_MAX_SELECTED: Final = 50
_MAX_LOOKED_AT: Final = 800
"""How many tools one search puts before the policy, where it hides those that fit best."""


def search(
    shelf: Surfaces, surface: Surface, query: str, limit: int = DEFAULT_LIMIT
) -> ToolSearchResult:
    """Search the tools of a surface.

    Args:
        shelf: the Governor's surfaces.
        surface: what may be seen.
        query: words, or ``select:`` and names with commas between.
        limit: most matches of a search by words.
    """
    asked = query.strip()
    missing: list[str] = []
    if asked.startswith(_SELECT):
        kind, found = QueryType.SELECT, []
        for name in _selected(asked):
            entry = surface.find(name)
            if entry is None:
                missing.append(name)
            else:
                found.append((entry, 1.0, "its name"))
    else:
        kind = QueryType.KEYWORD
        found = _ranked(shelf, surface, asked, max(1, min(limit, _MAX_LIMIT)))
    matches = [_match(surface, *entry) for entry in found]
    pending = shelf.catalog.pending_providers
    result = ToolSearchResult(
        query=query,
        query_type=kind,
        matches=matches,
        total_deferred_tools=surface.findable,
        pending_providers=pending,
        missing_names=missing,
        next_action=_next_action(matches, pending),
    )
    for entry, _, _ in found:
        _report(shelf, surface, Event.DEFERRED_DISCOVERED, entry)
    return result


def load(
    shelf: Surfaces, surface: Surface, names: Iterable[str], *, in_session: bool = True
) -> list[Entry]:
    """Load tools in the session of a surface, as far as they may be seen; return those that are
    loaded now.

    Args:
        shelf: the Governor's surfaces.
        surface: what may be seen.
        names: ids, names or aliases.
        in_session: let the session remember; a framework that keeps state does so itself.

    Raises:
        ConfigurationError: a tool's loader made another tool.
    """
    found = [entry for entry in map(surface.find, names) if entry is not None]
    return _load(shelf, surface, found, in_session=in_session)


def _load(
    shelf: Surfaces, surface: Surface, found: Iterable[Entry], *, in_session: bool
) -> list[Entry]:
    loaded = []
    for entry in found:
        if not surface.can_load(entry):
            continue
        shelf.catalog.load(entry.tool_id)
        if surface.visibility.hidden(entry) is None:  # its loader may have declared more
            loaded.append(entry)
    if in_session:  # also what a limit has room for now: what is asked for stays
        shelf.runtime.sessions.of(surface.context).load(entry.tool_id for entry in loaded)
    for entry in loaded:
        if not surface.holds(entry.tool_id):
            _report(shelf, surface, Event.DEFERRED_LOADED, entry)
    return loaded


def search_and_load(
    shelf: Surfaces, surface: Surface, query: str, limit: int, *, in_session: bool = True
) -> tuple[JsonObject, list[str]]:
    """Search and load what is found; return the tool_search_result for a model, and the ids of what
    is loaded.

    Args:
        shelf: the Governor's surfaces.
        surface: what may be seen.
        query: as for ``search``.
        limit: most matches.
        in_session: as for ``load``.
    """
    result = search(shelf, surface, query, limit)
    # by id: the id of a declared tool may be another one's name
    found = [
        entry
        for match in result.matches
        if (entry := shelf.catalog.get(match["tool_id"])) is not None
    ]
    entries = {
        entry.tool_id: entry for entry in _load(shelf, surface, found, in_session=in_session)
    }
    for match in result.matches:
        entry = entries.get(match["tool_id"])
        if entry is not None:
            match["ref"] = entry.ref(LoadingState.LOADED).to_json_object()
            match["description"] = entry.declaration().description
    if entries:
        result.next_action = NextAction.CALL
    return result.to_json_object(), list(entries)


def _selected(asked: str) -> Sequence[str]:
    """Return the names of ``select:read_file, write_file``."""
    names: dict[str, None] = {}
    for name in asked.removeprefix(_SELECT).split(","):
        names[name.strip()] = None
    names.pop("", None)
    return list(names)[:_MAX_SELECTED]


def _ranked(
    shelf: Surfaces, surface: Surface, query: str, limit: int
) -> list[tuple[Entry, float, str]]:
    """Return the best tools that may be seen, deprecated ones last."""
    size = limit * 4
    while True:
        ranked = shelf.catalog.rank(query, size)
        found = _visible(surface, ranked, limit)
        if len(found) >= limit or len(ranked) < size or size >= _MAX_LOOKED_AT:
            break
        size = min(size * 4, _MAX_LOOKED_AT)
    words = set(words_of(query))
    matches: list[tuple[Entry, float, str]] = []
    deprecated: list[tuple[Entry, float, str]] = []
    for entry, score in found:
        match = (entry, score, _why(entry, words))
        if entry.interface().get("lifecycle") == Lifecycle.DEPRECATED:
            deprecated.append(match)
        else:
            matches.append(match)
    return matches + deprecated


def _visible(
    surface: Surface, ranked: Iterable[tuple[Entry, float]], limit: int
) -> list[tuple[Entry, float]]:
    found: list[tuple[Entry, float]] = []
    for entry, score in ranked:
        if len(found) == limit:
            break
        # a tool on every surface need not be found
        if not entry.interface().get("always_load") and surface.shows(entry):
            found.append((entry, score))
    return found


def _why(entry: Entry, words: set[str]) -> str:
    text = text_of(entry.document())
    shared = [word for word in dict.fromkeys(words_of(text)) if word in words]
    if not shared:
        return "has words like these"
    return f"has {', '.join(shared[:8])}"


def _match(surface: Surface, entry: Entry, score: float, reason: str) -> JsonObject:
    ref = surface.ref(entry).to_json_object()
    return {
        "tool_id": entry.tool_id,
        "name": entry.name,
        "score": round(score, 3),
        "reason": reason,
        "ref": ref,
    }


def _next_action(matches: Sequence[JsonObject], pending: Sequence[str]) -> NextAction:
    states = {match["ref"]["loading_state"] for match in matches}
    if states & {LoadingState.DISCOVERABLE.value, LoadingState.DEFERRED.value}:
        return NextAction.LOAD_SCHEMA_THEN_CALL
    if LoadingState.LOADED.value in states:
        return NextAction.CALL
    return NextAction.RETRY_LATER if pending else NextAction.REFINE_QUERY


def _report(shelf: Surfaces, surface: Surface, name: str, entry: Entry) -> None:
    attributes = {Attr.TOOL_ID: entry.tool_id, Attr.SURFACE_ID: surface.surface_id}
    events = shelf.runtime.telemetry.events
    events.emit(trace.get_current_span(), name, attributes, tool_id=entry.tool_id)
    if events.sinks and name == Event.DEFERRED_DISCOVERED:
        ref = surface.ref(entry).to_json_object()
        events.put(lambda: [("deferred_tool_ref", ref)])
