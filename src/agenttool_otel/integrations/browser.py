"""A page in a browser as governed tools: Playwright's actions, each decided with the URL on which it acts.

An action on a page has the page's URL among its arguments: the policy decides on it, a person is shown it, and
the action does nothing where the page is another by then. So a redirect, or a link that leads elsewhere, is
decided at the next action. What is in a frame has a URL of its own, and nothing is done in it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol, cast

from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.runtime import Runtime
from agenttool_otel.call.target import Target
from agenttool_otel.catalog import GovernOptions
from agenttool_otel.errors import AgentToolError
from agenttool_otel.integrations.facts import options_for
from agenttool_otel.integrations.foreign import ForeignTool, foreign_tool
from agenttool_otel.names import ToolKind

URL: Final = "url"
"""The argument that is the page's URL."""
_MOST_CHARS: Final = 100_000
"""Characters of a page that one call returns."""
_CHANGES: Final[GovernOptions] = {"read_only": False, "write_effects": ["remote_mutation"]}
_FRAMES: Final = "iframe, frame, object, embed"
_READS: Final[GovernOptions] = {"read_only": True, "destructive": False}


class PageLike(Protocol):
    """What the door itself looks at of a page."""

    @property
    def url(self) -> str:
        """Where the page is."""


class PageChanged(AgentToolError):
    """It would be done elsewhere than on the page on which it was decided; nothing was done."""


@dataclass(frozen=True, slots=True)
class PageAction:
    """What a tool does in a page.

    Attributes:
        name: the tool's name for the model.
        description: its description for the model.
        properties: JSON Schema of each argument; all of them are needed.
        run: does it, with Playwright's asynchronous ``Page`` and the arguments.
        on_page: whether it acts on the page as it is. It then has the argument ``url``, which the door fills in
            where a model gives none. An action that goes somewhere itself has not.
        facts: its facts, as the keywords of ``govern``.
    """

    name: str
    description: str
    properties: Mapping[str, Any]
    run: Callable[[Any, dict[str, Any]], Awaitable[Any]]
    on_page: bool = True
    facts: GovernOptions = field(default_factory=GovernOptions)

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        properties = dict(self.properties)
        if self.on_page:
            properties[URL] = {"type": "string", "description": "The page's URL; as it is now."}
        return {
            "type": "object",
            "properties": properties,
            "required": list(self.properties),
            "additionalProperties": False,
        }


def browser_tools(
    page: PageLike,
    *,
    governor: Runtime | None = None,
    facts: Mapping[str, GovernOptions] | None = None,
    actions: Sequence[PageAction] | None = None,
    session: str = "",
) -> dict[str, ForeignTool]:
    """Declare what can be done in a page as asynchronous tools, and return them by name.

    Args:
        page: A page of Playwright's asynchronous API.
        governor: The Governor; ``None`` for the default one.
        facts: Facts of tools by name or glob; they come before those of an action.
        actions: What can be done; PAGE_ACTIONS where not given.
        session: Your name of the browser's session, a part of the tools' namespace.
    """
    tools: dict[str, ForeignTool] = {}
    for action in PAGE_ACTIONS if actions is None else actions:
        options = {
            "tool_kind": ToolKind.BROWSER_ACTION.value,
            "access_kinds": ["browser", "network"],
            # a page is what its author has written
            "open_world": True,
            "result_trust": "free_text",
            "url_args": [URL] if URL in action.schema["properties"] else [],
            **action.facts,
            **options_for(facts or {}, action.name),
        }
        declared = foreign_tool(
            action.name,
            action.schema,
            source="browser",
            server=session,
            description=action.description,
            facts={action.name: cast(GovernOptions, options)},
            body=partial(_act, page, action),
            is_async=True,
            governor=governor,
        )
        tool = PageTool.acting_on(page, declared) if action.on_page else declared
        tool.register()
        tools[action.name] = tool
    return tools


class PageTool(ForeignTool):
    """A tool that acts on a page as it is."""

    __slots__ = ("page",)
    page: PageLike

    @classmethod
    def acting_on(cls, page: PageLike, declared: ForeignTool) -> PageTool:
        """Return a declared tool that acts on a page.

        Args:
            page: the page.
            declared: the tool.
        """
        tool = cls(
            declared.spec,
            declared.function,
            governor=declared.governor,
            is_async=True,
            streams=False,
        )
        tool.page = page
        return tool

    def json_target(self, *, preflight: bool = False) -> Target:
        """Return what a call runs; its arguments get the page's URL where they have none."""
        target = super().json_target(preflight=preflight)
        bind = target.bind

        def bind_to_page(call: Invocation) -> None:
            # an approval's arguments have the URL that was asked about
            if call.ticket is None:
                call.call_kwargs = {URL: self.page.url, **call.call_kwargs}
            bind(call)

        target.bind = bind_to_page
        return target


