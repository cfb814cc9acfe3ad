"""The states of a call follow each other as the standard's lifecycle has them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from agenttool_otel.conformance.rules.journal import (
    TERMINAL_STATES,
    CallRecords,
    of_each_call,
    states_of,
)

_STAGES: Final = {
    "planned": 0,
    "selected": 1,
    "arguments_ready": 2,
    # in any order and more than once: a call may queue before it is decided, and hooks run again
    # on an input that was changed
    "pre_hooks_running": 3,
    "awaiting_approval": 3,
    "approved": 3,
    "queued": 3,
    # of a tool that runs elsewhere, before it is running; of another one while it runs
    "needs_input": 4,
    "running": 4,
    "partial_result": 4,
    "post_hooks_running": 5,
    "yielded": 6,
}
"""How far a call is in each state that is no end."""

_AGAIN: Final = 3
"""The stage from which a call goes on that needed input."""

_RUNNING: Final = {"running", "partial_result", "post_hooks_running"}


@of_each_call("state.transition")
def legal_transitions(call: CallRecords) -> Iterator[str]:
    """No state follows a terminal one or goes back, and the last one is the call's."""
    states = call.states
    if not states:
        return
    if states[-1] != call.state:
        yield f"a call in {call.state} has {states[-1]} as its last transition"
    for before, after in pairwise(states):
        fault = _fault_of(before, after)
        if fault:
            yield fault
    if "awaiting_approval" in states and _RUNNING & set(states) and "approved" not in states:
        yield "a call ran that awaited an approval and got none"


def _fault_of(before: str, after: str) -> str:
    if before in TERMINAL_STATES:
        return f"{after} follows {before}, which is an end"
    if before not in _STAGES:
        return f"{before} is no state of an invocation"
    if after in TERMINAL_STATES:
        return ""
    if after not in _STAGES:
        return f"{after} is no state of an invocation"
    # a tool asked for input, and its framework makes the call again: the policy may ask now
    stage = _AGAIN if before == "needs_input" else _STAGES[before]
    if _STAGES[after] < stage:
        return f"{after} follows {before}"
    return ""


@of_each_call("state.transition")
def earlier_states_stay(call: CallRecords) -> Iterator[str]:
    """A later record of an invocation has every state of an earlier one."""
    for earlier, later in pairwise(call.of("tool_invocation")):
        kept = states_of(earlier)
        if states_of(later)[: len(kept)] != kept:
            yield "a later record of a call leaves out its earlier states"
