"""Tools that an instrumentor governs: held from the moment they are made, declared at their first use.

An object gets a subclass of its class on which everything that leads to its body first puts it
under governance. So the class can be made without knowing the tool: its name, description and
schema may still change after ``__init__``.
"""

from __future__ import annotations

import abc
import functools
import inspect
import weakref
from collections.abc import Callable
from typing import Any, cast

import wrapt
from langchain_core.tools import BaseTool

from agenttool_otel.errors import AgentToolError
from agenttool_otel.integrations.langchain.methods import (
    CALL,
    ENTRY_METHODS,
    FUNCTIONS,
    defining_class,
    field_of,
    has_own_call,
    own_lookup,
)

Govern = Callable[[BaseTool], None]
"""Governs a tool object in place, or lets its calls be refused; raises where neither can be done."""

BASE = "agenttool_base"
"""Attribute of a class that this package made: the class of the tool's author."""


class HeldClasses:
    """The subclasses of one instrumentor, by class.

    Args:
        govern: called at the first use of a tool.
    """

    def __init__(self, govern: Govern) -> None:
        self._govern = govern
        self._made: weakref.WeakKeyDictionary[type, weakref.ref[type]] = weakref.WeakKeyDictionary()

    def hold(self, tool: BaseTool) -> bool:
        """Hold a tool object; return whether it was not held or governed before."""
        cls = type(tool)
        if BASE in cls.__dict__:
            return False
        reference = self._made.get(cls)
        held = None
        if reference is not None:
            held = reference()
        if held is None:
            held = _held_class(cls, self._govern)
            self._made[cls] = weakref.ref(held)
        object.__setattr__(tool, "__class__", held)
        return True


def base_of(tool: BaseTool) -> type[BaseTool]:
    """Return the class of a tool object as its author made it."""
    cls = type(tool)
    return cast("type[BaseTool]", cls.__dict__.get(BASE, cls))


def _held_class(base: type[BaseTool], govern: Govern) -> type:
    names = [*ENTRY_METHODS, "_run"]
    # LangChain compares it with BaseTool._arun to find out whether a tool is asynchronous
    if defining_class(base, "_arun") is not BaseTool:
        names.append("_arun")
    if has_own_call(base):
        names.append(CALL)

    def reduce(self: Any, protocol: Any = 2) -> Any:
        govern(self)
        return self.__reduce_ex__(protocol)

    namespace: dict[str, Any] = {
        "__module__": base.__module__,
        "__qualname__": base.__qualname__,
        "__doc__": base.__doc__,
        "__pydantic_setattr_handlers__": {},
        "__reduce_ex__": reduce,
        BASE: base,
    }
    for name in names:
        namespace[name] = _at_first_use(base, name, govern)
    for name in FUNCTIONS:
        if name in base.model_fields:
            namespace[name] = _function_at_first_use(name, govern)
    namespace.update(own_lookup(base))
    # past pydantic's metaclass: the fields and their validation are the base's
    return abc.ABCMeta.__new__(type(base), base.__name__, (base,), namespace)


def _at_first_use(base: type, name: str, govern: Govern) -> Callable[..., Any]:
    original = getattr(base, name)
    if inspect.iscoroutinefunction(original):

        @functools.wraps(original)
        async def awaited(self: Any, /, *args: Any, **kwargs: Any) -> Any:
            govern(self)
            return await _of(self, name)(*args, **kwargs)

        return awaited

    @functools.wraps(original)
    def called(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        govern(self)
        return _of(self, name)(*args, **kwargs)

    return called


def _of(tool: Any, name: str) -> Any:
    """Return the method that a tool has since it is governed."""
    if "agenttool" not in type(tool).__dict__:
        raise RuntimeError(f"{name} of a tool that is not governed")
    return functools.partial(getattr(type(tool), name), tool)


def _function_at_first_use(name: str, govern: Govern) -> property:
    def read(self: Any) -> Any:
        function = field_of(self, name)
        if function is None:
            return None
        try:
            govern(self)
        except AgentToolError as error:
            return _refusing(function, error)
        # declaring the tool reads its function: it is not governed yet then
        if "agenttool" not in type(self).__dict__:
            return function
        return getattr(self, name)

    def write(self: Any, function: Any) -> None:
        self.__dict__[name] = function

    return property(read, write)


def _refusing(function: Any, error: AgentToolError) -> Any:
    """Return a function that raises an error at its call: reading ``tool.func`` is no call."""

    def refuse(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        raise error

    return wrapt.FunctionWrapper(function, refuse)
