"""LangChain tools under governance: the same object, of a subclass of its class, so that every way
in is governed.

``batch``, ``prompt | tool``, ``with_retry``, ``with_config``, ``model_copy``, pickle and
``deepcopy`` all end in the tool's own ``run``/``arun`` and ``_run``/``_arun``; a proxy around the
object would be bypassed by most of them. The outer pair notes the call id and the raw input, the
inner pair decides, after LangChain's own validation and injection.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, cast

import wrapt
from langchain_core.tools import BaseTool, StructuredTool, Tool
from langchain_core.utils.function_calling import convert_to_openai_tool

from agenttool_otel.call.runtime import build_default_with
from agenttool_otel.call.tool import GovernedTool
from agenttool_otel.catalog import GovernOptions, ToolSource, ToolSpec, declare
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.govern.default import from_environment
from agenttool_otel.govern.governed import GovernedFunction, governed_inside, refuse_pickle
from agenttool_otel.integrations.langchain.calls import LangChainHandle, ToolCall, entered
from agenttool_otel.integrations.langchain.first_use import BASE, base_of
from agenttool_otel.integrations.langchain.known_tools import known_facts
from agenttool_otel.integrations.langchain.methods import (
    BODY_METHODS,
    CALL,
    ENTRY_METHODS,
    FUNCTIONS,
    defining_class,
    field_of,
    has_own_call,
    own_lookup,
    pinned_methods,
    refuse_replaced_methods,
)
from agenttool_otel.records import ExternalMapping

if TYPE_CHECKING:
    from agenttool_otel.govern.governor import Governor


build_default_with(from_environment)  # an instrumentor imports no more of the package than this


def is_governed(tool: Any) -> bool:
    """Tell whether a tool object is governed already."""
    return isinstance(type(tool).__dict__.get("agenttool"), GovernedTool)


def is_governed_by_host(tool: Any) -> bool:
    """Tell whether a tool object is governed by somebody who named it, not by an instrumentor that
    governs them all.
    """
    return is_governed(tool) and not getattr(handle_of(tool), "automatic", False)


def handle_of(tool: Any) -> GovernedTool:
    """Return the handle of a governed tool object."""
    return cast(GovernedTool, type(tool).__dict__["agenttool"])


def govern_tool(tool: BaseTool, governor: Governor | None, options: GovernOptions) -> BaseTool:
    """Return a governed copy of a LangChain tool; the given object stays as it was."""
    if is_governed_by_host(tool):
        if options:
            raise ConfigurationError("this tool is governed already; state its facts in one place")
        return tool
    copy = tool.model_copy()
    govern_in_place(copy, governor, options)
    return copy


def govern_in_place(
    tool: BaseTool, governor: Governor | None, options: GovernOptions, *, automatic: bool = False
) -> None:
    """Put the very object under governance by giving it a governed subclass of its class.

    Args:
        tool: the tool.
        governor: the Governor; ``None`` for the default one, or that of a governed function which
          is the tool's body.
        options: facts of the tool.
        automatic: whether an instrumentor does it.
    """
    if is_governed_by_host(tool) or (automatic and is_governed(tool)):
        return
    base = base_of(tool)
    refuse_replaced_methods(base)
    spec, inside, governor = declare_whole(tool, governor, options, automatic=automatic)
    is_async = isinstance(tool, StructuredTool) and field_of(tool, "coroutine") is not None
    handle = LangChainHandle(spec, tool.invoke, governor=governor, is_async=is_async, streams=False)
    handle.inside, handle.automatic = inside, automatic
    handle.register()
    object.__setattr__(tool, "__class__", _governed_class(base, handle, options))


class Declared(NamedTuple):
    """A tool object as it is decided."""

    spec: ToolSpec
    inside: tuple[GovernedTool, ...]  # governed functions that are its body, and one call with it
    governor: Governor | None  # ``None`` for the default one


def declare_whole(
    tool: BaseTool, governor: Governor | None, options: GovernOptions, *, automatic: bool = False
) -> Declared:
    """Declare a tool object; a governed function that is its body is one call with it, where the
    two agree.
    """
    inside = tuple(body.tool for body in governed_bodies(tool))
    if inside:
        stated = _joined(
            [body.options for body in governed_bodies(tool)], options, automatic=automatic
        )
        in_charge = _common_governor(inside, governor, automatic=automatic)
        if stated is not None and in_charge is not _NOBODY:
            with suppress(
                ConfigurationError
            ):  # a function's facts need not fit the tool's schema: each is decided then
                return Declared(declare_langchain(tool, stated), inside, in_charge)
    return Declared(declare_langchain(tool, options), (), governor)


def governed_bodies(tool: BaseTool) -> tuple[GovernedFunction, ...]:
    """Return the governed functions that do a tool's work."""
    bodies = [field_of(tool, name) for name in FUNCTIONS if name in type(tool).model_fields]
    bodies += [getattr(base_of(tool), name) for name in BODY_METHODS]
    found = [body for body in map(governed_inside, bodies) if body is not None]
    return tuple(
        body for at, body in enumerate(found) if not any(body is other for other in found[:at])
    )


