"""Which tools of a program's agents nothing governs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="pydantic-ai-slim is not installed")
pytest.importorskip("mcp", reason="the extra mcp is not installed")

from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel
from langchain_core.tools import tool
from mcp import Client
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import FunctionToolset
from typer.testing import CliRunner

from agenttool_otel import AgentToolMiddleware, ConfigurationError, govern
from agenttool_otel.cli.main import app
from agenttool_otel.integrations.coverage import UngovernedTools, require_governed, unseen_behind
from agenttool_otel.integrations.mcp.client import govern_session
from agenttool_otel.integrations.pydantic_ai import Governance, GovernedToolset

PROGRAM = """
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from agenttool_otel.integrations.pydantic_ai import Governance

def pay(amount: int) -> str:
    return "paid"

seen = Agent(TestModel(), tools=[pay], capabilities=[Governance()])
others = {"desk": Agent(TestModel(), tools=[pay])}
"""


class Bound(FakeListChatModel):
    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


@tool
def pay(amount: int) -> str:
    """Pay."""
    return "paid"


def send(to: str) -> str:
    """Send."""
    return "sent"


def graph(*tools: Any, **options: Any) -> Any:
    return create_agent(Bound(responses=["done"]), list(tools), **options)


def asking(agent: Any) -> Any:
    @tool
    def ask(question: str) -> str:
        """Ask."""
        return str(agent.invoke(question))

    return ask


def test_a_graphs_tools_are_found() -> None:
    assert unseen_behind(graph(pay)) == ["pay"]


def test_an_agent_behind_many_objects_is_found() -> None:
    held: list[Any] = [[number] for number in range(10_000)]
    held.append(graph(pay))

    @tool
    def delegate(text: str) -> str:
        """Delegate."""
        return str(held[-1].invoke(text))

    assert unseen_behind(delegate) == ["pay"]


def test_a_guarded_graph_has_none() -> None:
    require_governed(graph(pay, middleware=[AgentToolMiddleware()]))


def test_a_graph_of_governed_tools_has_none() -> None:
    require_governed(graph(govern(pay)))


def test_a_sub_agents_tools_are_found() -> None:
    outer = graph(asking(graph(pay)), middleware=[AgentToolMiddleware()])
    with pytest.raises(UngovernedTools) as raised:
        require_governed(outer)
    assert raised.value.tools == ["pay"]


@pytest.mark.parametrize(
    ("options", "unseen"),
    [
        ({"tools": [send]}, ["send"]),
        ({"toolsets": [FunctionToolset([send])]}, ["send"]),
        ({"toolsets": [FunctionToolset([send]).prefixed("mail")]}, ["send"]),
        ({"toolsets": [GovernedToolset(FunctionToolset([send]))]}, []),
        ({"tools": [govern(send)]}, []),
        ({"tools": [send], "capabilities": [Governance()]}, []),
    ],
    ids=["function", "toolset", "prefixed", "governed-toolset", "governed-function", "capability"],
)
def test_a_pydantic_agents_tools_are_found(options: Any, unseen: list[str]) -> None:
    assert unseen_behind(Agent(TestModel(), **options)) == unseen


def test_what_is_no_agent_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="int is no agent"):
        require_governed(3)


def test_the_command_lists_a_modules_agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "covered_program.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(str(tmp_path))
    done = CliRunner().invoke(app, ["tools", "coverage", "--module", "covered_program"])
    assert done.stdout.splitlines() == [
        "covered_program.others['desk']: nothing governs pay",
        "1 ungoverned tools behind 2 agents",
    ]
    assert done.exit_code == 1


def test_a_client_of_mcp_is_found_until_it_is_governed() -> None:
    client = Client("https://files.invalid/mcp")
    assert unseen_behind(client) == ["the tools of an MCP Client"]
    with pytest.raises(ConfigurationError, match="GovernedSession is no agent"):
        unseen_behind(govern_session(client, server="files"))
