"""Decision records as OPA's decision log has them, for tools that read those."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from agenttool_otel.evidence.record import OBJECT
from agenttool_otel.evidence.words import unmarked
from agenttool_otel.names import Behavior, EntryPoint
from agenttool_otel.records.base import JsonObject

DECISION_PATH: Final = EntryPoint.DECISION.removeprefix("data.").replace(".", "/")
"""The rule that is asked for a decision, as the log has it."""

EVENT_TYPE: Final = "openpolicyagent.org/decision_logs"
"""What the console of OPA marks an event with."""

EXPORTED_APP: Final = "agenttool-otel"
"""The label of events that were decision records before."""

_BUNDLE: Final = "agenttool"
_EFFECTS: Final = {
    Behavior.ALLOW.value: "allow",
    Behavior.ASK.value: "require_approval",
    Behavior.DENY.value: "deny",
}
"""What permdiff calls a decision; no rule returns it."""


def opa_log(lines: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """Yield decisions as events of OPA's decision log, as its console prints them.

    A word that the records hide is its digest there, too. What a record left out is named as OPA
    names what it erased.

    Args:
        lines: of files of records; those of answers are passed over.
    """
    for line in lines:
        if line["object"] == OBJECT:
            yield _event(line)


def _event(line: JsonObject) -> JsonObject:
    record, decision = line["record"], line["record"]["decision"]
    event: JsonObject = {
        "level": "info",
        "msg": "Decision Log",
        "type": EVENT_TYPE,
        "time": line["time"],
        "timestamp": record["input"]["time"],
        "decision_id": f"{line['producer']}.{line['sequence']}",
        "labels": {"id": line["producer"], "app": EXPORTED_APP},
        "bundles": {_BUNDLE: {"revision": decision["revision"]}},
        "path": DECISION_PATH,
        "input": unmarked(record["input"]),
        "result": {
            "behavior": decision["behavior"],
            "effect": _EFFECTS[decision["behavior"]],
            "reason": {"type": decision["reason_type"], "rule_ref": unmarked(decision["rule"])},
            "rule_refs": unmarked(decision["rules"]),
        },
        "erased": [f"/input/{name.replace('.', '/')}" for name in record["left_out"]],
    }
    ids = {name: record[name] for name in ("trace_id", "span_id") if name in record}
    return {**event, **ids}
