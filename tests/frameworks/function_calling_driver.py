"""How the test of doors calls a tool by a model's response of the Chat Completions API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from invoked_driver import InvokedDriver

from agenttool_otel.govern.governor import Governor
from agenttool_otel.integrations.foreign import foreign_tool
from agenttool_otel.integrations.function_calling import AnsweredCalls, answer_calls
from agenttool_otel.records import ToolResult
from agenttool_otel.testing.doors import Body


@dataclass(frozen=True)
class Function:
    """A function of a program's own table."""

    name: str
    description: str
    schema: Mapping[str, Any]
    body: Body


class FunctionCallingDriver(InvokedDriver):
    def make(self, name: str, description: str, schema: Mapping[str, Any], body: Body) -> Any:
        return Function(name, description, schema, body)

    def govern(self, governor: Governor, tool: Function) -> Any:
        governed = foreign_tool(
            tool.name,
            tool.schema,
            source="app",
            description=tool.description,
            facts={"*": {"read_only": True, "concurrency_safe": True}},
            body=tool.body,
            governor=governor,
        )
        governed.register()
        return governed

    def call(self, tool: Any, arguments: Mapping[str, Any], call_id: str) -> AnsweredCalls:
        function = {"name": tool.spec.name, "arguments": json.dumps(arguments)}
        call = {"id": call_id, "type": "function", "function": function}
        return answer_calls(tool.governor, {"role": "assistant", "tool_calls": [call]})

    def text(self, given: AnsweredCalls | ToolResult) -> str:
        if isinstance(given, ToolResult):
            return super().text(given)
        return str(given.messages[0]["content"])

    def is_refusal(self, given: AnsweredCalls | ToolResult) -> bool:
        return super().is_refusal(given if isinstance(given, ToolResult) else given.results[0])
