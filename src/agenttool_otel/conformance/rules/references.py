"""Every reference leads to a record, and to one of the same call or tool."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from agenttool_otel.conformance.rules.journal import (
    CallRecords,
    Entry,
    Journal,
    Record,
    Violation,
    of_each_call,
)
from agenttool_otel.conformance.rules.running import tool_of

_PROFILES: Final = {
    "execution_profile_ref": "tool_execution_profile",
    "permission_profile_ref": "tool_permission_profile",
}
_HOOK_EVENTS: Final = (
    "tool.hook.pre.started",
    "tool.hook.pre.completed",
    "tool.hook.post.started",
    "tool.hook.post.completed",
)
_LISTS: Final = ("tool_refs", "loaded_tools", "deferred_tools")
_MOST_IDS: Final = 5


def tools_are_declared(journal: Journal) -> Iterator[Violation]:
    """Every tool that a record names is declared, before the first record that names it."""
    declared = {entry.id: entry.place for entry in reversed(list(journal.of("tool_declaration")))}
    known = declared | {entry.id: entry.place for entry in journal.of("deferred_tool_ref")}
    unknown = {call.id for call in journal.calls.values() if call.error_class == "unknown_tool"}
    missing: dict[str, list[str]] = {}
    late: dict[str, list[str]] = {}
    for entry in journal.entries:
        if entry.record.get("invocation_id") in unknown:
            continue
        for tool in _tools_named(entry):
            if tool not in known:
                missing.setdefault(tool, []).append(entry.id)
            elif entry.kind != "tool_surface" and declared.get(tool, -1) > entry.place:
                late.setdefault(tool, []).append(entry.id)
    for tool, ids in missing.items():
        yield Violation("ref.tool", f"the tool {tool} is not declared", _few(ids))
    for tool, ids in late.items():
        message = f"the tool {tool} is declared after records that name it"
        yield Violation("ref.declared_first", message, _few(ids))


def _tools_named(entry: Entry) -> Iterator[str]:
    """Yield the tools that a record names; a deferred one is named before it is declared."""
    record = entry.record
    if entry.kind == "tool_surface":
        deferred = {tool_of(ref) for ref in record.get("deferred_tools") or ()}
        for name in _LISTS:
            for listed in record.get(name) or ():
                if tool_of(listed) not in deferred:
                    yield tool_of(listed)
    elif entry.kind not in ("tool_declaration", "deferred_tool_ref"):
        tool = record.get("tool_id")
        if isinstance(tool, str):
            yield tool


@of_each_call("ref.unknown_tool")
def unknown_tools_keep_their_names(call: CallRecords) -> Iterator[str]:
    """A call of a tool that nobody has names what was asked for, and no id that was made up."""
    if call.error_class != "unknown_tool" or call.invocation is None:
        return
    asked = _function_name(call.invocation)
    tool_id = call.invocation["tool_id"]
    if asked and tool_id != asked:
        yield f"a call of the unknown tool {asked} has the tool_id {tool_id}"


def _function_name(invocation: Record) -> str:
    for mapping in invocation.get("external_mappings") or ():
        if mapping.get("function_name"):
            return str(mapping["function_name"])
    return ""


def declarations_have_their_parts(journal: Journal) -> Iterator[Violation]:
    """The interface and the profiles of a declaration are recorded, and are of the same tool."""
    interfaces = journal.by_id("tool_interface")
    for entry in journal.of("tool_declaration"):
        ref = entry.record.get("interface_ref")
        if ref is None:
            continue
        interface = interfaces.get(ref)
        if interface is None:
            yield Violation("ref.interface", f"there is no interface {ref}", (entry.id,))
            continue
        if interface["tool_id"] != entry.id:
            message = f"the interface {ref} is that of the tool {interface['tool_id']}"
            yield Violation("ref.interface", message, (entry.id,))
        for name in _PROFILES:
            if interface.get(name) != entry.record.get(name):
                message = f"declaration and interface have different {name}s"
                yield Violation("ref.profile", message, (entry.id, ref))


def profiles_are_those_of_their_tools(journal: Journal) -> Iterator[Violation]:
    """Every profile that is referred to is recorded, and every recorded one is referred to."""
    for name, kind in _PROFILES.items():
        recorded = journal.by_id(kind)
        used = _references(journal, name)
        for ref, owner in used.items():
            if ref not in recorded:
                yield Violation("ref.profile", f"there is no {kind} {ref}", (owner,))
        for ref in recorded.keys() - used.keys():
            yield Violation("ref.profile", f"no tool has the {kind} {ref}", (ref,))


def _references(journal: Journal, name: str) -> dict[str, str]:
    """The references in a field of declarations and interfaces, each with a record that has it."""
    found = {}
    for kind in ("tool_declaration", "tool_interface"):
        for entry in journal.of(kind):
            if entry.record.get(name) is not None:
                found[entry.record[name]] = entry.id
    return found


def surfaces_and_policies_exist(journal: Journal) -> Iterator[Violation]:
    """The surface and the scheduler policy of an invocation, and its parent, are recorded."""
    surfaces = journal.by_id("tool_surface")
    policies = journal.by_id("tool_scheduler_policy")
    for entry in journal.of("tool_invocation"):
        surface = entry.record.get("surface_id")
        if surface is not None and surface not in surfaces:
            yield Violation("ref.surface", f"there is no surface {surface}", (entry.id,))
        policy = entry.record.get("scheduler_policy_ref")
        if policy is not None and policy not in policies:
            message = f"there is no scheduler policy {policy}"
            yield Violation("ref.scheduler_policy", message, (entry.id,))
        parent = entry.record.get("parent_invocation_id")
        if parent is not None and parent not in journal.calls:
            yield Violation("ref.parent", f"there is no call {parent}", (entry.id,))


@of_each_call("ref.decision")
def decisions_are_those_of_the_call(call: CallRecords) -> Iterator[str]:
    """An invocation refers to all of its decisions, in records and events, and to no others."""
    if call.invocation is None:
        return
    recorded = ids_of(call, "tool_permission_decision", "decision_id")
    refs = set(call.invocation.get("permission_decision_refs") or ())
    decided = _ids_in_events(call, "decision_id", "tool.permission.decided")
    yield from _differences("decision", recorded, refs, decided)


@of_each_call("ref.mutation")
def mutations_are_those_of_the_call(call: CallRecords) -> Iterator[str]:
    """Invocation and result refer to the call's mutations, and to no others."""
    if call.invocation is None:
        return
    recorded = ids_of(call, "input_mutation", "mutation_id")
    refs = call.invocation.get("mutation_refs")
    if refs is not None:
        yield from _differences("mutation", recorded, set(refs))
    # the standard names no field for them: one that is there lists all
    listed = (call.result or {}).get("input_mutations")
    if listed is not None:
        ids = {mutation.get("mutation_id") for mutation in listed}
        yield from _differences("mutation", recorded, ids)


