"""``govern``: put a callable, or a framework's tool object, under governance with one line and no
rewrite.

Everything that can be resolved is resolved here, at decoration; then there are four plain branches:
function, coroutine function, generator, asynchronous generator.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from functools import cache
from pickle import PicklingError
from types import MethodType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack, cast, overload

import wrapt
from opentelemetry import context as otel_context

from agenttool_otel.call.binding import bind_python, rebind_python
from agenttool_otel.call.drivers import Steps, arun, deliver, run
from agenttool_otel.call.invocation import NOT_READ, Invocation
from agenttool_otel.call.running.once import decided_call, in_progress
from agenttool_otel.call.runtime import Runtime, build_default_with, default_runtime
from agenttool_otel.call.streams import astream, stream
from agenttool_otel.call.target import Target
from agenttool_otel.call.tool import GovernedTool, shape_of
from agenttool_otel.catalog import GovernOptions, declare_function
from agenttool_otel.catalog.groups import flat_options
from agenttool_otel.catalog.reader import below_reader
from agenttool_otel.context.context import current_context, current_mappings, current_native_call
from agenttool_otel.errors import ConfigurationError, InstanceMissing
from agenttool_otel.govern.typing import Governed, GovernsNext
from agenttool_otel.values.inspection import mro_names

if TYPE_CHECKING:
    from agenttool_otel.govern.governor import Governor


def _default_governor() -> Runtime:
    from agenttool_otel.govern.default import from_environment

    return from_environment()


build_default_with(_default_governor)  # a program may decorate without ever importing a Governor

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_OBJECT_DOORS: tuple[tuple[str, str], ...] = (
    (
        "langchain_core.tools.base.BaseTool",
        "agenttool_otel.integrations.langchain.govern:govern_tool",
    ),
)
"""Framework tool classes by qualified name, and the function that governs their objects; both
imported lazily.
"""


_WRAPS = ("__func__", "func", "__wrapped__")
"""Where a method, a partial and a wrapper keep what they call."""

_MAX_WRAPPERS = 32


class BoundGovernedFunction(wrapt.BoundFunctionWrapper):  # type: ignore[type-arg]
    """A governed method bound to its instance."""

    @property
    def tool(self) -> GovernedTool:
        """The governed tool, bound to the instance."""
        parent, instance = self._self_parent, self._self_instance
        return cast(GovernedTool, parent.bound_tool(instance).of(instance, self.__wrapped__))

    def __reduce_ex__(self, protocol: Any) -> Any:
        holder = self._self_instance if self._self_instance is not None else self._self_owner
        if (name := _attribute_of(holder, self._self_parent)) is None:
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
        tool: GovernedTool,
        options: GovernOptions,
        method: Callable[[], GovernedTool],
    ) -> None:
        super().__init__(wrapped, wrapper)
        self._self_tool = tool
        self._self_options = options
        self._self_method = method

    @property
    def tool(self) -> GovernedTool:
        """The governed tool: ``invoke``, ``ainvoke``, ``check`` and the records."""
        return self._self_tool

    @property
    def options(self) -> GovernOptions:
        """What was stated of it."""
        return self._self_options

    def bound_tool(self, instance: object) -> GovernedTool:
        """Return the tool as which it is called on an instance; ``None`` for a call on the
        class.
        """
        return self._self_tool if instance is None else self._self_method()

    def __copy__(self) -> GovernedFunction:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> GovernedFunction:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        wrapped = self.__wrapped__
        name = getattr(wrapped, "__qualname__", None)
        if name and _found(getattr(wrapped, "__module__", None), name) is self:
            return name  # pickled by reference, like any function of a module
        refuse_pickle(self._self_tool)
        return _govern_again, (wrapped, dict(self._self_options))

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


def _found(module: str | None, qualname: str) -> Any:
    import sys

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
        inner = next(
            (
                getattr(function, name, None)
                for name in _WRAPS
                if getattr(function, name, None) is not None
            ),
            None,
        )
        if inner is None:
            return None
        function = inner
    return None


def _attribute_of(holder: Any, governed: GovernedFunction) -> str | None:
    """Return the name under which a governed function stands on an object's class, or on a
    class.
    """
    bases = inspect.getmro(holder if inspect.isclass(holder) else type(holder))
    return next(
        (name for base in bases for name, value in vars(base).items() if value is governed), None
    )


def _govern_again(wrapped: Any, options: GovernOptions) -> Any:
    return govern(wrapped, **options)


@overload
def govern(target: Callable[P, R], /, **options: Unpack[GovernOptions]) -> Governed[P, R]: ...


@overload
def govern(target: T, /, **options: Unpack[GovernOptions]) -> T: ...


@overload
def govern(**options: Unpack[GovernOptions]) -> GovernsNext: ...


def govern(target: Any = None, /, **options: Unpack[GovernOptions]) -> Any:
    """Put a tool under governance: each call is decided by policy and leaves one invocation span.

    Works on functions, coroutine functions, generators, asynchronous generators, methods, class and
    static methods, ``functools.partial`` objects, callable objects and LangChain tools; bare
    (``@govern``), with facts (``@govern(read_only=True)``) and as a call (``govern(tool)``).
    Signature, hints, docstring and schema inference of what is governed stay as they are.

    Args:
        target: the tool.
        options: facts of the tool, by the standard's names, alone (``risk_level="low"``) or grouped
          by record (``permission={"risk_level": "low"}``); see GovernOptions.

    Returns:
        The governed tool, of the same kind; functions gain ``.tool``. Without a target, a
        decorator.

    Raises:
        ConfigurationError: the target or a fact can't be used.
    """
    return govern_with(None, target, options)


def govern_with(governor: Governor | None, target: Any, options: GovernOptions) -> Any:
    """Govern a target with a given Governor, or with the default one.

    Args:
        governor: the Governor; ``None`` for whichever is the default when a call is made.
        target: the tool; ``None`` to get a decorator.
        options: facts of the tool.
    """
    if target is None:
        return lambda function: govern_with(governor, function, options)
    options = flat_options(options)
    if isinstance(target, (GovernedFunction, BoundGovernedFunction)):
        if options:
            raise ConfigurationError("this tool is governed already; state its facts in one place")
        return target
    if (door := _object_door(target)) is not None:
        return door(target, governor, options)
    if inspect.isclass(target) or not (
        callable(target) or isinstance(target, (classmethod, staticmethod))
    ):
        raise ConfigurationError(
            f"govern takes a callable or a framework's tool, not {type(target).__name__}"
        )
    return _govern_callable(governor, target, options)


def _object_door(target: Any) -> Callable[..., Any] | None:
    names = mro_names(type(target))
    for class_name, path in _OBJECT_DOORS:
        if class_name in names:
            module, _, function = path.partition(":")
            return cast(Callable[..., Any], getattr(importlib.import_module(module), function))
    return None


def _govern_callable(
    governor: Governor | None, target: Any, options: GovernOptions
) -> GovernedFunction:
    function = target.__func__ if isinstance(target, (classmethod, staticmethod)) else target
    is_async, streams = shape_of(target)
    has_self = _has_self(target, function)
    spec = declare_function(
        function, options, drop_first=has_self, is_async=is_async, streams=streams
    )
    tool = GovernedTool(spec, function, governor=governor, is_async=is_async, streams=streams)

    @cache
    def method() -> GovernedTool:
        """Return the tool of a function that was put on a class after its body, and is called on an
        object of it.
        """
        if has_self or not inspect.isfunction(target):
            return tool
        bound = declare_function(
            function, options, drop_first=True, is_async=is_async, streams=streams
        )
        return GovernedTool(bound, function, governor=governor, is_async=is_async, streams=streams)

    def plan(
        wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Invocation, Steps]:
        in_charge = governor if governor is not None else default_runtime()
        spec = tool.spec if instance is None else method().spec
        if has_self and instance is None and not inspect.ismethod(wrapped):
            # called as the plain function that it is in the class's dictionary: the instance is an
            # argument
            if not args:
                raise InstanceMissing(f"{spec.name} is a method: it can't run without its instance")
            wrapped, args = MethodType(wrapped, args[0]), args[1:]
        call = Invocation(
            spec, in_charge.effective(current_context()), native_call_id=current_native_call()
        )
        call.call_args, call.call_kwargs = args, kwargs
        call.mappings = current_mappings()
        body = wrapped
        if spec.parameters is not None and spec.parameters.reader is not None:
            # of a method that is called on its class, wrapt gives an object of its own
            of_class = instance is not None and not inspect.ismethod(wrapped)
            body = below_reader(MethodType(function, instance) if of_class else wrapped)
        runs = Target(body, bind_python, rebind_python, is_async=is_async, streams=streams)
        return call, in_charge.pipeline.run(call, runs)

    def is_decided(instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Tell whether the guard of a tool whose body this is has decided this very call."""
        if (passing := decided_call(tool)) is None:
            return False
        spec = tool.spec if instance is None else method().spec
        call = Invocation(spec, current_context())
        call.call_args, call.call_kwargs = args, kwargs
        try:
            bind_python(call)
        except Exception:
            return False  # it is refused on its own, with the reason
        shown = call.model_input if call.observable_input is NOT_READ else call.observable_input
        return passing.take(
            tool, shown, spec.parameters.defaults if spec.parameters is not None else {}
        )

    wrapper = _wrapper(plan, is_decided, is_async=is_async, streams=streams)
    tool.register()
    return GovernedFunction(target, wrapper, tool, options, method)


