"""How the test of doors calls deepagents: an agent with a scripted model, and checkpoints on disk."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepagents import create_deep_agent
from graph_agents import Scripted
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.sqlite import SqliteSaver
from pydantic import Field

from agenttool_otel.govern.governor import Governor
from agenttool_otel.integrations.deep_agents import create_governed_agent
from agenttool_otel.testing.doors import Body, DoorDriver

# another process of a check has this one's environment
FOLDER = Path(os.environ.setdefault("DEEP_DRIVER_FOLDER", tempfile.mkdtemp()))
FACTS = {"look_up": {"read_only": True, "concurrency_safe": True}}


class Model(Scripted):
    """Makes its calls under a given id, and keeps the tools that it is shown."""

    call_id: str = ""
    shown: list[Any] = Field(default_factory=list)

    def bind_tools(self, tools: Any, **kwargs: Any) -> Model:
        self.shown[:] = tools
        return self

    def _generate(self, *args: Any, **kwargs: Any) -> Any:
        made = super()._generate(*args, **kwargs)
        message = made.generations[0].message
        assert isinstance(message, AIMessage)
        for call in message.tool_calls:
            call["id"] = self.call_id
        return made


@dataclass(frozen=True)
class Held:
    """A tool that an agent is made with, and who governs that."""

    tool: BaseTool
    governor: Governor | None = None

    def agent(self, model: Model) -> Any:
        if self.governor is None:
            return create_deep_agent(model, [self.tool])
        connection = sqlite3.connect(FOLDER / "checkpoints.db", check_same_thread=False)
        return create_governed_agent(
            model,
            [self.tool],
            governor=self.governor,
            facts=FACTS,
            checkpointer=SqliteSaver(connection),
        )


class DeepDriver(DoorDriver):
    def make(self, name: str, description: str, schema: Mapping[str, Any], body: Body) -> Any:
        def function(**arguments: Any) -> Any:
            return body(arguments)

        tool = StructuredTool(
            name=name, description=description, args_schema=dict(schema), func=function
        )
        return Held(tool)

    def govern(self, governor: Governor, tool: Held) -> Held:
        return Held(tool.tool, governor)

    def call(self, tool: Held, arguments: Mapping[str, Any], call_id: str) -> Any:
        model = Model(calls=[("look_up", dict(arguments))], call_id=call_id)
        thread = uuid.uuid4().hex
        config: Any = {"configurable": {"thread_id": thread}}
        state = tool.agent(model).invoke({"messages": [HumanMessage("go")]}, config)
        for asked in state.get("__interrupt__", ()):
            assert tool.governor is not None
            request = tool.governor.approvals.store.get(asked.value["request_id"])
            (FOLDER / request.invocation_id).write_text(thread, "utf-8")
        return state

    def resume(self, tool: Held, ref: str) -> Any:
        model = Model(calls=[("look_up", {})], call_id="call_1")
        config: Any = {"configurable": {"thread_id": (FOLDER / ref).read_text("utf-8")}}
        return tool.agent(model).invoke(None, config)

    def schema(self, tool: Held) -> Mapping[str, Any]:
        model = Model(calls=[], shown=[])
        agent = Held(tool.tool, tool.governor).agent(model)
        config: Any = {"configurable": {"thread_id": uuid.uuid4().hex}}
        agent.invoke({"messages": [HumanMessage("go")]}, config)
        (shown,) = [found for found in model.shown if found.name == "look_up"]
        return dict(shown.args_schema)

    def text(self, given: Any) -> str:
        return str(answer(given).content)

    def is_refusal(self, given: Any) -> bool:
        return "__interrupt__" in given or answer(given).status == "error"


def answer(state: Any) -> ToolMessage:
    messages = [message for message in state["messages"] if isinstance(message, ToolMessage)]
    return messages[-1]
