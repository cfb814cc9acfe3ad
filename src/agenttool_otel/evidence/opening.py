"""Where decisions are recorded, as settings name it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.evidence.files import DecisionFile, key_of
from agenttool_otel.evidence.handing import DecisionCallback, DecisionLogs
from agenttool_otel.evidence.record import DecisionRecorder
from agenttool_otel.evidence.words import Words
from agenttool_otel.values.canonical import DIGEST_KEY, stated_digest_key

if TYPE_CHECKING:
    from agenttool_otel.telemetry import Telemetry
    from agenttool_otel.telemetry.sinks import Sink

_FILE = "file:"
_logger = logging.getLogger("agenttool_otel.evidence")


def open_recorder(target: str, telemetry: Telemetry) -> DecisionRecorder | None:
    """Open where decisions are recorded; a target that can't be used is logged, and left out.

    Args:
        target: ``file:PATH``, ``otel``, or empty.
        telemetry: has the functions that get records, and the provider of log records.

    Raises:
        ConfigurationError: functions are to get them, and there is no key.
    """
    key = stated_digest_key()
    sinks: list[Sink] = []
    try:
        if target.startswith(_FILE):
            path = Path(target.removeprefix(_FILE))
            key = key_of(path, make=True)
            sinks.append(DecisionFile(path, key))
        elif target:
            sinks.append(DecisionLogs(telemetry.settings.logger_provider, _needed(key)))
    except ConfigurationError as error:
        _logger.warning("no decisions are recorded: %s", error)
    for function in telemetry.settings.decision_subscribers:
        sinks.append(DecisionCallback(function, _needed(key)))
    if not sinks:
        return None
    for sink in sinks:
        sink.watched_by(telemetry.losses)
    return DecisionRecorder(sinks, Words(key))


def _needed(key: bytes) -> bytes:
    """Return the key.

    Raises:
        ConfigurationError: there is none, so that nobody could read the records.
    """
    if not key:
        raise ConfigurationError(f"decision records that no file holds need {DIGEST_KEY}")
    return key
