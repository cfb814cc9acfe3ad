"""The governed tools of one Governor: found by id, name or alias, so that a surface or a resume can
resolve them.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from agenttool_otel.catalog.spec import ToolSpec
from agenttool_otel.values.forks import new_lock


class HasSpec(Protocol):
    """Whatever can be registered."""

    @property
    def spec(self) -> ToolSpec:
        """Its resolved declaration."""


T = TypeVar("T", bound=HasSpec)


class Registry(Generic[T]):
    """Tools by id, name and alias.

    Tools are held weakly: a tool made in a function and forgotten does not stay. Of one id the tool
    declared last wins, as with Python's own names. A name that several tools have belongs to none;
    ``namespace.name`` and the id distinguish them.

    Attributes:
        added: how many tools were added so far.
    """

    def __init__(self) -> None:
        self._tools: weakref.WeakValueDictionary[str, T] = weakref.WeakValueDictionary()
        self._names: dict[str, set[str]] = {}
        self._sources: set[str] = set()  # globs of tools that some argument may come from
        self._lock = new_lock()
        self.added = 0

    def add(self, tool: T) -> None:
        """Register a tool under its id, name, qualified name and aliases."""
        spec = tool.spec
        with self._lock:
            self._mark_sources(tool.spec)
            self.added += 1
            self._tools[spec.tool_id] = tool
            for name in (spec.name, f"{spec.namespace}.{spec.name}", *spec.aliases):
                self._names.setdefault(name, set()).add(spec.tool_id)

    def _mark_sources(self, spec: ToolSpec) -> None:
        """Mark the tools whose output the arguments of others may come from."""
        globs = spec.facts.source_tools if spec.facts is not None else []
        if not globs and not self._sources:
            return
        from agenttool_otel.facts.sources import names_tool

        self._sources.update(globs)
        others = [tool.spec for tool in self._tools.values()] if globs else []
        for known in (spec, *others):
            known.is_source = names_tool(self._sources, known.tool_id)

    def resolve(self, name: str) -> T | None:
        """Return the tool of that id, name or alias; ``None`` where there is none, or several are."""
        with self._lock:
            tool = self._tools.get(name)
            if tool is not None:
                return tool
            alive: list[T] = []
            for tool_id in self._names.get(name, ()):
                tool = self._tools.get(tool_id)
                if tool is not None:
                    alive.append(tool)
            return alive[0] if len(alive) == 1 else None

    def __iter__(self) -> Iterator[T]:
        with self._lock:
            tools = list(self._tools.values())
        return iter(sorted(tools, key=lambda tool: tool.spec.tool_id))

    def __len__(self) -> int:
        return len(self._tools)
