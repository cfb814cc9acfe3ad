"""A surface in a LangChain agent: what the model is shown, what it may call, and what a thread has
loaded.

What was loaded is kept in the agent's state, so it survives a checkpoint and stays in its thread. A
tool that is filtered from the model's list still runs where the model names it: the refusal of the
call is the boundary.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final, NotRequired

from langchain.agents.middleware import AgentState
from langchain.agents.middleware.types import OmitFromInput
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool
from langgraph.types import Command

from agenttool_otel.call.tool import GovernedTool
from agenttool_otel.catalog.search import DEFAULT_LIMIT
from agenttool_otel.context.context import agent_context
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.govern.builtin_tools import TOOL_SEARCH_ID, tool_search_facts
from agenttool_otel.integrations.langchain.govern import handle_of, is_governed_by_host
from agenttool_otel.preflight.discovery import search_and_load
from agenttool_otel.preflight.surfaces import Surface

if TYPE_CHECKING:
    from collections.abc import Callable

    from agenttool_otel.govern.governor import Governor

LOADED: Final = "loaded_tools"
"""Key of the agent's state under which the ids of the loaded tools are."""


def _joined(old: list[str] | None, new: list[str] | None) -> list[str]:
    return list(dict.fromkeys([*(old or ()), *(new or ())]))


class SurfaceState(AgentState[Any]):
    """The state of an agent that finds its tools; nobody gives loaded tools to it from outside."""

    loaded_tools: NotRequired[Annotated[list[str], OmitFromInput, _joined]]


class AgentSurface:
    """One surface, as an agent's guards use it.

    Args:
        governor: the Governor in charge.
        surface: from its ``surface``.
        handle_of: declares a tool that is not governed itself.

    Raises:
        ConfigurationError: the surface is another Governor's.
    """

    def __init__(
        self, governor: Governor, surface: Surface, handle_of: Callable[[BaseTool], GovernedTool]
    ) -> None:
        if surface.shelf.runtime is not governor:
            raise ConfigurationError("the surface belongs to another Governor")
        self._surface, self._handle_of = surface, handle_of
        self._governor = governor

    @contextmanager
    def in_force(self, state: Any) -> Iterator[Surface]:
        """Put the surface in force with what the state says is loaded."""
        loaded = state.get(LOADED) if isinstance(state, Mapping) else getattr(state, LOADED, None)
        surface = self._surface.refresh().with_loaded(loaded or ())
        with agent_context(surface=surface):
            yield surface

    def shown(self, state: Any, tools: Iterable[Any]) -> list[Any]:
        """Return the tools of a request that a model is given, and those that were loaded from the
        catalog.
        """
        tools = list(tools)
        handles = {tool.name: self.know(tool) for tool in tools if isinstance(tool, BaseTool)}
        with self.in_force(state) as surface:
            kept = [tool for tool in tools if self._is_shown(surface, tool, handles)]
            names = surface.names - handles.keys()
            return [
                *kept,
                *(tool for tool in map(self.loaded_tool, sorted(names)) if tool is not None),
            ]

    def loaded_tool(self, name: str) -> BaseTool | None:
        """Return the LangChain tool of a name that the catalog's loader made."""
        entry = self._surface.shelf.catalog.resolve(name)
        handle = entry.governed if entry is not None and entry.origin.loader is not None else None
        tool = getattr(getattr(handle, "function", None), "__self__", None)
        return tool if isinstance(tool, BaseTool) and is_governed_by_host(tool) else None

    def search_tool(self) -> BaseTool:
        """Return the governed tool ``tool_search`` that writes what it loaded into the
        agent's state.
        """
        shelf = self._surface.shelf

        def tool_search(
            query: str, tool_call_id: Annotated[str, InjectedToolCallId], limit: int = DEFAULT_LIMIT
        ) -> Command[Any]:
            """Find tools that are not shown to you, and load them: what is found can be called next.

            Args:
                query: words about what you want to do, or select:name,other_name for tools whose
                  names you know.
                tool_call_id: of the call.
                limit: most tools to load.
            """
            found, loaded = search_and_load(shelf, shelf.in_force(), query, limit, in_session=False)
            message = ToolMessage(json.dumps(found), tool_call_id=tool_call_id, name="tool_search")
            return Command(update={LOADED: loaded, "messages": [message]})

        self._governor.sessions.exempt.add(TOOL_SEARCH_ID)
        return self._governor.govern(
            StructuredTool.from_function(tool_search, parse_docstring=True),
            **tool_search_facts(shelf),
        )

    def know(self, tool: BaseTool) -> GovernedTool:
        """Return what is known of a tool, and let the catalog know it, too."""
        if is_governed_by_host(tool):
            return handle_of(tool)
        handle = self._handle_of(tool)
        if handle.spec.refusal:
            return handle  # on no surface, and in no catalog
        if self._governor.registry.resolve(handle.spec.tool_id) is None:
            self._governor.registry.add(handle)
        return handle

    def _is_shown(self, surface: Surface, tool: Any, handles: Mapping[str, GovernedTool]) -> bool:
        if isinstance(tool, BaseTool):
            return surface.holds(handles[tool.name].spec.tool_id)
        # what a provider runs itself has no name, or one that is not in the catalog
        name = _name_in(tool)
        entry = surface.shelf.catalog.resolve(name) if name else None
        return entry is None or surface.holds(entry.tool_id)


def _name_in(tool: Any) -> str:
    if not isinstance(tool, Mapping):
        return str(getattr(tool, "__name__", ""))
    function = tool.get("function")
    name = tool.get("name") or (function.get("name") if isinstance(function, Mapping) else "")
    return name if isinstance(name, str) else ""
