"""Reads a file of records, one JSON a line, and checks it by schema, reference and state.

It knows the standard, Agent Tool v0.2.0, and the form of a line (producer, sequence, object,
record). It imports nothing of the package that wrote the file.

    python standard_consumer.py SCHEMAS FILE...

SCHEMAS is the folder with the standard's JSON Schemas. It ends with 1 where something is wrong.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs

Record = dict[str, Any]

SCHEMAS = {
    "tool_declaration": "tool-declaration",
    "tool_interface": "tool-interface",
    "tool_execution_profile": "execution-profile",
    "tool_permission_profile": "permission-profile",
    "tool_surface": "tool-surface",
    "deferred_tool_ref": "deferred-tool",
    "tool_invocation": "invocation",
    "tool_permission_decision": "permission-decision",
    "input_mutation": "input-mutation",
    "tool_hook": "hook",
    "tool_event": "event",
    "tool_progress": "progress",
    "tool_result": "result",
    "tool_result_persistence": "result-persistence",
    "tool_scheduler_policy": "scheduler-policy",
}
# states in which a call waits; every other last state is its end
WAITING = {"awaiting_approval", "needs_input"}
UNFINISHED = {"planned", "selected", "arguments_ready", "pre_hooks_running", "approved", "queued"}
UNFINISHED |= {"running", "partial_result", "post_hooks_running"}
REFUSED = {"denied", "blocked", "schema_parse_failed", "validation_failed"}
ENDS = {f"tool.invocation.{word}" for word in ("succeeded", "failed", "canceled", "timed_out")}
# what the result of a call in a state may be
RESULTS = {
    "succeeded": {"succeeded", "partial_succeeded", "redacted", "too_large"},
    "failed": {"failed", "partial_succeeded", "redacted", "too_large", "synthetic_error"},
    "canceled": {"canceled", "partial_succeeded", "synthetic_error", "discarded"},
    "timed_out": {"timed_out", "partial_succeeded", "synthetic_error"},
    "denied": {"denied", "rejected"},
    "blocked": {"failed", "denied", "synthetic_error"},
    "schema_parse_failed": {"failed", "synthetic_error"},
    "validation_failed": {"failed", "synthetic_error"},
}
FINAL = set().union(*RESULTS.values())


class Consumer:
    """Reads records and notes what is wrong with them."""

    def __init__(self, schemas: Path) -> None:
        self.problems: list[str] = []
        self.records: dict[str, list[Record]] = defaultdict(list)
        self.calls: dict[str, dict[str, list[Record]]] = {}
        self._last: dict[str, int] = {}  # number of the last record of each producer
        self._validators = {}
        for kind, name in SCHEMAS.items():
            text = (schemas / f"agenttool-{name}.schema.json").read_text(encoding="utf-8")
            self._validators[kind] = jsonschema_rs.validator_for(json.loads(text))

    def read(self, lines: Iterable[str]) -> None:
        """Take the lines of a file, in their order."""
        for line in lines:
            entry = json.loads(line)
            producer, sequence = entry["producer"], entry["sequence"]
            if sequence != self._last.get(producer, 0) + 1:
                self.problems.append(f"a gap before record {sequence} of {producer}")
            self._last[producer] = sequence
            self._take(entry["object"], entry["record"])

    def _take(self, kind: str, record: Record) -> None:
        validator = self._validators.get(kind)
        for error in validator.iter_errors(record) if validator else ():
            place = "/".join(str(part) for part in error.instance_path)
            self.problems.append(f"schema: {kind} /{place}: {error.message}")
        self.records[kind].append(record)
        call_id = record.get("invocation_id")
        if call_id is not None:
            self.calls.setdefault(call_id, defaultdict(list))[kind].append(record)

    def check(self) -> Counter[str]:
        """Check what was read; return how many calls are in each state."""
        states: Counter[str] = Counter()
        self.problems += self._tools()
        for call_id, call in self.calls.items():
            if not call["tool_invocation"]:
                self.problems.append(f"{call_id}: no tool_invocation")
                continue
            invocation = call["tool_invocation"][-1]  # later ones replace earlier ones
            states[invocation["status"]] += 1
            for problem in (*self._references(call, invocation), *_states(call, invocation)):
                self.problems.append(f"{call_id}: {problem}")
        return states

    def _ids(self, kind: str, name: str) -> set[str]:
        return {record[name] for record in self.records[kind]}

    def _tools(self) -> Iterator[str]:
        """A declaration's interface and profiles are there."""
        parts = {
            "interface_ref": self._ids("tool_interface", "interface_id"),
            "execution_profile_ref": self._ids("tool_execution_profile", "execution_profile_id"),
            "permission_profile_ref": self._ids("tool_permission_profile", "permission_profile_id"),
        }
        for declaration in self.records["tool_declaration"]:
            for name, known in parts.items():
                if declaration.get(name) not in {None, *known}:
                    yield f"{declaration['tool_id']}: {name} leads nowhere"

    def _references(self, call: dict[str, list[Record]], invocation: Record) -> Iterator[str]:
        """What a call refers to is there, and is its own."""
        result = call["tool_result"][-1] if call["tool_result"] else {}
        is_unknown = (result.get("error") or {}).get("error_class") == "unknown_tool"
        declared = self._ids("tool_declaration", "tool_id")
        # a tool that nobody has is declared by nobody
        if invocation["tool_id"] not in declared and not is_unknown:
            yield f"the tool {invocation['tool_id']} is not declared"
        if invocation.get("surface_id") not in {None, *self._ids("tool_surface", "surface_id")}:
            yield "its surface is not recorded"
        policies = self._ids("tool_scheduler_policy", "scheduler_policy_id")
        if invocation.get("scheduler_policy_ref") not in {None, *policies}:
            yield "its scheduler policy is not recorded"
        for refs, kind, name in (
            (invocation.get("permission_decision_refs"), "tool_permission_decision", "decision_id"),
            (invocation.get("hook_refs"), "tool_hook", "hook_id"),
            (result.get("persistence_refs"), "tool_result_persistence", "decision_id"),
        ):
            if set(refs or ()) != {record[name] for record in call[kind]}:
                yield f"its references are not to its records of {kind}"
        yield from _inputs(call, invocation)


