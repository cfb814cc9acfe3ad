"""A callable under governance: what runs in its place, and how it is bound, copied and pickled.

Everything that can be resolved is resolved when the callable is governed; a call then takes one of
four plain branches: function, coroutine function, generator, asynchronous generator.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from pickle import PicklingError
from types import MethodType
from typing import Any, Final, cast

import wrapt
from opentelemetry import context as otel_context

from agenttool_otel.call.binding import bind_python, rebind_python
from agenttool_otel.call.drivers import Steps, arun, deliver, run
from agenttool_otel.call.invocation import NOT_READ, Established, Invocation
from agenttool_otel.call.running.once import decided_call, in_progress
from agenttool_otel.call.runtime import Runtime, default_runtime
from agenttool_otel.call.straight.way import NOT_BEGUN, Begun, StraightWay
from agenttool_otel.call.streams import astream, stream
from agenttool_otel.call.target import Target
from agenttool_otel.call.tool import GovernedTool, shape_of
from agenttool_otel.catalog import GovernOptions, declare_function
from agenttool_otel.catalog.groups import flat_options
from agenttool_otel.catalog.reader import below_reader
from agenttool_otel.context.context import current_context, current_mappings, current_native_call
from agenttool_otel.errors import ConfigurationError, InstanceMissing
from agenttool_otel.govern.doors import find_door
from agenttool_otel.values.forks import cached_property
from agenttool_otel.values.inspection import mro_names

OBJECT_DOORS: Final[tuple[tuple[str, str], ...]] = (
    (
        "langchain_core.tools.base.BaseTool",
        "agenttool_otel.integrations.langchain.govern:govern_tool",
    ),
    ("agents.tool.FunctionTool", "agenttool_otel.integrations.openai_agents:govern_function_tool"),
    (
        "pydantic_ai.toolsets.abstract.AbstractToolset",
        "agenttool_otel.integrations.pydantic_ai:govern_toolset",
    ),
)
"""Framework tool classes by qualified name, and the function that governs their objects; both
imported lazily.
"""

_WRAPS: Final = ("__func__", "func", "__wrapped__")
"""Where a method, a partial and a wrapper keep what they call."""

_MAX_WRAPPERS: Final = 32


class BoundGovernedFunction(wrapt.BoundFunctionWrapper):  # type: ignore[type-arg]
    """A governed method bound to its instance."""

    @property
    def tool(self) -> GovernedTool:
        """The governed tool, bound to the instance."""
        instance = self._self_instance
        tool = self._self_parent.tool_on(instance)
        return cast(GovernedTool, tool.of(instance, self.__wrapped__))

    def __reduce_ex__(self, protocol: Any) -> Any:
        holder = self._self_instance if self._self_instance is not None else self._self_owner
        name = _attribute_of(holder, self._self_parent)
        if name is None:
            raise PicklingError(
                f"{self.tool.spec.name} is no attribute of what it is bound to, so it can't be pickled"
            )
        return getattr, (holder, name)

    def __reduce__(self) -> Any:
        return self.__reduce_ex__(2)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self


class GovernedFunction(wrapt.FunctionWrapper):  # type: ignore[type-arg]
    """A callable under governance: looks like the original to every inspection, and copies like it.

    It pickles like it too, unless a Governor was given for it: a pickle holds none, so that one
    would not come back.
    """

    __bound_function_wrapper__ = BoundGovernedFunction

    def __init__(
        self,
        wrapped: Any,
        wrapper: Any,
        calls: _Calls,
        unpickle: Callable[[Any, GovernOptions], Any] | None,
    ) -> None:
        super().__init__(wrapped, wrapper)
        self._self_calls = calls
        self._self_unpickle = unpickle

    @property
    def tool(self) -> GovernedTool:
        """The governed tool: ``invoke``, ``ainvoke``, ``check`` and the records."""
        return self._self_calls.tool

    @property
    def options(self) -> GovernOptions:
        """What was stated of it."""
        return self._self_calls.options

    def tool_on(self, instance: object) -> GovernedTool:
        """Return the tool as which it is called on an instance; ``None`` for a call on the
        class.
        """
        return self._self_calls.tool_on(instance)

    def __copy__(self) -> GovernedFunction:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> GovernedFunction:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        wrapped = self.__wrapped__
        name = getattr(wrapped, "__qualname__", None)
        if name and _find(getattr(wrapped, "__module__", None), name) is self:
            return name  # pickled by reference, like any function of a module
        refuse_pickle(self.tool)
        return self._self_unpickle, (wrapped, dict(self.options))

    def __reduce__(self) -> Any:
        return self.__reduce_ex__(2)


def refuse_pickle(tool: GovernedTool) -> None:
    """Refuse to pickle a tool of one certain Governor: it would come back under the default one of
    where it is loaded.

    Args:
        tool: the tool.

    Raises:
        ConfigurationError: a Governor was given when the tool was governed.
    """
    if tool._governor is not None:
        raise ConfigurationError(
            f"{tool.spec.name} is governed by a Governor of its own, which can't be pickled: pickle the plain tool and "
            "govern it again where it is loaded, or govern it with agenttool_otel.govern and configure a default there"
        )


def _find(module: str | None, qualname: str) -> Any:
    """Return what a module has under a qualified name; ``None`` where it has nothing."""
    found: Any = sys.modules.get(module or "")
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return found


def governed_inside(function: Any) -> GovernedFunction | None:
    """Return the governed function that a callable leads to: itself, what it wraps, or what a
    partial or method is of.

    Args:
        function: any callable, or ``None``.
    """
    for _ in range(_MAX_WRAPPERS):
        if isinstance(function, GovernedFunction):
            return function
        if isinstance(function, BoundGovernedFunction):
            return cast(GovernedFunction, function._self_parent)
        function = _wrapped_by(function)
        if function is None:
            return None
    return None


def _wrapped_by(function: Any) -> Any:
    for name in _WRAPS:
        wrapped = getattr(function, name, None)
        if wrapped is not None:
            return wrapped
    return None


def _attribute_of(holder: Any, governed: GovernedFunction) -> str | None:
    """Return the name under which a governed function stands on an object's class, or on a
    class.
    """
    for base in inspect.getmro(holder if inspect.isclass(holder) else type(holder)):
        for name, value in vars(base).items():
            if value is governed:
                return name
    return None


def govern_with(
    governor: Runtime | None,
    target: Any,
    options: GovernOptions,
    *,
    unpickle: Callable[[Any, GovernOptions], Any] | None = None,
) -> Any:
    """Govern a target with a given Governor, or with the default one.

    Args:
        governor: the Governor; ``None`` for whichever is the default when a call is made.
        target: the tool; ``None`` to get a decorator.
        options: facts of the tool, alone or in groups.
        unpickle: governs a callable again where its pickle is loaded; ``None`` where a Governor is
          given, for then it has no pickle.

    Raises:
        ConfigurationError: the target or a fact can't be used.
    """
    if target is None:
        return lambda function: govern_with(governor, function, options, unpickle=unpickle)
    options = flat_options(options)
    if isinstance(target, (GovernedFunction, BoundGovernedFunction)):
        if options:
            raise ConfigurationError("this tool is governed already; state its facts in one place")
        return target
    door = _object_door(target)
    if door is not None:
        return door(target, governor, options)
    is_method_of_class = isinstance(target, (classmethod, staticmethod))
    if inspect.isclass(target) or not (callable(target) or is_method_of_class):
        raise ConfigurationError(
            f"govern takes a callable or a framework's tool, not {type(target).__name__}"
        )
    return _govern_callable(governor, target, options, unpickle)


def _object_door(target: Any) -> Callable[..., Any] | None:
    """Return what governs the objects of a framework, for an object of one."""
    names = mro_names(type(target))
    for class_name, path in OBJECT_DOORS:
        if class_name in names:
            module, _, function = path.partition(":")
            return cast(Callable[..., Any], getattr(importlib.import_module(module), function))
    return find_door(target)


def _govern_callable(
    governor: Runtime | None,
    target: Any,
    options: GovernOptions,
    unpickle: Callable[[Any, GovernOptions], Any] | None,
) -> GovernedFunction:
    calls = _Calls(governor, target, options)
    calls.tool.register()
    return GovernedFunction(target, _wrapper(calls), calls, unpickle)


class _Calls:
    """Makes the calls of one governed function.

    Attributes:
        tool: the tool as which it is called.
        options: what was stated of it.
        is_async: whether a call is awaited.
        streams: whether a call gives its result in pieces.
    """

    def __init__(self, governor: Runtime | None, target: Any, options: GovernOptions) -> None:
        is_unbound = isinstance(target, (classmethod, staticmethod))
        self._governor = governor
        self._function = target.__func__ if is_unbound else target
        self._has_self = _has_self(target, self._function)
        # a function may be put on a class after its body: class K: ...; K.m = governed
        self._may_become_method = inspect.isfunction(target) and not self._has_self
        self.options = options
        self.is_async, self.streams = shape_of(target)
        self.tool = self._declared(drop_first=self._has_self)
        self._way = StraightWay(self.tool.spec, is_async=self.is_async)

    def _declared(self, *, drop_first: bool) -> GovernedTool:
        spec = declare_function(
            self._function,
            self.options,
            drop_first=drop_first,
            is_async=self.is_async,
            streams=self.streams,
        )
        return GovernedTool(
            spec,
            self._function,
            governor=self._governor,
            is_async=self.is_async,
            streams=self.streams,
        )

    @cached_property
    def _method(self) -> GovernedTool:
        return self._declared(drop_first=True)

    @cached_property
    def _method_way(self) -> StraightWay:
        return StraightWay(self._method.spec, is_async=self.is_async)

    def tool_on(self, instance: object) -> GovernedTool:
        """Return the tool as which it is called on an object.

        Args:
            instance: the object; ``None`` for a call on the class, or of a plain function.
        """
        if instance is None or not self._may_become_method:
            return self.tool
        return self._method

    def straight(
        self, wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Begun:
        """Begin an ordinary call. Any other is what ``plan`` returns: of that the facts are returned, if
        they were looked at.

        Args:
            wrapped: the callable, bound to the instance.
            instance: what it was called on.
            args: its arguments.
            kwargs: the named ones.
        """
        way = self._way
        if instance is not None and self._may_become_method:
            way = self._method_way
        elif self._has_self and instance is None and not inspect.ismethod(wrapped):
            return NOT_BEGUN
        runtime = self._governor if self._governor is not None else default_runtime()
        return way.begin(runtime, wrapped, args, kwargs)

    def plan(
        self,
        wrapped: Any,
        instance: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        established: Established | None = None,
    ) -> tuple[Invocation, Steps]:
        """Return one call and its steps.

        Args:
            wrapped: the callable, bound to the instance.
            instance: what it was called on.
            args: its arguments.
            kwargs: the named ones.
            established: its facts, if they were just looked at.

        Raises:
            InstanceMissing: a method was called on its class without an instance.
        """
        in_charge = self._governor if self._governor is not None else default_runtime()
        spec = self.tool_on(instance).spec
        if self._has_self and instance is None and not inspect.ismethod(wrapped):
            # K.__dict__["m"](k): called as the plain function that it is in the class's dictionary,
            # so the instance is an argument
            if not args:
                raise InstanceMissing(f"{spec.name} is a method: it can't run without its instance")
            wrapped = MethodType(wrapped, args[0])
            args = args[1:]
        call = Invocation(
            spec,
            in_charge.effective(current_context()),
            native_call_id=current_native_call(),
        )
        call.call_args = args
        call.call_kwargs = kwargs
        call.mappings = current_mappings()
        call.established = established
        body = wrapped
        if spec.parameters is not None and spec.parameters.reader is not None:
            if instance is not None and not inspect.ismethod(wrapped):
                # of a method that is called on its class, wrapt gives an object of its own
                body = MethodType(self._function, instance)
            body = below_reader(body)
        target = Target(
            body,
            bind_python,
            rebind_python,
            is_async=self.is_async,
            streams=self.streams,
        )
        return call, in_charge.pipeline.run(call, target)

    def is_decided(self, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Return whether the guard of a tool whose body this is has decided this very call."""
        passing = decided_call(self.tool)
        if passing is None:
            return False
        spec = self.tool_on(instance).spec
        call = Invocation(spec, current_context())
        call.call_args = args
        call.call_kwargs = kwargs
        try:
            bind_python(call)
        except Exception:
            return False  # it is refused on its own, with the reason
        observed = call.inputs.observable_input
        if observed is NOT_READ:
            observed = call.inputs.model_input
        defaults = spec.parameters.defaults if spec.parameters is not None else {}
        return passing.take(self.tool, observed, defaults)


