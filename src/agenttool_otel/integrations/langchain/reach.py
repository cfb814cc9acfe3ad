"""Tools behind a tool: what a sub-agent or sub-graph calls, that the guard of the agent around it
can't see.

A guard sees the calls of its own agent's ToolNode. A tool that runs another graph (deepagents'
``task``, an agent as a tool, a supervisor's workers) holds it in its function: in a closure, a
global, an attribute or a bound object. What can't be found there is not reported; the check warns
and decides nothing.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolNode

from agenttool_otel.integrations.langchain.first_use import BASE
from agenttool_otel.integrations.langchain.methods import BODY_METHODS

MAX_OBJECTS: Final = 5_000
"""How many objects a look for a warning takes in, at most."""
_CONTAINERS: Final = (list, tuple, set, frozenset)


def unseen_tools(
    start: Any, is_guard: Callable[[Any], bool], *, most: int | None = None
) -> list[str]:
    """Return the names of tools that an object reaches through graphs and that nothing governs.

    Args:
        start: a tool of the guarded agent, or an agent or graph.
        is_guard: whether an object is a guard that decides the calls of a graph.
        most: how many objects to look at; ``None`` for all. An agent with ten sub-agents has 5,000.
    """
    names: set[str] = set()
    for node in _reached([start], most):
        if not isinstance(node, ToolNode) or _is_guarded(node, is_guard):
            continue
        for name, inner in node.tools_by_name.items():
            if BASE not in type(inner).__dict__:
                names.add(name)
    return sorted(names)


def _is_guarded(node: ToolNode, is_guard: Callable[[Any], bool]) -> bool:
    wrappers = []
    for name in ("_wrap_tool_call", "_awrap_tool_call"):
        wrapper = getattr(node, name, None)
        if wrapper is not None:
            wrappers.append(wrapper)
    # create_agent chains the middleware: the guard stands in the closure of a closure
    return any(is_guard(part) for part in _reached(wrappers, MAX_OBJECTS))


def _reached(start: Iterable[Any], most: int | None) -> Iterator[Any]:
    """Yield the objects that some objects lead to, nearest first, and those themselves."""
    waiting = deque(start)
    seen: set[int] = set()
    while waiting and (most is None or len(seen) < most):
        found = waiting.popleft()
        if id(found) in seen:
            continue
        seen.add(id(found))
        yield found
        waiting.extend(_parts(found))


def _parts(found: Any) -> Iterable[Any]:
    """The objects that one object leads to."""
    kind = type(found)
    if kind in _CONTAINERS:
        return list(found)
    if kind is dict:
        return list(found.values())
    if inspect.isfunction(found):
        return _function_parts(found)
    if inspect.ismethod(found):
        return [found.__self__, found.__func__]
    if kind is partial:
        return [found.func, *found.args, *found.keywords.values()]
    if isinstance(found, BaseTool):
        parts = _attributes(found)
        for name in BODY_METHODS:
            parts.append(getattr(kind, name))
        return parts
    # any other object is not looked into: a client of a database holds thousands
    if isinstance(found, Runnable) or kind.__module__.startswith(("langgraph", "langchain")):
        return _attributes(found)
    return []


def _attributes(found: Any) -> list[Any]:
    """The values of an object's attributes, those in slots included."""
    values: list[Any] = []
    fields = getattr(found, "__dict__", None)
    if isinstance(fields, Mapping):
        values.extend(fields.values())
    for cls in type(found).__mro__:
        for name in _slots(cls):
            values.append(getattr(found, name, None))
    return values


def _slots(cls: type) -> list[str]:
    slots = cls.__dict__.get("__slots__", ())
    # __slots__ = "name" is one slot
    names = [slots] if isinstance(slots, str) else list(slots)
    # __dict__ and __weakref__ are no attributes of the author's
    return [name for name in names if not name.startswith("__")]


def _function_parts(function: Any) -> list[Any]:
    """The objects that a function refers to: closure, defaults, globals, and what it wraps."""
    cells = inspect.getclosurevars(function)
    parts: list[Any] = list(cells.nonlocals.values())
    parts.extend(function.__defaults__ or ())
    parts.extend((function.__kwdefaults__ or {}).values())
    for value in cells.globals.values():
        # not modules and classes: they lead to everything
        if isinstance(value, (Runnable, dict, list, tuple)) or inspect.isfunction(value):
            parts.append(value)
    wrapped = getattr(function, "__wrapped__", None)
    if wrapped is not None:
        parts.append(wrapped)
    return parts
