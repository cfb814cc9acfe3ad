"""What a tool's body reports while it runs, and who listens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from agenttool_otel.call.running.handle import progress_listeners, running_body
from agenttool_otel.names import ProgressStatus
from agenttool_otel.records import ToolProgress

Listener = Callable[[ToolProgress], Any]

_PAUSE: Final = 0.1


def report_progress(
    percent: float | None = None,
    message: str | None = None,
    *,
    current_step: str | None = None,
    total_steps: int | None = None,
    bytes_read: int | None = None,
    bytes_written: int | None = None,
    line_count: int | None = None,
    stdout_bytes: int | None = None,
    stderr_bytes: int | None = None,
    timeout_ms: int | None = None,
    exit_code: int | None = None,
    task_id: str | None = None,
    partial_result_refs: Sequence[str] | None = None,
    artifact_refs: Sequence[dict[str, Any]] | None = None,
    status: str = ProgressStatus.RUNNING,
) -> None:
    """Report how far the governed tool has come in whose body this is called; anywhere else nothing
    happens.

    It never raises. Ten reports a second are passed on; of more the last one is, at the latest when
    the call ends.

    Args:
        percent: 0 to 100.
        message: for people; redacted.
        current_step: name of the step; redacted.
        total_steps: how many there are.
        bytes_read, bytes_written, line_count: so far.
        stdout_bytes, stderr_bytes: what a process has written so far.
        timeout_ms: milliseconds after which the process is stopped; of a shell tool that has a
            ``timeout_ms`` this is stated without you.
        exit_code: of the process, once it has ended.
        task_id: of a task in the background; redacted.
        partial_result_refs, artifact_refs: what is there already.
        status: the standard's word.
    """
    facts = locals()
    if (handle := running_body.get()) is None:
        return
    try:
        handle.report({name: value for name, value in facts.items() if value is not None}, _PAUSE)
    except Exception as error:
        handle.reporter.lost(error)


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
    """Return a listener for ``progress_to`` that reports to the client of an MCP server, in
    whatever thread the tool runs.

    MCP wants progress that increases: a report without a percentage, or with none above the last,
    is left out.

    Args:
        report: the request's ``ctx.report_progress``, which sends nothing where the client gave no
            token; this is called in the server's event loop.
    """
    loop, last = asyncio.get_running_loop(), -1.0

    def send(record: ToolProgress) -> None:
        nonlocal last
        if record.percent is not None and record.percent > last:
            last = record.percent
            asyncio.run_coroutine_threadsafe(report(last, 100.0, record.message), loop)

    return send
