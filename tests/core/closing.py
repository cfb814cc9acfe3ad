"""A coroutine that is closed where it waits, as the collector does with a task whose loop is gone."""

from __future__ import annotations

import types
from collections.abc import Callable, Coroutine
from typing import Any


@types.coroutine
def closed_once(due: Callable[[], object], coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Await a coroutine, and close it at its first pause where that is due; return its value, or
    "closed".
    """
    while True:
        try:
            pause = coroutine.send(None)
        except StopIteration as end:
            return end.value
        if due():
            coroutine.close()
            return "closed"
        yield pause
