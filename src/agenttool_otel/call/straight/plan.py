"""What is settled of the calls of one tool in one context, and of those that got one decision.

What a span gets of such a call is made by the pipeline's own functions, once, of a sample of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.phases.execute import shapes_result
from agenttool_otel.call.phases.holding import execution_input
from agenttool_otel.call.phases.permission import EXECUTION, HISTORY, policy_input
from agenttool_otel.call.recording.attributes import (
    decision_labels,
    duration_labels,
    final_attributes,
    lean_decision,
    result_attributes,
    result_labels,
    stands,
    terminal_attributes,
)
from agenttool_otel.call.recording.redaction import quotes
from agenttool_otel.call.running.handle import progress_listeners
from agenttool_otel.call.runtime import Runtime
from agenttool_otel.call.straight.ordinary import (
    is_ordinary_context,
    is_ordinary_runtime,
    is_ordinary_verdict,
    may_be_called,
)
from agenttool_otel.call.target import Target
from agenttool_otel.catalog.spec import ToolSpec
from agenttool_otel.context.context import AgentContext, current_mappings
from agenttool_otel.context.sessions import Session
from agenttool_otel.facts.types import EMPTY_FACTS, Facts
from agenttool_otel.names import InvocationStatus, Outcome, ResultStatus
from agenttool_otel.policy.cache import CacheKey, DecisionCache, PreparedKey, cached_copy
from agenttool_otel.policy.types import PolicyEngine, Verdict
from agenttool_otel.telemetry.telemetry import without_surrogates
from agenttool_otel.values.conversion import quick_object

_MAX_KEPT: Final = 256
"""Of one plan: keys by the arguments' names, and decisions by their keys."""


@dataclass(frozen=True, slots=True)
class DecidedCall:
    """A kept decision with all that is always recorded of the calls that get it and succeed."""

    kept: Verdict  # as the cache holds it; never changed
    event: Mapping[str, Any]  # of the decision
    created: Mapping[str, Any]  # of the event that a result was created; its size is the call's
    ended: Mapping[str, Any]  # of the event that the call ended
    final: Mapping[str, Any]  # of the span; times, size and id are the call's
    tally: tuple[str, ...]  # values by which the decision is counted
    duration_labels: Mapping[str, Any]
    size_labels: Mapping[str, Any]


class _Prepared(NamedTuple):
    """What the decisions on arguments of the same names are found by."""

    generation: int  # of the bundle
    key: PreparedKey | None  # ``None`` where they depend on what the pipeline alone can establish
    sample: Invocation | None  # a call, where they depend on what this host has proven for its body