def _inputs(call: dict[str, list[Record]], invocation: Record) -> Iterator[str]:
    """From what the model gave to what was executed, each step is a mutation."""
    known = {invocation.get("observable_input_ref")}
    for mutation in call["input_mutation"]:
        if mutation["from_input_ref"] not in known:
            yield f"{mutation['mutation_id']} begins with another input"
        known.add(mutation["to_input_ref"])
    for name in ("permission_input_ref", "call_input_ref"):
        if name in invocation and invocation[name] not in known:
            yield f"no mutation leads to its {name}"


def _states(call: dict[str, list[Record]], invocation: Record) -> Iterator[str]:
    """The states of a call, its events and its result tell one story."""
    state = invocation["status"]
    has_ended = state not in WAITING | UNFINISHED
    ends = [event for event in call["tool_event"] if event["event_type"] in ENDS]
    finals = [result for result in call["tool_result"] if result["status"] in FINAL]
    if len(ends) != has_ended or len(finals) != has_ended:
        yield f"in {state}, with {len(ends)} terminal events and {len(finals)} terminal results"
    for result in finals:
        if has_ended and result["status"] not in RESULTS.get(state, FINAL):
            yield f"in {state}, with a result in {result['status']}"
    if state in REFUSED and invocation.get("started_at"):
        yield f"in {state}, and started"
    if state == "succeeded" and not invocation.get("started_at"):
        yield "succeeded without a start"
    behaviors = {one["decision_id"]: one["behavior"] for one in call["tool_permission_decision"]}
    refs = invocation.get("permission_decision_refs") or []
    if invocation.get("started_at") and (not refs or behaviors.get(refs[-1]) == "deny"):
        yield "it started without a decision that lets it"
    yield from _steps(invocation)


def _steps(invocation: Record) -> Iterator[str]:
    """The steps of a call are in order, and lead to its state."""
    state = invocation["status"]
    steps = invocation.get("status_transitions") or [{"status": state}]
    if steps[-1]["status"] != state:
        yield f"in {state}, and its last step is {steps[-1]['status']}"
    times = [step["at"] for step in steps if "at" in step]
    if times != sorted(times):
        yield "its steps are not in the order of their times"


def main(schemas: str, *files: str) -> int:
    """Read files of one run, and print what is wrong."""
    consumer = Consumer(Path(schemas))
    for name in files:
        with Path(name).open(encoding="utf-8") as lines:
            consumer.read(lines)
    states = consumer.check()
    count = sum(len(records) for records in consumer.records.values())
    print(f"{count} records of {states.total()} calls: {dict(states.most_common())}")
    for problem in consumer.problems:
        print(problem)
    print(f"{len(consumer.problems)} problems")
    return 1 if consumer.problems else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(print(__doc__))
    sys.exit(main(*sys.argv[1:]))
