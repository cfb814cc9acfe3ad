"""What telemetry records of an answer, in the process in which it was given.

The call that was asked about may be of another process, or never go on: nobody asks again after a
rejection. So each answer has a span of its own, linked to the span that asked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from agenttool_otel.approvals.types import ApprovalAnswer, ApprovalRequest
from agenttool_otel.names import SPAN_ANSWER_APPROVAL, Attr, Event, GenAI
from agenttool_otel.telemetry import Telemetry, TelemetrySettings
from agenttool_otel.telemetry.telemetry import asking_span
from agenttool_otel.values.canonical import keyed_digest

_logger = logging.getLogger("agenttool_otel.approvals")


class AnswerRecorder:
    """Records answers as spans and log events; never raises.

    Args:
        telemetry: where they go; where not given, to the process's own providers.
    """

    def __init__(self, telemetry: Telemetry | None = None) -> None:
        self._given = telemetry

    @property
    def _telemetry(self) -> Telemetry:
        if self._given is None:
            self._given = Telemetry(TelemetrySettings())
        return self._given

    def record(
        self, request: ApprovalRequest, answer: ApprovalAnswer, context: Mapping[str, Any]
    ) -> None:
        """Record one answer that is stored.

        Args:
            request: the request as it is now.
            answer: the answer to it.
            context: what the asking process stored beside the request.
        """
        telemetry = self._telemetry
        attributes: dict[str, Any] = {
            Attr.INVOCATION_ID: request.invocation_id,
            Attr.TOOL_ID: request.tool_id,
            Attr.APPROVAL_ID: request.request_id,
            Attr.APPROVAL_STATUS: request.status.value,
            **answer_attributes(answer, plain=telemetry.settings.answerers == "plain"),
        }
        if request.answered_at is not None:
            waited = request.answered_at - request.created_at
            attributes[Attr.APPROVAL_WAIT] = waited.total_seconds()
        on_span = {GenAI.TOOL_NAME: request.tool_name, **attributes}
        if request.session_id:
            on_span[Attr.SESSION_ID] = request.session_id
        name = f"{SPAN_ANSWER_APPROVAL} {request.tool_name}"
        with telemetry.moment(name, on_span, links=asking_span(context)) as span:
            telemetry.events.log(span, Event.APPROVAL_ANSWERED, attributes)


def report_rejected(on_rejected: Callable[[str], None] | None, request_id: str) -> None:
    """Call what wants to know of a rejection; never raises, for the rejection is stored by then.

    Args:
        on_rejected: called with the request's id; ``None``: nothing is called.
        request_id: the request.
    """
    if on_rejected is None:
        return
    try:
        on_rejected(request_id)
    except Exception as error:  # its text may hold what must not be logged
        _logger.warning("what follows a rejection failed: %s", type(error).__name__)


def answer_attributes(answer: ApprovalAnswer, *, plain: bool) -> dict[str, str]:
    """Return who gave an answer and by which way, as attributes.

    Args:
        answer: the answer.
        plain: whether the person's id may leave the process as it is; otherwise its keyed digest.
    """
    attributes = {Attr.APPROVAL_WAY: answer.way.value}
    if answer.answered_by:
        attributes[Attr.APPROVAL_ANSWERED_BY] = (
            answer.answered_by if plain else keyed_digest(answer.answered_by)
        )
    return attributes
