"""Decision records handed on as they are made: to OpenTelemetry as log records, and to a function of
the program.

Each is the line that a file of records would hold, so who keeps the lines in their order has such a
file.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from opentelemetry import _logs as logs
from opentelemetry import trace
from opentelemetry._logs import LoggerProvider, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from agenttool_otel.evidence.chain import PREVIOUS, chain_key, link
from agenttool_otel.evidence.record import OBJECT
from agenttool_otel.names import INSTRUMENTATION_NAME, Attr
from agenttool_otel.records.base import JsonObject
from agenttool_otel.telemetry.sinks import DEFAULT_QUEUE, Sink, encoded_line

_OF_DECISIONS: Final = {
    Attr.INVOCATION_ID: ("input", "invocation", "id"),
    Attr.TOOL_ID: ("input", "tool", "id"),
    Attr.PERMISSION_BEHAVIOR: ("decision", "behavior"),
    Attr.PERMISSION_RULE: ("decision", "rule"),
    Attr.POLICY_ENGINE: ("decision", "engine"),
    Attr.POLICY_REVISION: ("decision", "revision"),
}
_OF_ANSWERS: Final = {
    Attr.INVOCATION_ID: ("invocation_id",),
    Attr.APPROVAL_ID: ("request_id",),
    Attr.APPROVAL_STATUS: ("answer",),
    Attr.APPROVAL_WAY: ("way",),
}
"""Attributes of a log record, and where its record has them."""


class HandedLines(Sink):
    """Hands each line on, with a digest of the one before it.

    A line that could not be handed on leaves a gap in the numbers, and the chain goes on without it.

    Args:
        key: of the words and of the chain.
        queue: most records that wait.
    """

    def __init__(self, key: bytes, *, queue: int = DEFAULT_QUEUE) -> None:
        self._key = chain_key(key)
        super().__init__(queue=queue)

    def _reset(self) -> None:
        super()._reset()
        self._previous = ""  # of this producer; a forked child is another one

    def write(self, lines: list[JsonObject]) -> None:
        """Hand on each line."""
        for line in lines:
            content = encoded_line({**line, PREVIOUS: self._previous})
            try:
                self.hand(line, content.decode())
            except BaseException as error:  # a function may raise anything
                self._note(error, 1)
            else:
                self._previous = link(content, self._key)

    def hand(self, line: JsonObject, text: str) -> None:
        """Hand on a line; what is raised costs it.

        Args:
            line: the line, without its link.
            text: the line as a file holds it, without its end.
        """
        raise NotImplementedError


class DecisionCallback(HandedLines):
    """Hands each line to a function, in the sink's own thread.

    Args:
        function: takes one line.
        key: of the words and of the chain.
    """

    def __init__(self, function: Callable[[str], object], key: bytes) -> None:
        super().__init__(key)
        self._function = function

    def hand(self, line: JsonObject, text: str) -> None:
        """Call the function."""
        self._function(text)


class DecisionLogs(HandedLines):
    """Emits each line as a log record of OpenTelemetry, in the call's trace.

    Args:
        provider: of loggers; the global one where not given.
        key: of the words and of the chain.
    """

    def __init__(self, provider: LoggerProvider | None, key: bytes) -> None:
        super().__init__(key)
        self._logger = logs.get_logger(INSTRUMENTATION_NAME, logger_provider=provider)

    def hand(self, line: JsonObject, text: str) -> None:
        """Emit the line."""
        record = line["record"]
        places = _OF_DECISIONS if line["object"] == OBJECT else _OF_ANSWERS
        self._logger.emit(
            timestamp=time.time_ns(),
            context=_context(record),
            severity_number=SeverityNumber.INFO,
            event_name=line["object"],
            body=text,
            attributes={name: _at(record, place) for name, place in places.items()},
        )


def _context(record: Mapping[str, Any]) -> Context | None:
    """Return the context of the call's span, ``None`` where it had none."""
    if "trace_id" not in record:
        return None
    span = SpanContext(
        int(record["trace_id"], 16),
        int(record["span_id"], 16),
        is_remote=False,
        # evidence is kept of traces that are not sampled, too
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )
    return trace.set_span_in_context(NonRecordingSpan(span))


def _at(record: Any, place: tuple[str, ...]) -> str:
    for name in place:
        record = record[name]
    return str(record)
