"""The metric instruments (docs/semconv.md); labels are of low cardinality: never an id, a digest
or a message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from opentelemetry.metrics import Histogram, Meter, MeterProvider

from agenttool_otel.names import Metric
from agenttool_otel.telemetry.stores import StoreLevels
from agenttool_otel.telemetry.tallies import Counts, tally_for

# the bucket boundaries that OpenTelemetry advises for gen_ai.execute_tool.duration, in seconds
_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
# the embedded engine decides in microseconds, below the first of those boundaries
_DECISION_SECONDS = (
    0.00005,
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.5,
    1.0,
)
# people answer within seconds, or within a week
_WAIT_SECONDS = (1, 5, 15, 60, 300, 900, 3600, 14_400, 86_400, 604_800)
_BYTES = (64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 16_777_216, 268_435_456)


class Instruments:
    """All instruments of one meter."""

    __slots__ = (
        "_tally",
        "approval_wait",
        "approvals_unstored",
        "decided",
        "decision_duration",
        "dropped",
        "duration",
        "effects_settled",
        "fail_closed",
        "persistence_failures",
        "policy_reloads",
        "redaction_failures",
        "redactions",
        "result_size",
        "sandbox_invocations",
        "shadow_differences",
    )

    def __init__(self, meter: Meter, provider: MeterProvider | None = None) -> None:
        counter = meter.create_counter

        def histogram(name: str, unit: str, text: str, bounds: Sequence[float]) -> Histogram:
            return meter.create_histogram(
                name, unit, text, explicit_bucket_boundaries_advisory=bounds
            )

        self.duration = histogram(Metric.DURATION, "s", "Duration of a tool call.", _SECONDS)
        self.decision_duration = histogram(
            Metric.DECISION_DURATION,
            "s",
            "Time that a fresh permission decision took.",
            _DECISION_SECONDS,
        )
        self.fail_closed = counter(
            Metric.FAIL_CLOSED, "{decision}", "Calls denied because no decision could be had."
        )
        self.shadow_differences = counter(
            Metric.SHADOW_DIFFERENCES,
            "{decision}",
            "Decisions that a shadow policy would have made differently.",
        )
        self.approval_wait = histogram(
            Metric.APPROVAL_WAIT,
            "s",
            "Time between an approval request and its answer.",
            _WAIT_SECONDS,
        )
        self.approvals_unstored = meter.create_up_down_counter(
            Metric.APPROVALS_UNSTORED,
            "{item}",
            "What is known of approvals and the store can't take yet.",
        )
        self.result_size = histogram(Metric.RESULT_SIZE, "By", "Size of a tool's result.", _BYTES)
        self.redactions = counter(Metric.REDACTIONS, "{redaction}", "Values that were redacted.")
        self.redaction_failures = counter(
            Metric.REDACTION_FAILURES, "{failure}", "Values dropped because redaction failed."
        )
        self.persistence_failures = counter(
            Metric.PERSISTENCE_FAILURES, "{failure}", "Results that a store could not keep."
        )
        self.policy_reloads = counter(
            Metric.POLICY_RELOADS, "{reload}", "Attempts to load a new policy bundle."
        )
        self.sandbox_invocations = counter(
            Metric.SANDBOX_INVOCATIONS,
            "{invocation}",
            "Calls whose decision obliges a sandbox.",
        )
        self.effects_settled = counter(
            Metric.EFFECTS_SETTLED,
            "{effect}",
            "Effects of rehearsed calls, and those that bodies report, by what became of them.",
        )
        self.dropped = counter(
            Metric.TELEMETRY_DROPPED, "{item}", "Telemetry that could not be written."
        )
        self._tally = tally_for(provider)
        self.decided = self._tally.decided
        observed = (
            (
                Metric.CACHE_LOOKUPS,
                self._tally.observe,
                "{lookup}",
                "Look-ups in the decision cache.",
            ),
            (
                Metric.DECISIONS,
                self._tally.observe_decisions,
                "{decision}",
                "Permission decisions.",
            ),
        )
        for name, observe, unit, text in observed:
            with suppress(Exception):  # a meter that can't have it costs this one metric
                meter.create_observable_counter(name, [observe], unit, text)
        stores = self._tally.stores
        with suppress(Exception):
            meter.create_observable_gauge(
                Metric.APPROVALS_PENDING,
                [stores.observe_pending],
                "{request}",
                "Approval requests that wait for an answer, as the store has them.",
            )
        with suppress(Exception):
            meter.create_observable_gauge(
                Metric.APPROVALS_OLDEST,
                [stores.observe_oldest],
                "s",
                "Age of the oldest request that waits for an answer.",
            )
        with suppress(Exception):
            meter.create_observable_counter(
                Metric.APPROVALS_ANSWERED,
                [stores.observe_answered],
                "{answer}",
                "Answers that people gave, as the store has them.",
            )

    def observe_cache(self, owner: object, counts: Counts) -> None:
        """Report the look-ups of a decision cache when metrics are collected, so that a call pays
        nothing for them.
        """
        self._tally.add(owner, counts)

    def observe_store(self, owner: object, read: Callable[[], StoreLevels]) -> None:
        """Report the levels of an approval store when metrics are collected.

        Args:
            owner: the store, for as long as it lives.
            read: reads its levels; what it raises leaves its points out.
        """
        self._tally.stores.add(owner, read)
