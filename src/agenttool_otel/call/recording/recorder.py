"""What a call says of itself: from an Invocation to span attributes, events and metrics (design
section 6).

Everything that an unsampled span would throw away is skipped; metrics are recorded whether the span
is sampled or not.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from opentelemetry.trace import Link

from agenttool_otel.call.argument_mask import MIN_CHARS
from agenttool_otel.call.invocation import Invocation, RedactionEntry
from agenttool_otel.call.recording.argument_secrets import (
    cleaner_of,
    mask_of,
    redacted_input,
    secret_pointers,
)
from agenttool_otel.call.recording.attributes import (
    decision_attributes,
    engine_labels,
    error_attributes,
    final_attributes,
    lean_decision,
    result_labels,
    stands,
)
from agenttool_otel.call.recording.edit_note import edit_note
from agenttool_otel.call.recording.finished import finished_records
from agenttool_otel.hooks.registry import BEFORE
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
    Phase,
    ProgressStatus,
    RedactionState,
)
from agenttool_otel.policy.rule_words import own_texts, without_arguments
from agenttool_otel.policy.types import Verdict
from agenttool_otel.records import HookRecord
from agenttool_otel.redaction import Redactor
from agenttool_otel.redaction.ids import agent_label
from agenttool_otel.results.content.shown import captured_json
from agenttool_otel.telemetry import Telemetry
from agenttool_otel.telemetry.telemetry import records_duration
from agenttool_otel.values.inspection import error_name
from agenttool_otel.values.pointers import overlap

_MAX_MESSAGE = 512
_MAX_LOOKED: Final = 64
_WORDS: Final = re.compile(rf"\w{{{MIN_CHARS},}}")
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

_INVALID: Final = {
    InvocationStatus.SCHEMA_PARSE_FAILED: Phase.PARSE_SCHEMA.value,
    InvocationStatus.VALIDATION_FAILED: Phase.VALIDATE_VALUES.value,
}


class Recorder:
    """Writes the telemetry of calls."""

    def __init__(self, telemetry: Telemetry, redactor: Redactor) -> None:
        self.telemetry = telemetry
        self._redactor = redactor
        capture = telemetry.settings.capture
        self._capture_span = capture in ("SPAN_ONLY", "SPAN_AND_EVENT")
        self._capture_event = capture in ("EVENT_ONLY", "SPAN_AND_EVENT")
        # rules say the same few sentences over and over
        self._clean_reason = lru_cache(maxsize=2048)(self._cleaned_reason)
        self.captures = capture != "NO_CONTENT"  # whether redacted content is recorded anywhere
        # whether the event classes that every call has are wanted
        self.verbose = telemetry.events.verbose
        self._max_chars = telemetry.settings.max_attribute_chars

    def begin(self, call: Invocation, links: tuple[Link, ...] = ()) -> None:
        """Start the call's span with all that a sampler may look at."""
        attributes = {
            **call.spec.start_attributes,
            **call.context.span_attributes,
            Attr.INVOCATION_ID: call.id,
        }
        # the same for every call of the tool, so it is redacted once
        attributes[GenAI.TOOL_DESCRIPTION] = self._clean_reason(call.spec.declaration.description)[
            : self._max_chars
        ]
        if call.native_call_id:
            attributes[GenAI.TOOL_CALL_ID] = call.native_call_id
        call.span, call.owned = self.telemetry.start(call.spec.span_name, attributes, links=links)

    def emit(
        self,
        call: Invocation,
        name: str,
        attributes: dict[str, Any],
        *,
        on_span: dict[str, Any] | None = None,
    ) -> None:
        """Emit one event of a call; its attributes are primitives without content."""
        self.telemetry.events.emit(
            call.span,
            name,
            attributes,
            on_span=on_span,
            invocation_id=call.id,
            tool_id=call.spec.tool_id,
        )

    def decided(self, call: Invocation, verdict: Verdict) -> None:
        """Bring a permission decision into force and record it as an event; the span's attributes
        follow at the end.
        """
        call.decision.take(verdict)
        events = self.telemetry.events
        if not events.wanted(call.span):
            return
        lean = lean_decision(verdict) if events.lean and stands(call, verdict) else None
        full = decision_attributes(call, verdict) if lean is None or events.elsewhere else lean
        self.emit(call, Event.PERMISSION_DECIDED, full, on_span=lean)

    def hook_started(self, call: Invocation, record: HookRecord) -> None:
        """Tell that a hook begins."""
        if self.telemetry.events.wanted(call.span):
            name = (
                Event.HOOK_PRE_STARTED if record.hook_event in BEFORE else Event.HOOK_POST_STARTED
            )
            self.emit(
                call, name, {Attr.HOOK_ID: record.hook_id, Attr.HOOK_EVENT: record.hook_event.value}
            )

    def hook_completed(self, call: Invocation, record: HookRecord) -> None:
        """Tell what a hook did: the kinds of its outputs, and how it failed if it did."""
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

    def hook_progress(self, call: Invocation, sequence: int, percent: float | None) -> None:
        """Tell a step of a hook's own work."""
        attributes: dict[str, Any] = {
            Attr.PROGRESS_SEQUENCE: sequence,
            Attr.PROGRESS_STATUS: ProgressStatus.RUNNING.value,
        }
        if percent is not None:
            attributes[Attr.PROGRESS_PERCENT] = float(percent)
        self.emit(call, Event.INVOCATION_PROGRESS, attributes)

    def shown(self, value: Any, pointers: tuple[str, ...]) -> Any:
        """Return a value redacted, for a record that may show content; ``None`` where content is
        not captured.
        """
        if not self.captures:
            return None
        try:
            return self._redactor.redact(
                captured_json(value), pointers=pointers, budget_bytes=self._max_chars
            ).value
        except Exception as error:
            self.telemetry.losses.note("capture", error)
            return "[redaction failed]"

    def pending(self, change: int) -> None:
        """Count an approval request that opened or closed."""
        self.telemetry.count(self.telemetry.instruments.approvals_pending, change, {})

    def answered(self, call: Invocation, status: ApprovalStatus, waited: float) -> None:
        """Record the answer to an approval request."""
        request_id = call.decision.request.request_id if call.decision.request is not None else ""
        labels = {Attr.APPROVAL_STATUS: status.value}
        call.decision.approval_wait = waited
        self.emit(
            call,
            Event.APPROVAL_ANSWERED,
            {**labels, Attr.APPROVAL_ID: request_id, Attr.APPROVAL_WAIT: waited},
        )
        self.telemetry.measure(self.telemetry.instruments.approval_wait, waited, labels)
        self.pending(-1)

    def granted(self, call: Invocation, grant_id: str) -> None:
        """Tell which remembered approval lets a call run."""
        self.telemetry.attribute(call.span, Attr.APPROVAL_GRANT_ID, grant_id)

    def arguments(self, call: Invocation, event: str = Event.INVOCATION_STARTED) -> None:
        """Capture the arguments, redacted, if content was asked for and somebody keeps it."""
        if not self.captures or not self.telemetry.events.wanted(call.span):
            return
        text = self._captured(
            call, "arguments", call.inputs.observable_input, secret_pointers(call)
        )
        if self._capture_span:
            self.telemetry.attribute(call.span, GenAI.TOOL_CALL_ARGUMENTS, text)
        if self._capture_event:
            self.emit(call, event, {GenAI.TOOL_CALL_ARGUMENTS: text})

    def _captured(
        self, call: Invocation, target: str, value: Any, pointers: tuple[str, ...]
    ) -> str:
        try:
            mask = mask_of(call, self._redactor)
            masked = 0
            if target == "result" and type(value) is not str:
                value = captured_json(value)
            if mask is not None and target == "result":
                data, value = value, mask.value(value)
                masked = value != data
            redacted = self._redactor.redact(value, pointers=pointers, budget_bytes=self._max_chars)
            if masked and mask is not None:
                redacted = redacted._replace(redactions=(*redacted.redactions, mask.redaction))
            self.redacted(call, target, redacted.redactions, redacted.state)
            shown = redacted.value
            if mask is not None and target == "arguments":
                shown = mask.value(shown)  # one argument may repeat another
            if isinstance(shown, str):
                return shown
            return json.dumps(shown, ensure_ascii=False, default=lambda _: "[unserializable]")
        except Exception as error:
            self.telemetry.losses.note("capture", error)
            return "[redaction failed]"

    def cleaner(self, call: Invocation, clean: Callable[[str], str]) -> Callable[[str], str]:
        """Return what cleans a text of this call: from the call's own secrets, then from those that
        detectors know.
        """
        return cleaner_of(call, self._redactor, clean)

    def redacted_object(self, value: dict[str, Any]) -> dict[str, Any]:
        """Return plain data redacted; nothing of it where that fails."""
        try:
            shown = self._redactor.redact(value).value
        except Exception as error:
            self.telemetry.losses.note("capture", error)
            return {}
        return shown if isinstance(shown, dict) else {}

    def said(self, call: Invocation, text: str) -> str:
        """Return a text that a call says of itself, redacted."""
        return self.cleaner(call, self._clean_reason)(text)

    def _cleaned_reason(self, text: str) -> str:
        try:
            value = self._redactor.redact_text(text).value
        except Exception as error:
            self.telemetry.losses.note("capture", error)
            return ""  # a broken redactor costs the words, not the decision
        return value if type(value) is str else ""

    def cleaned(self, call: Invocation, verdict: Verdict) -> Verdict:
        """Redact the reason of a verdict, which a policy may have made of the arguments."""
        if not self.captures:
            verdict = _without_arguments(call, verdict)
        clean, text, path = self._clean_reason, verdict.message, verdict.blocked_path
        allowed = verdict.behavior is Behavior.ALLOW
        if text and (
            not allowed
            or (
                self.telemetry.events.wanted(call.span)
                and _quotes(text, call.inputs.permission_input)
            )
        ):
            mask = mask_of(call, self._redactor)
            text = text if mask is None else mask.text(text)
        # an argument that was redacted, and came out as it is, is not redacted again
        shown = call.redacted_input[2].value if call.redacted_input is not None else None
        if path and not (type(shown) is dict and path in shown.values()):
            path = clean(path)
        was = verdict.message, verdict.blocked_path, verdict.rule_ref, verdict.rule_refs
        now = clean(text), path, clean(verdict.rule_ref), tuple(map(clean, verdict.rule_refs))
        if now == was:
            return verdict
        return replace(
            verdict, message=now[0], blocked_path=now[1], rule_ref=now[2], rule_refs=now[3]
        )

    def redacted(
        self, call: Invocation, target: str, redactions: Any, state: RedactionState
    ) -> None:
        """Remember and tell what was redacted: kinds, pointers and counts, never a value."""
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

    def result(self, call: Invocation) -> None:
        """Record that a result was created: status, size, and its redacted content where
        captured.
        """
        call.result_recorded = True
        if not self.telemetry.events.wanted(call.span):
            return
        attributes: dict[str, Any] = {Attr.RESULT_STATUS: str(call.outcome.result_status)}
        if call.outcome.result_error is not None:
            attributes[GenAI.ERROR_TYPE] = call.outcome.result_error.error_class.value
        if call.outcome.size is not None:
            attributes[Attr.RESULT_SIZE_BYTES] = call.outcome.size
        if call.outcome.items is not None:
            attributes[Attr.RESULT_ITEMS] = call.outcome.items
        if self.captures and call.ran:
            # a stream has nothing to show but what a tap kept of it
            shown = (
                call.model_value
                if call.outcome.items is not None and call.kept is not None
                else call.delivered
            )
            text = self._captured(call, "result", shown, call.result_pointers)
            if self._capture_span:
                self.telemetry.attribute(call.span, GenAI.TOOL_CALL_RESULT, text)
            if self._capture_event:
                attributes[GenAI.TOOL_CALL_RESULT] = text
        self.emit(call, Event.RESULT_CREATED, attributes)

    def persisted(
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

    def exception(self, call: Invocation) -> None:
        """Record the tool's own exception: its type, and its redacted message only where content is
        captured.
        """
        if call.exception is None or not self.telemetry.events.wanted(call.span):
            return
        attributes = {Exc.TYPE: error_name(call.exception)}
        if self.captures and call.outcome.error is not None and call.outcome.error.message:
            attributes[Exc.MESSAGE] = call.outcome.error.message
        self.emit(call, Exc.EVENT, attributes)

    def note_edit(self, call: Invocation) -> None:
        """Note what a model is told of a person's changes, once the decision in force tells what is
        secret of them.
        """
        try:
            call.inputs.edit_note = edit_note(call, self._redactor)
        except Exception as error:
            self.telemetry.losses.note("result", error)

    def end(self, call: Invocation) -> None:
        """Write the final facts, end the span and record the metrics of a call in a terminal or
        pending state.
        """
        call.outcome.ended_ns = time.time_ns()
        duration = time.perf_counter() - call.t0
        telemetry = self.telemetry
        try:
            if self.captures and call.outcome.started_ns is None and call.inputs.permission_input:
                # of a call that did not run, or waits
                self.arguments(call, Event.INVOCATION_ARGUMENTS_READY)
            if telemetry.events.wanted(call.span):
                self._tell_end(call)
            recording = telemetry.recording(call.span)
            if recording or call.owned:
                attributes = final_attributes(call) if recording else {}
                if (
                    recording
                    and call.decision.verdict is not None
                    and call.decision.verdict.blocked_path
                ):
                    attributes |= self._blocked(call, call.decision.verdict.blocked_path)
                telemetry.end(call.span, owned=call.owned, attributes=attributes)
            self._measure(call, duration)
            if telemetry.events.sinks:
                telemetry.events.put(finished_records(call))
        except BaseException as error:
            telemetry.losses.note("end", error)

    def yielded(self, call: Invocation) -> None:
        """Tell that a batch handed a call's result on; sinks get its invocation again, with that
        state.
        """
        call.outcome.transitions.append((InvocationStatus.YIELDED, time.time_ns()))
        self.emit(call, Event.INVOCATION_YIELDED, {})
        if self.telemetry.events.sinks:
            again = finished_records(call)
            self.telemetry.events.put(lambda: islice(again(), 1))

    def _tell_end(self, call: Invocation) -> None:
        """Emit what every call has at its end: its result, unless that was told already, and one
        terminal event.
        """
        if not call.result_recorded:
            self.result(call)
        if (name := _TERMINAL_EVENTS.get(call.outcome.status)) is None:
            return
        if call.outcome.error is None:
            self.emit(call, name, {Attr.INVOCATION_STATUS: call.outcome.status.value})
            return
        attributes = error_attributes(call.outcome.error)
        if call.outcome.status in _INVALID:
            phase = {Attr.PHASE: _INVALID[call.outcome.status]}
            self.emit(call, Event.INVOCATION_VALIDATION_FAILED, {**attributes, **phase})
        attributes[Attr.INVOCATION_STATUS] = call.outcome.status.value
        if call.outcome.abort_reason is not None:
            attributes[Attr.ABORT_REASON] = call.outcome.abort_reason
        self.emit(call, name, attributes)

    def _blocked(self, call: Invocation, path: str) -> dict[str, Any]:
        """Name the argument whose place a decision names, and the place where content is
        captured.
        """
        for fact in call.decision.facts["paths"]:
            readings = (fact["resolved"], fact["lexical"], fact["raw"])
            if path not in readings and path not in (
                self._clean_reason(reading) for reading in readings if reading
            ):
                continue
            argument = fact["argument"]
            found = {Attr.PERMISSION_BLOCKED_ARGUMENT: self._clean_reason(argument)}
            if self._capture_span:
                redacted = redacted_input(call, self._redactor)
                if not any(overlap(argument, one.pointer) for one in redacted.redactions):
                    found[Attr.PERMISSION_BLOCKED_PATH] = path
            return found
        return {}

    def _measure(self, call: Invocation, duration: float) -> None:
        telemetry, spec, verdict = self.telemetry, call.spec, call.decision.verdict
        instruments = telemetry.instruments
        labels = spec.metric_attributes
        agent = call.context.agent
        if call.outcome.error is not None or agent:
            labels = dict(labels)
            if call.outcome.error is not None:
                labels[GenAI.ERROR_TYPE] = call.outcome.error.error_class.value
            if agent:
                labels[GenAI.AGENT_NAME] = agent_label(agent)
        if not (call.measured and call.outcome.execution is Outcome.EXECUTED) and (
            call.owned or not records_duration(call.span)
        ):
            telemetry.measure(instruments.duration, duration, labels)
        if verdict is not None:
            instruments.decided(
                spec.name,
                verdict.behavior,
                call.outcome.execution,
                verdict.source,
                verdict.mode,
                verdict.rule_ref,
            )
            if not verdict.cached:
                telemetry.measure(
                    instruments.decision_duration, verdict.duration, engine_labels(verdict.engine)
                )
            if verdict.fail_closed is not None or verdict.shadow is not None:
                self._measure_unusual(call, verdict)
        if call.outcome.size is not None and call.outcome.execution is Outcome.EXECUTED:
            telemetry.measure(
                instruments.result_size,
                call.outcome.size,
                result_labels(spec.name, call.outcome.result_status),
            )

    def _measure_unusual(self, call: Invocation, verdict: Verdict) -> None:
        """Count a decision that could not be had, and one that a shadow policy would have made
        differently.
        """
        telemetry = self.telemetry
        if verdict.fail_closed is not None:
            cause = {
                Attr.PERMISSION_FAIL_CLOSED: verdict.fail_closed.value,
                Attr.POLICY_ENGINE: str(verdict.engine),
            }
            telemetry.count(telemetry.instruments.fail_closed, 1, cause)
        if verdict.shadow is not None and verdict.shadow.behavior is not verdict.behavior:
            labels = {
                GenAI.TOOL_NAME: call.spec.name,
                Attr.PERMISSION_BEHAVIOR: str(verdict.behavior),
                Attr.PERMISSION_SHADOW_BEHAVIOR: verdict.shadow.behavior.value,
            }
            telemetry.count(telemetry.instruments.shadow_differences, 1, labels)


def _quotes(message: str, arguments: Mapping[str, Any]) -> bool:
    """Tell at little cost whether a text may repeat something of the arguments."""
    stack: list[Any] = list(arguments.values())
    for _ in range(_MAX_LOOKED):
        if not stack:
            return False
        value = stack.pop()
        cls = type(value)
        if cls is str:
            if len(value) >= MIN_CHARS and (
                value in message or any(word in message for word in _WORDS.findall(value))
            ):
                return True
        elif cls is dict:
            stack += value.values()
        elif cls is list:
            stack += value
        elif cls in (int, float) and len(str(value)) >= MIN_CHARS and str(value) in message:
            return True
    return True


def _without_arguments(call: Invocation, verdict: Verdict) -> Verdict:
    """Take the call's arguments out of what rules say: their messages, their names and what they
    tell of other calls.

    What a safer call, a change or a place repeats is for the model, which wrote the arguments, and
    for the person who answers: neither the span nor a sink is told of it.
    """
    bundle, fixed = None, frozenset[str]()
    for engine in getattr(call.in_charge.decider, "engines", ()):
        bundle = bundle or getattr(engine, "bundle", None)
        fixed |= getattr(engine, "fixed_texts", frozenset())
    texts = own_texts(bundle)
    constant = texts.issuperset((verdict.message, verdict.rule_ref, *verdict.rule_refs))
    if (
        constant
        and verdict.shadow is None
        and not (verdict.alternatives or verdict.suggested_updates)
    ):
        return verdict  # most calls are answered by constant texts
    inputs = (call.inputs.permission_input, call.inputs.model_input, call.inputs.observable_input)
    clean = without_arguments(bundle, [given for given in inputs if isinstance(given, dict)], fixed)
    cleaned = _cleaned_words(verdict, clean)
    if cleaned.shadow is not None and cleaned.shadow is not cleaned:
        shadow = _cleaned_words(cleaned.shadow, clean)
        cleaned = cleaned if shadow is cleaned.shadow else replace(cleaned, shadow=shadow)
    return cleaned


def _cleaned_words(verdict: Verdict, clean: Callable[[str], str]) -> Verdict:
    now: dict[str, Any] = {
        "message": clean(verdict.message),
        "rule_ref": clean(verdict.rule_ref),
        "rule_refs": tuple(map(clean, verdict.rule_refs)),
        "alternatives": tuple(_with_clean_reason(one, clean) for one in verdict.alternatives),
        "suggested_updates": tuple(
            _with_clean_reason(one, clean) for one in verdict.suggested_updates
        ),
    }
    if all(value == getattr(verdict, name) for name, value in now.items()):
        return verdict
    return replace(verdict, **now)


def _with_clean_reason(offer: dict[str, Any], clean: Callable[[str], str]) -> dict[str, Any]:
    """Clean the one text of an offer that is for people: its tool, arguments and facts are what is
    offered.
    """
    reason = offer.get("reason")
    return {**offer, "reason": clean(reason)} if isinstance(reason, str) else offer
