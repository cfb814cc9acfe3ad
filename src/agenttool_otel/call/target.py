"""What a call runs, and how its arguments get there; each door (Python call, JSON call, framework)
has its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agenttool_otel.call.invocation import Invocation


@dataclass(slots=True)
class Target:
    """What a call runs, and how its arguments get there."""

    function: Callable[..., Any]  # the callable, bound to its instance
    # fills ``model_input`` and ``bound``; raises TypeError or ValueError for arguments that don't
    # fit
    bind: Callable[[Invocation], None]
    # puts a changed JSON input into the call; raises ValueError when it can't be used
    rebind: Callable[[Invocation, dict[str, Any], dict[str, Any]], None]
    is_async: bool = False  # whether the callable returns an awaitable
    streams: bool = False  # whether it returns an iterator whose items are the result
    # whether the callable is a generator function whose items are gathered into one result
    collects: bool = False
    # whether a plain callable runs off the event loop; then ``is_async`` is set, and it is none
    # itself
    in_thread: bool = False
    # takes what a model would see out of the return value; the whole value where not given
    unwrap: Callable[[Any], Any] | None = None
