"""How the test of doors calls an action of a program's own in a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from invoked_driver import InvokedDriver

from agenttool_otel.integrations.browser import PageAction, browser_tools
from agenttool_otel.testing.doors import Body


@dataclass
class Page:
    """A page without a browser: the checks look at the door, and not at what an action does."""

    url: str = "https://words.example/"


class BrowserDriver(InvokedDriver):
    is_async: ClassVar[bool] = True

    def make(self, name: str, description: str, schema: Mapping[str, Any], body: Body) -> Any:
        async def run(page: Page, arguments: dict[str, Any]) -> Any:
            return await body(arguments)

        return PageAction(name, description, schema["properties"], run, on_page=False)

    def govern(self, governor: Any, tool: PageAction) -> Any:
        facts = {"*": {"read_only": True, "concurrency_safe": True}}
        return browser_tools(Page(), governor=governor, facts=facts, actions=[tool])[tool.name]
