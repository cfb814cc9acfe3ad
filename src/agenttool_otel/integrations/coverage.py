"""What no guard sees: the tools that a program's agents call and that nothing decides.

It looks at agents and graphs of LangChain and LangGraph with their sub-agents, at agents of Pydantic
AI, at agents of the OpenAI Agents SDK with their handoffs, and at clients of MCP. What can't be
found from them, as an agent that a function makes when it is called, is not reported.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Final, NamedTuple, cast

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.values.inspection import mro_names

_WALKS: Final = {
    "langchain_core.runnables.base.Runnable": "langchain.agents",
    "pydantic_ai.agent.abstract.AbstractAgent": "pydantic_ai",
    "agents.agent.Agent": "openai_agents",
    "mcp.client.client.Client": "mcp.client",
    "mcp.client.session.ClientSession": "mcp.client",
    "mcp.client.session_group.ClientSessionGroup": "mcp.client",
}
"""Classes of agents and clients, and the door whose ``unseen_behind`` looks behind them; imported
when needed.
"""


class UngovernedTools(ConfigurationError):
    """An agent has tools that nothing governs.

    Attributes:
        tools: their names.
    """

    def __init__(self, tools: list[str]) -> None:
        super().__init__(
            f"nothing governs {', '.join(tools)}; use govern(), or a guard of the agent"
        )
        self.tools = tools


class Unseen(NamedTuple):
    """What nothing governs behind one object of a module."""

    place: str  # the name of the object in the module
    tools: list[str]  # names of tools; empty where all are governed


def unseen_behind(agent: Any) -> list[str]:
    """Return the names of tools that an agent calls and that nothing governs, sub-agents included.

    Args:
        agent: An agent, graph or client of MCP.

    Raises:
        ConfigurationError: It is of no framework that can be looked into.
    """
    walk = _walk_of(agent)
    if walk is None:
        raise ConfigurationError(f"{type(agent).__name__} is no agent that can be looked into")
    return sorted(set(walk(agent)))


def require_governed(*agents: Any) -> None:
    """Raise where an agent has a tool that nothing governs; for the start of a program.

    Args:
        agents: Agents or graphs.

    Raises:
        UngovernedTools: Of the first agent that has such a tool.
        ConfigurationError: One of them can't be looked into.
    """
    for agent in agents:
        unseen = unseen_behind(agent)
        if unseen:
            raise UngovernedTools(unseen)


def unseen_in(module: ModuleType) -> Iterator[Unseen]:
    """Yield each agent of a module, alone or in a list or dictionary, with what nothing governs.

    Args:
        module: The module.
    """
    # a copy: looking at an agent may import, which adds names to the module
    for name, value in list(vars(module).items()):
        for place, found in _members(name, value):
            walk = _walk_of(found)
            if walk is not None:
                yield Unseen(place, sorted(set(walk(found))))


def _members(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, (list, tuple)):
        for number, member in enumerate(value):
            yield f"{name}[{number}]", member
    elif isinstance(value, dict) and not name.startswith("__"):
        for key, member in value.items():
            yield f"{name}[{key!r}]", member
    else:
        yield name, value


def _walk_of(found: Any) -> Callable[[Any], list[str]] | None:
    names = mro_names(type(found))
    for class_name, door in _WALKS.items():
        if class_name in names:
            module = importlib.import_module(f"{__package__}.{door}")
            return cast(Callable[[Any], list[str]], module.unseen_behind)
    return None
