"""Every call that ended has one terminal event and one terminal result, and they agree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agenttool_otel.conformance.rules.journal import (
    END_EVENTS,
    RESULT_STATES,
    TERMINAL_STATES,
    CallRecords,
    Record,
    error_class_of,
    of_each_call,
)

_RESULTS: Final = {
    "succeeded": {"succeeded", "partial_succeeded", "redacted", "too_large"},
    # "a tool result may be partial": a body that fails or is stopped may give what it has
    "failed": {"failed", "partial_succeeded", "redacted", "too_large", "synthetic_error"},
    "canceled": {"canceled", "partial_succeeded", "synthetic_error", "discarded"},
    "timed_out": {"timed_out", "partial_succeeded", "synthetic_error"},
    "denied": {"denied", "rejected"},
    "blocked": {"failed", "denied", "synthetic_error"},
    "schema_parse_failed": {"failed", "synthetic_error"},
    "validation_failed": {"failed", "synthetic_error"},
}
"""Result states that agree with the terminal state of an invocation."""

_EVENTS: Final = {
    "succeeded": "tool.invocation.succeeded",
    "canceled": "tool.invocation.canceled",
    "timed_out": "tool.invocation.timed_out",
}
"""The terminal event of a state; that of the others is ``tool.invocation.failed``."""

_OWN_CLASSES: Final = {
    "permission_denied": {"denied"},
    "approval_rejected": {"rejected"},
    "timeout": {"timed_out", "partial_succeeded", "synthetic_error"},
    "canceled": {"canceled", "partial_succeeded", "synthetic_error"},
    "sibling_canceled": {"canceled", "synthetic_error"},
    "streaming_fallback_discarded": {"discarded", "synthetic_error"},
    "result_too_large": {"too_large"},
    "result_redacted": {"redacted"},
    # the tool did what was asked, and only then something broke
    "post_hook_failed": {"succeeded", "partial_succeeded", "failed"},
    "partial_failure": {"partial_succeeded", "failed"},
}
"""Result states of the error classes that have their own."""

_OF_INNER_CALLS: Final = {"permission_denied", "approval_rejected"}
"""Error classes by which a body may fail because a call that it made did not run."""

_OTHER_CLASSES: Final = {"failed", "denied", "synthetic_error"}
"""Result states of every other error class."""

_CLASSES: Final = {
    "timed_out": {"timeout"},
    "rejected": {"approval_rejected"},
    "redacted": {"result_redacted"},
    "too_large": {"result_too_large"},
    "canceled": {"canceled", "sibling_canceled"},
    "discarded": {"streaming_fallback_discarded"},
}
"""Error classes of the result states that have their own."""

_INVALID: Final = {
    "schema_validation_failed": {"schema_parse_failed", "validation_failed"},
    "invalid_arguments": {"validation_failed"},
}
"""Terminal states of the error classes of arguments."""

_ERRORS: Final = {
    "failed",
    "denied",
    "rejected",
    "canceled",
    "timed_out",
    "synthetic_error",
    "discarded",
}
"""Result states of which ``is_error`` is true."""


@of_each_call("ending.event")
def one_terminal_event(call: CallRecords) -> Iterator[str]:
    """A call that ended has one terminal event; another one has none."""
    count = len(call.events(*END_EVENTS))
    if count != _expected(call):
        yield f"a call in {_state(call)} has {count} terminal events"


@of_each_call("ending.result")
def one_terminal_result(call: CallRecords) -> Iterator[str]:
    """A call that ended has one terminal result; another one has none."""
    count = 0
    for result in call.of("tool_result"):
        if result["status"] in RESULT_STATES:
            count += 1
    if count != _expected(call):
        yield f"a call in {_state(call)} has {count} terminal results"


@of_each_call("ending.early")
def waiting_calls_have_no_end(call: CallRecords) -> Iterator[str]:
    """A call that waits has neither the time of an end nor the event of a result."""
    for invocation in call.of("tool_invocation"):
        state = invocation["status"]
        if state not in TERMINAL_STATES and invocation.get("ended_at"):
            yield f"a call in {state} has the ended_at {invocation['ended_at']}"
    if not call.has_ended and call.events("tool.result.created"):
        yield f"a call in {_state(call)} has the event tool.result.created"


def _expected(call: CallRecords) -> int:
    return 1 if call.has_ended else 0


def _state(call: CallRecords) -> str:
    return call.state or "no recorded state"


@of_each_call("ending.status")
def ends_agree(call: CallRecords) -> Iterator[str]:
    """The terminal event, the invocation and the result of a call agree."""
    if not call.has_ended:
        return
    expected = _EVENTS.get(call.state, "tool.invocation.failed")
    for event in call.events(*END_EVENTS):
        if event["event_type"] != expected:
            yield f"a call in {call.state} ends with the event {event['event_type']}"
    if call.result is not None and call.result["status"] not in _RESULTS[call.state]:
        yield f"a call in {call.state} has a result in {call.result['status']}"


@of_each_call("ending.error")
def errors_agree(call: CallRecords) -> Iterator[str]:
    """The error class of a result agrees with its status, and ``is_error`` with both."""
    for result in call.of("tool_result"):
        yield from _error_faults(result, call)


def _error_faults(result: Record, call: CallRecords) -> Iterator[str]:
    status = result["status"]
    error_class = error_class_of(result)
    is_error = bool(result.get("is_error"))
    if status not in RESULT_STATES:
        if is_error:
            yield f"a result in {status} is no end, and has is_error"
        return
    if status in _ERRORS and not is_error:
        yield f"a result in {status} lacks is_error"
    if status == "succeeded" and is_error:
        yield "a result in succeeded has is_error"
    if is_error and not error_class:
        yield f"a result in {status} is an error of no class"
    if not error_class:
        return
    states = _states_of(error_class, call)
    classes = _CLASSES.get(status, {error_class})
    if status not in states or error_class not in classes:
        yield f"a result in {status} has the error class {error_class}"
    if call.has_ended and call.state not in _INVALID.get(error_class, {call.state}):
        yield f"a call in {call.state} has the error class {error_class}"


def _states_of(error_class: str, call: CallRecords) -> set[str]:
    """The result states that agree with an error class."""
    states = _OWN_CLASSES.get(error_class, _OTHER_CLASSES)
    # the body of a call that ran made another call, which was denied: it fails for that
    if error_class in _OF_INNER_CALLS and call.traces_of_run:
        return {*states, "failed"}
    return states


@of_each_call("ending.result_id")
def one_result_id(call: CallRecords) -> Iterator[str]:
    """All results of a call have one id, and the terminal one comes last."""
    results = call.of("tool_result")
    ids = {result["result_id"] for result in results}
    if len(ids) > 1:
        yield f"a call has results of {len(ids)} ids"
    ended = False
    for result in results:
        if result["status"] in RESULT_STATES:
            ended = True
        elif ended:
            yield f"a result in {result['status']} follows the terminal one"