def _wrapper(calls: _Calls) -> Any:
    """Return what runs in place of a callable, of the same kind as it."""
    if calls.streams:
        return _asynchronous_generator(calls) if calls.is_async else _generator(calls)
    return _coroutine_function(calls) if calls.is_async else _function(calls)


def _function(calls: _Calls) -> Any:
    is_decided = calls.is_decided
    straight = calls.straight
    plan = calls.plan

    def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        if in_progress() is not None and is_decided(instance, args, kwargs):
            return wrapped(*args, **kwargs)
        begun, established = straight(wrapped, instance, args, kwargs)
        if begun is not None:
            return begun.run()
        call, steps = plan(wrapped, instance, args, kwargs, established)
        return deliver(run(call, steps))

    return wrapper


def _coroutine_function(calls: _Calls) -> Any:
    is_decided = calls.is_decided
    straight = calls.straight
    plan = calls.plan

    async def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        if in_progress() is not None and is_decided(instance, args, kwargs):
            return await wrapped(*args, **kwargs)
        begun, established = straight(wrapped, instance, args, kwargs)
        if begun is not None:
            return await begun.arun()
        call, steps = plan(wrapped, instance, args, kwargs, established)
        return deliver(await arun(call, steps))

    return wrapper


def _generator(calls: _Calls) -> Any:
    is_decided = calls.is_decided
    plan = calls.plan

    def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        if in_progress() is not None and is_decided(instance, args, kwargs):
            return wrapped(*args, **kwargs)
        call, steps = plan(wrapped, instance, args, kwargs)
        return stream(call, steps, otel_context.get_current())

    return wrapper


def _asynchronous_generator(calls: _Calls) -> Any:
    is_decided = calls.is_decided
    plan = calls.plan

    def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        if in_progress() is not None and is_decided(instance, args, kwargs):
            return wrapped(*args, **kwargs)
        call, steps = plan(wrapped, instance, args, kwargs)
        return astream(call, steps, otel_context.get_current())

    return wrapper


def _has_self(target: Any, function: Any) -> bool:
    """Return whether the first parameter is an instance or class: of a class method, or of a
    function in a class body.
    """
    if isinstance(target, classmethod):
        return True
    if isinstance(target, staticmethod) or inspect.ismethod(function):
        return False
    if not inspect.isfunction(function):
        return False
    owner = function.__qualname__.rpartition(".")[0]
    # "read" of a module; "outer.<locals>.read" of a function
    if not owner or owner.endswith("<locals>"):
        return False
    first = next(iter(inspect.signature(function).parameters), "")
    return first in {"self", "cls"}
