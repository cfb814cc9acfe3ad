"""Progress of a running tool: ordered, at most ten reports a second, to events, sinks and listeners."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.recording.span import CallSpan
from agenttool_otel.call.running.handle import progress_listeners
from agenttool_otel.call.running.progress import Listener
from agenttool_otel.names import Attr, Event, ProgressStatus, ToolKind
from agenttool_otel.records import ExternalMapping, ToolProgress

_TEXTS: Final = ("message", "current_step")
"""Fields of a report in which a tool may repeat its arguments."""

_REDACTED: Final = (*_TEXTS, "task_id")

_MAX_COUNT: Final = 10**9
"""No number of a card or an account is as small."""

_COUNTS: Final = {
    "bytes_read": Attr.PROGRESS_BYTES_READ,
    "bytes_written": Attr.PROGRESS_BYTES_WRITTEN,
    "line_count": Attr.PROGRESS_LINE_COUNT,
    "stdout_bytes": Attr.PROGRESS_STDOUT_BYTES,
    "stderr_bytes": Attr.PROGRESS_STDERR_BYTES,
    "timeout_ms": Attr.PROGRESS_TIMEOUT_MS,
    "exit_code": Attr.PROGRESS_EXIT_CODE,
}
"""Numbers of a report, with the event's attributes for them."""


class Reporter:
    """Passes on what a running call reports."""

    __slots__ = ("emit", "every_step", "span")

    def __init__(self, span: CallSpan) -> None:
        self.span = span
        self.emit = span.emit
        self.every_step = span.telemetry.events.on_every_span or bool(
            span.telemetry.settings.progress
        )

    def map(self, call: Invocation, mappings: Iterable[ExternalMapping]) -> None:
        """Add native ids to a call, redacted."""
        for mapping in mappings:
            given = mapping.model_dump(mode="json", exclude_none=True)
            # {"jsonrpc_request_id": 7}: the number of a message, which differs in each call
            counted = {name: given.pop(name) for name in [*given] if _is_count(given[name])}
            shown = self.span.redaction.redact_object(given)
            call.mappings = [*call.mappings, type(mapping).model_construct(**shown, **counted)]

    def lost(self, error: Exception) -> None:
        """Count a report that could not be made."""
        self.span.telemetry.losses.note("progress", error)

    def progress(self, call: Invocation, sequence: int, facts: dict[str, Any]) -> None:
        """Emit one progress record: as an event, to sinks and to listeners."""
        telemetry = self.span.telemetry
        listeners = [*telemetry.settings.progress]
        listeners += [listener for listener, _ in progress_listeners.get()]
        try:
            shown = self._shown(call, facts)
            self.span.emit(call, Event.INVOCATION_PROGRESS, _attributes(sequence, shown))
            if not listeners and not telemetry.events.sinks:
                return
            elapsed_s = call.earlier_s + time.perf_counter() - call.t0
            shown["elapsed_ms"] = int(elapsed_s * 1000)
            record = ToolProgress(invocation_id=call.id, sequence=sequence, **shown)
            if telemetry.events.sinks:
                self._put(call, record)
        except Exception as error:
            self.lost(error)
            return
        for listener in listeners:
            if call.held_progress is None:
                self._give(listener, record)
            else:
                call.held_progress.append(partial(self._give, listener, record))

    def _shown(self, call: Invocation, facts: dict[str, Any]) -> dict[str, Any]:
        shown = dict(facts)
        for name in _REDACTED:
            if name in shown:
                shown[name] = self.span.redaction.redact_text(call, str(shown[name]))
        if shown.get("percent") is not None:
            shown["percent"] = min(100.0, max(0.0, float(shown["percent"])))
        timeout_ms = call.spec.execution.timeout_ms
        if timeout_ms and call.spec.declaration.tool_kind == ToolKind.SHELL_COMMAND:
            shown.setdefault("timeout_ms", timeout_ms)
        return shown

    def _put(self, call: Invocation, record: ToolProgress) -> None:
        """Give the record to sinks, without its texts where content is not captured."""
        texts = None if self.span.redaction.captures else set(_TEXTS)
        shown = record.model_dump(mode="json", exclude_none=True, exclude=texts)
        self.span.put(call, lambda: [("tool_progress", shown)])

    def _give(self, listener: Listener, record: ToolProgress) -> None:
        try:
            listener(record)
        except BaseException as error:  # other people's code, which may raise anything
            self.span.telemetry.losses.note("progress", error)


def _attributes(sequence: int, facts: dict[str, Any]) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        Attr.PROGRESS_SEQUENCE: sequence,
        Attr.PROGRESS_STATUS: str(ProgressStatus(facts["status"])),
    }
    if facts.get("percent") is not None:
        attributes[Attr.PROGRESS_PERCENT] = facts["percent"]
    for name, attribute in _COUNTS.items():
        # a tool may give anything, and a text would be content
        if type(facts.get(name)) is int:
            attributes[attribute] = facts[name]
    return attributes


def _is_count(value: Any) -> bool:
    return type(value) is int and abs(value) < _MAX_COUNT
