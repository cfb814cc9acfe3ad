"""LangChain tools under governance: the same object, of a subclass of its class, so that every way in is governed.

``batch``, ``prompt | tool``, ``with_retry``, ``with_config``, ``model_copy``, pickle and ``deepcopy`` all end in the
tool's own ``run``/``arun`` and ``_run``/``_arun``; a proxy around the object would be bypassed by most of them. The
outer pair notes the call id and the raw input, the inner pair decides, after LangChain's own validation and injection.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, ClassVar, cast

import wrapt
from langchain_core.tools import BaseTool, StructuredTool, Tool
from langchain_core.utils.function_calling import convert_to_openai_tool

from agenttool_otel.call.binding import bind_json, rebind_python
from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.target import Target
from agenttool_otel.call.tool import GovernedTool
from agenttool_otel.catalog import GovernOptions, ToolSource, ToolSpec, declare
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.govern.decorators import refuse_pickle
from agenttool_otel.integrations.langchain.calls import ToolCall, entered
from agenttool_otel.integrations.langchain.known_tools import known_facts
from agenttool_otel.integrations.langchain.methods import defining_class, refuse_replaced_methods
from agenttool_otel.records import ExternalMapping

if TYPE_CHECKING:
    from agenttool_otel.govern.governor import Governor


class LangChainHandle(GovernedTool):
    """What is known of a LangChain tool; it checks calls, and leaves running them to the tool object.

    LangChain's validation, injection and callbacks are on the way to the tool's body, so a call of JSON arguments that
    starts here would either go round them or be governed a second time on its way.
    """

    __slots__ = ()

    def json_target(self, *, preflight: bool = False) -> Target:
        """Return what a JSON call checks; one that would run is refused before anything is decided or claimed."""
        return Target(self.function, _bind, rebind_python, is_async=self.is_async)


def _bind(call: Invocation) -> None:
    if not call.preflight:
        raise TypeError(
            f"{call.spec.name} is a LangChain tool: call the tool object; an approved call of it goes on in the "
            "process that asked, or in its LangGraph thread"
        )
    bind_json(call)


def is_governed(tool: Any) -> bool:
    """Tell whether a tool object is governed already."""
    return isinstance(type(tool).__dict__.get("agenttool"), GovernedTool)


def handle_of(tool: Any) -> GovernedTool:
    """Return the handle of a governed tool object."""
    return cast(GovernedTool, type(tool).__dict__["agenttool"])


def govern_tool(tool: BaseTool, governor: Governor | None, options: GovernOptions) -> BaseTool:
    """Return a governed copy of a LangChain tool; the given object stays as it was."""
    if is_governed(tool):
        if options:
            raise ConfigurationError("this tool is governed already; state its facts in one place")
        return tool
    copy = tool.model_copy()
    govern_in_place(copy, governor, options)
    return copy


def govern_in_place(tool: BaseTool, governor: Governor | None, options: GovernOptions) -> None:
    """Put the very object under governance by giving it a governed subclass of its class."""
    if is_governed(tool):
        return
    refuse_replaced_methods(type(tool))
    spec = declare_langchain(tool, options)
    is_async = isinstance(tool, StructuredTool) and tool.coroutine is not None
    handle = LangChainHandle(spec, tool.invoke, governor=governor, is_async=is_async, streams=False)
    handle.register()
    object.__setattr__(tool, "__class__", _governed_class(type(tool), handle, options))


def declare_langchain(tool: BaseTool, options: GovernOptions) -> ToolSpec:
    """Declare a LangChain tool: name, description and schema are its own, facts the host's and the reviewed ones."""
    stated = cast(GovernOptions, {**known_facts(tool), **options})
    mapping = ExternalMapping(source="langchain", tool_name=tool.name, tool_class=type(tool).__qualname__)
    source = ToolSource(
        name=tool.name,
        namespace="langchain",
        description=tool.description or tool.name,
        schema=model_schema(tool),
        is_async=_has_arun(tool),
        mappings=(mapping,),
    )
    return declare(stated, source)


