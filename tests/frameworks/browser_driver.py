"""How the test of doors calls an action of a program's own in a page."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from agenttool_otel.context.context import native_call
from agenttool_otel.integrations.browser import PageAction, browser_tools
from agenttool_otel.records import ToolResult
from agenttool_otel.testing.doors import Body, DoorDriver


@dataclass
class Page:
    """A page without a browser: the checks look at the door, and not at what an action does."""

    url: str = "https://words.example/"


class BrowserDriver(DoorDriver):
    is_async: ClassVar[bool] = True

    def make(self, name: str, description: str, schema: Mapping[str, Any], body: Body) -> Any:
        async def run(page: Page, arguments: dict[str, Any]) -> Any:
            return await body(arguments)

        return PageAction(name, description, schema["properties"], run, on_page=False)

    def govern(self, governor: Any, tool: PageAction) -> Any:
        facts = {"*": {"read_only": True, "concurrency_safe": True}}
        return browser_tools(Page(), governor=governor, facts=facts, actions=[tool])[tool.name]

    def call(self, tool: Any, arguments: Mapping[str, Any], call_id: str) -> Awaitable[Any]:
        async def call() -> ToolResult:
            with native_call(call_id):
                result: ToolResult = await tool.ainvoke(arguments)
                return result

        return call()

    def resume(self, tool: Any, ref: str) -> Any:
        return tool.governor.aresume(ref)

    def schema(self, tool: Any) -> Mapping[str, Any]:
        if isinstance(tool, PageAction):
            return tool.schema
        return dict(tool.spec.interface.model_input_schema)

    def text(self, given: ToolResult) -> str:
        return str(given.value)

    def is_refusal(self, given: ToolResult) -> bool:
        return given.status != "succeeded"
