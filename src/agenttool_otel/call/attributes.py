"""Which span attributes and metric labels say what of a call: tables from a name to where its value comes from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from agenttool_otel.call.invocation import Invocation
from agenttool_otel.facts.origins import origins_of
from agenttool_otel.names import Attr, Behavior, GenAI, Outcome
from agenttool_otel.policy.types import Verdict

_PLAIN: Final = frozenset({str, bool, int, float})


class AttributeTable:
    """Attributes of one kind of object: each name with the field that it says; what is ``None`` is left out."""

    __slots__ = ("_names", "_read")

    def __init__(self, rows: Sequence[tuple[str, str]]) -> None:
        self._names = tuple(name for name, _ in rows)
        self._read = attrgetter(*(field for _, field in rows))

    def of(self, source: object) -> dict[str, Any]:
        """Return the attributes of an object; words of a vocabulary as plain text."""
        return {
            name: value if type(value) in _PLAIN else str(value)
            for name, value in zip(self._names, self._read(source), strict=True)
            if value is not None
        }


CALL: Final = AttributeTable(
    (
        (Attr.INVOCATION_STATUS, "status"),
        (Attr.PERMISSION_OUTCOME, "outcome"),
        (Attr.RESULT_STATUS, "result_status"),
        (Attr.REDACTION_STATE, "redaction_state"),
        (Attr.RESULT_PERSISTENCE, "strategy"),
        (Attr.INVOCATION_RUN_SECONDS, "run_seconds"),
        (Attr.RESULT_SIZE_BYTES, "size"),
        (Attr.RESULT_ITEMS, "items"),
        (Attr.APPROVAL_STATUS, "approval_status"),
        (Attr.APPROVAL_WAIT, "approval_wait"),
        (Attr.ABORT_REASON, "abort_reason"),
    )
)
VERDICT: Final = AttributeTable(
    (
        (Attr.PERMISSION_BEHAVIOR, "behavior"),
        (Attr.PERMISSION_MODE, "mode"),
        (Attr.PERMISSION_SOURCE, "source"),
        (Attr.PERMISSION_REASON_TYPE, "reason_type"),
        (Attr.PERMISSION_RULE, "rule_ref"),
        (Attr.POLICY_ENGINE, "engine"),
        (Attr.POLICY_REVISION, "revision"),
        (Attr.POLICY_CACHED, "cached"),
        (Attr.PERMISSION_DURATION, "duration"),
        (Attr.PERMISSION_FAIL_CLOSED, "fail_closed"),
        (Attr.POLICY_OPA_DECISION_ID, "opa_decision_id"),
    )
)
ERROR: Final = AttributeTable(
    (
        (GenAI.ERROR_TYPE, "error_class"),
        (Attr.ERROR_CODE, "error_code"),
        (Attr.ERROR_RECOVERABILITY, "recoverability"),
        (Attr.ERROR_NATIVE_TYPE, "native_error_ref"),
    )
)
_SHADOW: Final = AttributeTable(
    ((Attr.PERMISSION_SHADOW_BEHAVIOR, "behavior"), (Attr.PERMISSION_SHADOW_RULE, "rule_ref"))
)
_MAX_MESSAGE_CHARS: Final = 512


def final_attributes(call: Invocation) -> dict[str, Any]:
    """Return what a call's span says at its end."""
    attributes = CALL.of(call)
    attributes[Attr.REDACTION_COUNT] = sum(entry.times for entry in call.redactions) if call.redactions else 0
    verdict = call.verdict
    if verdict is not None:
        attributes.update(VERDICT.of(verdict))
        attributes[Attr.PERMISSION_DECISION_ID] = call.decisions[-1].decision_id
        if verdict.shadow is not None:
            attributes.update(_SHADOW.of(verdict.shadow))
    if call.facts["provenance"] and (call.request is not None or call.outcome is not Outcome.EXECUTED):
        attributes[Attr.PERMISSION_ORIGINS] = list(dict.fromkeys(one.named for one in origins_of(call.facts)))
    if call.request is not None:
        attributes[Attr.APPROVAL_ID] = call.request.request_id
    if call.attempts > 1:
        attributes[Attr.INVOCATION_ATTEMPTS] = call.attempts
    if call.resumed:
        attributes[Attr.INVOCATION_RESUMED] = True
    error = call.reported_error
    if error is not None:
        attributes.update(ERROR.of(error))
    return attributes


def decision_attributes(call: Invocation, verdict: Verdict) -> dict[str, Any]:
    """Return what the event of a decision says where there is no span beside it."""
    attributes = VERDICT.of(verdict)
    del attributes[Attr.PERMISSION_DURATION], attributes[Attr.PERMISSION_RULE]
    attributes[Attr.PERMISSION_DECISION_ID] = call.decision_id
    if not verdict.engine:  # a person's answer
        del attributes[Attr.POLICY_ENGINE], attributes[Attr.POLICY_REVISION]
    if verdict.shadow is not None:
        attributes.update(_SHADOW.of(verdict.shadow))
    return attributes | lean_decision(verdict)


def lean_decision(verdict: Verdict) -> dict[str, Any]:
    """Return what the event of a decision says beside a span that says the rest."""
    attributes: dict[str, Any] = {Attr.PERMISSION_BEHAVIOR: verdict.behavior.value}
    if verdict.rule_ref:
        attributes[Attr.PERMISSION_RULE] = verdict.rule_ref
    if len(verdict.rule_refs) > 1:
        attributes[Attr.PERMISSION_RULES] = list(verdict.rule_refs)
    if verdict.message:
        attributes[Attr.PERMISSION_REASON_MESSAGE] = verdict.message[:_MAX_MESSAGE_CHARS]
    return attributes


def stands(call: Invocation, verdict: Verdict) -> bool:
    """Tell whether a decision is the one that this call's own span will show: the first, asking for no other."""
    lasting = verdict.updated_input is None and verdict.expires_at is None
    return call.owned and len(call.decisions) == 1 and verdict.behavior is not Behavior.ASK and lasting


# --- metric labels: few combinations exist, and each is built once ---------------------------------------------------


@lru_cache(maxsize=64)
def engine_labels(engine: str) -> dict[str, str]:
    """Return the labels of the time that a decision took."""
    return {Attr.POLICY_ENGINE: str(engine)}


@lru_cache(maxsize=1024)
def result_labels(tool: str, status: str) -> dict[str, str]:
    """Return the labels of a result's size."""
    return {GenAI.TOOL_NAME: tool, Attr.RESULT_STATUS: str(status)}
