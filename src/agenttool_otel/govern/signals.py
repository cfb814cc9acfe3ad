"""What a process does when it is told to end: close a Governor, flush telemetry, and end as it
would have.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import _logs as logs
from opentelemetry import metrics, trace

if TYPE_CHECKING:
    from agenttool_otel.govern.governor import Governor

_FLUSH_SECONDS: Final = 5.0
"""How long all of it may take; a container has ten to thirty seconds from SIGTERM to SIGKILL."""


def close_on_signals(governor: Governor, numbers: Sequence[int]) -> None:
    """Close a Governor at signals; see ``Governor.close_on_signals``.

    Args:
        governor: the Governor.
        numbers: the signals.
    """
    for number in numbers or (signal.SIGTERM,):
        _close_on(governor, signal.Signals(number))


def _close_on(governor: Governor, number: signal.Signals) -> None:
    before = signal.getsignal(number)

    def handle(received: int, frame: FrameType | None) -> None:
        # in a thread: what the signal interrupted may hold a lock that closing needs
        closing = threading.Thread(
            target=_close, args=(governor,), name="agenttool-closing", daemon=True
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


def _close(governor: Governor) -> None:
    for sink in governor.telemetry.settings.sinks:
        with suppress(Exception):
            sink.flush()
    settings = governor.telemetry.settings
    providers: list[Any] = [
        settings.tracer_provider or trace.get_tracer_provider(),
        settings.logger_provider or logs.get_logger_provider(),
        settings.meter_provider or metrics.get_meter_provider(),
    ]
    for provider in providers:
        with suppress(Exception):
            provider.force_flush()
    with suppress(Exception):
        governor.close()
