"""LangChain tools under governance: the same object, of a subclass of its class, so that every way in is governed.

``batch``, ``prompt | tool``, ``with_retry``, ``with_config``, ``model_copy``, pickle and ``deepcopy`` all end in the
tool's own ``run``/``arun`` and ``_run``/``_arun``; a proxy around the object would be bypassed by most of them. The
outer pair notes the call id and the raw input, the inner pair decides, after LangChain's own validation and injection.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

import wrapt
from langchain_core.messages import ToolMessage
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import BaseTool, StructuredTool, Tool, ToolException

from agenttool_otel.catalog import GovernOptions, ToolSpec, declare
from agenttool_otel.context import current_context
from agenttool_otel.drivers import arun, run
from agenttool_otel.envelope import outcome_of, to_result
from agenttool_otel.errors import ConfigurationError, ToolDenied
from agenttool_otel.integrations.langchain_schema import model_schema
from agenttool_otel.invocation import Invocation
from agenttool_otel.names import Outcome
from agenttool_otel.pipeline import Target
from agenttool_otel.records import ExternalMapping
from agenttool_otel.records.values import snapshot, to_json_value
from agenttool_otel.tool import GovernedTool

if TYPE_CHECKING:
    from agenttool_otel.governor import Governor

__all__ = ["LangChainToolDenied", "govern_in_place", "govern_tool", "is_governed", "refusal"]

_METADATA_KEY = "agenttool"
"""``tool.metadata["agenttool"]`` may state the facts of a tool that somebody else wrote."""

_PLUMBING = ("run_manager", "config", "callbacks")


class LangChainToolDenied(ToolException, ToolDenied):
    """A refusal of a tool that was called without a tool call id, so that no ToolMessage can carry it.

    It is a ToolException, so ``handle_tool_error`` sees it, and a ToolDenied, so that it is as typed as elsewhere.
    """


@dataclass(slots=True)
class _Entry:
    """What ``run`` knows and ``_run`` does not."""

    call_id: str | None
    raw: Any
    reached: bool = False


_entry: contextvars.ContextVar[_Entry | None] = contextvars.ContextVar("agenttool_langchain_entry", default=None)


def is_governed(tool: Any) -> bool:
    """Tell whether a tool object is governed already.

    Args:
        tool: a tool.
    """
    return isinstance(getattr(type(tool), "agenttool", None), GovernedTool)


def govern_tool(tool: BaseTool, governor: Governor | None, options: GovernOptions) -> BaseTool:
    """Return a governed copy of a LangChain tool; the given object stays as it was.

    Args:
        tool: the tool.
        governor: the Governor; ``None`` for the default one.
        options: facts of the tool; they win over ``tool.metadata["agenttool"]``.

    Raises:
        ConfigurationError: the tool is governed already and further facts are stated.
    """
    if is_governed(tool):
        if options:
            raise ConfigurationError("this tool is governed already; state its facts in one place")
        return tool
    copy = tool.model_copy()
    govern_in_place(copy, governor, options)
    return copy


def govern_in_place(tool: BaseTool, governor: Governor | None, options: GovernOptions) -> None:
    """Put the very object under governance by giving it a governed subclass of its class.

    Args:
        tool: the tool.
        governor: the Governor; ``None`` for the default one.
        options: facts of the tool.
    """
    if is_governed(tool):
        return
    spec = declare_langchain(tool, options)
    is_async = isinstance(tool, StructuredTool) and tool.coroutine is not None
    handle = GovernedTool(spec, tool.invoke, governor=governor, is_async=is_async, streams=False)
    handle.register()
    object.__setattr__(tool, "__class__", _governed_class(type(tool), handle, options, _has_arun(tool)))


def declare_langchain(tool: BaseTool, options: GovernOptions) -> ToolSpec:
    """Declare a LangChain tool from what it says of itself and what was stated.

    Args:
        tool: the tool.
        options: facts; they win over ``tool.metadata["agenttool"]``.
    """
    stated: dict[str, Any] = {}
    if isinstance(tool.metadata, dict) and isinstance(tool.metadata.get(_METADATA_KEY), dict):
        stated.update(tool.metadata[_METADATA_KEY])
    stated.update(options)
    return declare(
        cast(GovernOptions, stated),
        name=tool.name,
        namespace="langchain",
        description=tool.description or tool.name,
        parameters=None,
        schema=model_schema(tool),
        is_async=_has_arun(tool),
        streams=False,
        mappings=(ExternalMapping(source="langchain", tool_name=tool.name, tool_class=type(tool).__qualname__),),
    )


def _has_arun(tool: BaseTool) -> bool:
    if isinstance(tool, (StructuredTool, Tool)):
        return tool.coroutine is not None
    return type(tool)._arun is not BaseTool._arun


def _governed_class(
    base: type[BaseTool], handle: GovernedTool, options: GovernOptions, has_arun: bool
) -> type[BaseTool]:
    """Make the governed subclass; ``_run`` and ``_arun`` keep their signatures, which LangChain reads for injection."""

    def _invoke_run(self: Any, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        with _entered(handle, kwargs.get("tool_call_id"), tool_input):
            return super(governed, self).run(tool_input, *args, **kwargs)

    async def _invoke_arun(self: Any, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        with _entered(handle, kwargs.get("tool_call_id"), tool_input):
            return await super(governed, self).arun(tool_input, *args, **kwargs)

    @wrapt.decorator
    def guard(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        call, target, governor = _plan(handle, instance, wrapped, args, kwargs, is_async=False)
        said = perform(call, target, governor)
        return _deliver(call, instance, said)

    @wrapt.decorator
    async def aguard(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        call, target, governor = _plan(handle, instance, wrapped, args, kwargs, is_async=True)
        said = await aperform(call, target, governor)
        return _deliver(call, instance, said)

    def reduce(self: Any, protocol: Any = 2) -> Any:
        plain = BaseTool.model_copy(self)
        object.__setattr__(plain, "__class__", base)
        return govern_tool, (plain, None, options)

    namespace: dict[str, Any] = {
        "__module__": base.__module__,
        "__qualname__": base.__qualname__,
        "__doc__": base.__doc__,
        "__annotations__": {"agenttool": ClassVar[Any]},
        "agenttool": handle,
        "run": _invoke_run,
        "arun": _invoke_arun,
        "_run": guard(base._run),
        "__reduce_ex__": reduce,
    }
    if has_arun:  # otherwise keep the inherited one: LangChain compares identities to find out what a tool can do
        namespace["_arun"] = aguard(base._arun)
    governed: type[BaseTool] = type(base.__name__, (base,), namespace)
    return governed


@contextmanager
def _entered(handle: GovernedTool, call_id: str | None, raw: Any) -> Iterator[None]:
    """Note what ``_run`` can't see, and leave a span even when LangChain refuses the arguments before it."""
    entry = _Entry(call_id, raw)
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


