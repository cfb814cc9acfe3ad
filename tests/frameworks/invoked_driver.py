"""How the test of doors calls tools that a door makes of nothing callable: by ``invoke``, and resumed by
the Governor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenttool_otel.call.tool import GovernedTool
from agenttool_otel.context.context import native_call
from agenttool_otel.records import ToolResult
from agenttool_otel.testing.doors import DoorDriver


class InvokedDriver(DoorDriver):
    """Needs ``make`` and ``govern``; what ``make`` returns has the schema that it was given."""

    def call(self, tool: GovernedTool, arguments: Mapping[str, Any], call_id: str) -> Any:
        if self.is_async:
            return self._acall(tool, arguments, call_id)
        with native_call(call_id):
            return tool.invoke(arguments)

    async def _acall(
        self, tool: GovernedTool, arguments: Mapping[str, Any], call_id: str
    ) -> ToolResult:
        with native_call(call_id):
            return await tool.ainvoke(arguments)

    def resume(self, tool: Any, ref: str) -> Any:
        return tool.governor.aresume(ref) if self.is_async else tool.governor.resume(ref)

    def schema(self, tool: Any) -> Mapping[str, Any]:
        if isinstance(tool, GovernedTool):
            return tool.spec.interface.model_input_schema or {}
        schema: Mapping[str, Any] = tool.schema
        return schema

    def text(self, given: ToolResult) -> str:
        return str(given.value)

    def is_refusal(self, given: ToolResult) -> bool:
        return given.status != "succeeded"
