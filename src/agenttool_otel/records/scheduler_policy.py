"""tool_scheduler_policy: how a set of calls runs together (standard, "Scheduling and
concurrency").
"""

from __future__ import annotations

from pydantic import Field

from agenttool_otel.names import (
    ContextModifierPolicy,
    InterruptBehavior,
    OrderingPolicy,
    SiblingFailurePolicy,
    YieldPolicy,
)
from agenttool_otel.records.base import JsonObject, Record, id_field


class SchedulerPolicy(Record):
    """Concurrency, ordering and failure semantics of a batch.

    Attributes:
        scheduler_policy_id: id.
        scope: where it applies.
        max_parallel: calls that may run at once.
        ordering_policy: order of terminal results.
        yield_policy: order of progress and results.
        interrupt_behavior: what an interrupt does.
        sibling_failure_policy: what one failure does to the others.
        context_modifier_policy: whether calls may change shared context.
        resource_locks: named exclusive resources.
    """

    scheduler_policy_id: str = id_field("sched")
    scope: str | None = None
    max_parallel: int = 10
    ordering_policy: OrderingPolicy = OrderingPolicy.PRESERVE_TERMINAL_ORDER
    yield_policy: YieldPolicy = YieldPolicy.PROGRESS_IMMEDIATE_RESULTS_ORDERED
    interrupt_behavior: InterruptBehavior = InterruptBehavior.BLOCK
    sibling_failure_policy: SiblingFailurePolicy = SiblingFailurePolicy.IGNORE
    # "it SHOULD reject or defer those modifiers rather than apply them nondeterministically"
    context_modifier_policy: ContextModifierPolicy = ContextModifierPolicy.FORBID
    resource_locks: list[JsonObject] = Field(default_factory=list)
