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

_MAX_OBJECTS: Final = 5_000
_CONTAINERS: Final = (list, tuple, set, frozenset)


def unseen_tools(tool: BaseTool, is_guard: Callable[[Any], bool]) -> list[str]:
    """Return the names of tools that a tool reaches through graphs and that nothing governs.

    Args:
        tool: a tool of the guarded agent.
        is_guard: tells of an object whether it is a guard that decides the calls of a graph.
    """
    names: set[str] = set()
    for node in (found for found in _reached([tool]) if isinstance(found, ToolNode)):
        wrappers = [getattr(node, name, None) for name in ("_wrap_tool_call", "_awrap_tool_call")]
        if not any(
            is_guard(part) for part in _reached([one for one in wrappers if one is not None])
        ):
            names.update(
                name
                for name, inner in node.tools_by_name.items()
                if BASE not in type(inner).__dict__
            )
    return sorted(names)


def _reached(start: Iterable[Any]) -> Iterator[Any]:
    waiting, seen = deque(start), set[int]()
    while waiting and len(seen) < _MAX_OBJECTS:
        found = waiting.popleft()
        if id(found) in seen:
            continue
        seen.add(id(found))
        yield found
        waiting.extend(_parts(found))


def _parts(found: Any) -> Iterable[Any]:
    kind = type(found)
    if kind in _CONTAINERS:
        return list(found)
    if kind is dict:
        return list(found.values())
    if inspect.isfunction(found):
        return _of_function(found)
    if inspect.ismethod(found):
        return [found.__self__, found.__func__]
    if kind is partial:
        return [found.func, *found.args, *found.keywords.values()]
    if isinstance(found, BaseTool):
        return [*_attributes(found), *(getattr(type(found), name) for name in BODY_METHODS)]
    if isinstance(found, Runnable) or kind.__module__.startswith(("langgraph", "langchain")):
        return _attributes(found)
    return []


def _attributes(found: Any) -> list[Any]:
    values = getattr(found, "__dict__", None)
    slots = [getattr(found, name, None) for cls in type(found).__mro__ for name in _slots(cls)]
    return [*(values.values() if isinstance(values, Mapping) else ()), *slots]


def _slots(cls: type) -> tuple[str, ...]:
    slots = cls.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in names if not name.startswith("__"))


def _of_function(function: Any) -> list[Any]:
    cells = inspect.getclosurevars(function)
    values = [
        *cells.nonlocals.values(),
        *(function.__defaults__ or ()),
        *(function.__kwdefaults__ or {}).values(),
    ]
    globals_ = [value for value in cells.globals.values() if _may_lead_on(value)]
    wrapped = getattr(function, "__wrapped__", None)
    return [*values, *globals_, *([] if wrapped is None else [wrapped])]


def _may_lead_on(value: Any) -> bool:
    return isinstance(value, (Runnable, dict, list, tuple)) or inspect.isfunction(value)