def _wrapper(
    plan: Callable[..., tuple[Invocation, Steps]],
    is_decided: Callable[..., bool],
    *,
    is_async: bool,
    streams: bool,
) -> Any:
    """Return what runs in place of a callable, of the same kind as it."""
    wrapper: Any
    if streams and is_async:

        def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
            if in_progress() is not None and is_decided(instance, args, kwargs):
                return wrapped(*args, **kwargs)
            call, steps = plan(wrapped, instance, args, kwargs)
            return astream(call, steps, otel_context.get_current())

    elif streams:

        def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
            if in_progress() is not None and is_decided(instance, args, kwargs):
                return wrapped(*args, **kwargs)
            call, steps = plan(wrapped, instance, args, kwargs)
            return stream(call, steps, otel_context.get_current())

    elif is_async:

        async def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
            if in_progress() is not None and is_decided(instance, args, kwargs):
                return await wrapped(*args, **kwargs)
            call, steps = plan(wrapped, instance, args, kwargs)
            return deliver(await arun(call, steps))

    else:

        def wrapper(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
            if in_progress() is not None and is_decided(instance, args, kwargs):
                return wrapped(*args, **kwargs)
            call, steps = plan(wrapped, instance, args, kwargs)
            return deliver(run(call, steps))

    return wrapper


def _has_self(target: Any, function: Any) -> bool:
    """Tell whether the first parameter is an instance or class: of a class method, or of a function
    in a class body.
    """
    if isinstance(target, classmethod):
        return True
    if (
        isinstance(target, staticmethod)
        or inspect.ismethod(function)
        or not inspect.isfunction(function)
    ):
        return False
    owner = function.__qualname__.rpartition(".")[0]
    if not owner or owner.endswith("<locals>"):
        return False
    first = next(iter(inspect.signature(function).parameters), "")
    return first in {"self", "cls"}
