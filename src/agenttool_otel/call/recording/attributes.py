"""Which span attributes and metric labels say what of a call: tables from a name to where its value
comes from.
"""

from __future__ import annotations

from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from agenttool_otel.call.invocation import Invocation
from agenttool_otel.facts.origins import origins_of
from agenttool_otel.names import Attr, Behavior, GenAI, Outcome
from agenttool_otel.policy.types import Verdict
from agenttool_otel.telemetry.words import WORDS

_PLAIN: Final = frozenset({str, bool, int, float})


class AttributeTable:
    """Attributes of one kind of object: each name with the field that it says; what is ``None`` is
    left out.
    """

    __slots__ = ("_names", "_read")

    def __init__(self, kind: str) -> None:
        rows = WORDS[kind]
        self._names = tuple(rows)
        self._read = attrgetter(*rows.values())

    def of(self, source: object) -> dict[str, Any]:
        """Return the attributes of an object; words of a vocabulary as plain text."""
        attributes: dict[str, Any] = {}
        for name, value in zip(self._names, self._read(source), strict=True):
            if value is not None:
                attributes[name] = value if type(value) in _PLAIN else str(value)
        return attributes


CALL: Final = AttributeTable("call")
VERDICT: Final = AttributeTable("verdict")
ERROR: Final = AttributeTable("error")
_SHADOW: Final = AttributeTable("shadow")
_MAX_MESSAGE_CHARS: Final = 512


def final_attributes(call: Invocation) -> dict[str, Any]:
    """Return what a call's span says at its end."""
    attributes = CALL.of(call)
    attributes[Attr.REDACTION_COUNT] = (
        sum(entry.times for entry in call.redactions) if call.redactions else 0
    )
    if (verdict := call.verdict) is not None:
        attributes.update(VERDICT.of(verdict))
        attributes[Attr.PERMISSION_DECISION_ID] = call.decisions[-1].decision_id
        if verdict.shadow is not None:
            attributes.update(_SHADOW.of(verdict.shadow))
    if call.facts["provenance"] and (
        call.request is not None or call.outcome is not Outcome.EXECUTED
    ):
        attributes[Attr.PERMISSION_ORIGINS] = list(
            dict.fromkeys(one.named for one in origins_of(call.facts))
        )
    if call.request is not None:
        attributes[Attr.APPROVAL_ID] = call.request.request_id
    if call.attempts > 1:
        attributes[Attr.INVOCATION_ATTEMPTS] = call.attempts
    if call.resumed:
        attributes[Attr.INVOCATION_RESUMED] = True
    if (error := call.reported_error) is not None:
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
    """Tell whether a decision is the one that this call's own span will show: the first, asking for
    no other.
    """
    lasting = verdict.updated_input is None and verdict.expires_at is None
    return (
        call.owned and len(call.decisions) == 1 and verdict.behavior is not Behavior.ASK and lasting
    )


# --- metric labels: few combinations exist, and each is built once --------------------------------


@lru_cache(maxsize=64)
def engine_labels(engine: str) -> dict[str, str]:
    """Return the labels of the time that a decision took."""
    return {Attr.POLICY_ENGINE: str(engine)}


@lru_cache(maxsize=1024)
def result_labels(tool: str, status: str) -> dict[str, str]:
    """Return the labels of a result's size."""
    return {GenAI.TOOL_NAME: tool, Attr.RESULT_STATUS: str(status)}
