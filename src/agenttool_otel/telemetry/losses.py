"""What happens to a telemetry failure: it is counted, logged once, and never reaches the tool."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable

from agenttool_otel.values.forks import new_lock
from agenttool_otel.values.inspection import short_name

_logger = logging.getLogger("agenttool_otel.telemetry")


class Losses:
    """Counts telemetry that was lost, and logs the first loss of each kind by its exception's type
    alone.
    """

    def __init__(self) -> None:
        self.on_loss: Callable[[str, int], None] | None = None
        self._counts: dict[tuple[str, str], int] = {}
        self._lock = new_lock()

    def note(self, operation: str, error: BaseException, count: int = 1) -> None:
        """Record a loss, of one thing or of several at once."""
        # Ctrl-C while an exporter runs in the caller's thread is meant for the program
        if isinstance(error, KeyboardInterrupt):
            raise error
        key = (operation, short_name(error))
        with self._lock:
            before = self._counts.get(key, 0)
            self._counts[key] = before + count
        if self.on_loss is not None:
            # a loss of the loss counter itself is no further loss
            with contextlib.suppress(Exception):
                self.on_loss(operation, count)
        if before == 0:
            _logger.warning("telemetry lost in %s: %s (logged once, counted on)", *key)

    @property
    def total(self) -> int:
        """How many losses there were."""
        with self._lock:
            return sum(self._counts.values())

    def by_kind(self) -> dict[tuple[str, str], int]:
        """Return the counts by operation and exception type."""
        with self._lock:
            return dict(self._counts)
