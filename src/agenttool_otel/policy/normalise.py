"""From what an engine said to what the pipeline may believe: strict, and every doubt is a deny.

Only the exact words of the standard decide. A wrong type anywhere in the document, even beside a
proper ``allow``, makes the whole document malformed: a bundle that writes nonsense in one field
can't be trusted in another.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, Final

from agenttool_otel.errors import PolicyError, PolicyEvaluationError, PolicyTimeout
from agenttool_otel.names import (
    Behavior,
    DecisionSource,
    EngineName,
    FailClosedCause,
    PersistenceStrategy,
    ReasonType,
)
from agenttool_otel.policy.types import EngineAnswer, Verdict
from agenttool_otel.redaction.types import DETECTED
from agenttool_otel.values.inspection import short_name

STRICTNESS: Final[dict[Behavior, int]] = {
    Behavior.PASSTHROUGH: 0,
    Behavior.ALLOW: 1,
    Behavior.ASK: 2,
    Behavior.DENY: 3,
}
"""Rank of a behavior: the higher one wins."""

_BEHAVIORS: Final = {str(item): item for item in Behavior}
_REASONS: Final = {str(item): item for item in ReasonType}
_PERSISTENCE: Final = frozenset(str(item) for item in PersistenceStrategy)

DECISION_KEYS: Final = frozenset(
    (
        "behavior",
        "reason",
        "rule_refs",
        "updated_input",
        "suggested_updates",
        "blocked_path",
        "alternatives",
        "obligations",
        "approver_roles",
        "source",
        "expires_at",
    )
)
"""Members of a decision document that have a meaning; others are kept in ``Verdict.extra``."""

_OBLIGATION_KEYS: Final = frozenset(
    {"redact_input", "redact_result", "max_inline_chars", "persistence"}
)
_POINTER: Final = re.compile(r"(?:/(?:[^/~]|~[01])*)*")


_BINDING: Final = (
    *sorted(_OBLIGATION_KEYS),
    "obligations",
    "approver_roles",
    "expires_at",
    "updated_input",
)


def _meant_to_bind(key: str) -> bool:
    """Tell whether an unknown member is a misspelt or misplaced one that a call must not
    run without.
    """
    from difflib import get_close_matches

    word = key.lower().replace("-", "_")
    return word.startswith(("redact", "obligation")) or bool(
        get_close_matches(word, _BINDING, n=1, cutoff=0.85)
    )


def _malformed(where: str, why: str) -> PolicyEvaluationError:
    return PolicyEvaluationError(
        f"the policy's answer is malformed: {where} {why}", cause=FailClosedCause.MALFORMED
    )


def _text(value: Any, where: str) -> str:
    if type(value) is not str:
        raise _malformed(where, "is not a string")
    return value


def _texts(value: Any, where: str) -> tuple[str, ...]:
    if type(value) is not list:
        raise _malformed(where, "is not a list")
    return tuple(_text(item, where) for item in value)


def _objects(value: Any, where: str) -> tuple[dict[str, Any], ...]:
    if type(value) is not list or any(type(item) is not dict for item in value):
        raise _malformed(where, "is not a list of objects")
    return tuple(value)


def _pointers(value: Any, where: str, *, star: bool = False) -> tuple[str, ...]:
    pointers = _texts(value, where)
    for pointer in pointers:
        if not (star and pointer in ("*", DETECTED)) and not _POINTER.fullmatch(pointer):
            raise _malformed(where, "has an entry that is no JSON pointer")
    return pointers


def _time(value: Any, where: str) -> str:
    text = _text(value, where)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise _malformed(where, "is not an RFC 3339 time with a zone")
    return text


def _set_obligations(verdict: Verdict, value: Any) -> None:
    if type(value) is not dict:
        raise _malformed("obligations", "is not an object")
    if not value.keys() <= _OBLIGATION_KEYS:
        # an obligation that nobody knows can't be met, so the call must not run
        raise _malformed("obligations", "has an unknown member")
    if (item := value.get("redact_input")) is not None:
        verdict.redact_input = _pointers(item, "obligations.redact_input")
    if (item := value.get("redact_result")) is not None:
        # one string is accepted for the one word that means everything
        verdict.redact_result = (
            ("*",) if item == "*" else _pointers(item, "obligations.redact_result", star=True)
        )
    if (item := value.get("max_inline_chars")) is not None:
        if type(item) is not int or item < 0:
            raise _malformed("obligations.max_inline_chars", "is not a whole number of characters")
        verdict.max_inline_chars = item
    if (item := value.get("persistence")) is not None:
        if _text(item, "obligations.persistence") not in _PERSISTENCE:
            raise _malformed("obligations.persistence", "is an unknown strategy")
        verdict.persistence = item


def normalise(answer: EngineAnswer, *, engine: str) -> Verdict:
    """Turn a decision document into a verdict, or refuse it."""
    if (document := answer.value) is None:
        raise PolicyEvaluationError(
            "the policy gave no decision (null)", cause=FailClosedCause.UNDEFINED
        )
    if type(document) is not dict:
        raise _malformed("the decision", "is not an object")
    if "behavior" not in document:
        raise _malformed("behavior", "is missing")
    behavior = _BEHAVIORS.get(_text(document["behavior"], "behavior"))
    if behavior is None:
        raise PolicyEvaluationError(
            "the policy's answer has an unknown behavior", cause=FailClosedCause.UNKNOWN_BEHAVIOR
        )
    verdict = Verdict(
        behavior=behavior,
        engine=engine,
        revision=answer.revision,
        opa_decision_id=answer.decision_id,
    )
    get = document.get
    if (reason := get("reason")) is not None:
        if type(reason) is not dict:
            raise _malformed("reason", "is not an object")
        if (item := reason.get("type")) is not None:
            kind = _REASONS.get(_text(item, "reason.type"))
            if kind is None:
                raise _malformed("reason.type", "is an unknown word")
            verdict.reason_type = kind
        if (item := reason.get("rule_ref")) is not None:
            verdict.rule_ref = _text(item, "reason.rule_ref")
        if (item := reason.get("message")) is not None:
            verdict.message = _text(item, "reason.message")
    if (item := get("rule_refs")) is not None:
        verdict.rule_refs = _texts(item, "rule_refs")
    if (item := get("updated_input")) is not None:
        if type(item) is not dict:
            raise _malformed("updated_input", "is not an object")
        verdict.updated_input = item
    if (item := get("suggested_updates")) is not None:
        verdict.suggested_updates = _objects(item, "suggested_updates")
    if (item := get("blocked_path")) is not None:
        verdict.blocked_path = _text(item, "blocked_path")
    if (item := get("alternatives")) is not None:
        verdict.alternatives = _objects(item, "alternatives")
    if (item := get("obligations")) is not None:
        _set_obligations(verdict, item)
    if (item := get("approver_roles")) is not None:
        verdict.approver_roles = _texts(item, "approver_roles")
    if (item := get("expires_at")) is not None:
        verdict.expires_at = _time(item, "expires_at")
    if item := get("source"):
        verdict.extra["source"] = _text(item, "source")
    if not document.keys() <= DECISION_KEYS:
        for key in document.keys() - DECISION_KEYS:
            if _meant_to_bind(key):
                raise _malformed(
                    key[:64], "is no member of a decision, but looks like one that binds"
                )
        verdict.extra.update(
            (key, document[key]) for key in sorted(document.keys() - DECISION_KEYS)
        )
    return verdict


def normalise_visible(answer: EngineAnswer) -> bool:
    """Turn the answer of ``data.agenttool.surface.visible`` into a boolean."""
    if answer.value is None:
        raise PolicyEvaluationError(
            "the policy gave no answer (null)", cause=FailClosedCause.UNDEFINED
        )
    if type(answer.value) is not bool:
        raise _malformed("visible", "is not a boolean")
    return answer.value


def deny_for(error: BaseException, *, engine: str = EngineName.NONE, revision: str = "") -> Verdict:
    """Return the deny that stands for a failure to decide."""
    known = isinstance(error, PolicyError)
    cause = error.cause if isinstance(error, PolicyError) else FailClosedCause.INTERNAL
    return Verdict(
        behavior=Behavior.DENY,
        source=DecisionSource.TIMEOUT if isinstance(error, PolicyTimeout) else DecisionSource.ERROR,
        reason_type=ReasonType.POLICY,
        message=f"no decision: {error}" if known else f"no decision: {short_name(error)}",
        engine=engine,
        revision=revision,
        fail_closed=cause,
    )


def no_decision(*, engine: str = EngineName.NONE, revision: str = "") -> Verdict:
    """Return the deny that stands for "every engine passed the question on"."""
    return Verdict(
        behavior=Behavior.DENY,
        source=DecisionSource.DEFAULT,
        reason_type=ReasonType.POLICY,
        message="no policy decided this call",
        engine=engine,
        revision=revision,
        fail_closed=FailClosedCause.NO_DECISION,
    )
