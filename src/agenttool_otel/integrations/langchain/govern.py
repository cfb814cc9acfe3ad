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
from agenttool_otel.integrations.langchain.known_shells import holding_facts
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
from agenttool_otel.integrations.langchain.straight import StraightTool
from agenttool_otel.records import ExternalMapping

if TYPE_CHECKING:
    from agenttool_otel.govern.governor import Governor


build_default_with(from_environment)  # an instrumentor imports no more of the package than this


def is_governed(tool: Any) -> bool:
    """Whether a tool object is governed already."""
    return isinstance(type(tool).__dict__.get("agenttool"), GovernedTool)


def is_governed_by_host(tool: Any) -> bool:
    """Whether a tool object is governed by its program, not by an instrumentor that governs all."""
    if not is_governed(tool):
        return False
    return not getattr(handle_of(tool), "automatic", False)


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
    handle.inside = inside
    handle.automatic = automatic
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
    bodies = governed_bodies(tool)
    if bodies:
        inside = tuple(body.tool for body in bodies)
        stated = _joined([body.options for body in bodies], options, automatic=automatic)
        common = _common_governor(inside, governor, automatic=automatic)
        if stated is not None and common is not _NONE_IN_COMMON:
            # path_args=["path"] of the function, where the tool's schema names it "file": the tool
            # and the function are decided one after the other then
            with suppress(ConfigurationError):
                return Declared(declare_langchain(tool, stated), inside, common)
    return Declared(declare_langchain(tool, options), (), governor)


def governed_bodies(tool: BaseTool) -> tuple[GovernedFunction, ...]:
    """Return the governed functions that do a tool's work."""
    bodies = []
    for name in FUNCTIONS:
        if name in type(tool).model_fields:
            bodies.append(field_of(tool, name))
    for name in BODY_METHODS:
        bodies.append(getattr(base_of(tool), name))
    governed: list[GovernedFunction] = []
    for body in bodies:
        function = governed_inside(body)
        # a tool whose func and coroutine end in the same function has one body
        if function is not None and not any(function is other for other in governed):
            governed.append(function)
    return tuple(governed)


_IDENTITY: Final = (
    "name",
    "namespace",
    "tool_id",
    "aliases",
)
_NONE_IN_COMMON: Final[Any] = object()


def _joined(
    functions: Sequence[Mapping[str, Any]], options: GovernOptions, *, automatic: bool
) -> GovernOptions | None:
    """Join what is stated of a tool and of its functions; ``None`` where they contradict each other.

    Facts in an instrumentor's file, which are for many tools, give way to those of a function's
    author.
    """
    joined: dict[str, Any] = {}
    if not automatic:
        joined.update(options)
    for stated in functions:
        for name, value in stated.items():
            if name in _IDENTITY:
                continue
            if joined.setdefault(name, value) != value:
                return None
    return cast(GovernOptions, {**options, **joined})


def _common_governor(
    inside: Sequence[GovernedTool], governor: Governor | None, *, automatic: bool
) -> Any:
    """Return the Governor that a tool and its functions have in common; ``None`` for the
    default one.
    """
    governors: list[Any] = [tool._governor for tool in inside]
    # an instrumentor that names none takes the functions'
    if not automatic or governor is not None:
        governors.append(governor)
    first = governors[0]
    if all(other is first for other in governors):
        return first
    return _NONE_IN_COMMON


def declare_langchain(tool: BaseTool, options: GovernOptions) -> ToolSpec:
    """Declare a LangChain tool: name, description and schema are its own, facts the host's and the
    reviewed ones.
    """
    stated: dict[str, Any] = {**known_facts(tool), **holding_facts(tool), **options}
    aliases = _aliases(tool, options)
    if aliases:
        stated["aliases"] = aliases
    mapping = ExternalMapping(
        source="langchain",
        tool_name=tool.name,
        tool_class=type(tool).__qualname__,
    )
    source = ToolSource(
        name=tool.name,
        namespace="langchain",
        description=tool.description or tool.name,
        schema=model_schema(tool),
        is_async=_has_arun(tool),
        mappings=(mapping,),
    )
    return declare(cast(GovernOptions, stated), source)


