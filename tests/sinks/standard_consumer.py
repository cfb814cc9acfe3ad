"""Rebuilds calls from a file of records. It knows the standard's objects and fields and the form of
a line, no more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TERMINAL = {
    *("succeeded", "failed", "canceled", "timed_out", "denied", "rejected", "blocked", "yielded"),
    *("validation_failed", "schema_parse_failed"),
}


@dataclass
class Call:
    """One call as its records tell it."""

    tool: str = ""
    status: str = ""
    ended: bool = False
    inputs: dict[str, str] = field(default_factory=dict)
    decisions: dict[str, tuple[str, str]] = field(default_factory=dict)
    decision_refs: list[str] = field(default_factory=list)
    mutations: list[str] = field(default_factory=list)
    result_status: str = ""
    is_error: bool = False
    error: str | None = None
    persisted: str | None = None
    events: list[str] = field(default_factory=list)

    @property
    def decision(self) -> tuple[str, str] | None:
        """Behavior and rule of the decision in force: the last answer, else the question."""
        found = [self.decisions[ref] for ref in self.decision_refs]
        answers = [decision for decision in found if decision[0] != "ask"]
        return next(reversed(answers or found), None)


@dataclass
class Journal:
    """All calls of one or more files."""

    calls: dict[str, Call] = field(default_factory=dict)
    missing: int = 0
    producers: dict[str, int] = field(default_factory=dict)

    def read(self, path: Path) -> Journal:
        """Read a file of JSON lines."""
        with path.open(encoding="utf-8") as lines:
            self.take(json.loads(line) for line in lines)
        return self

    def take(self, lines: Iterable[dict[str, Any]]) -> None:
        """Take lines in the order of the file; those of one producer are numbered without a gap."""
        for line in lines:
            before = self.producers.get(line["producer"], 0)
            self.missing += line["sequence"] - before - 1
            self.producers[line["producer"]] = line["sequence"]
            handle = getattr(self, f"_{line['object']}", None)
            if handle is not None and "invocation_id" in line["record"]:
                record = line["record"]
                handle(self.calls.setdefault(record["invocation_id"], Call()), record)

    def _tool_event(self, call: Call, record: dict[str, Any]) -> None:
        call.events.append(record["event_type"])

    def _tool_invocation(self, call: Call, record: dict[str, Any]) -> None:
        call.tool, call.status = record["tool_id"], record["status"]
        call.ended = call.status in TERMINAL
        call.decision_refs = record.get("permission_decision_refs", [])
        call.inputs = {
            name.removesuffix("_ref"): record[name]
            for name in (
                "model_input_ref",
                "observable_input_ref",
                "permission_input_ref",
                "call_input_ref",
            )
            if name in record
        }

    def _tool_permission_decision(self, call: Call, record: dict[str, Any]) -> None:
        call.decisions[record["decision_id"]] = (
            record["behavior"],
            record.get("reason", {}).get("rule_ref", ""),
        )

    def _input_mutation(self, call: Call, record: dict[str, Any]) -> None:
        call.mutations.append(record["source_type"])

    def _tool_result_persistence(self, call: Call, record: dict[str, Any]) -> None:
        call.persisted = record["strategy"]

    def _tool_result(self, call: Call, record: dict[str, Any]) -> None:
        call.result_status, call.is_error = record["status"], record.get("is_error", False)
        call.error = (record.get("error") or {}).get("error_class")