def _has_arun(tool: BaseTool) -> bool:
    if isinstance(tool, (StructuredTool, Tool)):
        return tool.coroutine is not None
    return defining_class(type(tool), "_arun") is not BaseTool


def _governed_class(base: type[BaseTool], handle: GovernedTool, options: GovernOptions) -> type[BaseTool]:
    """Make the governed subclass; ``_run`` and ``_arun`` keep their signatures, which LangChain reads for injection."""

    may_delegate = defining_class(base, "_arun") in (StructuredTool, Tool)
    runs_function = defining_class(base, "_run") in (StructuredTool, Tool)

    def _invoke_run(self: Any, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        with entered(handle, self, tool_input, kwargs):
            return super(governed, self).run(tool_input, *args, **kwargs)

    async def _invoke_arun(self: Any, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        with entered(handle, self, tool_input, kwargs):
            return await super(governed, self).arun(tool_input, *args, **kwargs)

    @wrapt.decorator
    def guard(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        body = inspect.unwrap(base._run).__get__(_ungoverned(instance, base)) if runs_function else wrapped
        return ToolCall(handle, instance, wrapped, args, kwargs).run(body)

    @wrapt.decorator
    async def aguard(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        if may_delegate and not instance.coroutine:
            return await wrapped(*args, **kwargs)  # ends in this object's ``_run``, which decides
        body = inspect.unwrap(base._arun).__get__(_ungoverned(instance, base)) if may_delegate else wrapped
        return await ToolCall(handle, instance, wrapped, args, kwargs).arun(body)

    def refuse_subclass(cls: type, /, **kwargs: Any) -> None:
        # a body of its own would be under the name of this handle, and decided by nobody
        raise ConfigurationError(
            f"{base.__qualname__} is governed here: subclass its own class, and govern the objects"
        )

    def reduce(self: Any, protocol: Any = 2) -> Any:
        refuse_pickle(handle)
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
        "__init_subclass__": refuse_subclass,
        "__reduce_ex__": reduce,
    }
    # BaseTool's own is kept: LangChain tells by its identity what a tool can do
    if defining_class(base, "_arun") is not BaseTool:
        namespace["_arun"] = aguard(base._arun)
    governed: type[BaseTool] = type(base.__name__, (base,), namespace)
    for name in ("func", "coroutine"):
        if name in base.model_fields and runs_function:
            setattr(governed, name, _governed_function(handle, name))  # pydantic takes no property for a field before
    return governed


def _ungoverned(tool: BaseTool, base: type[BaseTool]) -> BaseTool:
    """Return a view of a tool in which LangChain's own body finds the function itself, not the governed one.

    The body is unwrapped, too: an instrumentor would govern the view."""
    plain = object.__new__(base)
    object.__setattr__(plain, "__dict__", tool.__dict__)
    for name in ("__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__"):
        object.__setattr__(plain, name, object.__getattribute__(tool, name))
    return plain


def _governed_function(handle: GovernedTool, name: str) -> property:
    """Return the property that hands out a tool's function under governance: people call ``tool.func`` in tests."""

    def read(self: Any) -> Any:
        if (function := self.__dict__.get(name)) is None:
            return None

        @wrapt.decorator
        def guard(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
            return ToolCall(handle, self, wrapped, args, kwargs).run(wrapped)

        @wrapt.decorator
        async def aguard(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
            return await ToolCall(handle, self, wrapped, args, kwargs).arun(wrapped)

        return (aguard if name == "coroutine" else guard)(function)

    def write(self: Any, function: Any) -> None:
        self.__dict__[name] = function

    return property(read, write)


def model_schema(tool: BaseTool) -> dict[str, Any]:
    """Return the schema that a model sees of a tool."""
    schema: Any = tool.tool_call_schema
    if isinstance(schema, dict):
        return dict(schema)
    try:
        made = schema.model_json_schema()
    except Exception:
        made = convert_to_openai_tool(tool)["function"].get("parameters", {"type": "object"})
    return {key: value for key, value in made.items() if key not in {"title", "description"}}