# --- one call --------------------------------------------------------------------------------------------------------


def _plan(
    handle: GovernedTool, tool: BaseTool, body: Callable[..., Any], args: Any, kwargs: Any, *, is_async: bool
) -> tuple[Invocation, Target, Governor]:
    entry = _entry.get()
    if entry is not None:
        entry.reached = True
    governor = handle.governor
    call = Invocation(
        handle.spec, governor.effective(current_context()), native_call_id=entry.call_id if entry is not None else None
    )
    call.call_args, call.call_kwargs = args, kwargs
    raw = entry.raw if entry is not None else None

    def bind(call: Invocation) -> None:
        injected = {*tool._injected_args_keys, *_PLUMBING}
        visible = {name: value for name, value in kwargs.items() if name not in injected}
        names = list(handle.spec.check.schema.get("properties", {}))
        visible.update(zip(names, args, strict=False))
        call.bound = call.call_kwargs = {**kwargs, **{k: snapshot(v) for k, v in visible.items() if k in kwargs}}
        normal = to_json_value(visible)
        received = (
            to_json_value({k: v for k, v in raw.items() if k not in injected}) if isinstance(raw, dict) else normal
        )
        call.model_input = received if isinstance(received, dict) else {}
        call.observable_input = normal if isinstance(normal, dict) else {}
        call.validated = True  # LangChain has just done it, with injection and coercion that a schema can't express

    def rebind(call: Invocation, before: dict[str, Any], after: dict[str, Any]) -> None:
        parsed = tool._parse_input(after, call.native_call_id)
        if isinstance(parsed, str) or args:
            call.call_args = (next(iter(after.values()), ""),)
            return
        kept = {name: value for name, value in kwargs.items() if name not in before}
        call.bound = call.call_kwargs = {**parsed, **kept}

    unwrap = _first if tool.response_format == "content_and_artifact" else _content
    return call, Target(body, bind, rebind, is_async=is_async, unwrap=unwrap), governor


def _first(value: Any) -> Any:
    return _content(value[0]) if isinstance(value, tuple) and len(value) == 2 else value


def _content(value: Any) -> Any:
    return value.content if isinstance(value, ToolMessage) else value


def _deliver(call: Invocation, tool: BaseTool, said: str | None) -> Any:
    if call.exception is not None:
        raise call.exception
    if not call.ran:
        return _refuse(call, tool, said)
    value, shown = call.value, call.model_value
    pair = tool.response_format == "content_and_artifact" and isinstance(value, tuple) and len(value) == 2
    content, artifact = value if pair else (value, None)
    if shown is _content(content):
        return value
    if isinstance(content, ToolMessage):
        shown = content.model_copy(update={"content": shown})
    # what was redacted or cut for the model must not come back through the artifact when a policy obliged it
    obliged = call.verdict is not None and bool(call.verdict.redact_result or call.spec.redact_result)
    return (shown, None if obliged else artifact) if pair else shown


def _refuse(call: Invocation, tool: BaseTool, said: str | None) -> Any:
    if call.native_call_id is None:
        outcome = outcome_of(call)
        denied = LangChainToolDenied(
            str(outcome),
            result=outcome.result,
            decision=outcome.decision,
            error_class=outcome.error_class,
            invocation_id=call.id,
        )
        raise outcome if not isinstance(outcome, ToolDenied) else denied
    message = refusal(call, tool.name, said)
    return (message, None) if tool.response_format == "content_and_artifact" else message


def refusal(call: Invocation, name: str, said: str | None = None) -> ToolMessage:
    """Make the message that tells a model why its call did not run; the envelope travels as its artifact.

    Args:
        call: the call.
        name: the tool's name.
        said: what a person answered in the tool's place; the model gets it as the answer.
    """
    result = to_result(call)
    lines = [result.summary or f"{name} did not run"]
    if said is not None:
        lines = [said]
    elif call.outcome is Outcome.PENDING:
        lines.append("It did not run: the approval can't be waited for here. Do not call it again until it is given.")
    for alternative in call.verdict.alternatives if call.verdict is not None else ():
        lines.append(f"Call {alternative.get('tool')} with {alternative.get('arguments')} instead.")
    return ToolMessage(
        content="\n".join(lines),
        tool_call_id=call.native_call_id or "",
        name=name,
        status="error" if said is None else "success",
        artifact=result.to_json_object(),
    )


def _record_invalid(handle: GovernedTool, entry: _Entry) -> None:
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
