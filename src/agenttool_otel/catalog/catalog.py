"""The catalog of a Governor: every tool that is known, governed here or only declared, and how it
gets loaded.

Tools that are governed are in it by themselves, as long as they live. What is added is kept:
declarations from files and servers as JSON, which becomes records, and a governed tool, when
a caller needs it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Unpack

from agenttool_otel.catalog.entry import (
    Entry,
    Loader,
    Names,
    Origin,
    declared_entry,
    governed_entry,
)
from agenttool_otel.catalog.groups import flat_options
from agenttool_otel.catalog.options import GovernOptions
from agenttool_otel.catalog.registry import HasSpec, Registry
from agenttool_otel.catalog.search import ToolIndex, text_of
from agenttool_otel.catalog.vocabulary import check_options
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.names import SCHEMA_VERSION, LoadingState
from agenttool_otel.records import DeferredToolRef, ToolDeclaration
from agenttool_otel.records.base import JsonObject
from agenttool_otel.values.forks import new_rlock

_TOOLS: Final = "tools"
_logger = logging.getLogger("agenttool_otel.catalog")


class Catalog:
    """Tools by id, name and alias.

    A name that two tools have belongs to neither, and the id of a tool that is merely declared
    counts as a name; ``namespace.name`` and the id of a governed tool distinguish them. A governed
    tool stands before a declaration of its id, whichever came first.

    Args:
        registry: returns the registries whose tools are in the catalog by themselves.
        govern: puts a callable or a framework's tool under governance.
        declared: called with each entry that is new.
    """

    def __init__(
        self,
        *,
        registries: Callable[[], Iterable[Registry[Any]]] = tuple,
        govern: Callable[[Any, GovernOptions], Any] | None = None,
        declared: Callable[[Entry], None] | None = None,
    ) -> None:
        self._registries = registries
        self._govern = govern
        self._declared = declared
        self._own = Names()  # what was added
        self._live = Names()  # what was governed, and is held by the code that did
        self._replaced: dict[str, Entry] = {}  # declarations of ids that are governed here
        self._loading: set[str] = set()
        self._envelope: JsonObject = {"schema_version": SCHEMA_VERSION}
        self._providers: dict[str, tuple[LoadingState, str]] = {}
        self._seen: tuple[tuple[int, int], ...] = ()
        self._index: ToolIndex | None = None
        self._indexed: set[str] = set()
        self._indexed_at = -1
        self._lock = new_rlock()
        self._version = 0
        self.has_foreign = False  # whether some declarations came from outside of this program

    # --- adding -----------------------------------------------------------------------------------

    def add(
        self,
        tool: Any,
        *,
        provider: str = "",
        loader: Loader | None = None,
        **facts: Unpack[GovernOptions],
    ) -> Any:
        """Add a tool.

        Args:
            tool: a governed tool, something that ``govern`` takes, a ToolDeclaration, a
                DeferredToolRef, or JSON data of either.
            provider: server, plugin or peer that it comes from.
            loader: makes the tool when it is loaded, from its id.
            facts: what you state of the tool, as for ``govern``; a declaration's own words are its
              author's.

        Returns:
            The tool, governed where it can run.

        Raises:
            ConfigurationError: the id, or an alias, is another tool's, or has characters outside
                the alphabet; or a fact can't be used.
        """
        facts = flat_options(facts)
        check_options(facts)
        origin = Origin(provider, loader, tuple(facts.items()))
        if isinstance(tool, (ToolDeclaration, DeferredToolRef)):
            tool = tool.to_json_object()
        if isinstance(tool, Mapping):
            self._take(declared_entry(tool, origin))
            return tool
        governed = self._governed(tool, facts)
        if (handle := _handle(governed)) is None:
            raise ConfigurationError(
                f"a catalog takes tools and declarations, not {type(tool).__name__}"
            )
        self._take(governed_entry(handle, origin))
        return governed

    def add_json(
        self,
        document: JsonObject,
        *,
        provider: str = "",
        loader: Loader | None = None,
        **facts: Unpack[GovernOptions],
    ) -> None:
        """Add the declarations of a catalog as ``to_json`` gives it.

        A declaration that can't be taken is left out, and a warning in the log names it.

        Args:
            document: an object whose ``tools`` are declarations or deferred refs; what else it has
              is kept.
            provider: server, plugin or peer that they come from.
            loader: makes a tool when it is loaded, from its id.
            facts: what you state of each tool.

        Raises:
            ConfigurationError: it is no such document, a fact can't be used, or not one of its
                declarations can be taken.
        """
        tools = document.get(_TOOLS)
        if not isinstance(tools, list):
            raise ConfigurationError(
                "a catalog is an object whose member tools is a list of declarations"
            )
        facts = flat_options(facts)
        check_options(facts)
        origin = Origin(provider, loader, tuple(facts.items()))
        refused: list[ConfigurationError] = []
        with self._lock:
            self._envelope = {
                **self._envelope,
                **{name: value for name, value in document.items() if name != _TOOLS},
            }
            for tool in tools:
                try:
                    self._take(declared_entry(tool, origin))
                except ConfigurationError as error:
                    refused.append(error)
        if refused and len(refused) == len(tools):
            raise refused[0]
        for left_out in refused:
            _logger.warning(
                "a declaration%s is left out: %s", f" of {provider}" if provider else "", left_out
            )

    @classmethod
    def from_json(cls, document: JsonObject) -> Catalog:
        """Make a catalog of a document alone; see ``add_json``.

        Args:
            document: as ``to_json`` gives it.
        """
        catalog = cls()
        catalog._envelope = {}
        catalog.add_json(document)
        return catalog

    def to_json(self) -> JsonObject:
        """Return all declarations as JSON data; fields that are unknown here are as they came."""
        return {**self._envelope, _TOOLS: [entry.document() for entry in self]}

    # --- providers --------------------------------------------------------------------------------

    def pending(self, provider: str) -> None:
        """Note that a provider is still connecting: its tools can be found, and not be loaded.

        Args:
            provider: its name, as in ``add``.
        """
        self._provide(provider, LoadingState.PENDING_PROVIDER)

    def connected(self, provider: str) -> None:
        """Note that a provider is connected.

        Args:
            provider: its name.
        """
        self._provide(provider, None)

    def failed(self, provider: str, reason: str) -> None:
        """Note that a provider can't be reached: its tools are unavailable.

        Args:
            provider: its name.
            reason: why, for people and models.
        """
        self._provide(provider, LoadingState.UNAVAILABLE, reason)

    def _provide(self, provider: str, state: LoadingState | None, reason: str = "") -> None:
        with self._lock:
            self._version += 1
            if state is None:
                self._providers.pop(provider, None)
            else:
                self._providers[provider] = (state, reason)

    @property
    def pending_providers(self) -> list[str]:
        """The providers that are still connecting."""
        return sorted(
            name
            for name, (state, _) in self._providers.items()
            if state is LoadingState.PENDING_PROVIDER
        )

    def provider_state(self, entry: Entry) -> tuple[LoadingState | None, str]:
        """Return what keeps an entry's provider from giving the tool, and why; ``None`` where
        nothing does.

        Args:
            entry: the entry.
        """
        return self._providers.get(entry.origin.provider, (None, ""))

    # --- finding ----------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """A number that grows with each change."""
        self._sync()
        return self._version

    def __iter__(self) -> Iterator[Entry]:
        self._sync()
        return iter([*self._own.entries.values(), *self._live.entries.values()])

    def __len__(self) -> int:
        self._sync()
        return len(self._own.entries) + len(self._live.entries)

    def resolve(self, name: str) -> Entry | None:
        """Return the tool of an id, name, ``namespace.name`` or alias; ``None`` where there is
        none, or several are.

        Args:
            name: what it is called.
        """
        self._sync()
        if (entry := self._get(name)) is not None and not entry.is_declared:
            return entry
        found = self._own.holders(name) | self._live.holders(name)
        return self._get(*found) if len(found) == 1 else None

    def get(self, tool_id: str) -> Entry | None:
        """Return the tool of an id; ``None`` where there is none.

        Args:
            tool_id: the id.
        """
        self._sync()
        return self._get(tool_id)

    def rank(self, query: str, limit: int) -> list[tuple[Entry, float]]:
        """Return the tools that some words are about, best first, without regard to who may see them.

        Args:
            query: the words.
            limit: how many.
        """
        with self._lock:
            found = self._up_to_date_index().search(query, limit)
        ranked: list[tuple[Entry, float]] = []
        for tool_id, score in found:
            entry = self._get(tool_id)
            if entry is not None:
                ranked.append((entry, score))
        return ranked

    def _up_to_date_index(self) -> ToolIndex:
        """Return the index, once the entries since the last search are added; under the lock."""
        version = self.version
        if self._index is None:
            self._index = ToolIndex()
        if self._indexed_at != version:
            new = [entry for entry in self if entry.tool_id not in self._indexed]
            if new:
                self._index.add((entry.tool_id, text_of(entry.document())) for entry in new)
                self._indexed.update(entry.tool_id for entry in new)
            self._indexed_at = version
        return self._index

    def load(self, tool_id: str) -> HasSpec | None:
        """Return the governed tool of an entry, made by its loader where it is only declared.

        Args:
            tool_id: the tool.

        Returns:
            The tool; ``None`` where the tool is declared, but not run by this program.

        Raises:
            ConfigurationError: there is no such tool, or its loader made another one.
        """
        with self._lock:
            if (entry := self.get(tool_id)) is None:
                raise ConfigurationError(f"the catalog has no tool {tool_id!r}")
            if entry.governed is None and entry.origin.loader is not None:
                options = entry.options()
                options.pop("name", None)
                options.pop("lifecycle", None)  # it is deferred no more
                self._loading.add(tool_id)  # what is governed meanwhile is this entry's own tool
                try:
                    handle = _handle(self._governed(entry.origin.loader(entry.tool_id), options))
                finally:
                    self._loading.discard(tool_id)
                if handle is None or (handle.spec.tool_id, handle.spec.name) != (
                    entry.tool_id,
                    entry.name,
                ):
                    raise ConfigurationError(f"the loader of {entry.tool_id!r} made another tool")
                entry.tool = handle
            return entry.governed

    # --- inside -----------------------------------------------------------------------------------

    def _governed(self, tool: Any, facts: GovernOptions) -> Any:
        return (
            tool if _handle(tool) is not None or self._govern is None else self._govern(tool, facts)
        )

    def _get(self, tool_id: str) -> Entry | None:
        return self._own.entries.get(tool_id) or self._live.entries.get(tool_id)

    def _take(self, entry: Entry) -> None:
        """Add an entry unless something of that name is there."""
        with self._lock:
            self._sync()
            own, live = self._own.entries.get(entry.tool_id), self._live.entries.get(entry.tool_id)
            is_kept = live is not None and live.governed is entry.governed
            is_replacing = own is not None and own.is_declared and not entry.is_declared
            if (own is not None and not is_replacing) or (live is not None and not is_kept):
                raise ConfigurationError(f"the catalog has a tool {entry.tool_id!r} already")
            for holder in (self._own,) if is_kept else (self._own, self._live):
                holder.refuse_collisions(entry)
            if is_replacing:
                self._own.remove(entry.tool_id)
                self._forget_index()
            self._replaced.pop(entry.tool_id, None)
            self._own.put(entry)
            self.has_foreign = self.has_foreign or bool(entry.raw)
            self._seen = ()  # what is kept now is no more among what others hold
            self._version += 1
        if self._declared is not None and not is_kept:
            self._declared(entry)

    def _sync(self) -> None:
        """Take in what was governed since, and forget what nobody holds any more."""
        registries = tuple(self._registries())
        seen = tuple((registry.added, len(registry)) for registry in registries)
        if seen == self._seen:
            return
        with self._lock:
            before, self._live = self._live, Names()
            for tool in (tool for registry in registries for tool in registry):
                own = self._own.entries.get(tool.spec.tool_id)
                if own is None or self._is_replaced(own, tool):
                    self._live.put(governed_entry(tool, Origin(), weakly=True))
            self._replace()
            self._seen = seen
            self._version += 1
            live = self._live.entries
            new = [entry for tool_id, entry in live.items() if tool_id not in before.entries]
        for entry in new if self._declared is not None else ():
            self._declared(entry)  # type: ignore[misc]

    def _is_replaced(self, own: Entry, tool: HasSpec) -> bool:
        """Return whether a governed tool stands before what was added; a loader's own tool
        doesn't.
        """
        return own.is_declared and own.tool_id not in self._loading and own.governed is not tool

    def _replace(self) -> None:
        """Put aside the declarations of what is governed, and back those whose governed
        tool is gone.
        """
        for tool_id in self._live.entries.keys() & self._own.entries.keys():
            self._replaced[tool_id] = self._own.remove(tool_id)
            self._forget_index()
        for tool_id in self._replaced.keys() - self._live.entries.keys():
            entry = self._replaced.pop(tool_id)
            try:
                for holder in (self._own, self._live):
                    holder.refuse_collisions(entry)
            except ConfigurationError as error:
                _logger.warning("the declaration of %s is left out: %s", tool_id, error)
                continue
            self._own.put(entry)
            self._forget_index()

    def _forget_index(self) -> None:
        """Index all anew at the next search: what is indexed under an id is another tool's
        words.
        """
        self._index = None
        self._indexed_at = -1
        self._indexed.clear()


def _handle(tool: Any) -> HasSpec | None:
    """Return the governed tool behind what ``govern`` gave."""
    # a handle itself; a governed function; a framework's tool
    behind = (tool, getattr(tool, "tool", None), getattr(type(tool), "agenttool", None))
    for candidate in behind:
        if candidate is not None and hasattr(candidate, "spec"):
            handle: HasSpec = candidate
            return handle
    return None