@of_each_call("ref.hook")
def hooks_are_those_of_the_call(call: CallRecords) -> Iterator[str]:
    """An invocation refers to all hooks that ran for it, in records and events."""
    if call.invocation is None:
        return
    recorded = ids_of(call, "tool_hook", "hook_id")
    refs = set(call.invocation.get("hook_refs") or ())
    ran = _ids_in_events(call, "hook_id", *_HOOK_EVENTS)
    yield from _differences("hook", recorded, refs, ran)


def _differences(
    what: str,
    recorded: set[Any],
    refs: set[Any],
    seen: Iterable[Any] = (),
) -> Iterator[str]:
    """Compare the ids of recorded objects with those in references, and in events."""
    for missing in (refs | set(seen)) - recorded:
        yield f"there is no {what} {missing} of this call"
    for left in recorded - refs:
        yield f"nothing refers to the {what} {left} of this call"


def ids_of(call: CallRecords, kind: str, name: str) -> set[str]:
    """Return the ids of a call's records of one object."""
    return {record[name] for record in call.of(kind)}


def _ids_in_events(call: CallRecords, name: str, *classes: str) -> set[str]:
    """Return what a member of the data of events holds; empty where it is not given."""
    ids = {(event.get("data") or {}).get(name) for event in call.events(*classes)}
    return {ref for ref in ids if isinstance(ref, str)}


@of_each_call("ref.persistence")
def persistence_is_that_of_the_result(call: CallRecords) -> Iterator[str]:
    """A result refers to its persistence, whose ``result_id`` is that of the result."""
    decisions = {record["decision_id"]: record for record in call.of("tool_result_persistence")}
    results = ids_of(call, "tool_result", "result_id")
    for decision_id, decision in decisions.items():
        result_id = decision.get("result_id")
        if result_id not in {None, *results}:
            yield f"{decision_id} is the persistence of {result_id}, no result of this call"
    # a call that waits has no terminal result, and a persistence only after it
    if call.result is None:
        return
    refs = set(call.result.get("persistence_refs") or ())
    for ref in refs - decisions.keys():
        yield f"there is no persistence {ref} of this call"
    for decision_id in decisions.keys() - refs:
        yield f"the result does not refer to its persistence {decision_id}"


@of_each_call("ref.evidence")
def evidence_is_that_of_the_call(call: CallRecords) -> Iterator[str]:
    """Invocation and result have the same evidence and policies."""
    if call.invocation is None or call.result is None:
        return
    for name in ("evidence_refs", "policy_refs"):
        of_result = set(call.result.get(name) or ())
        of_invocation = set(call.invocation.get(name) or ())
        for ref in sorted(of_result ^ of_invocation):
            yield f"{ref} is in {name} of the invocation or of the result alone"
    asked = call.invocation.get("approval_request_ref")
    if asked is not None and not call.invocation.get("evidence_refs"):
        yield f"nothing proves what was answered to the request {asked}"


def _few(ids: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ids))[:_MOST_IDS]