_IDENTITY: Final = ("name", "namespace", "tool_id", "aliases")
_NOBODY: Final[Any] = object()


def _joined(
    functions: Sequence[Mapping[str, Any]], options: GovernOptions, *, automatic: bool
) -> GovernOptions | None:
    """Join what is stated of a tool and of its functions; ``None`` where they contradict each other.

    What an instrumentor's file says of every tool gives way to what a function's author says of
    this one.
    """
    joined: dict[str, Any] = {} if automatic else dict(options)
    for stated in functions:
        for name, value in stated.items():
            if name not in _IDENTITY and joined.setdefault(name, value) != value:
                return None
    return cast(GovernOptions, {**options, **joined})


def _common_governor(
    inside: Sequence[GovernedTool], governor: Governor | None, *, automatic: bool
) -> Any:
    """Return the Governor that a tool and its functions have in common; ``None`` for the
    default one.
    """
    own = [tool._governor for tool in inside]
    wanted = own if automatic and governor is None else [*own, governor]
    return wanted[0] if wanted and all(one is wanted[0] for one in wanted) else _NOBODY


def declare_langchain(tool: BaseTool, options: GovernOptions) -> ToolSpec:
    """Declare a LangChain tool: name, description and schema are its own, facts the host's and the
    reviewed ones.
    """
    aliases = _aliases(tool, options)
    stated = cast(
        GovernOptions, {**known_facts(tool), **options, **({"aliases": aliases} if aliases else {})}
    )
    mapping = ExternalMapping(
        source="langchain", tool_name=tool.name, tool_class=type(tool).__qualname__
    )
    source = ToolSource(
        name=tool.name,
        namespace="langchain",
        description=tool.description or tool.name,
        schema=model_schema(tool),
        is_async=_has_arun(tool),
        mappings=(mapping,),
    )
    return declare(stated, source)


def _aliases(tool: BaseTool, options: GovernOptions) -> list[str]:
    """Return the tool's aliases, and the names of governed functions that are its body: lists
    restrict by any.
    """
    names = list(options.get("aliases", ()))
    for body in governed_bodies(tool):
        declaration = body.tool.spec.declaration
        names += [
            declaration.tool_id,
            f"{declaration.namespace}.{declaration.name}",
            declaration.name,
            *declaration.aliases,
        ]
    return list(dict.fromkeys(name for name in names if name != tool.name))


def _has_arun(tool: BaseTool) -> bool:
    if isinstance(tool, (StructuredTool, Tool)):
        return field_of(tool, "coroutine") is not None
    return defining_class(base_of(tool), "_arun") is not BaseTool


