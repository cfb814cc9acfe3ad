"""How the test of doors calls a remote agent: by A2A's own client and server, without a socket."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from a2a.server.agent_execution import RequestContext
from a2a_agent import Agents, Answerer, card_of, client_of
from google.protobuf.json_format import MessageToDict
from invoked_driver import InvokedDriver

from agenttool_otel.integrations.a2a import a2a_tool
from agenttool_otel.records import ToolResult
from agenttool_otel.testing.doors import Body


class Agent:
    """A remote agent that takes data, not governed."""

    def __init__(self, name: str, description: str, schema: Mapping[str, Any], body: Body) -> None:
        async def answer(context: RequestContext) -> str:
            assert context.message is not None
            return str(await body(MessageToDict(context.message.parts[0].data)))

        self.name, self.description, self.schema = name, description, schema
        self.card = card_of(name)
        self.client = client_of(self.card, Agents(self.card, Answerer(answer)))


class A2aDriver(InvokedDriver):
    is_async: ClassVar[bool] = True

    def make(self, name: str, description: str, schema: Mapping[str, Any], body: Body) -> Any:
        return Agent(name, description, schema, body)

    def govern(self, governor: Any, tool: Agent) -> Any:
        return a2a_tool(
            tool.card,
            tool.client,
            governor=governor,
            schema=tool.schema,
            facts={"read_only": True, "concurrency_safe": True},
        )

    def text(self, given: ToolResult) -> str:
        return str(given.value["text"] if isinstance(given.value, dict) else given.value)
