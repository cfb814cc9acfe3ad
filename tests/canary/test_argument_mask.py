"""What a hook or a person says about a call may quote its arguments; those that are secret are
masked there, too.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agenttool_otel import Governor, TelemetrySettings
from agenttool_otel.approvals.types import ApprovalAnswer
from agenttool_otel.errors import GovernedOutcome
from agenttool_otel.hooks import (
    AdditionalContext,
    HookContext,
    Hooks,
    Message,
    PermissionResult,
    Stop,
    UpdatedInput,
)
from agenttool_otel.testing import FixedApprover, StaticEngine

WORD = "quiethorsewindow"
"""No detector knows it: the contract alone says that the argument is secret."""


@pytest.mark.parametrize(
    "way", ["message", "context", "stop", "deny", "decide", "change", "reject"]
)
def test_words_about_a_call_do_not_repeat_its_secret_arguments(way: str, tmp_path: Path) -> None:
    spans, logs = InMemorySpanExporter(), InMemoryLogRecordExporter()
    tracers, loggers = TracerProvider(), LoggerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    loggers.add_log_record_processor(SimpleLogRecordProcessor(logs))
    events: list[Any] = []
    hooks = Hooks()
    text = f"it was called with {WORD}"

    @hooks.on("pre_tool_use")
    def before(context: HookContext) -> list[Any]:
        outputs: dict[str, list[Any]] = {
            "message": [Message(text)],
            "context": [AdditionalContext(text, source=text)],
            "stop": [Stop(text)],
            "deny": [PermissionResult("deny", text)],
            "change": [UpdatedInput({**context.arguments, "page": 2}, reason=text)],
        }
        return outputs.get(way, [])

    @hooks.on("permission_decision")
    def decided(context: HookContext) -> list[Any]:
        return [PermissionResult("deny", text)] if way == "decide" else []

    settings = TelemetrySettings(
        tracer_provider=tracers,
        logger_provider=loggers,
        capture="SPAN_AND_EVENT",
        events="both",
        verbose=True,
        subscribers=(events.append,),
    )
    approver = FixedApprover(ApprovalAnswer(False, answered_by="ann", reason=text))
    behavior = "ask" if way == "reject" else "allow"
    said: list[str] = []
    with contextlib.closing(
        Governor(
            telemetry=settings,
            policy=StaticEngine(behavior),
            hooks=hooks,
            approvals=f"sqlite:///{tmp_path / 'approvals.db'}",
            approver=approver,
        )
    ) as governor:

        @governor.govern(sensitive_fields=["note"])
        def look(note: str, page: int = 1) -> str:
            return "done"

        try:
            look(WORD)
        except GovernedOutcome as outcome:
            said.append(str(outcome))
        result = look.tool.invoke(note=WORD)  # type: ignore[attr-defined]
        said.append(f"{result.error} {result.summary}")
    left = [span.to_json() for span in spans.get_finished_spans()]
    left += [
        str(item.log_record.attributes) + str(item.log_record.body)
        for item in logs.get_finished_logs()
    ]
    left += [event.model_dump_json() for event in events]
    assert left
    if way in ("stop", "deny", "decide", "reject"):  # the others are told to the hooks' own records
        assert any("it was called with" in item for item in (*left, *said))
    assert not [item for item in (*left, *said) if WORD in item]
    for path in tmp_path.rglob("*"):
        assert WORD.encode() not in path.read_bytes()
