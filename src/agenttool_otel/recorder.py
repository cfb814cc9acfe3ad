"""What a call says of itself: from an Invocation to span attributes, events and metrics (design section 6).

Everything that an unsampled span would throw away is skipped; metrics are recorded whether the span is sampled or not.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from opentelemetry.trace import Link

from agenttool_otel.echoes import cleaner_of, echoes_of, plain, quotes
from agenttool_otel.hooks.registry import BEFORE
from agenttool_otel.invocation import Invocation
from agenttool_otel.names import (
    ApprovalStatus,
    Attr,
    Behavior,
    Event,
    Exc,
    GenAI,
    InvocationStatus,
    Label,
    Outcome,
    ProgressStatus,
    RedactionState,
)
from agenttool_otel.policy.types import Verdict
from agenttool_otel.records import HookRecord
from agenttool_otel.records.inspection import class_name
from agenttool_otel.records.values import to_json_value
from agenttool_otel.redaction import Redactor
from agenttool_otel.telemetry import Telemetry

__all__ = ["Recorder"]

_MAX_MESSAGE = 512
_MAX_LABELS = 4096
_TERMINAL_EVENTS = {
    InvocationStatus.SUCCEEDED: Event.INVOCATION_SUCCEEDED,
    InvocationStatus.FAILED: Event.INVOCATION_FAILED,
    InvocationStatus.CANCELED: Event.INVOCATION_CANCELED,
    InvocationStatus.TIMED_OUT: Event.INVOCATION_TIMED_OUT,
    InvocationStatus.YIELDED: Event.INVOCATION_YIELDED,
    InvocationStatus.SCHEMA_PARSE_FAILED: Event.INVOCATION_VALIDATION_FAILED,
    InvocationStatus.VALIDATION_FAILED: Event.INVOCATION_VALIDATION_FAILED,
}


class Recorder:
    """Writes the telemetry of calls.

    Args:
        telemetry: tracer, events and metrics.
        redactor: cleans whatever content is captured.
    """

    __slots__ = ("_capture_event", "_capture_span", "_clean_reason", "_labels", "_max_chars", "_redactor", "telemetry")

    def __init__(self, telemetry: Telemetry, redactor: Redactor) -> None:
        self.telemetry = telemetry
        self._redactor = redactor
        capture = telemetry.settings.capture
        self._capture_span = capture in ("SPAN_ONLY", "SPAN_AND_EVENT")
        self._capture_event = capture in ("EVENT_ONLY", "SPAN_AND_EVENT")
        # rules say the same few sentences over and over
        self._clean_reason = lru_cache(maxsize=2048)(self._cleaned_reason)
        self._labels: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._max_chars = telemetry.settings.max_attribute_chars

    @property
    def captures(self) -> bool:
        """Whether redacted content is recorded anywhere."""
        return self._capture_span or self._capture_event

    def begin(self, call: Invocation, links: tuple[Link, ...] = ()) -> None:
        """Start the call's span with all that a sampler may look at.

        Args:
            call: the call.
            links: spans that it continues.
        """
        attributes = {**call.spec.start_attributes, **call.context.span_attributes, Attr.INVOCATION_ID: call.id}
        if call.native_call_id:
            attributes[GenAI.TOOL_CALL_ID] = call.native_call_id
        call.span, call.owned = self.telemetry.start(call.spec.span_name, attributes, links=links)

    def emit(self, call: Invocation, name: str, attributes: dict[str, Any]) -> None:
        """Emit one event of a call.

        Args:
            call: the call.
            name: event class.
            attributes: primitives without content.
        """
        self.telemetry.events.emit(
            call.span, name, attributes, invocation_id=call.id, tool_id=call.spec.declaration.tool_id
        )

    def verbose(self, call: Invocation, name: str, **attributes: Any) -> None:
        """Emit an event class that every call has, if those were asked for.

        Args:
            call: the call.
            name: event class.
            attributes: primitives, keyed by attribute name.
        """
        if self.telemetry.events.verbose:
            self.emit(call, name, attributes)

    def decided(self, call: Invocation, verdict: Verdict) -> None:
        """Record a permission decision as an event; the span's attributes follow at the end.

        Args:
            call: the call.
            verdict: the decision.
        """
        if not self.telemetry.events.wanted(call.span):
            return
        attributes: dict[str, Any] = {
            Attr.PERMISSION_BEHAVIOR: str(verdict.behavior),
            Attr.PERMISSION_SOURCE: str(verdict.source),
            Attr.PERMISSION_MODE: str(verdict.mode),
            Attr.PERMISSION_REASON_TYPE: str(verdict.reason_type),
            Attr.PERMISSION_DECISION_ID: call.decision_id,
            Attr.POLICY_ENGINE: str(verdict.engine),
            Attr.POLICY_REVISION: verdict.revision,
            Attr.POLICY_CACHED: verdict.cached,
        }
        if verdict.rule_ref:
            attributes[Attr.PERMISSION_RULE] = verdict.rule_ref
        if len(verdict.rule_refs) > 1:
            attributes[Attr.PERMISSION_RULES] = list(verdict.rule_refs)
        if verdict.message:
            attributes[Attr.PERMISSION_REASON_MESSAGE] = verdict.message[:_MAX_MESSAGE]
        if verdict.fail_closed is not None:
            attributes[Attr.PERMISSION_FAIL_CLOSED] = verdict.fail_closed.value
        if verdict.opa_decision_id:
            attributes[Attr.POLICY_OPA_DECISION_ID] = verdict.opa_decision_id
        if verdict.shadow is not None:
            attributes[Attr.PERMISSION_SHADOW_BEHAVIOR] = verdict.shadow.behavior.value
            attributes[Attr.PERMISSION_SHADOW_RULE] = verdict.shadow.rule_ref
        self.emit(call, Event.PERMISSION_DECIDED, attributes)

    def hook_started(self, call: Invocation, record: HookRecord) -> None:
        """Tell that a hook begins.

        Args:
            call: the call.
            record: the hook's record.
        """
        if self.telemetry.events.wanted(call.span):
            name = Event.HOOK_PRE_STARTED if record.hook_event in BEFORE else Event.HOOK_POST_STARTED
            self.emit(call, name, {Attr.HOOK_ID: record.hook_id, Attr.HOOK_EVENT: record.hook_event.value})

    def hook_completed(self, call: Invocation, record: HookRecord) -> None:
        """Tell what a hook did: the kinds of its outputs, and how it failed if it did.

        Args:
            call: the call.
            record: the hook's record.
        """
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
        name = Event.HOOK_PRE_COMPLETED if record.hook_event in BEFORE else Event.HOOK_POST_COMPLETED
        self.emit(call, name, attributes)

    def hook_progress(self, call: Invocation, sequence: int, percent: float | None) -> None:
        """Tell a step of a hook's own work.

        Args:
            call: the call.
            sequence: number of the step within the call, from 0.
            percent: 0 to 100, when known.
        """
        attributes: dict[str, Any] = {
            Attr.PROGRESS_SEQUENCE: sequence,
            Attr.PROGRESS_STATUS: ProgressStatus.RUNNING.value,
        }
        if percent is not None:
            attributes[Attr.PROGRESS_PERCENT] = float(percent)
        self.emit(call, Event.INVOCATION_PROGRESS, attributes)

    def shown(self, value: Any, pointers: tuple[str, ...]) -> Any:
        """Return a value redacted, for a record that may show content; ``None`` where content is not captured.

        Args:
            value: any value.
            pointers: JSON pointers that are always redacted.
        """
        if not self.captures:
            return None
        try:
            return self._redactor.redact(to_json_value(value), pointers=pointers, budget_bytes=self._max_chars).value
        except Exception as error:
            self.telemetry.losses.note("capture", error)
            return "[redaction failed]"

    def pending(self, change: int) -> None:
        """Count an approval request that opened or closed.

        Args:
            change: 1 or -1.
        """
        self.telemetry.count(self.telemetry.instruments.approvals_pending, change, {})

    def answered(self, call: Invocation, status: ApprovalStatus, waited: float) -> None:
        """Record the answer to an approval request.

        Args:
            call: the call.
            status: what it was.
            waited: seconds between question and answer.
        """
        request_id = call.request.request_id if call.request is not None else ""
        labels = {Attr.APPROVAL_STATUS: status.value}
        call.approval_wait = waited
        self.emit(call, Event.APPROVAL_ANSWERED, {**labels, Attr.APPROVAL_ID: request_id, Attr.APPROVAL_WAIT: waited})
        self.telemetry.measure(self.telemetry.instruments.approval_wait, waited, labels)
        self.pending(-1)

    def granted(self, call: Invocation, grant_id: str) -> None:
        """Tell which remembered approval lets a call run.

        Args:
            call: the call.
            grant_id: the grant.
        """
        self.telemetry.attribute(call.span, Attr.APPROVAL_GRANT_ID, grant_id)

    def arguments(self, call: Invocation) -> None:
        """Capture the arguments, redacted, if content was asked for and somebody keeps it.

        Args:
            call: the call, decided, so that the policy's obligations are known.
        """
        if not self.captures or not self.telemetry.events.wanted(call.span):
            return
        pointers = call.spec.sensitive
        if call.verdict is not None and call.verdict.redact_input:
            pointers = (*pointers, *call.verdict.redact_input)
        text = self._captured(call, "arguments", call.observable_input, pointers)
        if self._capture_span:
            self.telemetry.attribute(call.span, GenAI.TOOL_CALL_ARGUMENTS, text)
            # the same for every call of the tool, so it is redacted once
            description = self._clean_reason(call.spec.declaration.description)[: self._max_chars]
            self.telemetry.attribute(call.span, GenAI.TOOL_DESCRIPTION, description)
        if self._capture_event:
            self.emit(call, Event.INVOCATION_STARTED, {GenAI.TOOL_CALL_ARGUMENTS: text})

    def _captured(self, call: Invocation, target: str, value: Any, pointers: tuple[str, ...]) -> str:
        try:
            echoes = echoes_of(call, self._redactor)
            masked = 0
            if echoes is not None and target != "arguments":
                data = plain(value)
                value = echoes.value(data)
                masked = value != data
            redacted = self._redactor.redact(value, pointers=pointers, budget_bytes=self._max_chars)
            if masked and echoes is not None:
                redacted = redacted._replace(redactions=(*redacted.redactions, echoes.found))
            self.redacted(call, target, redacted.redactions, redacted.state)
            shown = redacted.value
            if echoes is not None and target == "arguments":
                shown = echoes.value(shown)  # one argument may repeat another
            if isinstance(shown, str):
                return shown
            return json.dumps(shown, ensure_ascii=False, default=lambda _: "[unserializable]")
        except Exception as error:
            self.telemetry.losses.note("capture", error)
            return "[redaction failed]"

    def cleaner(self, call: Invocation, clean: Callable[[str], str]) -> Callable[[str], str]:
        """Return what cleans a text of this call: from the call's own secrets, then from those that detectors know.

        Args:
            call: the call.
            clean: redacts a text.
        """
        return cleaner_of(call, self._redactor, clean)

    def _cleaned_reason(self, text: str) -> str:
        try:
            value = self._redactor.redact_text(text).value
        except Exception as error:
            self.telemetry.losses.note("capture", error)
            return ""  # a broken redactor costs the words, not the decision
        return value if type(value) is str else ""

    def cleaned(self, call: Invocation, verdict: Verdict) -> Verdict:
        """Redact the reason of a verdict, which a policy may have made of the arguments.

        Args:
            call: the call.
            verdict: the verdict; not changed, it may be the cache's.
        """
        verdict = self._cleaned_names(verdict)
        message = verdict.message
        if not message:
            return verdict
        text = self._clean_reason(message)
        allowed = verdict.behavior is Behavior.ALLOW
        if not allowed or (self.telemetry.events.wanted(call.span) and quotes(message, call.permission_input)):
            echoes = echoes_of(call, self._redactor)
            if echoes is not None:
                text = self._clean_reason(echoes.text(message))
        return verdict if text == message else replace(verdict, message=text)

    def _cleaned_names(self, verdict: Verdict) -> Verdict:
        """Redact what names a verdict's rules and path: a policy may have put an argument there."""
        refs = tuple(map(self._clean_reason, verdict.rule_refs))
        ref = self._clean_reason(verdict.rule_ref) if verdict.rule_ref else ""
        path = self._clean_reason(verdict.blocked_path) if verdict.blocked_path else verdict.blocked_path
        if (refs, ref, path) == (verdict.rule_refs, verdict.rule_ref, verdict.blocked_path):
            return verdict
        return replace(verdict, rule_refs=refs, rule_ref=ref, blocked_path=path)

    def redacted(self, call: Invocation, target: str, redactions: Any, state: RedactionState) -> None:
        """Remember and tell what was redacted: kinds, pointers and counts, never a value.

        Args:
            call: the call.
            target: arguments, result, error or delivered.
            redactions: what the redactor reports.
            state: what it did.
        """
        if state is not RedactionState.NONE and call.redaction_state is not RedactionState.FAILED:
            call.redaction_state = state
        if state is RedactionState.FAILED:
            self.emit(call, Event.REDACTION_FAILED, {Attr.REDACTION_TARGET: target})
            self.telemetry.count(self.telemetry.instruments.redaction_failures, 1, {Attr.REDACTION_TARGET: target})
        if not redactions:
            return
        call.redactions.extend((target, *redaction) for redaction in redactions)
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
                    Attr.REDACTION_POINTERS: sorted({redaction.pointer for redaction in redactions})[:64],
                    Attr.REDACTION_RULES: sorted({redaction.rule for redaction in redactions})[:64],
                },
            )

    def result(self, call: Invocation) -> None:
        """Record that a result was created: status, size, and its redacted content where captured.

        Args:
            call: the call, executed.
        """
        if not self.telemetry.events.wanted(call.span):
            return
        attributes: dict[str, Any] = {Attr.RESULT_STATUS: str(call.result_status)}
        if call.size is not None:
            attributes[Attr.RESULT_SIZE_BYTES] = call.size
        if call.items is not None:
            attributes[Attr.RESULT_ITEMS] = call.items
        if self.captures and call.ran:
            pointers = call.spec.redact_result
            if call.verdict is not None and call.verdict.redact_result:
                pointers = (*pointers, *call.verdict.redact_result)
            # a stream has nothing to show but what a tap kept of it
            shown = call.model_value if call.items is not None and call.kept is not None else call.delivered
            text = self._captured(call, "result", shown, pointers)
            if self._capture_span:
                self.telemetry.attribute(call.span, GenAI.TOOL_CALL_RESULT, text)
            if self._capture_event:
                attributes[GenAI.TOOL_CALL_RESULT] = text
        self.emit(call, Event.RESULT_CREATED, attributes)

    def persisted(self, call: Invocation, *, failure: str | None = None, store: str = "none") -> None:
        """Record a persistence decision, and that the store failed if it did.

        Args:
            call: the call, with its decision.
            failure: what failed, without content.
            store: the store's name.
        """
        decision = call.persistence
        if failure is not None:
            labels = {Label.STORE: store}
            self.telemetry.count(self.telemetry.instruments.persistence_failures, 1, labels)
            self.emit(call, Event.PERSISTENCE_FAILED, {Attr.RESULT_REASON: failure[:_MAX_MESSAGE], **labels})
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

    def exception(self, call: Invocation) -> None:
        """Record the tool's own exception: its type, and its redacted message only where content is captured.

        Args:
            call: the call, failed.
        """
        if call.exception is None or not self.telemetry.events.wanted(call.span):
            return
        attributes = {Exc.TYPE: class_name(type(call.exception))}
        if self.captures and call.error is not None and call.error.message:
            attributes[Exc.MESSAGE] = call.error.message
        self.emit(call, Exc.EVENT, attributes)

    def end(self, call: Invocation) -> None:
        """Write the final facts, end the span and record the metrics.

        Args:
            call: the call in a terminal or pending state.
        """
        call.ended_ns = time.time_ns()
        duration = time.perf_counter() - call.t0
        try:
            self._end(call, duration)
        except BaseException as error:
            self.telemetry.losses.note("end", error)

    def _end(self, call: Invocation, duration: float) -> None:
        error_class = call.error.error_class.value if call.error is not None else None
        telemetry = self.telemetry
        terminal = _TERMINAL_EVENTS.get(call.status)
        if terminal is not None:
            self.verbose(call, terminal)
        if telemetry.recording(call.span):
            telemetry.end(
                call.span,
                owned=call.owned,
                attributes=self._final_attributes(call, error_class),
                error_type=error_class,
            )
        elif call.owned:
            telemetry.end(call.span, owned=True, attributes={}, error_type=None)
        self._measure(call, duration, error_class)

    def _final_attributes(self, call: Invocation, error_class: str | None) -> dict[str, Any]:
        attributes: dict[str, Any] = {
            Attr.INVOCATION_STATUS: str(call.status),
            Attr.PERMISSION_OUTCOME: str(call.outcome),
            Attr.RESULT_STATUS: str(call.result_status),
            Attr.REDACTION_STATE: str(call.redaction_state),
            Attr.REDACTION_COUNT: sum(entry[4] for entry in call.__dict__.get("redactions", ())),
            Attr.RESULT_PERSISTENCE: str(call.strategy),
        }
        verdict = call.verdict
        if verdict is not None:
            attributes[Attr.PERMISSION_BEHAVIOR] = str(verdict.behavior)
            attributes[Attr.PERMISSION_MODE] = str(verdict.mode)
            attributes[Attr.PERMISSION_SOURCE] = str(verdict.source)
            attributes[Attr.PERMISSION_REASON_TYPE] = str(verdict.reason_type)
            attributes[Attr.PERMISSION_RULE] = verdict.rule_ref
            attributes[Attr.PERMISSION_DECISION_ID] = call.decision_id
            attributes[Attr.POLICY_ENGINE] = str(verdict.engine)
            attributes[Attr.POLICY_REVISION] = verdict.revision
            attributes[Attr.POLICY_CACHED] = verdict.cached
            attributes[Attr.PERMISSION_DURATION] = verdict.duration
            if verdict.fail_closed is not None:
                attributes[Attr.PERMISSION_FAIL_CLOSED] = verdict.fail_closed.value
            if verdict.opa_decision_id:
                attributes[Attr.POLICY_OPA_DECISION_ID] = verdict.opa_decision_id
            if verdict.shadow is not None:
                attributes[Attr.PERMISSION_SHADOW_BEHAVIOR] = verdict.shadow.behavior.value
                attributes[Attr.PERMISSION_SHADOW_RULE] = verdict.shadow.rule_ref
        if call.size is not None:
            attributes[Attr.RESULT_SIZE_BYTES] = call.size
        if call.items is not None:
            attributes[Attr.RESULT_ITEMS] = call.items
        if call.approval_status is not None:
            attributes[Attr.APPROVAL_STATUS] = call.approval_status
        if call.approval_wait is not None:
            attributes[Attr.APPROVAL_WAIT] = call.approval_wait
        if call.request is not None:
            attributes[Attr.APPROVAL_ID] = call.request.request_id
        if call.abort_reason is not None:
            attributes[Attr.ABORT_REASON] = call.abort_reason
        if call.attempts > 1:
            attributes[Attr.INVOCATION_ATTEMPTS] = call.attempts
        if call.resumed:
            attributes[Attr.INVOCATION_RESUMED] = True
        if error_class is not None:
            attributes[GenAI.ERROR_TYPE] = error_class
            error = call.error
            if error is not None:
                attributes[Attr.ERROR_CODE] = error.error_code
                attributes[Attr.ERROR_RECOVERABILITY] = error.recoverability.value
                if error.native_error_ref:
                    attributes[Attr.ERROR_NATIVE_TYPE] = error.native_error_ref
        return attributes

    def _measure(self, call: Invocation, duration: float, error_class: str | None) -> None:
        telemetry = self.telemetry
        instruments = telemetry.instruments
        spec = call.spec
        labels = spec.metric_attributes
        agent = call.context.agent
        if error_class is not None or agent:
            labels = dict(labels)
            if error_class is not None:
                labels[GenAI.ERROR_TYPE] = error_class
            if agent:
                labels[GenAI.AGENT_NAME] = agent
        telemetry.measure(instruments.duration, duration, labels)
        verdict = call.verdict
        if verdict is not None:
            key = (spec.name, verdict.behavior, call.outcome, verdict.source, verdict.mode, verdict.rule_ref)
            telemetry.count(instruments.decisions, 1, self._decision_labels(key))
            engine_labels = _engine_labels(str(verdict.engine), verdict.cached)
            telemetry.measure(instruments.decision_duration, verdict.duration, engine_labels)
            if verdict.fail_closed is not None:
                cause = {Label.FAIL_CLOSED_CAUSE: verdict.fail_closed.value, Attr.POLICY_ENGINE: str(verdict.engine)}
                telemetry.count(instruments.fail_closed, 1, cause)
            if verdict.shadow is not None and verdict.shadow.behavior is not verdict.behavior:
                telemetry.count(
                    instruments.shadow_differences,
                    1,
                    {
                        GenAI.TOOL_NAME: spec.name,
                        Attr.PERMISSION_BEHAVIOR: str(verdict.behavior),
                        Attr.PERMISSION_SHADOW_BEHAVIOR: verdict.shadow.behavior.value,
                    },
                )
        if call.size is not None and call.outcome is Outcome.EXECUTED:
            telemetry.measure(instruments.result_size, call.size, _result_labels(spec.name, str(call.result_status)))

    def _decision_labels(self, key: tuple[Any, ...]) -> dict[str, Any]:
        """Return the labels of a decision; few of them exist, and each is built once."""
        labels = self._labels.get(key)
        if labels is None:
            names = (
                GenAI.TOOL_NAME,
                Attr.PERMISSION_BEHAVIOR,
                Attr.PERMISSION_OUTCOME,
                Attr.PERMISSION_SOURCE,
                Attr.PERMISSION_MODE,
                Attr.PERMISSION_RULE,
            )
            labels = dict(zip(names, map(str, key), strict=True))
            if len(self._labels) < _MAX_LABELS:
                self._labels[key] = labels
        return labels


@lru_cache(maxsize=64)
def _engine_labels(engine: str, cached: bool) -> dict[str, Any]:
    return {Attr.POLICY_ENGINE: engine, Attr.POLICY_CACHED: cached}


@lru_cache(maxsize=1024)
def _result_labels(tool: str, status: str) -> dict[str, Any]:
    return {GenAI.TOOL_NAME: tool, Attr.RESULT_STATUS: status}
