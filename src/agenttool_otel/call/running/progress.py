"""Progress of a running tool: ordered, at most ten reports a second, to events, sinks and whoever
listens.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.recorder import Recorder
from agenttool_otel.call.running.handle import progress_listeners, running_body
from agenttool_otel.names import Attr, Event, ProgressStatus
from agenttool_otel.records import ExternalMapping, ToolProgress

Listener = Callable[[ToolProgress], Any]

_PAUSE: Final = 0.1
_WORDS: Final = ("message", "current_step")


def report_progress(
    percent: float | None = None,
    message: str | None = None,
    *,
    current_step: str | None = None,
    total_steps: int | None = None,
    bytes_read: int | None = None,
    bytes_written: int | None = None,
    line_count: int | None = None,
    partial_result_refs: Sequence[str] | None = None,
    artifact_refs: Sequence[dict[str, Any]] | None = None,
    status: str = ProgressStatus.RUNNING,
) -> None:
    """Tell how far the governed tool has come in whose body this is called; anywhere else nothing
    happens.

    It never raises. Ten reports a second are told; of more the last one is, at the latest when the
    call ends.

    Args:
        percent: 0 to 100.
        message: for people; redacted.
        current_step: name of the step; redacted.
        total_steps: how many there are.
        bytes_read, bytes_written, line_count: so far. partial_result_refs, artifact_refs: what is
        there already.
        status: the standard's word.
    """
    facts = locals()
    if (handle := running_body.get()) is None:
        return
    try:
        handle.report({name: value for name, value in facts.items() if value is not None}, _PAUSE)
    except Exception as error:
        handle.reporter.recorder.telemetry.losses.note("progress", error)


@contextmanager
def progress_to(listener: Listener, *, steps: bool = True) -> Iterator[None]:
    """Give the progress of the governed calls made inside the block to a function, as
    ``tool_progress`` records.

    Args:
        listener: what it raises is swallowed; it is called in the tool's thread.
        steps: whether it wants the steps too that every call has, beside what tools report
          themselves.
    """
    token = progress_listeners.set((*progress_listeners.get(), (listener, steps)))
    try:
        yield
    finally:
        progress_listeners.reset(token)


def mcp_progress(
    report: Callable[[float, float, str | None], Coroutine[Any, Any, Any]],
) -> Listener:
    """Return a listener for ``progress_to`` that tells the client of an MCP server, in whatever
    thread the tool runs.

    MCP wants progress that increases: a report without a percentage, or with none above the last,
    is left out.

    Args:
        report: the request's ``ctx.report_progress``, which sends nothing where the client gave no
            token; this is called in the server's event loop.
    """
    loop, last = asyncio.get_running_loop(), -1.0

    def tell(record: ToolProgress) -> None:
        nonlocal last
        if record.percent is not None and record.percent > last:
            last = record.percent
            asyncio.run_coroutine_threadsafe(report(last, 100.0, record.message), loop)

    return tell


class Reporter:
    """Takes what calls tell of themselves to whoever listens."""

    __slots__ = ("emit", "recorder")

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.emit = recorder.emit

    def mapped(self, call: Invocation, mappings: Iterable[ExternalMapping]) -> None:
        """Keep native ids of a call, redacted."""
        for mapping in mappings:
            shown = self.recorder.redacted_object(
                mapping.model_dump(mode="json", exclude_none=True)
            )
            call.mappings = [*call.mappings, type(mapping).model_construct(**shown)]

    def progress(self, call: Invocation, sequence: int, facts: dict[str, Any]) -> None:
        """Tell one step."""
        recorder, telemetry = self.recorder, self.recorder.telemetry
        listeners = (
            *telemetry.settings.progress,
            *(listener for listener, _ in progress_listeners.get()),
        )
        try:
            told = {
                name: recorder.said(call, str(value)) if name in _WORDS else value
                for name, value in facts.items()
            }
            attributes: dict[str, Any] = {
                Attr.PROGRESS_SEQUENCE: sequence,
                Attr.PROGRESS_STATUS: str(ProgressStatus(told["status"])),
            }
            if told.get("percent") is not None:
                told["percent"] = attributes[Attr.PROGRESS_PERCENT] = min(
                    100.0, max(0.0, float(told["percent"]))
                )
            recorder.emit(call, Event.INVOCATION_PROGRESS, attributes)
            if not (listeners or telemetry.events.sinks):
                return
            told["elapsed_ms"] = int((time.perf_counter() - call.t0) * 1000)
            record = ToolProgress(invocation_id=call.id, sequence=sequence, **told)
            if telemetry.events.sinks:
                words = None if recorder.captures else set(_WORDS)
                shown = record.model_dump(mode="json", exclude_none=True, exclude=words)
                telemetry.events.put(lambda: [("tool_progress", shown)])
        except Exception as error:
            telemetry.losses.note("progress", error)
            return
        for listener in listeners:
            if call.told_later is not None:
                call.told_later.append(partial(self._give, listener, record))
            else:
                self._give(listener, record)

    def _give(self, listener: Listener, record: ToolProgress) -> None:
        try:
            listener(record)
        except BaseException as error:  # other people's code, which may raise anything
            self.recorder.telemetry.losses.note("progress", error)
