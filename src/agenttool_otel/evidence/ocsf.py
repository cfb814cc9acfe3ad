"""Decision records as events of OCSF, which programs that watch for attacks read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from agenttool_otel.evidence.record import ANSWER, OBJECT
from agenttool_otel.evidence.words import unmarked
from agenttool_otel.names import ApprovalStatus, Behavior, PolicyMode
from agenttool_otel.records.base import JsonObject
from agenttool_otel.telemetry.telemetry import package_version

OCSF_VERSION: Final = "1.5.0"
"""The version of the schema: https://schema.ocsf.io/1.5.0/classes/api_activity."""

_PRODUCT: Final = "agenttool-otel"
_CATEGORY: Final = 6  # Application Activity
_CLASS: Final = 6003  # API Activity
_OTHER: Final = 99
_INFORMATIONAL: Final = 1
_UNKNOWN_ACTION, _ALLOWED_ACTION, _DENIED_ACTION = 0, 1, 2
_OUTCOMES: Final = {
    Behavior.ALLOW.value: (_ALLOWED_ACTION, 1, "Allowed"),
    Behavior.DENY.value: (_DENIED_ACTION, 2, "Blocked"),
    # OCSF has no word for a question that a person is asked
    Behavior.ASK.value: (_UNKNOWN_ACTION, _OTHER, "Asked"),
    ApprovalStatus.APPROVED.value: (_ALLOWED_ACTION, 8, "Approved"),
    ApprovalStatus.REJECTED.value: (_DENIED_ACTION, 25, "Rejected"),
}
_LOGGED: Final = (_ALLOWED_ACTION, 17, "Logged")  # in shadow mode a decision stops nothing


def ocsf_events(lines: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """Yield decisions and people's answers as events of the class API Activity.

    A word that the records hide is its digest there, too. What OCSF has no attribute for stands in
    ``unmapped``.

    Args:
        lines: of files of records.
    """
    for line in lines:
        if line["object"] == OBJECT:
            yield _decision(line)
        elif line["object"] == ANSWER:
            yield _answer(line)


def _decision(line: JsonObject) -> JsonObject:
    record = line["record"]
    document, decision = unmarked(record["input"]), unmarked(record["decision"])
    return {
        **_event(line, document["time"], _outcome(decision)),
        "activity_name": "Decide",
        "actor": {
            "user": {"uid": document["actor"]["id"]},
            "session": {"uid": str(document["session"]["id"])},
        },
        "api": {"operation": document["tool"]["id"]},
        "policy": {
            "name": decision["rule"] or decision["reason_type"],
            "uid": decision.get("bundle", decision["engine"]),
            "version": decision["revision"],
        },
        "unmapped": {
            "invocation_id": document["invocation"]["id"],
            **{name: decision[name] for name in ("behavior", "rules", "reason_type")},
            **_ids(record),
        },
    }


def _answer(line: JsonObject) -> JsonObject:
    record = unmarked(line["record"])
    return {
        **_event(line, line["time"], _OUTCOMES[record["answer"]]),
        "activity_name": "Answer",
        "actor": {"user": {"uid": record["answered_by"]}},
        "api": {"operation": ANSWER},
        "unmapped": {
            "invocation_id": record["invocation_id"],
            "request_id": record["request_id"],
            **_ids(record),
        },
    }


def _outcome(decision: Mapping[str, Any]) -> tuple[int, int, str]:
    if decision.get("mode") == PolicyMode.SHADOW:
        return _LOGGED
    return _OUTCOMES[decision["behavior"]]


def _event(line: JsonObject, time: str, outcome: tuple[int, int, str]) -> JsonObject:
    """Return what all events have."""
    action, disposition, caption = outcome
    return {
        "activity_id": _OTHER,
        "category_uid": _CATEGORY,
        "class_uid": _CLASS,
        "type_uid": _CLASS * 100 + _OTHER,
        "time": int(datetime.fromisoformat(time).timestamp() * 1000),
        "severity_id": _INFORMATIONAL,
        "action_id": action,
        "disposition_id": disposition,
        "disposition": caption,
        "metadata": {
            "version": OCSF_VERSION,
            "profiles": ["security_control"],
            "uid": f"{line['producer']}.{line['sequence']}",
            "original_time": time,
            "product": {
                "name": _PRODUCT,
                "vendor_name": _PRODUCT,
                "version": package_version(),
            },
        },
        "src_endpoint": {"uid": line["producer"], "name": _PRODUCT},
    }


def _ids(record: Mapping[str, Any]) -> JsonObject:
    return {name: record[name] for name in ("trace_id", "span_id") if name in record}
