"""How the test of doors calls a tool of LangChain, as an agent's tool node does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.tools import StructuredTool

from agenttool_otel.govern.governor import Governor
from agenttool_otel.records import ToolResult
from agenttool_otel.testing.doors import Body, DoorDriver


class LangChainDriver(DoorDriver):
    def make(self, name: str, description: str, schema: Mapping[str, Any], body: Body) -> Any:
        def look_up(**arguments: Any) -> str:
            return str(body(arguments))

        return StructuredTool.from_function(
            look_up, name=name, description=description, args_schema=dict(schema)
        )

    def govern(self, governor: Governor, tool: Any) -> Any:
        self._governor = governor
        return governor.govern(tool, read_only=True, concurrency_safe=True)

    def call(self, tool: Any, arguments: Mapping[str, Any], call_id: str) -> Any:
        return tool.invoke(
            {"type": "tool_call", "name": tool.name, "args": dict(arguments), "id": call_id}
        )

    def resume(self, tool: Any, ref: str) -> ToolResult:
        return self._governor.resume(ref)

    def schema(self, tool: Any) -> Mapping[str, Any]:
        schema: Mapping[str, Any] = tool.args_schema
        return schema

    def text(self, given: Any) -> str:
        return str(given.value if isinstance(given, ToolResult) else given.content)

    def is_refusal(self, given: Any) -> bool:
        if isinstance(given, ToolResult):
            return given.status != "succeeded"
        return bool(given.status == "error")
