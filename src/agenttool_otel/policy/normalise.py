"""From an engine's answer to a decision that the pipeline may follow: strict, and what is unclear is a deny.

Only the exact words of the standard decide. A wrong type anywhere in the document, even beside a
proper ``allow``, makes the whole document malformed: a bundle that writes nonsense in one field
can't be trusted in another.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import reduce
from typing import Any, Final

from agenttool_otel.errors import PolicyError, PolicyEvaluationError, PolicyTimeout
from agenttool_otel.names import (
    Behavior,
    DecisionSource,
    EngineName,
    FailClosedCause,
    PersistenceStrategy,
    ReasonType,
    SandboxNetwork,
)
from agenttool_otel.policy.types import EngineAnswer, SandboxDuty, Verdict
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

_OBLIGATION_KEYS: Final = frozenset(
    {"redact_input", "redact_result", "max_inline_chars", "persistence", "sandbox"}
)
_SANDBOX_KEYS: Final = frozenset({"profile", "profiles", "network"})
_NETWORKS: Final = {str(item): item for item in SandboxNetwork}
_POINTER: Final = re.compile(r"(?:/(?:[^/~]|~[01])*)*")


_BINDING: Final = (
    *sorted(_OBLIGATION_KEYS),
    "obligations",
    "approver_roles",
    "approvals_needed",
    "required_roles",
    "expires_at",
    "updated_input",
)


def _meant_to_bind(key: str) -> bool:
    """Return whether an unknown member is a misspelt or misplaced one that a call must not
    run without.
    """
    from difflib import get_close_matches

    word = key.lower().replace("-", "_")
    if word.startswith(("redact", "obligation")):
        return True
    # "approver_role", "expire_at"
    return bool(get_close_matches(word, _BINDING, n=1, cutoff=0.85))


def _malformed(place: str, why: str) -> PolicyEvaluationError:
    return PolicyEvaluationError(
        f"the policy's answer is malformed: {place} {why}", cause=FailClosedCause.MALFORMED
    )


def _text(value: Any, place: str) -> str:
    if type(value) is not str:
        raise _malformed(place, "is not a string")
    return value


def _texts(value: Any, place: str) -> tuple[str, ...]:
    if type(value) is not list:
        raise _malformed(place, "is not a list")
    return tuple(_text(item, place) for item in value)


def _objects(value: Any, place: str) -> tuple[dict[str, Any], ...]:
    if type(value) is not list or any(type(item) is not dict for item in value):
        raise _malformed(place, "is not a list of objects")
    return tuple(value)


def _pointers(value: Any, place: str, *, star: bool = False) -> tuple[str, ...]:
    pointers = _texts(value, place)
    for pointer in pointers:
        if star and pointer in ("*", DETECTED):
            continue
        if not _POINTER.fullmatch(pointer):
            raise _malformed(place, "has an entry that is no JSON pointer")
    return pointers


def _time(value: Any, place: str) -> str:
    text = _text(value, place)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise _malformed(place, "is not an RFC 3339 time with a zone")
    return text


def _set_obligations(verdict: Verdict, value: Any) -> None:
    if type(value) is not dict:
        raise _malformed("obligations", "is not an object")
    if not value.keys() <= _OBLIGATION_KEYS:
        # an unknown obligation can't be met, so the call must not run
        raise _malformed("obligations", "has an unknown member")
    pointers = value.get("redact_input")
    if pointers is not None:
        verdict.redact_input = _pointers(pointers, "obligations.redact_input")
    pointers = value.get("redact_result")
    if pointers == "*":
        # one string is accepted for the one word that means everything
        verdict.redact_result = ("*",)
    elif pointers is not None:
        verdict.redact_result = _pointers(pointers, "obligations.redact_result", star=True)
    limit = value.get("max_inline_chars")
    if limit is not None:
        if type(limit) is not int or limit < 0:
            raise _malformed("obligations.max_inline_chars", "is not a whole number of characters")
        verdict.max_inline_chars = limit
    strategy = value.get("persistence")
    if strategy is not None:
        if _text(strategy, "obligations.persistence") not in _PERSISTENCE:
            raise _malformed("obligations.persistence", "is an unknown strategy")
        verdict.persistence = strategy
    sandbox = value.get("sandbox")
    if sandbox is not None:
        verdict.sandbox = _sandbox(sandbox)


def _sandbox(value: Any) -> SandboxDuty:
    place = "obligations.sandbox"
    if type(value) is not dict:
        raise _malformed(place, "is not an object")
    if not value.keys() <= _SANDBOX_KEYS:
        raise _malformed(place, "has an unknown member")
    duty = _strictest(value, place)
    if value.get("network") is None:
        return duty
    network = _NETWORKS.get(_text(value["network"], f"{place}.network"))
    if network is None:
        raise _malformed(f"{place}.network", "is an unknown word")
    return replace(duty, network=network)


def _strictest(value: dict[str, Any], place: str) -> SandboxDuty:
    """Return what one profile obliges, or several of which the strictest holds.

    A policy does not know what a profile of one's own narrows, and so can't compare it.
    """
    if ("profile" in value) == ("profiles" in value):
        raise _malformed(place, "has to have either a profile or profiles")
    if "profile" in value:
        return _duty(value["profile"], f"{place}.profile")
    names = _texts(value["profiles"], f"{place}.profiles")
    if not names:
        raise _malformed(f"{place}.profiles", "is empty")
    duties = [_duty(name, f"{place}.profiles") for name in names]
    return reduce(SandboxDuty.joined, duties)


def _duty(name: Any, place: str) -> SandboxDuty:
    duty = SandboxDuty.named(_text(name, place))
    if duty is None:
        raise _malformed(place, "is an unknown word")
    return duty


def normalise(answer: EngineAnswer, *, engine: str) -> Verdict:
    """Turn a decision document into a verdict, or refuse it.

    Args:
        answer: what the engine returned for the decision's entry point.
        engine: the engine's name, for the record.

    Raises:
        PolicyEvaluationError: the document is null, or any member of it has a wrong type.
    """
    document = answer.value
    if document is None:
        raise PolicyEvaluationError(
            "the policy gave no decision (null)", cause=FailClosedCause.UNDEFINED
        )
    if type(document) is not dict:
        raise _malformed("the decision", "is not an object")
    verdict = Verdict(
        behavior=_behavior(document),
        engine=engine,
        revision=answer.revision,
        bundle_digest=answer.bundle_digest,
        opa_decision_id=answer.decision_id,
    )
    for name, set_member in _SETTERS.items():
        value = document.get(name)
        if value is not None:  # a rule may leave a member out, or write null
            set_member(verdict, value)
    if not document.keys() <= DECISION_KEYS:
        _keep_unknown(verdict, document)
    return verdict


def _behavior(document: dict[str, Any]) -> Behavior:
    if "behavior" not in document:
        raise _malformed("behavior", "is missing")
    behavior = _BEHAVIORS.get(_text(document["behavior"], "behavior"))
    if behavior is None:
        raise PolicyEvaluationError(
            "the policy's answer has an unknown behavior", cause=FailClosedCause.UNKNOWN_BEHAVIOR
        )
    return behavior


def _set_reason(verdict: Verdict, value: Any) -> None:
    if type(value) is not dict:
        raise _malformed("reason", "is not an object")
    kind = value.get("type")
    if kind is not None:
        reason_type = _REASONS.get(_text(kind, "reason.type"))
        if reason_type is None:
            raise _malformed("reason.type", "is an unknown word")
        verdict.reason_type = reason_type
    rule_ref = value.get("rule_ref")
    if rule_ref is not None:
        verdict.rule_ref = _text(rule_ref, "reason.rule_ref")
    message = value.get("message")
    if message is not None:
        verdict.message = _text(message, "reason.message")


def _set_rule_refs(verdict: Verdict, value: Any) -> None:
    verdict.rule_refs = _texts(value, "rule_refs")


def _set_updated_input(verdict: Verdict, value: Any) -> None:
    if type(value) is not dict:
        raise _malformed("updated_input", "is not an object")
    verdict.updated_input = value


def _set_suggested_updates(verdict: Verdict, value: Any) -> None:
    verdict.suggested_updates = _objects(value, "suggested_updates")


def _set_blocked_path(verdict: Verdict, value: Any) -> None:
    verdict.blocked_path = _text(value, "blocked_path")


def _set_alternatives(verdict: Verdict, value: Any) -> None:
    verdict.alternatives = _objects(value, "alternatives")


def _set_approver_roles(verdict: Verdict, value: Any) -> None:
    verdict.approver_roles = _texts(value, "approver_roles")


def _set_approvals_needed(verdict: Verdict, value: Any) -> None:
    if type(value) is not int or value < 1:
        raise _malformed("approvals_needed", "is not a whole number of people")
    verdict.approvals_needed = value


def _set_required_roles(verdict: Verdict, value: Any) -> None:
    verdict.required_roles = _texts(value, "required_roles")


def _set_open_questions(verdict: Verdict, value: Any) -> None:
    verdict.open_questions = _texts(value, "open_questions")


def _set_answered_questions(verdict: Verdict, value: Any) -> None:
    place = "answered_questions"
    verdict.answered_questions = tuple(
        (_text(pair.get("question"), place), _text(pair.get("by"), place))
        for pair in _objects(value, place)
    )


def _set_expires_at(verdict: Verdict, value: Any) -> None:
    verdict.expires_at = _time(value, "expires_at")


def _set_source(verdict: Verdict, value: Any) -> None:
    if value:
        verdict.extra["source"] = _text(value, "source")


_SETTERS: Final[dict[str, Callable[[Verdict, Any], None]]] = {
    "reason": _set_reason,
    "rule_refs": _set_rule_refs,
    "updated_input": _set_updated_input,
    "suggested_updates": _set_suggested_updates,
    "blocked_path": _set_blocked_path,
    "alternatives": _set_alternatives,
    "obligations": _set_obligations,
    "approver_roles": _set_approver_roles,
    "approvals_needed": _set_approvals_needed,
    "required_roles": _set_required_roles,
    "open_questions": _set_open_questions,
    "answered_questions": _set_answered_questions,
    "expires_at": _set_expires_at,
    "source": _set_source,
}
"""By member of a decision document, what checks its value and writes it into the verdict."""

DECISION_KEYS: Final = frozenset({"behavior", *_SETTERS})
"""Members of a decision document that have a meaning; others are kept in ``Verdict.extra``."""


def _keep_unknown(verdict: Verdict, document: dict[str, Any]) -> None:
    unknown = sorted(document.keys() - DECISION_KEYS)
    for key in unknown:
        if _meant_to_bind(key):
            raise _malformed(key[:64], "is no member of a decision, but looks like one that binds")
        verdict.extra[key] = document[key]


def normalise_visible(answer: EngineAnswer) -> bool:
    """Turn the answer of ``data.agenttool.surface.visible`` into a boolean."""
    if answer.value is None:
        raise PolicyEvaluationError(
            "the policy gave no answer (null)", cause=FailClosedCause.UNDEFINED
        )
    if type(answer.value) is not bool:
        raise _malformed("visible", "is not a boolean")
    return answer.value


def deny_for(
    error: BaseException,
    *,
    engine: str = EngineName.NONE,
    revision: str = "",
    bundle_digest: str = "",
) -> Verdict:
    """Return the deny that stands for a failure to decide."""
    if isinstance(error, PolicyError):
        cause = error.cause
        message = f"no decision: {error}"
    else:
        # the text of another exception may quote arguments
        cause = FailClosedCause.INTERNAL
        message = f"no decision: {short_name(error)}"
    source = DecisionSource.ERROR
    if isinstance(error, PolicyTimeout):
        source = DecisionSource.TIMEOUT
    return Verdict(
        behavior=Behavior.DENY,
        source=source,
        reason_type=ReasonType.POLICY,
        message=message,
        engine=engine,
        revision=revision,
        bundle_digest=bundle_digest,
        fail_closed=cause,
    )


def no_decision(
    *, engine: str = EngineName.NONE, revision: str = "", bundle_digest: str = ""
) -> Verdict:
    """Return the deny that stands for "every engine passed the question on"."""
    return Verdict(
        behavior=Behavior.DENY,
        source=DecisionSource.DEFAULT,
        reason_type=ReasonType.POLICY,
        message="no policy decided this call",
        engine=engine,
        revision=revision,
        bundle_digest=bundle_digest,
        fail_closed=FailClosedCause.NO_DECISION,
    )
