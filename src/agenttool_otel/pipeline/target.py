"""What a call runs, and how its arguments get there; each door (Python call, JSON call, framework) has its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agenttool_otel.invocation import Invocation

__all__ = ["Target"]


@dataclass(slots=True)
class Target:
    """What a call runs, and how its arguments get there.

    Attributes:
        function: the callable, bound to its instance.
        bind: fills ``model_input`` and ``bound``; raises TypeError or ValueError for arguments that don't fit.
        rebind: puts a changed JSON input into the call; raises ValueError when it can't be used.
        is_async: whether the callable returns an awaitable.
        streams: whether it returns an iterator whose items are the result.
        collects: whether the callable is a generator function whose items are gathered into one result.
        in_thread: whether a plain callable runs off the event loop; then ``is_async`` is set, and it is none itself.
        unwrap: takes what a model would see out of the return value; the whole value where not given.
    """

    function: Callable[..., Any]
    bind: Callable[[Invocation], None]
    rebind: Callable[[Invocation, dict[str, Any], dict[str, Any]], None]
    is_async: bool = False
    streams: bool = False
    collects: bool = False
    in_thread: bool = False
    unwrap: Callable[[Any], Any] | None = None
