"""What a process does on a signal to end: close a Governor, flush telemetry, and end as it
would have.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any, Final

from opentelemetry import _logs as logs
from opentelemetry import metrics, trace

from agenttool_otel.call.runtime import Runtime

_FLUSH_SECONDS: Final = 5.0
"""How long all of it may take; a container has ten to thirty seconds from SIGTERM to SIGKILL."""


def close_on_signals(runtime: Runtime, close: Callable[[], object], numbers: Sequence[int]) -> None:
    """Close a Governor at signals; see ``Governor.close_on_signals``.

    Args:
        runtime: the Governor.
        close: closes it.
        numbers: the signals; SIGTERM where there are none.
    """
    for number in numbers or (signal.SIGTERM,):
        _close_on(runtime, close, signal.Signals(number))


def _close_on(runtime: Runtime, close: Callable[[], object], number: signal.Signals) -> None:
    before = signal.getsignal(number)

    def handle(received: int, frame: FrameType | None) -> None:
        # in a thread: what the signal interrupted may hold a lock that closing needs
        closing = threading.Thread(
            target=_flush_and_close,
            args=(runtime, close),
            name="agenttool-closing",
            daemon=True,
        )
        closing.start()
        closing.join(_FLUSH_SECONDS)
        if callable(before):
            before(received, frame)
            return
        if before is signal.SIG_IGN:
            return
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    signal.signal(number, handle)


def _flush_and_close(runtime: Runtime, close: Callable[[], object]) -> None:
    settings = runtime.telemetry.settings
    for sink in settings.sinks:
        with suppress(Exception):
            sink.flush()
    providers: list[Any] = [
        settings.tracer_provider or trace.get_tracer_provider(),
        settings.logger_provider or logs.get_logger_provider(),
        settings.meter_provider or metrics.get_meter_provider(),
    ]
    for provider in providers:
        with suppress(Exception):
            provider.force_flush()
    with suppress(Exception):
        close()