async def _act(page: Any, action: PageAction, arguments: dict[str, Any]) -> Any:
    given = dict(arguments)
    if action.on_page and given.pop(URL, None) != page.url:
        # an edit without the URL, too: nobody has decided on this page
        raise PageChanged(f"the page is another one by now: {action.name} did nothing")
    return await action.run(page, given)


# --- what can be done ---------------------------------------------------------------------------------


async def _navigate(page: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    response = await page.goto(arguments[URL])
    status = None if response is None else response.status
    # nothing of its content: the page may be where a redirect led
    return {"url": page.url, "status": status}


async def _back(page: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    await page.go_back()
    return {"url": page.url}


async def _read(page: Any, arguments: dict[str, Any]) -> str:
    text = str(await page.locator("body").aria_snapshot())
    return text[:_MOST_CHARS]


async def element_of(page: Any, selector: str) -> Any:
    """Return the element of a selector, which is the page's own.

    Args:
        page: A page of Playwright's asynchronous API.
        selector: One of Playwright's selectors. One with an engine of Playwright's own (``internal:``)
            is refused: they lead into frames.

    Raises:
        PageChanged: It leads into a frame, which has a URL of its own, or the page is another one by the
            time at which the element is there.
        Error: Playwright's: there is no such element, or more than one.
    """
    url = page.url
    # iframe >> internal:control=enter-frame >> button
    if any(part.strip(" \t\n*").startswith("internal:") for part in selector.split(">>")):
        raise PageChanged("selectors of Playwright's own engines (internal:) are refused")
    element = await page.locator(selector).element_handle()
    if page.url != url:
        raise PageChanged("the page became another one while the element was waited for")
    # what is done to a frame's own element reaches what it shows
    if await element.owner_frame() != page.main_frame or await element.content_frame() is not None:
        raise PageChanged("the selector leads into a frame: nothing was done there")
    return element


async def _click(page: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    element = await element_of(page, arguments["selector"])
    # <main><iframe></iframe></main>: the middle of it is the frame
    if await element.query_selector(_FRAMES) is not None:
        raise PageChanged("there is a frame in the element: it was not clicked")
    await element.click()
    return await _settled(page)


async def _fill(page: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    element = await element_of(page, arguments["selector"])
    await element.fill(arguments["text"])
    return await _settled(page)


async def _select(page: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    element = await element_of(page, arguments["selector"])
    await element.select_option(arguments["value"])
    return await _settled(page)


async def _press(page: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    element = await element_of(page, arguments["selector"])
    await element.focus()
    # <h1> takes no focus: a frame keeps it, and nothing of the page itself matches :focus then
    if len(page.frames) > 1 and await page.query_selector(":focus") is None:
        raise PageChanged("a frame may have the focus: no key was pressed")
    await element.press(arguments["key"])
    return await _settled(page)


async def _settled(page: Any) -> dict[str, Any]:
    # a link that was clicked leads elsewhere
    await page.wait_for_load_state()
    return {"url": page.url}


_TEXT: Final = {"type": "string"}
_SELECTOR: Final = {
    "type": "string",
    "description": "A selector of Playwright: text=Buy, role=button[name='Buy'], #buy.",
}

PAGE_ACTIONS: Final = (
    PageAction(
        "navigate", "Open a URL in the page.", {URL: _TEXT}, _navigate, on_page=False, facts=_READS
    ),
    PageAction("go_back", "Go back to the page before.", {}, _back, facts=_READS),
    PageAction("read_page", "Read the page as an accessibility tree.", {}, _read, facts=_READS),
    PageAction("click", "Click an element.", {"selector": _SELECTOR}, _click, facts=_CHANGES),
    PageAction(
        "fill", "Fill a text field.", {"selector": _SELECTOR, "text": _TEXT}, _fill, facts=_CHANGES
    ),
    PageAction(
        "select_option",
        "Choose an option of a list.",
        {"selector": _SELECTOR, "value": _TEXT},
        _select,
        facts=_CHANGES,
    ),
    PageAction(
        "press_key",
        "Press a key, such as Enter, in an element.",
        {"selector": _SELECTOR, "key": _TEXT},
        _press,
        facts=_CHANGES,
    ),
)
"""What a model can do in a page, where the program states nothing else."""
