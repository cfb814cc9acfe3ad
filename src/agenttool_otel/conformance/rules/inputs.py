"""The four inputs of a call are joined by its mutations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agenttool_otel.conformance.rules.journal import CallRecords, Journal, Record, Violation

_INVALID: Final = {"schema_parse_failed", "validation_failed"}


def inputs_are_joined(journal: Journal) -> Iterator[Violation]:
    """What was decided and what ran is what was observed, or what a mutation made of it."""
    tools = journal.by_id("tool_declaration")
    for call in journal.calls.values():
        tool = tools.get(str((call.invocation or {}).get("tool_id")), {})
        for message in _faults(call, _internal_pointers(tool)):
            yield Violation("ref.input", message, (call.id,))


def _internal_pointers(tool: Record) -> set[str]:
    """Pointers to the arguments of a declared tool that no model may give."""
    contract = tool.get("input_contract")
    if not contract:
        return set()
    pointers = set()
    for name in contract.get("internal_only_fields") or ():
        pointers.add(f"/{name}")
    return pointers


def _faults(call: CallRecords, internal: set[str]) -> Iterator[str]:
    invocation = call.invocation
    known = _observed(call)
    # a producer that keeps no references of its inputs
    if invocation is None or not known:
        return
    for mutation in call.of("input_mutation"):
        known.add(mutation.get("to_input_ref"))
    yield from _mutation_faults(call, known, internal)
    # an update that does not fit the schema ends the call, and becomes no input
    if call.state in _INVALID:
        return
    for name in ("permission_input_ref", "call_input_ref"):
        if invocation.get(name) not in known:
            yield f"no mutation made the {name}"
    for decision in call.of("tool_permission_decision"):
        if decision.get("updated_input_ref") not in known:
            yield f"no mutation made the updated input of {decision['decision_id']}"


def _observed(call: CallRecords) -> set[str | None]:
    """The references of what a model gave and of its normalised copy; a missing one is none."""
    known = set()
    for invocation in call.of("tool_invocation"):
        known.add(invocation.get("model_input_ref"))
        known.add(invocation.get("observable_input_ref"))
    if known <= {None}:
        return set()
    known.add(None)
    return known


def _mutation_faults(
    call: CallRecords, known: set[str | None], internal: set[str]
) -> Iterator[str]:
    for mutation in call.of("input_mutation"):
        name = mutation["mutation_id"]
        before = mutation.get("from_input_ref")
        after = mutation.get("to_input_ref")
        is_same = before is not None and before == after
        if is_same and not _is_internal(mutation, internal):
            yield f"the mutation {name} changes nothing"
        if before not in known:
            yield f"the mutation {name} begins with no input of this call"


def _is_internal(mutation: Record, internal: set[str]) -> bool:
    """Whether a mutation gives internal-only fields alone: no input that is referred to has them."""
    marked = set(internal)
    for field in mutation.get("fields") or ():
        if field.get("visibility") == "internal":
            marked.add(field.get("pointer"))
    if not marked:
        return False
    changed = mutation.get("changed_fields") or ()
    return marked.issuperset(changed)
