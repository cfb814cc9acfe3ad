"""The methods of a LangChain tool that lead to its body, found once for ``govern``, the agents'
guards and the instrumentor.

A governed tool is decided in ``_run`` and ``_arun``, where LangChain's own outer methods end. What
a class does in an outer method of its own can't be decided: it is not known beforehand whether that
ends there too. So the outer methods of a governed object are LangChain's, whatever is set on the
tool's class later, and a class that has others is refused. Whose method it is depends on the order
of the bases, as in Python: a mixin need not be a tool. (The instrumentor needs this file while
LangChain's tool classes are being defined, so it imports none but the first.)
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, Final

from langchain_core.tools import BaseTool

from agenttool_otel.errors import ConfigurationError

_INPUTS: Final = frozenset({"input", "inputs", "tool_input"})


def _entry_methods() -> Iterator[str]:
    """Yield the public methods of LangChain whose first argument is an input: invoke, batch, run."""
    for base in BaseTool.__mro__:
        if not is_langchain_class(base):
            continue
        for name, value in vars(base).items():
            if name.startswith("_") or not inspect.isfunction(value):
                continue
            parameters = list(inspect.signature(value).parameters)
            if len(parameters) > 1 and parameters[1] in _INPUTS:
                yield name


def defining_class(cls: type, name: str) -> type:
    """Return the class whose attribute of that name an object of a class has."""
    for base in cls.__mro__:
        if name in base.__dict__:
            return base
    return object


def is_langchain_class(cls: type) -> bool:
    """Whether a class is LangChain's own."""
    package, _, _ = cls.__module__.partition(".")
    return package == "langchain_core"


ENTRY_METHODS: Final = tuple(dict.fromkeys(_entry_methods()))
"""The methods that lead to a tool's body: LangChain's public ones that take an input."""

BODY_METHODS: Final = ("_run", "_arun")
"""The methods that are a tool's body."""

FUNCTIONS: Final = ("func", "coroutine")
"""The fields that hold the function of a tool that was made of one."""

CALL: Final = "__call__"
"""LangChain's tools have none; where a class has one, it is decided as a body is."""

HELD: Final = frozenset({*ENTRY_METHODS, *BODY_METHODS, *FUNCTIONS, CALL})
"""All attributes of a tool object by which its work is done."""


def replaced_methods(cls: type) -> list[str]:
    """Return the outer methods that a tool class, or a mixin of it, has in place of LangChain's."""
    replaced = []
    for name in ENTRY_METHODS:
        if not is_langchain_class(defining_class(cls, name)):
            replaced.append(name)
    return replaced


def refuse_replaced_methods(cls: type[BaseTool]) -> None:
    """Refuse a tool class that replaces one of LangChain's outer methods.

    Raises:
        ConfigurationError: It replaces one.
    """
    replaced = replaced_methods(cls)
    if not replaced:
        return
    names = ", ".join(replaced)
    raise ConfigurationError(
        f"{cls.__qualname__} replaces LangChain's own {names}, so its calls can't be governed: do"
        " the work in _run and _arun, or govern the function that does it"
    )


def has_own_call(cls: type) -> bool:
    """Whether objects of a tool class can be called."""
    return defining_class(cls, CALL) is not object


def pinned_methods(cls: type, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the outer methods of a class as they are now, for a subclass, which does not see what
    is set on the class later.

    LangChain's are looked up at each call, so that other instrumentations of them still count.
    """
    pinned = {}
    for name in names:
        pinned[name] = _pinned(defining_class(cls, name), name)
    return pinned


def _pinned(owner: type, name: str) -> Callable[..., Any]:
    original = owner.__dict__[name]
    if inspect.iscoroutinefunction(original):

        @functools.wraps(original)
        async def awaited(self: Any, /, *args: Any, **kwargs: Any) -> Any:
            return await getattr(owner, name)(self, *args, **kwargs)

        return awaited

    @functools.wraps(original)
    def called(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        return getattr(owner, name)(self, *args, **kwargs)

    return called


def own_lookup(cls: type) -> dict[str, Any]:
    """Return the attribute lookup for a subclass of a class that has one of its own, which is not
    asked for these.
    """
    own = defining_class(cls, "__getattribute__")
    if own is object:
        return {}
    lookup = own.__dict__["__getattribute__"]

    def read(self: Any, name: str) -> Any:
        # a __getattribute__ of the class could return the ungoverned function
        if name in HELD:
            return object.__getattribute__(self, name)
        return lookup(self, name)

    return {"__getattribute__": read}


def field_of(tool: Any, name: str) -> Any:
    """Return the function of a tool object as it was given, without governing it."""
    fields = object.__getattribute__(tool, "__dict__")
    return fields.get(name)
