"""Surfaces in LangChain: what a model is shown, what it may call, and what a thread has loaded."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from pydantic import Field

from agenttool_otel import AgentToolMiddleware, ConfigurationError, Governor
from agenttool_otel.integrations.langchain.agents import ToolNodeGuard
from agenttool_otel.names import Attr, GenAI
from agenttool_otel.testing import Capture, capture

FACTS: Any = {"read_only": True, "risk_level": "low", "access_kinds": [], "write_effects": []}


class Scripted(BaseChatModel):
    """Calls the tools of its script, and remembers what it was shown."""

    script: list[Any]
    shown: list[list[str]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Scripted:
        self.shown.append(
            sorted(t.name if isinstance(t, BaseTool) else t.get("name", t["type"]) for t in tools)
        )
        return self

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        asked = max(n for n, message in enumerate(messages) if message.type == "human")
        step = sum(isinstance(message, AIMessage) for message in messages[asked:])
        calls = []
        if step < len(self.script):
            name, args = self.script[step]
            calls = [{"name": name, "args": args, "id": f"call-{len(messages)}"}]
        return ChatResult(generations=[ChatGeneration(message=AIMessage("done", tool_calls=calls))])


class Provided(Scripted):
    """A model of a provider that searches tools itself."""

    shown: list[list[Any]] = Field(default_factory=list)

    def _get_ls_params(self, stop: Any = None, **kwargs: Any) -> Any:
        return {"ls_provider": "anthropic"}

    def bind_tools(self, tools: Any, **kwargs: Any) -> Scripted:
        found = [
            (t.name, bool((t.extras or {}).get("defer_loading")))
            for t in tools
            if isinstance(t, BaseTool)
        ]
        self.shown.append(
            [*found, *((t["name"], False) for t in tools if not isinstance(t, BaseTool))]
        )
        return self


def plain(name: str, ran: list[str]) -> BaseTool:
    def body(text: str = "") -> str:
        ran.append(name)
        return f"{name} {text}"

    return StructuredTool.from_function(body, name=name, description=f"Do the {name}.")


def statuses(answer: Any) -> list[tuple[str | None, str]]:
    return [(m.name, m.status) for m in answer["messages"] if isinstance(m, ToolMessage)]


def ask(agent: Any, config: Any = None) -> Any:
    return agent.invoke({"messages": [("user", "go")]}, config)


@pytest.mark.parametrize("is_governed", [True, False])
def test_a_model_finds_loads_and_calls_a_deferred_tool(is_governed: bool) -> None:
    ran: list[str] = []
    governor = Governor()
    tools = [plain(name, ran) for name in ("dance", "song", "poem")]
    facts = {"*": {**FACTS, "defer": True}}
    if is_governed:
        tools = [governor.govern(tool, **facts["*"]) for tool in tools]
    model = Scripted(
        script=[("song", {}), ("tool_search", {"query": "select:song"}), ("song", {"text": "a"})]
    )
    middleware = AgentToolMiddleware(
        governor, None if is_governed else facts, surface=governor.surface()
    )
    answer = ask(create_agent(model, tools, middleware=[middleware]))
    assert model.shown == [
        ["tool_search"],
        ["tool_search"],
        ["song", "tool_search"],
        ["song", "tool_search"],
    ]
    assert statuses(answer) == [("song", "error"), ("tool_search", "success"), ("song", "success")]
    assert ran == ["song"]


async def test_the_same_holds_asynchronously() -> None:
    ran: list[str] = []
    governor = Governor()
    tools = [governor.govern(plain(name, ran), defer=True, **FACTS) for name in ("dance", "song")]
    model = Scripted(script=[("dance", {}), ("tool_search", {"query": "a dance"}), ("dance", {})])
    agent = create_agent(
        model, tools, middleware=[AgentToolMiddleware(governor, surface=governor.surface())]
    )
    answer = await agent.ainvoke({"messages": [("user", "go")]})  # type: ignore[call-overload]
    assert statuses(answer) == [
        ("dance", "error"),
        ("tool_search", "success"),
        ("dance", "success"),
    ]
    assert ran == ["dance"]


def test_what_was_loaded_stays_in_its_thread_and_survives() -> None:
    ran: list[str] = []
    governor = Governor()
    tools = [governor.govern(plain("song", ran), defer=True, **FACTS)]
    saver = InMemorySaver()

    def agent(*script: Any) -> Any:
        middleware = AgentToolMiddleware(governor, surface=governor.surface())
        return create_agent(
            Scripted(script=list(script)), tools, middleware=[middleware], checkpointer=saver
        )

    one, two = ({"configurable": {"thread_id": name}} for name in ("one", "two"))
    ask(agent(("tool_search", {"query": "select:song"})), one)
    assert statuses(ask(agent(("song", {})), two)) == [("song", "error")]
    assert ran == []
    assert statuses(ask(agent(("song", {})), one))[-1] == ("song", "success")
    assert ran == ["song"]


def test_nobody_gives_loaded_tools_from_outside() -> None:
    ran: list[str] = []
    governor = Governor()
    tools = [governor.govern(plain("song", ran), tool_id="t.song", defer=True, **FACTS)]
    middleware = AgentToolMiddleware(governor, surface=governor.surface())
    agent: Any = create_agent(Scripted(script=[("song", {})]), tools, middleware=[middleware])
    answer = agent.invoke({"messages": [("user", "go")], "loaded_tools": ["t.song"]})
    assert statuses(answer) == [("song", "error")]
    assert ran == []


def test_a_hidden_tool_is_not_shown_found_or_run() -> None:
    hides: Any = {"agenttool": {"settings": {"surface": {"hidden_tools": ["t.song"]}}}}
    with capture(policy_data=hides) as captured:
        check_hidden(captured)


def check_hidden(captured: Capture) -> None:
    ran: list[str] = []
    governor = captured.governor
    tools = [governor.govern(plain("song", ran), tool_id="t.song", namespace="t", **FACTS)]
    tools.append(governor.govern(plain("poem", ran), namespace="t", **FACTS))
    model = Scripted(script=[("song", {}), ("tool_search", {"query": "select:song"}), ("song", {})])
    agent = create_agent(
        model, tools, middleware=[AgentToolMiddleware(governor, surface=governor.surface())]
    )
    answer = ask(agent)
    assert all(shown == ["poem", "tool_search"] for shown in model.shown)
    assert [status for _, status in statuses(answer)] == ["error", "success", "error"]
    assert '"missing_names": ["song"]' in answer["messages"][4].content
    assert ran == []
    spans = [span.attributes for span in captured.spans if span.name == "execute_tool song"]
    assert [dict(found or {})[GenAI.ERROR_TYPE] for found in spans] == [
        "blocked_tool",
        "blocked_tool",
    ]
    assert all(str(dict(found or {})[Attr.SURFACE_ID]).startswith("surface_") for found in spans)


def test_a_tool_of_the_catalog_alone_is_loaded_and_run() -> None:
    ran: list[str] = []
    governor = Governor()
    governor.catalog.add(
        {"tool_id": "far.song", "name": "song", "namespace": "far", "description": "Sing a song"},
        loader=lambda tool_id: plain("song", ran),
        **FACTS,
    )
    model = Scripted(
        script=[("song", {}), ("tool_search", {"query": "sing"}), ("song", {"text": "b"})]
    )
    agent = create_agent(
        model, [], middleware=[AgentToolMiddleware(governor, surface=governor.surface())]
    )
    answer = ask(agent)
    assert model.shown[-1] == ["song", "tool_search"]
    assert statuses(answer) == [("song", "error"), ("tool_search", "success"), ("song", "success")]
    assert ran == ["song"]


@pytest.mark.parametrize("by", ["extras", "name"])
def test_a_providers_own_search_sees_the_surface_alone(by: str) -> None:
    middleware = pytest.importorskip("langchain.agents.middleware")
    hides: Any = {"agenttool": {"settings": {"surface": {"hidden_tools": ["t.song"]}}}}
    with capture(policy_data=hides) as captured:
        governor, ran = captured.governor, list[str]()
        tools = [
            governor.govern(plain(name, ran), namespace="t", **FACTS)
            for name in ("song", "poem", "dance")
        ]
        if by == "extras":
            tools = [
                tool.model_copy(update={"extras": {"defer_loading": True}}) for tool in tools[:2]
            ] + tools[2:]
        names = None if by == "extras" else ["song", "poem"]
        model = Provided(script=[("poem", {}), ("song", {})])
        search = middleware.ProviderToolSearchMiddleware(searchable_tools=names)
        answer = ask(
            create_agent(
                model, tools, middleware=[search, AgentToolMiddleware(surface=governor.surface())]
            )
        )
        assert {name for name, _ in model.shown[0]} == {
            "dance",
            "poem",
            "tool_search",
            "tool_search_tool_bm25",
        }
        assert [name for name, deferred in model.shown[0] if deferred] == ["poem"]
        assert [status for _, status in statuses(answer)] == ["success", "error"]
        assert ran == ["poem"]


def test_what_a_provider_runs_itself_is_left_alone() -> None:
    governor = Governor()
    model = Scripted(script=[])
    search: Any = {"type": "web_search_20250305", "name": "web_search"}
    ask(
        create_agent(
            model, [search], middleware=[AgentToolMiddleware(governor, surface=governor.surface())]
        )
    )
    assert model.shown == [["tool_search", "web_search"]]


def test_a_tool_node_refuses_what_is_not_on_the_surface() -> None:
    ran: list[str] = []
    governor = Governor()
    tools = [governor.govern(plain(name, ran), **FACTS) for name in ("song", "poem")]
    guard = ToolNodeGuard(surface=governor.surface(tools=[tools[1]]))
    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode([*tools, plain("dance", ran)], wrap_tool_call=guard))
    graph.add_edge(START, "tools")
    calls: Any = [{"name": name, "args": {}, "id": name} for name in ("song", "poem", "dance")]
    answer = graph.compile().invoke({"messages": [AIMessage("", tool_calls=calls)]})
    assert statuses(answer) == [("song", "error"), ("poem", "success"), ("dance", "error")]
    assert ran == ["poem"]


def test_another_governors_surface_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="another Governor"):
        AgentToolMiddleware(Governor(), surface=Governor().surface())
