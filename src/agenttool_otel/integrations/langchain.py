"""LangChain tools under governance: the same object, of a subclass of its class, so that every way in is governed.

``batch``, ``prompt | tool``, ``with_retry``, ``with_config``, ``model_copy``, pickle and ``deepcopy`` all end in the
tool's own ``run``/``arun`` and ``_run``/``_arun``; a proxy around the object would be bypassed by most of them. The
outer pair notes the call id and the raw input, the inner pair decides, after LangChain's own validation and injection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import wrapt
from langchain_core.tools import BaseTool, StructuredTool, Tool

from agenttool_otel.catalog import GovernOptions, ToolSpec, declare
from agenttool_otel.decorators import refuse_pickle
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.integrations.langchain_calls import aperform, entered, perform, plan
from agenttool_otel.integrations.langchain_doors import defining_class, refuse_own_doors
from agenttool_otel.integrations.langchain_handle import LangChainHandle
from agenttool_otel.integrations.langchain_results import LangChainToolDenied, deliver
from agenttool_otel.integrations.langchain_schema import model_schema
from agenttool_otel.records import ExternalMapping
from agenttool_otel.tool import GovernedTool

if TYPE_CHECKING:
    from agenttool_otel.governor import Governor

__all__ = ["LangChainToolDenied", "declare_langchain", "govern_in_place", "govern_tool", "is_governed"]


def is_governed(tool: Any) -> bool:
    """Tell whether a tool object is governed already.

    Args:
        tool: a tool.
    """
    return isinstance(type(tool).__dict__.get("agenttool"), GovernedTool)


def govern_tool(tool: BaseTool, governor: Governor | None, options: GovernOptions) -> BaseTool:
    """Return a governed copy of a LangChain tool; the given object stays as it was.

    Args:
        tool: the tool.
        governor: the Governor; ``None`` for the default one.
        options: facts of the tool.

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

    Raises:
        ConfigurationError: a fact can't be used, or the tool's class replaces LangChain's own ``invoke`` or ``run``.
    """
    if is_governed(tool):
        return
    refuse_own_doors(type(tool))
    spec = declare_langchain(tool, options)
    is_async = isinstance(tool, StructuredTool) and tool.coroutine is not None
    handle = LangChainHandle(spec, tool.invoke, governor=governor, is_async=is_async, streams=False)
    handle.register()
    object.__setattr__(tool, "__class__", _governed_class(type(tool), handle, options))


def declare_langchain(tool: BaseTool, options: GovernOptions) -> ToolSpec:
    """Declare a LangChain tool: its name, description and schema are its own, its facts are those that the host states.

    Args:
        tool: the tool.
        options: facts.
    """
    return declare(
        options,
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
    return defining_class(type(tool), "_arun") is not BaseTool


def _governed_class(base: type[BaseTool], handle: GovernedTool, options: GovernOptions) -> type[BaseTool]:
    """Make the governed subclass; ``_run`` and ``_arun`` keep their signatures, which LangChain reads for injection."""

    may_delegate = defining_class(base, "_arun") in (StructuredTool, Tool)

    def _invoke_run(self: Any, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        with entered(handle, self, tool_input, kwargs):
            return super(governed, self).run(tool_input, *args, **kwargs)

    async def _invoke_arun(self: Any, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        with entered(handle, self, tool_input, kwargs):
            return await super(governed, self).arun(tool_input, *args, **kwargs)

    @wrapt.decorator
    def guard(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        call, target, governor = plan(handle, instance, wrapped, args, kwargs, is_async=False)
        said = perform(call, target, governor)
        return deliver(call, instance, governor, said)

    @wrapt.decorator
    async def aguard(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        if may_delegate and not instance.coroutine:
            return await wrapped(*args, **kwargs)  # ends in this object's ``_run``, which decides
        call, target, governor = plan(handle, instance, wrapped, args, kwargs, is_async=True)
        said = await aperform(call, target, governor)
        return deliver(call, instance, governor, said)

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
    if (
        defining_class(base, "_arun") is not BaseTool
    ):  # else keep it: LangChain tells by its identity what a tool can do
        namespace["_arun"] = aguard(base._arun)
    governed: type[BaseTool] = type(base.__name__, (base,), namespace)
    return governed
