"""The shapes of calls of LangChain tools that both ways are compared on."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from langchain_core.callbacks import CallbackManagerForToolRun
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool, ToolException
from straight_shapes import BODIES, TOOLS, unusual_parts
from two_ways import World

SECRET: Final = "x7Gq" + "-not-a-known-shape"

ACTS: Final[dict[str, Callable[[World], Any]]] = {
    **BODIES,
    "raises a ToolException": lambda world: _fail(ToolException("no such thing")),
    "quotes what was injected": lambda world: _fail(ValueError(f"refused: {SECRET}")),
    "gives a pair": lambda world: ("done", {"rows": [1, 2]}),
}

ARGUMENTS: Final[dict[str, Any]] = {
    "one": {"value": "a"},
    "both": {"value": "a", "limit": 3},
    "coerced": {"value": "a", "limit": "3"},
    "a text": "a",
    "none": {},
    "unknown": {"value": "a", "other": 1},
    "another type": {"value": 7},
    "a list": {"value": ["a"]},
    "a fraction": {"value": "a", "limit": 2.5},
    "beyond ASCII": {"value": "für"},
    "quoting": {"value": "the tool only reads"},
    "a path": {"value": "/tmp/a.txt"},
    "a secret path": {"value": "/home/ann/.ssh/id_rsa"},
    "a choice of the config": {"value": "a", "config": None},
    "an injected one": {"value": "a", "token": "mine"},
}


def _fail(error: BaseException) -> Any:
    raise error


@dataclass(frozen=True)
class LangChainShape:
    """One shape of a call, by the names of its parts."""

    form: str = "structured"
    body: str = "gives a text"
    arguments: str = "one"
    tool: str = "plain"
    door: str = "invoke"
    settings: str = "usual"

    def __str__(self) -> str:
        return unusual_parts(self)

    def make(self, world: World) -> Callable[[], Any]:
        """Return what makes the call in a world.

        Args:
            world: the world.
        """
        act = functools.partial(ACTS[self.body], world)
        tool: Any = world.governor.govern(FORMS[self.form](act), **TOOLS[self.tool])
        return functools.partial(DOORS[self.door], world, tool, ARGUMENTS[self.arguments])


def _structured(act: Callable[[], Any], **options: Any) -> BaseTool:
    def tool(value: str, limit: int = 5) -> Any:
        """Do something."""
        return act()

    return StructuredTool.from_function(tool, **options)


def _both(act: Callable[[], Any]) -> BaseTool:
    async def coroutine(value: str, limit: int = 5) -> Any:
        """Do something."""
        await asyncio.sleep(0)
        return act()

    return _structured(act, coroutine=coroutine)


def _injected(act: Callable[[], Any]) -> BaseTool:
    def tool(
        value: str, config: RunnableConfig, token: Annotated[str, InjectedToolArg] = SECRET
    ) -> Any:
        """Do something."""
        return act()

    return StructuredTool.from_function(tool)


class Written(BaseTool):
    """A tool that is a class of its own."""

    name: str = "tool"
    description: str = "Do something."
    act: Any = None

    def _run(
        self, value: str, limit: int = 5, run_manager: CallbackManagerForToolRun | None = None
    ) -> Any:
        return self.act()


def _by_json_schema(act: Callable[[], Any]) -> BaseTool:
    schema = {
        "type": "object",
        "properties": {"value": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["value"],
    }
    return StructuredTool(
        name="tool", description="Do something.", args_schema=schema, func=lambda **given: act()
    )


FORMS: Final[Mapping[str, Callable[[Callable[[], Any]], BaseTool]]] = {
    "structured": _structured,
    "with a coroutine": _both,
    "written": lambda act: Written(act=act),
    "injected": _injected,
    "by a JSON schema": _by_json_schema,
    "with an artifact": functools.partial(_structured, response_format="content_and_artifact"),
    "with handled errors": functools.partial(_structured, handle_tool_error=True),
    "with handled refusals": functools.partial(_structured, handle_validation_error=True),
}


def _call(arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call", "id": "call_1", "name": "tool", "args": arguments}


async def _with_retry(tool: Any, arguments: Any) -> Any:
    return await tool.with_retry(stop_after_attempt=2, wait_exponential_jitter=False).ainvoke(
        arguments
    )


DOORS: Final[dict[str, Callable[[World, Any, Any], Any]]] = {
    "invoke": lambda world, tool, arguments: tool.invoke(arguments),
    "ainvoke": lambda world, tool, arguments: world.runner.run(tool.ainvoke(arguments)),
    "a tool call": lambda world, tool, arguments: tool.invoke(_call(arguments)),
    "an awaited tool call": lambda world, tool, arguments: world.runner.run(
        tool.ainvoke(_call(arguments))
    ),
    "a config": lambda world, tool, arguments: tool.invoke(
        arguments, config={"tags": ["a"], "metadata": {"b": 1}, "run_name": "named"}
    ),
    "run": lambda world, tool, arguments: tool.run(arguments),
    "batch": lambda world, tool, arguments: tool.batch([arguments]),
    "a retry": lambda world, tool, arguments: world.runner.run(_with_retry(tool, arguments)),
    "its function": lambda world, tool, arguments: tool.func(**arguments),
}

_BODIES: Final = (
    "gives a text",
    "gives nothing",
    "gives a dict",
    "gives a date",
    "gives a long text",
    "gives a failure of MCP",
    "raises builtins.ValueError",
    "raises builtins.KeyboardInterrupt",
    "raises asyncio.exceptions.CancelledError",
    "looks at its handle",
    "describes itself",
    "reports progress",
    "makes a governed call",
    "is canceled and stops",
    "raises a ToolException",
)


def langchain_shapes() -> Iterator[LangChainShape]:
    """Yield every shape that is compared, each once."""
    seen: dict[LangChainShape, None] = {}
    for body in _BODIES:
        for door in ("invoke", "a tool call"):
            seen[LangChainShape(body=body, door=door)] = None
        # an interrupt ends the event loop around LangChain's task, and its call with the process
        if body != "raises builtins.KeyboardInterrupt":
            seen[LangChainShape(body=body, form="with a coroutine", door="ainvoke")] = None
    for form in FORMS:
        for body in ("gives a text", "gives a pair", "raises a ToolException"):
            for door in ("invoke", "an awaited tool call"):
                seen[LangChainShape(form=form, body=body, door=door)] = None
        for arguments in ARGUMENTS:
            seen[LangChainShape(form=form, arguments=arguments, door="a tool call")] = None
    for door in DOORS:
        for body in ("gives a text", "raises builtins.ValueError"):
            seen[LangChainShape(door=door, body=body)] = None
    for tool in ("path", "open world", "asked about", "sensitive argument", "redacted result"):
        for door in ("invoke", "a tool call"):
            seen[LangChainShape(tool=tool, door=door)] = None
            seen[LangChainShape(tool=tool, door=door, arguments="a secret path")] = None
    for settings in ("unsampled", "captured", "enriched", "hooks", "short results", "shadow"):
        for body in ("gives a text", "raises builtins.ValueError"):
            seen[LangChainShape(settings=settings, body=body)] = None
    seen[LangChainShape(form="injected", body="quotes what was injected")] = None
    yield from seen
