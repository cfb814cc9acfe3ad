"""How several opinions become one: deny > ask > allow, passthrough asks the next, and nobody decides means deny."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from agenttool_otel.names import (
    Behavior,
    DecisionSource,
    EngineName,
    FailClosedCause,
    PersistenceStrategy,
    ReasonType,
)
from agenttool_otel.policy.types import Verdict

__all__ = ["STRICTNESS", "no_decision", "strictest"]

STRICTNESS: Final[dict[Behavior, int]] = {
    Behavior.PASSTHROUGH: 0,
    Behavior.ALLOW: 1,
    Behavior.ASK: 2,
    Behavior.DENY: 3,
}
"""Rank of a behavior: the higher one wins."""

_PERSISTENCE_ORDER: Final[tuple[str, ...]] = (
    PersistenceStrategy.INLINE,
    PersistenceStrategy.PREVIEW_AND_PERSIST,
    PersistenceStrategy.REF_ONLY,
    PersistenceStrategy.REDACT,
    PersistenceStrategy.NEVER_PERSIST,
    PersistenceStrategy.DROP_WITH_REASON,
)
# of two demanded strategies the one that keeps less wins


def no_decision(*, engine: str = EngineName.NONE, revision: str = "") -> Verdict:
    """Return the deny that stands for "every engine passed the question on".

    Args:
        engine: the last engine that was asked.
        revision: revision of its bundle.
    """
    return Verdict(
        behavior=Behavior.DENY,
        source=DecisionSource.DEFAULT,
        reason_type=ReasonType.POLICY,
        message="no policy decided this call",
        engine=engine,
        revision=revision,
        fail_closed=FailClosedCause.NO_DECISION,
    )


def strictest(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict that wins among opinions on the same call; of equals the first.

    Obligations of the others that did not lose on a deny are kept: a stricter verdict never sheds a redaction that
    another opinion demanded.

    Args:
        verdicts: opinions; passthrough is no opinion.
    """
    opinions = [verdict for verdict in verdicts if verdict.behavior is not Behavior.PASSTHROUGH]
    if not opinions:
        return no_decision()
    winner = max(opinions, key=lambda verdict: STRICTNESS[verdict.behavior])
    for other in opinions:
        if other is not winner:
            _join_obligations(winner, other)
    return winner


def _join_obligations(winner: Verdict, other: Verdict) -> None:
    winner.redact_input = tuple(dict.fromkeys(winner.redact_input + other.redact_input))
    winner.redact_result = tuple(dict.fromkeys(winner.redact_result + other.redact_result))
    limits = [limit for limit in (winner.max_inline_chars, other.max_inline_chars) if limit is not None]
    winner.max_inline_chars = min(limits) if limits else None
    strategies = [item for item in (winner.persistence, other.persistence) if item is not None]
    winner.persistence = max(strategies, key=_PERSISTENCE_ORDER.index) if strategies else None
