"""What holds over all records of a run, whatever it did.

Pure functions over plain records, of this package or of any other implementation of the standard. A
scenario shows what one call does; an invariant is true of every call.

| rule | what it asks |
|---|---|
| ``schema`` | every record fits the standard's JSON Schema |
| ``ending.event``, ``ending.result`` | a call that ended has one of each, another call has none |
| ``ending.early`` | a call that waits has no ``ended_at`` and no event of a result |
| ``ending.status``, ``ending.error`` | event, invocation, result and error class agree |
| ``ending.result_id`` | all results of a call have one id, and the terminal one comes last |
| ``ran.refused`` | no body of a denied, rejected, invalid or blocked call ran |
| ``ran.decided`` | what ran has a decision that lets it run |
| ``ran.surface`` | no tool ran that the call's surface blocks |
| ``ran.recorded``, ``ran.started`` | what ran is in the records, with the time at which it started |
| ``ref.*`` | every reference leads to a record, of the same call or tool; a tool is declared first |
| ``state.transition`` | no state follows a terminal one or goes back, and the last one is the call's |
| ``time.plausible``, ``time.order`` | times are real, and in the order of what happened |
| ``order.sequence`` | each producer numbers its records without a gap |
| ``order.progress``, ``order.end`` | progress goes forward, and nothing leads to an end that was |
| ``schedule.facts``, ``schedule.exclusive`` | a call's facts are its tool's; unsafe calls run one by one |
| ``size.inline``, ``size.preview`` | what is inline fits the limit, a preview is smaller than the whole |
| ``id.unique``, ``id.kept`` | an id stands for one thing, which stays what it was |
| ``canary`` | none of the caller's canaries is in a record or a span |
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from agenttool_otel.conformance.rules import (
    endings,
    identity,
    inputs,
    order,
    references,
    running,
    schedule,
    sizes,
    states,
    times,
)
from agenttool_otel.conformance.rules.journal import (
    Journal,
    Rule,
    Violation,
    read_journal,
    texts_of,
)

__all__ = ["RULES", "Violation", "find_violations"]

RULES: Final[tuple[Rule, ...]] = (
    endings.one_terminal_event,
    endings.one_terminal_result,
    endings.waiting_calls_have_no_end,
    endings.ends_agree,
    endings.errors_agree,
    endings.one_result_id,
    running.refused_calls_never_run,
    running.decided_calls_alone_run,
    running.unrecorded_calls_never_run,
    running.started_calls_say_so,
    running.blocked_tools_never_run,
    references.tools_are_declared,
    references.unknown_tools_keep_their_names,
    references.declarations_have_their_parts,
    references.profiles_are_those_of_their_tools,
    references.surfaces_and_policies_exist,
    references.decisions_are_those_of_the_call,
    references.mutations_are_those_of_the_call,
    references.hooks_are_those_of_the_call,
    references.persistence_is_that_of_the_result,
    references.evidence_is_that_of_the_call,
    inputs.inputs_are_joined,
    states.legal_transitions,
    states.earlier_states_stay,
    times.times_are_plausible,
    times.times_follow_each_other,
    order.sequence_has_no_gap,
    order.progress_goes_forward,
    order.nothing_follows_the_end,
    schedule.facts_are_those_of_the_tool,
    schedule.unsafe_calls_run_one_by_one,
    sizes.previews_are_smaller,
    sizes.inline_content_fits,
    identity.ids_are_unique,
    identity.result_ids_are_unique,
    identity.records_stay_as_they_were,
    identity.invocations_keep_what_they_are,
)
"""The rules, each a function of all records."""


def find_violations(
    records: Iterable[Mapping[str, Any]],
    *,
    ran: Iterable[str] = (),
    canaries: Sequence[str] = (),
    spans: Iterable[Any] = (),
) -> list[Violation]:
    """Return what records show that must not be so.

    Args:
        records: records in the order in which a sink received them, each as ``{"object": the
            standard's name of it, "record": it}``, and maybe with ``producer`` and ``sequence``,
            1, 2, 3 ... of that producer. All of a run: a reference to a record that is left out
            leads nowhere.
        ran: ids of the calls whose body ran, invocation ids or native call ids, from someone who
            knows, such as the bodies themselves.
        canaries: texts that were in arguments or results, and must be in no record and no span.
        spans: what else was recorded: spans of the OpenTelemetry SDK, or JSON data.

    Returns:
        The violations, by rule; none where all holds.
    """
    journal = read_journal(records, ran)
    found = [*journal.misfits]
    for rule in RULES:
        found += rule(journal)
    found += _canaries(journal, canaries, spans)
    return found


def _canaries(
    journal: Journal, canaries: Sequence[str], spans: Iterable[Any]
) -> Iterator[Violation]:
    if not canaries:
        return
    for entry in journal.numbered:
        for number in _found(entry.record, canaries):
            message = f"canary {number} is in a {entry.kind}"
            yield Violation("canary", message, (entry.id,))
    for place, span in enumerate(spans):
        for number in _found(_plain(span), canaries):
            yield Violation("canary", f"canary {number} is in a span", (f"span {place}",))


def _found(data: Any, canaries: Sequence[str]) -> list[int]:
    """Return the numbers, from 1, of the canaries in JSON data: their text is not repeated."""
    text = "\n".join(texts_of(data))
    return [number for number, canary in enumerate(canaries, 1) if canary in text]


def _plain(span: Any) -> Any:
    """Return a span as JSON data."""
    to_json = getattr(span, "to_json", None)
    return span if to_json is None else json.loads(to_json())
