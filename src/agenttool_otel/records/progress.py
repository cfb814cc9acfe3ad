"""tool_progress: an ordered progress update (standard, "Progress and Cancellation")."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agenttool_otel.names import ProgressStatus
from agenttool_otel.records.base import OPEN, JsonObject, Record, Timestamp, id_field, utc_now


class ToolProgress(Record):
    """One progress update.

    Attributes:
        progress_id: sortable id.
        invocation_id: the call.
        sequence: 0, 1, 2 ... within the call.
        status: progress class.
        message: for people, redacted.
        percent: 0 to 100.
        current_step: name of the step.
        total_steps: how many steps there are.
        elapsed_ms: milliseconds since the start.
        bytes_read: bytes read so far.
        bytes_written: bytes written so far.
        line_count: lines so far.
        stdout_bytes: bytes of standard output so far.
        stderr_bytes: bytes of standard error so far.
        timeout_ms: milliseconds after which the process is stopped.
        exit_code: exit code of the process, once it has one.
        task_id: background task, redacted.
        partial_result_refs: results so far.
        artifact_refs: deliverables so far.
        timestamp: when.
    """

    progress_id: str = id_field("prog")
    invocation_id: str
    sequence: int
    # "Initial status values": open, so that another producer's word is read and kept
    status: Annotated[ProgressStatus, OPEN] = ProgressStatus.RUNNING
    message: str | None = None
    percent: float | None = Field(default=None, ge=0, le=100)
    current_step: str | None = None
    total_steps: int | None = None
    elapsed_ms: int | None = None
    bytes_read: int | None = None
    bytes_written: int | None = None
    line_count: int | None = None
    stdout_bytes: int | None = None
    stderr_bytes: int | None = None
    timeout_ms: int | None = None
    exit_code: int | None = None
    task_id: str | None = None
    partial_result_refs: list[str] = Field(default_factory=list)
    artifact_refs: list[JsonObject] = Field(default_factory=list)
    timestamp: Timestamp = Field(default_factory=utc_now)
