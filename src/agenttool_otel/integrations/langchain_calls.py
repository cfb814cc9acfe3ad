"""One call of a governed LangChain tool: what LangChain's outer methods know of it, its arguments, and its run."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import BaseTool

from agenttool_otel.context import current_context
from agenttool_otel.drivers import arun, run
from agenttool_otel.errors import ToolDenied
from agenttool_otel.integrations.langchain_arguments import Arguments, Entry
from agenttool_otel.integrations.langchain_results import content_of, first_of
from agenttool_otel.invocation import Invocation
from agenttool_otel.pipeline import Target
from agenttool_otel.records.values import to_json_value
from agenttool_otel.tool import GovernedTool

if TYPE_CHECKING:
    from agenttool_otel.governor import Governor

__all__ = ["aperform", "entered", "perform", "plan"]

_entry: contextvars.ContextVar[Entry | None] = contextvars.ContextVar("agenttool_langchain_entry", default=None)


@contextmanager
def entered(handle: GovernedTool, tool: BaseTool, raw: Any, known: Mapping[str, Any]) -> Iterator[None]:
    """Note what ``_run`` can't see, and leave a span even when LangChain refuses the arguments before it.

    Args:
        handle: the governed tool.
        tool: the tool object.
        raw: the input before LangChain's validation.
        known: the keywords of ``run``.
    """
    entry = Entry(tool, known.get("tool_call_id"), raw, known.get("config"))
    token = _entry.set(entry)
    try:
        yield
    finally:
        _entry.reset(token)
        if not entry.reached:
            _record_invalid(handle, entry)


def perform(call: Invocation, target: Target, governor: Governor) -> str | None:
    """Run a call; inside a LangGraph run with a checkpointer an ask pauses the graph (``integrations.langgraph``).

    Args:
        call: the call, planned.
        target: what it runs.
        governor: the Governor.

    Returns:
        What a person answered in the tool's place, if somebody did.
    """
    if _in_graph():
        from agenttool_otel.integrations.langgraph import run_call

        return run_call(call, target, governor)
    run(call, governor.pipeline.run(call, target), governor)
    return None


async def aperform(call: Invocation, target: Target, governor: Governor) -> str | None:
    """The same without blocking the event loop.

    Args:
        call: the call, planned.
        target: what it runs.
        governor: the Governor.

    Returns:
        What a person answered in the tool's place, if somebody did.
    """
    if _in_graph():
        from agenttool_otel.integrations.langgraph import arun_call

        return await arun_call(call, target, governor)
    await arun(call, governor.pipeline.run(call, target), governor)
    return None


def _in_graph() -> bool:
    config = var_child_runnable_config.get()
    return config is not None and "__pregel_scratchpad" in (config.get("configurable") or ())


def plan(
    handle: GovernedTool, tool: BaseTool, body: Callable[..., Any], args: Any, kwargs: Any, *, is_async: bool
) -> tuple[Invocation, Target, Governor]:
    """Plan a call that LangChain has validated already.

    Args:
        handle: the governed tool.
        tool: the tool object.
        body: its ``_run`` or ``_arun``, bound.
        args: what LangChain gives it by position.
        kwargs: and by name, with what it injects.
        is_async: whether the body is awaited.

    Returns:
        The call, what it runs, and the Governor in charge.
    """
    entry = _entry.get()
    if entry is not None and entry.tool is not tool:
        entry = None  # another tool's, whose body calls this one's directly
    governor = handle.governor
    call = Invocation(
        handle.spec, governor.effective(current_context()), native_call_id=entry.call_id if entry is not None else None
    )
    call.call_args, call.call_kwargs = args, kwargs
    arguments = Arguments(handle.spec, tool, body, args, kwargs, entry)
    if entry is not None:
        entry.reached = True
    unwrap = first_of if tool.response_format == "content_and_artifact" else content_of
    return call, Target(body, arguments.bind, arguments.rebind, is_async=is_async, unwrap=unwrap), governor


def _record_invalid(handle: GovernedTool, entry: Entry) -> None:
    """Leave the span of a call whose arguments LangChain refused before it came to a decision."""
    governor = handle.governor
    call = Invocation(handle.spec, governor.effective(current_context()), native_call_id=entry.call_id)

    def bind(call: Invocation) -> None:
        raw = to_json_value(entry.raw)
        call.model_input = raw if isinstance(raw, dict) else {}
        raise ValueError("LangChain's own validation refused the arguments")

    def unused(call: Invocation, before: dict[str, Any], after: dict[str, Any]) -> None:
        raise ValueError("nothing to change")

    run(call, governor.pipeline.run(call, Target(_never, bind, unused)), governor)


def _never(*args: Any, **kwargs: Any) -> Any:
    raise ToolDenied("arguments were refused before the decision")
