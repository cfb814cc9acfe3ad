"""How strict behaviors are, deny > ask > allow, and what stands for "nobody decided": a deny."""

from __future__ import annotations

from typing import Final

from agenttool_otel.names import (
    Behavior,
    DecisionSource,
    EngineName,
    FailClosedCause,
    ReasonType,
)
from agenttool_otel.policy.types import Verdict

STRICTNESS: Final[dict[Behavior, int]] = {
    Behavior.PASSTHROUGH: 0,
    Behavior.ALLOW: 1,
    Behavior.ASK: 2,
    Behavior.DENY: 3,
}
"""Rank of a behavior: the higher one wins."""


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