def _governed_class(
    base: type[BaseTool], handle: LangChainHandle, options: GovernOptions
) -> type[BaseTool]:
    """Make the governed subclass; ``_run`` and ``_arun`` keep their signatures, which LangChain
    reads for injection.
    """

    may_delegate = defining_class(base, "_arun") in (StructuredTool, Tool)
    runs_function = defining_class(base, "_run") in (StructuredTool, Tool)

    pinned = pinned_methods(base, ENTRY_METHODS)
    run, arun = pinned["run"], pinned["arun"]

    def _invoke_run(self: Any, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        with entered(handle, self, tool_input, kwargs):
            return run(self, tool_input, *args, **kwargs)

    async def _invoke_arun(self: Any, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        with entered(handle, self, tool_input, kwargs):
            return await arun(self, tool_input, *args, **kwargs)

    @wrapt.decorator
    def guard(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        body = (
            inspect.unwrap(base._run).__get__(_ungoverned(instance, base))
            if runs_function
            else wrapped
        )
        return ToolCall(handle, instance, wrapped, args, kwargs).run(body)

    @wrapt.decorator
    async def aguard(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        if may_delegate and not instance.coroutine:
            return await wrapped(*args, **kwargs)  # ends in this object's ``_run``, which decides
        body = (
            inspect.unwrap(base._arun).__get__(_ungoverned(instance, base))
            if may_delegate
            else wrapped
        )
        return await ToolCall(handle, instance, wrapped, args, kwargs).arun(body)

    def reduce(self: Any, protocol: Any = 2) -> Any:
        refuse_pickle(handle)
        plain = BaseTool.model_copy(self)
        object.__setattr__(plain, "__class__", base)
        return (_govern_again if handle.automatic else govern_tool), (plain, None, options)

    namespace: dict[str, Any] = {
        **pinned,
        **own_lookup(base),
        "__module__": base.__module__,
        "__qualname__": base.__qualname__,
        "__doc__": base.__doc__,
        "__annotations__": {"agenttool": ClassVar[Any], BASE: ClassVar[Any]},
        "agenttool": handle,
        BASE: base,
        "run": _invoke_run,
        "arun": _invoke_arun,
        "_run": guard(base._run),
        "__init_subclass__": _refuse_subclass,
        "__reduce_ex__": reduce,
    }
    # BaseTool's own is kept: LangChain tells by its identity what a tool can do
    if defining_class(base, "_arun") is not BaseTool:
        namespace["_arun"] = aguard(base._arun)
    if has_own_call(base):
        namespace[CALL] = _governed_call(base, handle)
    governed: type[BaseTool] = type(base.__name__, (base,), namespace)
    for name in FUNCTIONS:
        if name in base.model_fields and runs_function:
            # pydantic takes no property for a field before
            setattr(governed, name, _governed_function(handle, name))
    return governed


def _refuse_subclass(cls: type, /, **kwargs: Any) -> None:
    # a body of its own would be under the name of this handle, and decided by nobody
    name = cls.__bases__[0].__qualname__
    raise ConfigurationError(
        f"{name} is governed here: subclass its own class, and govern the objects"
    )


def _governed_call(base: type[BaseTool], handle: LangChainHandle) -> Any:
    """Return a class's own ``__call__`` under governance: it is decided as a body, and may go on
    through the tool.
    """

    @wrapt.decorator
    def guard(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        return ToolCall(handle, instance, wrapped, args, kwargs, by_call=True).run(wrapped)

    @wrapt.decorator
    async def aguard(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        return await ToolCall(handle, instance, wrapped, args, kwargs, by_call=True).arun(wrapped)

    own: Any = getattr(base, CALL)
    return (aguard if inspect.iscoroutinefunction(own) else guard)(own)


def _govern_again(tool: BaseTool, governor: None, options: GovernOptions) -> BaseTool:
    """Govern the unpickled tool of an instrumentor, in a process that need not have one."""
    govern_in_place(tool, governor, options, automatic=True)
    return tool


def _ungoverned(tool: BaseTool, base: type[BaseTool]) -> BaseTool:
    """Return a view of a tool in which LangChain's own body finds the function itself, not the
    governed one.

    The body is unwrapped, too: an instrumentor would govern the view.
    """
    plain = object.__new__(base)
    object.__setattr__(plain, "__dict__", tool.__dict__)
    for name in ("__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__"):
        object.__setattr__(plain, name, object.__getattribute__(tool, name))
    return plain


def _governed_function(handle: LangChainHandle, name: str) -> property:
    """Return the property that hands out a tool's function under governance: people call
    ``tool.func`` in tests.
    """

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
