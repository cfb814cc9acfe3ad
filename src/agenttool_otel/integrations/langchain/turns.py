"""The calls of one message of a model, which LangGraph runs beside each other, as calls that belong
together.

Calls that may run together do, every other one runs alone, after those before it. LangGraph shows a
wrapper one call at a time; the message that it comes from names its siblings. One of them may never
come: other middleware answers it, or the graph pauses. So it is waited for a moment only; one that
has come is waited for until it ends.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from langchain_core.runnables.config import var_child_runnable_config
from langgraph.prebuilt.tool_node import ToolCallRequest

from agenttool_otel.call.running.handle import current_call
from agenttool_otel.call.scheduling.gate import Gate, Place, Turn, next_place
from agenttool_otel.call.tool import GovernedTool
from agenttool_otel.values.forks import new_lock

_PATIENCE: Final = 0.25

_turns: weakref.WeakValueDictionary[tuple[Any, ...], Turn] = weakref.WeakValueDictionary()
_mutex = new_lock()


@contextmanager
def in_turn(request: ToolCallRequest, tool: GovernedTool) -> Iterator[None]:
    """Give the call that is made inside the block its place among its siblings."""
    gate = tool.governor.pipeline.gate
    if (place := _place(request, gate)) is None:
        yield
        return
    token = next_place.set((place, current_call()))
    try:
        yield
    finally:
        next_place.reset(token)
        gate.give_up(place)


def _place(request: ToolCallRequest, gate: Gate) -> Place | None:
    call_id = request.tool_call.get("id")
    message = next(
        (one for one in reversed(_messages(request.state)) if getattr(one, "tool_calls", None)),
        None,
    )
    calls = [call.get("id") for call in message.tool_calls] if message is not None else []
    if len(calls) < 2 or call_id is None or calls.count(call_id) != 1:
        return None
    config = var_child_runnable_config.get() or {}
    thread = (config.get("configurable") or {}).get("thread_id")
    key = (id(gate), thread, getattr(message, "id", None) or id(message))
    index = calls.index(call_id)
    with _mutex:
        turn = _turns.get(key)
        if turn is None or index in turn.open:
            turn = _turns[key] = Turn(range(len(calls)), _PATIENCE)
        place = Place(turn, index)
        gate.arrive(place)
    return place


def _messages(state: Any) -> list[Any]:
    found = state.get("messages") if isinstance(state, dict) else getattr(state, "messages", state)
    return found if isinstance(found, list) else []
