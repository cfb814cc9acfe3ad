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

_PATIENCE: Final = 0.25  # seconds that a sibling which has not come is waited for

_turns: weakref.WeakValueDictionary[tuple[Any, ...], Turn] = weakref.WeakValueDictionary()
_mutex = new_lock()


@contextmanager
def in_turn(request: ToolCallRequest, tool: GovernedTool) -> Iterator[None]:
    """Give the call that is made inside the block its place among its siblings."""
    gate = tool.governor.pipeline.gate
    place = _place(request, gate)
    if place is None:
        yield
        return
    token = next_place.set((place, current_call()))
    try:
        yield
    finally:
        next_place.reset(token)
        gate.give_up(place)


def _place(request: ToolCallRequest, gate: Gate) -> Place | None:
    """The place of a call among its siblings; ``None`` where it has none, or can't be found."""
    message = _calling_message(request.state)
    if message is None:
        return None
    call_ids = [call.get("id") for call in message.tool_calls]
    call_id = request.tool_call.get("id")
    if len(call_ids) < 2 or call_id is None:
        return None
    # two calls of one id can't be distinguished
    if call_ids.count(call_id) != 1:
        return None
    key = (id(gate), _thread(), getattr(message, "id", None) or id(message))
    index = call_ids.index(call_id)
    with _mutex:
        turn = _turns.get(key)
        # the node runs again after a pause: the same message is a turn of its own
        if turn is None or index in turn.open:
            turn = Turn(range(len(call_ids)), _PATIENCE)
            _turns[key] = turn
        place = Place(turn, index)
        gate.arrive(place)
    return place


def _thread() -> Any:
    config = var_child_runnable_config.get() or {}
    configurable = config.get("configurable") or {}
    return configurable.get("thread_id")


def _calling_message(state: Any) -> Any:
    """The last message of a state that has tool calls; ``None`` without one."""
    for message in reversed(_messages(state)):
        if getattr(message, "tool_calls", None):
            return message
    return None


def _messages(state: Any) -> list[Any]:
    messages = state
    if isinstance(state, dict):
        messages = state.get("messages")
    elif hasattr(state, "messages"):
        messages = state.messages
    # ToolNode may be given a list of messages as its state
    return messages if isinstance(messages, list) else []
