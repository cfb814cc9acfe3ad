"""No tool runs that was refused, undecided, or hidden."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agenttool_otel.conformance.rules.journal import (
    REFUSED_STATES,
    CallRecords,
    Journal,
    Record,
    Violation,
    of_each_call,
)


def refused_calls_never_run(journal: Journal) -> Iterator[Violation]:
    """No body of a denied, rejected, invalid or blocked call ran."""
    for call in journal.calls.values():
        if call.state not in REFUSED_STATES:
            continue
        if journal.is_noted(call):
            message = f"the body of a call in {call.state} ran"
            yield Violation("ran.refused", message, (call.id,))
        for trace in call.traces_of_run:
            message = f"a call in {call.state} has {trace}"
            yield Violation("ran.refused", message, (call.id,))


def decided_calls_alone_run(journal: Journal) -> Iterator[Violation]:
    """What ran has a decision that lets it run: neither a deny, nor an ask without an answer."""
    for call in journal.calls.values():
        if call.invocation is not None and journal.has_run(call):
            fault = _undecided(call)
            if fault:
                yield Violation("ran.decided", fault, (call.id,))


def _undecided(call: CallRecords) -> str:
    decision = decision_in_force(call)
    if decision is None:
        return "a call ran without a decision"
    # a shadow policy decides, and nobody is bound by it
    if decision.get("enforced") is False:
        return ""
    # a passthrough leaves the call to another layer, whose decision would be the last one
    if decision["behavior"] in ("deny", "passthrough"):
        return f"a call ran on the decision {decision['behavior']}"
    if decision["behavior"] == "ask" and "approved" not in call.states:
        return "a call ran on the decision ask"
    return ""


def decision_in_force(call: CallRecords) -> Record | None:
    """Return the last decision that an invocation refers to."""
    by_id = {record["decision_id"]: record for record in call.of("tool_permission_decision")}
    refs = list((call.invocation or {}).get("permission_decision_refs") or by_id)
    for ref in reversed(refs):
        if ref in by_id:
            return by_id[ref]
    return None


def unrecorded_calls_never_run(journal: Journal) -> Iterator[Violation]:
    """Every call whose body ran is in the records."""
    known = set(journal.calls)
    for entry in journal.of("tool_invocation"):
        known.add(str(entry.record.get("native_call_id")))
    for call_id in sorted(journal.ran - known):
        yield Violation("ran.recorded", "the body of a call ran that no record names", (call_id,))


@of_each_call("ran.started")
def started_calls_say_so(call: CallRecords) -> Iterator[str]:
    """A call that ran, or succeeded, has the time at which it started."""
    invocation = call.invocation
    if invocation is None or not call.has_ended or invocation.get("started_at"):
        return
    if call.state == "succeeded" or "running" in call.states:
        yield f"a call in {call.state} ran and has no started_at"


def blocked_tools_never_run(journal: Journal) -> Iterator[Violation]:
    """No tool runs that the call's surface blocks."""
    surfaces = journal.by_id("tool_surface")
    for call in journal.calls.values():
        invocation = call.invocation
        if invocation is None or not journal.has_run(call):
            continue
        surface = surfaces.get(str(invocation.get("surface_id")), {})
        blocked = {tool_of(call_id) for call_id in surface.get("blocked_tools") or ()}
        if invocation["tool_id"] in blocked:
            message = "a call ran whose tool its surface blocks"
            yield Violation("ran.surface", message, (call.id, surface["surface_id"]))


def tool_of(listed: object) -> str:
    """Return the tool that a surface lists: by its id, or as an object with it."""
    if isinstance(listed, Mapping):
        return str(listed.get("tool_id") or listed.get("name") or "")
    return str(listed)
