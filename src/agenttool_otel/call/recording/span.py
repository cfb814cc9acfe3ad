"""The span of a call, its events and its metrics.

Everything that an unsampled span would throw away is skipped; metrics are recorded whether the span
is sampled or not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from typing import Any, Final

from opentelemetry.trace import Link

from agenttool_otel.approvals.announcing import answer_attributes
from agenttool_otel.approvals.types import ApprovalAnswer
from agenttool_otel.call.invocation import Invocation, RedactionEntry
from agenttool_otel.call.recording.argument_secrets import (
    secret_pointers,
)
from agenttool_otel.call.recording.attributes import (
    decision_attributes,
    effects_attributes,
    error_attributes,
    final_attributes,
    lean_decision,
    record_metrics,
    result_attributes,
    sandbox_attributes,
    stands,
    terminal_attributes,
    violation_attributes,
)
from agenttool_otel.call.recording.declared import declaration_of
from agenttool_otel.call.recording.finished import finished_records
from agenttool_otel.call.recording.redaction import CallRedaction
from agenttool_otel.call.sandbox import Sandbox
from agenttool_otel.catalog.spec import ToolSpec
from agenttool_otel.context.context import AgentContext
from agenttool_otel.hooks.registry import BEFORE
from agenttool_otel.names import (
    ApprovalStatus,
    Attr,
    Event,
    Exc,
    GenAI,
    InvocationStatus,
    Label,
    Outcome,
    Phase,
    ProgressStatus,
    RedactionState,
)
from agenttool_otel.policy.types import Verdict
from agenttool_otel.records import HookRecord
from agenttool_otel.telemetry import Telemetry
from agenttool_otel.telemetry.sinks import Build
from agenttool_otel.values.canonical import keyed_digest
from agenttool_otel.values.inspection import error_name

_MAX_MESSAGE = 512
_TERMINAL_EVENTS = {
    InvocationStatus.SUCCEEDED: Event.INVOCATION_SUCCEEDED,
    InvocationStatus.FAILED: Event.INVOCATION_FAILED,
    InvocationStatus.CANCELED: Event.INVOCATION_CANCELED,
    InvocationStatus.TIMED_OUT: Event.INVOCATION_TIMED_OUT,
    InvocationStatus.DENIED: Event.INVOCATION_FAILED,
    InvocationStatus.BLOCKED: Event.INVOCATION_FAILED,
    InvocationStatus.SCHEMA_PARSE_FAILED: Event.INVOCATION_FAILED,
    InvocationStatus.VALIDATION_FAILED: Event.INVOCATION_FAILED,
}
"""The one terminal event of every call that ended; a call that waits has none yet."""

_NEVER_HELD: Final = frozenset(
    {
        Event.CANCEL_REQUESTED,
        Event.CANCEL_ACKNOWLEDGED,
        Event.CANCEL_FAILED,
        Event.RESUME_REFUSED,
    }
)
"""Events that are recorded of an attempt to go on, whatever becomes of it."""

_INVALID: Final = {
    InvocationStatus.SCHEMA_PARSE_FAILED: Phase.PARSE_SCHEMA.value,
    InvocationStatus.VALIDATION_FAILED: Phase.VALIDATE_VALUES.value,
}


class CallSpan:
    """Writes the span of a call, its events and its metrics."""

    def __init__(self, telemetry: Telemetry, redaction: CallRedaction) -> None:
        self.telemetry = telemetry
        self.redaction = redaction
        # whether the event classes that every call has are wanted anywhere
        self.every_class = telemetry.events.every_class
        self._max_chars = telemetry.settings.max_attribute_chars

    def begin(self, call: Invocation, links: tuple[Link, ...] = ()) -> None:
        """Start the call's span with all that a sampler may look at."""
        if self.telemetry.events.sinks and not call.spec.unknown:
            self.telemetry.events.declare(call.spec.tool_id, declaration_of(call.spec))
        attributes = self.start_attributes(call.spec, call.context)
        attributes[Attr.INVOCATION_ID] = call.id
        if call.native_call_id:
            attributes[GenAI.TOOL_CALL_ID] = call.native_call_id
        if call.native_attributes is not None:
            attributes.update(call.native_attributes)
        call.span, call.owned = self.telemetry.start(call.spec.span_name, attributes, links=links)

    def start_attributes(self, spec: ToolSpec, context: AgentContext) -> dict[str, Any]:
        """Return the attributes that the spans of a tool's calls start with in a context."""
        # the same for every call of the tool, so it is redacted once
        description = self.redaction.redact_reason(spec.declaration.description)
        attributes = {
            **spec.start_attributes,
            **context.span_attributes,
            GenAI.TOOL_DESCRIPTION: description[: self._max_chars],
        }
        if context.user and self.telemetry.settings.user_ids == "digest":
            attributes[GenAI.USER_ID] = keyed_digest(context.user)
        return attributes

    def emit(
        self,
        call: Invocation,
        name: str,
        attributes: dict[str, Any],
        *,
        on_span: dict[str, Any] | None = None,
        event_id: str | None = None,
        to_log: bool = True,
    ) -> None:
        """Emit one event of a call; its attributes are primitives without content."""
        put = None
        if call.held is not None and name not in _NEVER_HELD:
            put = partial(self.put, call)
        self.telemetry.events.emit(
            call.span,
            name,
            attributes,
            on_span=on_span,
            invocation_id=call.id,
            tool_id=call.spec.tool_id,
            event_id=event_id,
            to_log=to_log,
            put=put,
        )

    def put(self, call: Invocation, build: Build) -> None:
        """Give records of a call to the sinks, or hold them back with the others of an attempt."""
        self._now_or_later(call, partial(self.telemetry.events.put, build))

    def release(self, call: Invocation) -> None:
        """Record what was held back of an attempt to go on: it is a part of the call."""
        held, call.held = call.held, None
        for record in held or ():
            record()

    @staticmethod
    def _now_or_later(call: Invocation, record: Callable[[], object]) -> None:
        if call.held is None:
            record()
        else:
            call.held.append(record)

    def record_decision(self, call: Invocation, verdict: Verdict) -> None:
        """Record the decision in force as an event; the span's attributes follow at the end."""
        events = self.telemetry.events
        if not events.wanted(call.span):
            return
        if not events.lean or not stands(call, verdict):
            self.emit(call, Event.PERMISSION_DECIDED, decision_attributes(call, verdict))
            return
        lean = lean_decision(verdict)
        full = decision_attributes(call, verdict) if events.elsewhere else lean
        self.emit(call, Event.PERMISSION_DECIDED, full, on_span=lean)

    def record_hook_started(self, call: Invocation, record: HookRecord) -> None:
        """Record the start of a hook as a span event."""
        if self.telemetry.events.wanted(call.span):
            name = (
                Event.HOOK_PRE_STARTED if record.hook_event in BEFORE else Event.HOOK_POST_STARTED
            )
            self.emit(
                call, name, {Attr.HOOK_ID: record.hook_id, Attr.HOOK_EVENT: record.hook_event.value}
            )

    def record_hook_completed(self, call: Invocation, record: HookRecord) -> None:
        """Record the kinds of a hook's outputs, and its failure if it failed, as a span event."""
        if not self.telemetry.events.wanted(call.span):
            return
        attributes: dict[str, Any] = {
            Attr.HOOK_ID: record.hook_id,
            Attr.HOOK_EVENT: record.hook_event.value,
            Attr.HOOK_OUTPUTS: [str(output["kind"]) for output in record.outputs],
        }
        failure = getattr(record, "failure", None)
        if failure is not None:
            attributes[Attr.HOOK_ERROR] = failure["error_type"]
        name = (
            Event.HOOK_PRE_COMPLETED if record.hook_event in BEFORE else Event.HOOK_POST_COMPLETED
        )
        self.emit(call, name, attributes)

    def record_hook_progress(self, call: Invocation, sequence: int, percent: float | None) -> None:
        """Record the progress of a hook's own work."""
        attributes: dict[str, Any] = {
            Attr.PROGRESS_SEQUENCE: sequence,
            Attr.PROGRESS_STATUS: ProgressStatus.RUNNING.value,
        }
        if percent is not None:
            attributes[Attr.PROGRESS_PERCENT] = float(percent)
        self.emit(call, Event.INVOCATION_PROGRESS, attributes)

    def record_answer(self, call: Invocation, answer: ApprovalAnswer, waited: float) -> None:
        """Record the answer to an approval request, with who gave it and by which way."""
        request_id = call.decision.request.request_id if call.decision.request is not None else ""
        status = ApprovalStatus.APPROVED if answer.approved else ApprovalStatus.REJECTED
        labels = {Attr.APPROVAL_STATUS: status.value}
        call.decision.approval_wait = waited
        who = answer_attributes(answer, plain=self.telemetry.settings.answerers == "plain")
        for name, value in who.items():
            self.telemetry.attribute(call.span, name, value)
        self.emit(
            call,
            Event.APPROVAL_ANSWERED,
            {**labels, **who, Attr.APPROVAL_ID: request_id, Attr.APPROVAL_WAIT: waited},
            # whoever took the answer has logged it, maybe in another process
            to_log=False,
        )
        measure = self.telemetry.measure
        # three attempts to go on after one answer: one answer is counted
        self._now_or_later(
            call, partial(measure, self.telemetry.instruments.approval_wait, waited, labels)
        )

    def record_sandbox(self, call: Invocation, sandbox: Sandbox) -> None:
        """Record that the body of a call runs inside a sandbox."""
        if self.every_class:
            self.emit(call, Event.SANDBOX_ENTERED, sandbox_attributes(sandbox))

    def record_violations(self, call: Invocation, sandbox: Sandbox) -> None:
        """Record what a sandbox refused; where, only where content is captured."""
        attributes = violation_attributes(sandbox)
        if self.redaction.on_event:
            clean = self.redaction.text_redactor(call, self.redaction.redact_reason)
            target = clean(sandbox.violations[0].target)
            attributes[Attr.SANDBOX_VIOLATION_TARGET] = target[: self._max_chars]
        self.emit(call, Event.SANDBOX_VIOLATED, attributes)

    def record_effects(self, call: Invocation, event: str) -> None:
        """Record what became of what a call would change."""
        if call.effects is not None:
            counts: Mapping[str, Any] = call.effects.fact["counts"]
            self.emit(call, event, effects_attributes(counts))
        elif call.reported_effects is not None:
            counts = call.reported_effects.fact["counts"]
            self.emit(call, event, {Attr.EFFECTS_REPORTED: counts["reported"]})
        else:
            return
        for kind, count in counts.items():
            if count:
                self._count_effects(call, kind, count, event.removeprefix("tool.effects."))

    def _count_effects(self, call: Invocation, kind: str, count: int, outcome: str) -> None:
        labels = {
            GenAI.TOOL_NAME: call.spec.name,
            Label.EFFECTS_KIND: kind,
            Label.EFFECTS_OUTCOME: outcome,
        }
        self.telemetry.count(self.telemetry.instruments.effects_settled, count, labels)

    def record_grant(self, call: Invocation, grant_id: str) -> None:
        """Record which remembered approval lets a call run."""
        self.telemetry.attribute(call.span, Attr.APPROVAL_GRANT_ID, grant_id)

    def capture_arguments(self, call: Invocation, event: str = Event.INVOCATION_STARTED) -> None:
        """Capture the arguments, redacted, if content was asked for and the span or a sink keeps it."""
        redaction = self.redaction
        if not redaction.captures or not self.telemetry.events.wanted(call.span):
            return
        text, redacted = redaction.captured_arguments(call, secret_pointers(call))
        if redacted is not None:
            self.record_redactions(call, "arguments", redacted.redactions, redacted.state)
        if redaction.on_span:
            self.telemetry.attribute(call.span, GenAI.TOOL_CALL_ARGUMENTS, text)
        if redaction.on_event:
            self.emit(call, event, {GenAI.TOOL_CALL_ARGUMENTS: text})

    def record_redactions(
        self, call: Invocation, target: str, redactions: Any, state: RedactionState
    ) -> None:
        """Record what was redacted: kinds, pointers and counts, never a value."""
        if (
            state is not RedactionState.NONE
            and call.outcome.redaction_state is not RedactionState.FAILED
        ):
            call.outcome.redaction_state = state
        if state is RedactionState.FAILED:
            self.emit(call, Event.REDACTION_FAILED, {Attr.REDACTION_TARGET: target})
            self.telemetry.count(
                self.telemetry.instruments.redaction_failures, 1, {Attr.REDACTION_TARGET: target}
            )
        if not redactions:
            return
        call.outcome.redactions.extend(
            RedactionEntry(target, *redaction) for redaction in redactions
        )
        kinds: dict[str, int] = {}
        for redaction in redactions:
            kinds[redaction.kind] = kinds.get(redaction.kind, 0) + redaction.count
        for kind, count in kinds.items():
            labels = {Label.REDACTION_KIND: kind, Attr.REDACTION_TARGET: target}
            self.telemetry.count(self.telemetry.instruments.redactions, count, labels)
        if self.telemetry.events.wanted(call.span):
            self.emit(
                call,
                Event.ARGUMENTS_REDACTED if target == "arguments" else Event.RESULT_REDACTED,
                {
                    Attr.REDACTION_TARGET: target,
                    Attr.REDACTION_KIND: sorted(kinds),
                    Attr.REDACTION_COUNT: sum(kinds.values()),
                    Attr.REDACTION_POINTERS: sorted(
                        {redaction.pointer for redaction in redactions}
                    )[:64],
                    Attr.REDACTION_RULES: sorted({redaction.rule for redaction in redactions})[:64],
                },
            )

    def record_result(self, call: Invocation) -> None:
        """Record that a result was created: status, size, and its redacted content where
        captured.
        """
        # langgraph's interrupt() in the body: what it comes to is known when the graph goes on
        if call.outcome.execution is Outcome.PENDING:
            return
        call.result_recorded = True
        if not self.telemetry.events.wanted(call.span):
            return
        if call.sandbox is not None and call.sandbox.violations:
            self.record_violations(call, call.sandbox)
        attributes = result_attributes(call)
        if self.redaction.captures and call.ran:
            attributes |= self._captured_result(call)
        self.emit(call, Event.RESULT_CREATED, attributes)

    def _captured_result(self, call: Invocation) -> dict[str, Any]:
        """Put the redacted content of a result on the span, and return what its event holds."""
        value = call.delivered
        if call.outcome.items is not None and call.kept is not None:
            value = call.model_value  # a stream has nothing to show but what a tap kept of it
        text, redacted = self.redaction.captured_result(call, value, call.result_pointers)
        if redacted is not None:
            self.record_redactions(call, "result", redacted.redactions, redacted.state)
        if self.redaction.on_span:
            self.telemetry.attribute(call.span, GenAI.TOOL_CALL_RESULT, text)
        return {GenAI.TOOL_CALL_RESULT: text} if self.redaction.on_event else {}

    def record_persistence(
        self, call: Invocation, *, failure: str | None = None, store: str = "none"
    ) -> None:
        """Record a persistence decision, and that the store failed if it did."""
        decision = call.outcome.persistence
        if failure is not None:
            labels = {Label.STORE: store}
            self.telemetry.count(self.telemetry.instruments.persistence_failures, 1, labels)
            self.emit(
                call,
                Event.PERSISTENCE_FAILED,
                {Attr.RESULT_REASON: failure[:_MAX_MESSAGE], **labels},
            )
        if decision is None or not self.telemetry.events.wanted(call.span):
            return
        attributes: dict[str, Any] = {Attr.RESULT_PERSISTENCE: decision.strategy.value}
        ref = decision.persisted_ref or {}
        for name, value in (
            (Attr.RESULT_SIZE_BYTES, decision.original_size_bytes),
            (Attr.RESULT_PREVIEW_SIZE_BYTES, decision.preview_size_bytes),
            (Attr.RESULT_REF, ref.get("uri")),
            (Attr.RESULT_DIGEST, ref.get("digest")),
            (Attr.RESULT_REASON, decision.reason),
        ):
            if value is not None:
                attributes[name] = value
        self.emit(call, Event.RESULT_PERSISTED, attributes)

    def record_exception(self, call: Invocation) -> None:
        """Record the tool's own exception: its type, and its redacted message only where content is
        captured.
        """
        if call.exception is None or not self.telemetry.events.wanted(call.span):
            return
        attributes = {Exc.TYPE: error_name(call.exception)}
        if (
            self.redaction.captures
            and call.outcome.error is not None
            and call.outcome.error.message
        ):
            attributes[Exc.MESSAGE] = call.outcome.error.message
        self.emit(call, Exc.EVENT, attributes)

    def end(self, call: Invocation) -> None:
        """Write the final facts, end the span and record the metrics of a call in a terminal or
        pending state.
        """
        if call.outcome.execution is not Outcome.PENDING:
            call.outcome.ended_ns = call.now_ns()
        duration = time.perf_counter() - call.t0
        telemetry = self.telemetry
        try:
            if (
                self.redaction.captures
                and call.outcome.started_ns is None
                and call.inputs.permission_input
            ):
                # of a call that did not run, or waits
                self.capture_arguments(call, Event.INVOCATION_ARGUMENTS_READY)
            if telemetry.events.wanted(call.span):
                self._emit_end(call)
            recording = telemetry.recording(call.span)
            if recording or call.owned:
                attributes = self._final_attributes(call) if recording else {}
                if (
                    recording
                    and call.decision.verdict is not None
                    and call.decision.verdict.blocked_path
                ):
                    path = call.decision.verdict.blocked_path
                    attributes |= self.redaction.blocked_attributes(call, path)
                telemetry.end(call.span, owned=call.owned, attributes=attributes)
            record_metrics(telemetry, call, duration)
            # a call of which this was a refused attempt has not ended by it
            if telemetry.events.sinks and call.held is None:
                telemetry.events.put(finished_records(call))
        except BaseException as error:
            telemetry.losses.note("end", error)

    def _final_attributes(self, call: Invocation) -> dict[str, Any]:
        return final_attributes(call, guardrail_names=self.telemetry.settings.guardrail_names)

    def record_yielded(self, call: Invocation) -> None:
        """Record that a batch handed a call's result on; sinks get its invocation again.

        It is the state of the scheduler's queue, and no transition: a call that ended has ended.
        """
        call.outcome.yielded = True
        self.emit(call, Event.INVOCATION_YIELDED, {})
        if self.telemetry.events.sinks:
            again = finished_records(call)
            self.telemetry.events.put(lambda: islice(again(), 1))

    def _emit_end(self, call: Invocation) -> None:
        """Emit what every call has at its end: its result, unless that was emitted before, and one
        terminal event.
        """
        if call.held is not None:
            self._emit_refused(call)
            return
        if not call.result_recorded:
            self.record_result(call)
        if (name := _TERMINAL_EVENTS.get(call.outcome.status)) is None:
            return
        if call.outcome.error is None:
            self.emit(call, name, terminal_attributes(call))
            return
        attributes = error_attributes(call.outcome.error)
        if call.outcome.status in _INVALID:
            phase = {Attr.PHASE: _INVALID[call.outcome.status]}
            self.emit(call, Event.INVOCATION_VALIDATION_FAILED, {**attributes, **phase})
        attributes[Attr.INVOCATION_STATUS] = call.outcome.status.value
        if call.outcome.abort_reason is not None:
            attributes[Attr.ABORT_REASON] = call.outcome.abort_reason
        self.emit(call, name, attributes)

    def _emit_refused(self, call: Invocation) -> None:
        """Emit that an attempt to go on was refused; the call waits on, or ended before."""
        if call.outcome.execution is Outcome.PENDING:
            return
        attributes: dict[str, Any] = {}
        if call.outcome.error is not None:
            attributes = error_attributes(call.outcome.error)
        if call.decision.approval_status is not None:
            attributes[Attr.APPROVAL_STATUS] = call.decision.approval_status
        if call.decision.verdict is not None:
            attributes |= lean_decision(call.decision.verdict)
        if call.outcome.abort_reason is not None:
            attributes[Attr.ABORT_REASON] = call.outcome.abort_reason
        self.emit(call, Event.RESUME_REFUSED, attributes)