def _aliases(tool: BaseTool, options: GovernOptions) -> list[str]:
    """Return the tool's aliases, and the names of governed functions that are its body.

    A list that allows or blocks tools may have any of them.
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
    aliases: list[str] = []
    for name in names:
        if name != tool.name and name not in aliases:
            aliases.append(name)
    return aliases


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

    way = StraightTool(handle, is_async=False)
    asynchronous_way = StraightTool(handle, is_async=True)

    pinned = pinned_methods(base, ENTRY_METHODS)
    run = pinned["run"]
    arun = pinned["arun"]

    def _invoke_run(self: Any, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        with entered(handle, self, tool_input, kwargs):
            return run(self, tool_input, *args, **kwargs)

    async def _invoke_arun(self: Any, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        with entered(handle, self, tool_input, kwargs):
            return await arun(self, tool_input, *args, **kwargs)

    @wrapt.decorator
    def guard(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        body = wrapped
        if runs_function:
            # LangChain's _run reads self.func, which is governed too
            body = inspect.unwrap(base._run).__get__(_ungoverned(instance, base))
        begun, established = way.begin(instance, body, args, kwargs)
        if begun is not None:
            return begun.run()
        call = ToolCall(handle, instance, wrapped, args, kwargs, established=established)
        return call.run(body)

    @wrapt.decorator
    async def aguard(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        body = wrapped
        if may_delegate:
            # without a coroutine, LangChain's _arun calls this object's _run, which decides
            if not instance.coroutine:
                return await wrapped(*args, **kwargs)
            body = inspect.unwrap(base._arun).__get__(_ungoverned(instance, base))
        begun, established = asynchronous_way.begin(instance, body, args, kwargs)
        if begun is not None:
            return await begun.arun()
        call = ToolCall(handle, instance, wrapped, args, kwargs, established=established)
        return await call.arun(body)

    def reduce(self: Any, protocol: Any = 2) -> Any:
        refuse_pickle(handle)
        plain = BaseTool.model_copy(self)
        object.__setattr__(plain, "__class__", base)
        again = _govern_again if handle.automatic else govern_tool
        return again, (plain, None, options)

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
    # BaseTool's own is kept: LangChain compares it to find out whether a tool is asynchronous
    if defining_class(base, "_arun") is not BaseTool:
        namespace["_arun"] = aguard(base._arun)
    if has_own_call(base):
        namespace[CALL] = _governed_call(base, handle)
    governed: type[BaseTool] = type(base.__name__, (base,), namespace)
    for name in FUNCTIONS:
        if name in base.model_fields and runs_function:
            # set afterwards: in the namespace pydantic would take the property for a new default
            setattr(governed, name, _governed_function(handle, name))
    return governed


def _refuse_subclass(cls: type, /, **kwargs: Any) -> None:
    # a _run of the subclass would be governed under the name of this handle, or not at all
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
    if inspect.iscoroutinefunction(own):
        return aguard(own)
    return guard(own)


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
    """Return the property that has a tool's function under governance: tests call ``tool.func``."""

    def read(self: Any) -> Any:
        function = self.__dict__.get(name)
        if function is None:
            return None

        @wrapt.decorator
        def guard(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
            return ToolCall(handle, self, wrapped, args, kwargs).run(wrapped)

        @wrapt.decorator
        async def aguard(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
            return await ToolCall(handle, self, wrapped, args, kwargs).arun(wrapped)

        if name == "coroutine":
            return aguard(function)
        return guard(function)

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
        # a pydantic 1 model, or a field that has no JSON schema
        function = convert_to_openai_tool(tool)["function"]
        made = function.get("parameters", {"type": "object"})
    # pydantic's title is the name of the class, and its description the class' docstring
    return {key: value for key, value in made.items() if key not in ("title", "description")}
