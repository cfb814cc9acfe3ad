"""An agent with 200 tools: the model sees one, finds the one it needs by words, and calls it."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import Field

from agenttool_otel import AgentToolMiddleware, Governor, agent_context

CITIES = [f"{direction} {place}" for direction in ("north", "south", "east", "west", "old") for place in (
    "harbour", "market", "castle", "bridge", "garden", "station", "museum", "theatre", "library", "tower",
)]  # fmt: skip
MATTERS = {
    "opening_hours": "Tell when the {city} opens and closes",
    "ticket_price": "Tell what a ticket for the {city} costs",
    "weather": "Tell the temperature and rain at the {city}",
    "route": "Find the fastest way to the {city}",
}


def make_tool(matter: str, said: str, city: str) -> BaseTool:
    def body(day: str = "today") -> str:
        return f"{matter} of the {city} {day}: fine"

    name = f"{matter}_{city.replace(' ', '_')}"
    return StructuredTool.from_function(body, name=name, description=said.format(city=city))


class Scripted(BaseChatModel):
    """Stands for a model: it tries its luck, searches, calls what it found, and is done."""

    shown: list[list[str]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "example"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Scripted:
        self.shown.append([tool.name for tool in tools])
        return self

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        script = [
            ("weather_old_tower", {"day": "tomorrow"}),
            ("tool_search", {"query": "temprature at the old tower", "limit": 1}),  # with a slip
            ("weather_old_tower", {"day": "tomorrow"}),
            ("delete_everything", {}),
        ]
        step = sum(isinstance(message, AIMessage) for message in messages)
        if step == len(script):
            return ChatResult(generations=[ChatGeneration(message=AIMessage("done"))])
        name, args = script[step]
        call = {"name": name, "args": args, "id": f"call-{step}"}
        return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=[call]))])


def main() -> None:
    governor = Governor()
    tools = [
        governor.govern(
            make_tool(matter, said, city),
            defer=True,
            read_only=True,
            risk_level="low",
            access_kinds=[],
        )
        for city in CITIES
        for matter, said in MATTERS.items()
    ]
    model = Scripted()
    with agent_context(actor="agent:guide", session_id="s-1"):
        middleware = AgentToolMiddleware(governor, surface=governor.surface())
        agent = create_agent(model, tools, middleware=[middleware])
        answer: Any = agent.invoke(
            {"messages": [("user", "Will it rain at the old tower tomorrow?")]}
        )
    print(f"{len(tools)} tools")
    for names in model.shown:
        print("the model sees", ", ".join(names))
    for message in answer["messages"]:
        if isinstance(message, ToolMessage) and message.name != "tool_search":
            print(f"{message.name}: {message.status}: {message.content}")


if __name__ == "__main__":
    main()