@dataclass(slots=True, eq=False)
class Plan:
    """What is settled of the calls of one tool in one context."""

    spec: ToolSpec
    context: AgentContext
    runtime: Runtime
    engine: PolicyEngine
    cache: DecisionCache
    target: Target  # stands for what its calls run
    small_defaults: bool  # whether the tool's defaults are few plain values
    start: dict[str, Any]  # attributes that a span starts with
    labels: dict[str, str]  # of the context, which holds them in a dict that may be changed
    # by the arguments' names
    _keys: dict[tuple[str, ...], _Prepared] = field(default_factory=dict)
    _decisions: dict[CacheKey, DecidedCall | None] = field(default_factory=dict)

    def holds_now(self) -> bool:
        """Return whether nothing has changed since it was made, and nothing around this call is
        unusual.
        """
        if self.context.labels != self.labels or not may_be_called(self.spec):
            return False
        if progress_listeners.get() or current_mappings():
            return False
        return self.runtime.telemetry.enriched_span(self.start) is None

    def session(self) -> Session | None:
        """Return the session of the calls; ``None`` where a decision depends on more of it than its
        counters.
        """
        session = self.runtime.sessions.of(self.context)
        if not session.is_plain or self.spec.tool_id in session.exempt:
            return None
        return session

    def facts(self, arguments: dict[str, Any], session: Session) -> Facts:
        """Return the facts of arguments.

        Args:
            arguments: the permission input.
            session: the session.
        """
        pipeline = self.runtime.pipeline
        pipeline.before()
        if self.spec.facts is None:
            return EMPTY_FACTS
        return self.spec.facts.establish(arguments, pipeline.environment(self.context, session))

    def prepared(self, arguments: dict[str, Any], session: Session) -> PreparedKey | None:
        """Return what a decision is found by; ``None`` where it depends on what the pipeline alone
        can establish.

        Args:
            arguments: the permission input.
            session: the session.
        """
        names = tuple(arguments)
        generation: int = self.engine.generation  # type: ignore[attr-defined]
        known = self._keys.get(names)
        if known is None or known.generation != generation:
            if len(self._keys) >= _MAX_KEPT:
                self._keys.clear()
            known = self._keys[names] = self._prepare(generation, arguments, session)
        if known.key is None or known.sample is None:
            return known.key
        # a profile of one's own may have come, or the directory of layers gone
        execution = execution_input(known.sample, self.target, session)
        return known.key if execution == known.key.document["execution"] else None

    def decision(
        self, prepared: PreparedKey, arguments: dict[str, Any], facts: Facts, *, small: bool
    ) -> DecidedCall | None:
        """Return the decision that is kept of these arguments, where it is an ordinary one; then a hit
        is counted.

        Args:
            prepared: what it is found by, but for the values of arguments and the facts.
            arguments: the permission input.
            facts: its facts.
            small: whether the given ones are few plain values.
        """
        key = prepared.of(arguments, facts, small=small and self.small_defaults)
        decided = self._known(key)
        if decided is None or quotes(decided.kept.message, arguments):
            return None
        if self.cache.hit(key, decided.kept):
            return decided
        self._decisions.pop(key, None)  # the cache has forgotten it
        return None

    def _prepare(self, generation: int, arguments: dict[str, Any], session: Session) -> _Prepared:
        wants = self.runtime.decider.wants
        mode, kind = self.context.mode, self.spec.policy_tool["kind"]
        if wants(HISTORY, mode, kind):
            return _Prepared(generation, None, None)
        sample = self._sample()
        sample.inputs.permission_input = arguments
        document: Any = policy_input(sample, self.target, session)
        key = self.cache.prepare(self.engine, document)
        return _Prepared(generation, key, sample if wants(EXECUTION, mode, kind) else None)

    def _known(self, key: CacheKey) -> DecidedCall | None:
        if key in self._decisions:
            return self._decisions[key]
        kept = self.cache.peek(key)
        if kept is None:
            return None
        if len(self._decisions) >= _MAX_KEPT:
            self._decisions.clear()
        decided = self._decisions[key] = self._decided(kept)
        return decided

    def _decided(self, kept: Verdict) -> DecidedCall | None:
        redaction = self.runtime.pipeline.span.redaction
        bundle = getattr(self.engine, "bundle", None)
        if not is_ordinary_verdict(kept) or shapes_result(kept):
            return None
        if not redaction.is_shown_as_it_is(bundle, kept):
            return None
        sample = self._sample()
        verdict = cached_copy(kept)
        sample.owned = True
        sample.decision.take(verdict, sample.created_ns)
        if not stands(sample, verdict):
            return None
        outcome = sample.outcome
        outcome.status = InvocationStatus.SUCCEEDED
        outcome.execution = Outcome.EXECUTED
        outcome.result_status = ResultStatus.SUCCEEDED
        outcome.attempts = 1
        return DecidedCall(
            kept=kept,
            event=without_surrogates(lean_decision(verdict)),
            created=result_attributes(sample),
            ended=terminal_attributes(sample),
            final=without_surrogates(final_attributes(sample)),
            tally=decision_labels(sample, verdict),
            duration_labels=duration_labels(sample),
            size_labels=result_labels(self.spec.name, outcome.result_status),
        )

    def _sample(self) -> Invocation:
        sample = Invocation(self.spec, self.context)
        sample.services = self.runtime
        return sample


def plan_of(
    spec: ToolSpec, context: AgentContext, runtime: Runtime, *, is_async: bool
) -> Plan | None:
    """Return the plan of an ordinary tool's calls; ``None`` where the context or the Governor is not
    ordinary.

    Args:
        spec: the tool.
        context: who calls.
        runtime: the Governor.
        is_async: whether calling it gives an awaitable.
    """
    found = getattr(runtime.decider, "caching_engine", None)
    if found is None or not is_ordinary_context(context):
        return None
    if not is_ordinary_runtime(runtime, context):
        return None
    engine, cache = found
    start = without_surrogates(runtime.pipeline.span.start_attributes(spec, context))
    labels = dict(context.labels)
    small = spec.parameters is None or quick_object(spec.parameters.defaults) is not None
    target = Target(_no_body, _no_body, _no_body, is_async=is_async)
    return Plan(spec, context, runtime, engine, cache, target, small, dict(start), labels)


def _no_body(*_: Any) -> None:
    raise TypeError("a sample runs nothing")


NO_TARGET: Final = Target(_no_body, _no_body, _no_body)
"""What a sample of a call runs."""
