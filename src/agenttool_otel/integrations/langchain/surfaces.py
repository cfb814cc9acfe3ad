"""A surface in a LangChain agent: the tools that the model is shown, that it may call, and that a
thread has loaded.

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
    """The ids of both, each once, in the order in which they were loaded."""
    joined = list(old or ())
    for tool_id in new or ():
        if tool_id not in joined:
            joined.append(tool_id)
    return joined


class SurfaceState(AgentState[Any]):
    """The state of an agent that finds its tools; its input can't have loaded tools."""

    loaded_tools: NotRequired[Annotated[list[str], OmitFromInput, _joined]]


class AgentSurface:
    """One surface, as an agent's guards use it.

    Args:
        governor: the Governor of the agent's tools.
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
        self._surface = surface
        self._handle_of = handle_of
        self._governor = governor

    @contextmanager
    def in_force(self, state: Any) -> Iterator[Surface]:
        """Put the surface in force, with the tools that the state has loaded."""
        if isinstance(state, Mapping):
            loaded = state.get(LOADED)
        else:
            loaded = getattr(state, LOADED, None)
        surface = self._surface.refresh().with_loaded(loaded or ())
        with agent_context(surface=surface):
            yield surface

    def shown(self, state: Any, tools: Iterable[Any]) -> list[Any]:
        """Return the tools of a request that a model is given, and those that were loaded from the
        catalog.
        """
        offered = list(tools)
        handles: dict[str, GovernedTool] = {}
        for tool in offered:
            if isinstance(tool, BaseTool):
                handles[tool.name] = self.declare(tool)
        with self.in_force(state) as surface:
            shown = [tool for tool in offered if self._is_shown(surface, tool, handles)]
            for name in sorted(surface.names - handles.keys()):
                loaded = self.loaded_tool(name)
                if loaded is not None:
                    shown.append(loaded)
            return shown

    def loaded_tool(self, name: str) -> BaseTool | None:
        """Return the LangChain tool of a name that the catalog's loader made."""
        entry = self._surface.shelf.catalog.resolve(name)
        if entry is None or entry.origin.loader is None or entry.governed is None:
            return None
        # a LangChain tool's handle has the method tool.invoke as its function
        function = getattr(entry.governed, "function", None)
        tool = getattr(function, "__self__", None)
        if isinstance(tool, BaseTool) and is_governed_by_host(tool):
            return tool
        return None

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

        # a search is no use of a tool: it counts in no budget
        self._governor.sessions.exempt.add(TOOL_SEARCH_ID)
        tool = StructuredTool.from_function(tool_search, parse_docstring=True)
        return self._governor.govern(tool, **tool_search_facts(shelf))

    def declare(self, tool: BaseTool) -> GovernedTool:
        """Return the handle of a tool, and add it to the catalog."""
        if is_governed_by_host(tool):
            return handle_of(tool)
        handle = self._handle_of(tool)
        # a tool that can't be governed is on no surface, and in no catalog
        if handle.spec.refusal:
            return handle
        if self._governor.registry.resolve(handle.spec.tool_id) is None:
            self._governor.registry.add(handle)
        return handle

    def _is_shown(self, surface: Surface, tool: Any, handles: Mapping[str, GovernedTool]) -> bool:
        if isinstance(tool, BaseTool):
            return surface.holds(handles[tool.name].spec.tool_id)
        # {"type": "web_search"}: a tool that the provider runs itself is not in the catalog
        name = _name_in(tool)
        if not name:
            return True
        entry = surface.shelf.catalog.resolve(name)
        return entry is None or surface.holds(entry.tool_id)


def _name_in(tool: Any) -> str:
    """The name of a tool in one of the forms that a model takes; empty where it has none."""
    if not isinstance(tool, Mapping):
        return str(getattr(tool, "__name__", ""))
    name = tool.get("name")
    function = tool.get("function")
    # OpenAI's form: {"type": "function", "function": {"name": "search", ...}}
    if not name and isinstance(function, Mapping):
        name = function.get("name")
    return name if isinstance(name, str) else ""
