"""What the tests of requirements share: calls in memory, and their records by kind."""

from __future__ import annotations

from typing import Any

from agenttool_otel.testing import Capture


def records_of(captured: Capture, kind: str) -> list[dict[str, Any]]:
    """Return the records of one kind that a sink got, oldest first."""
    return [line["record"] for line in captured.records if line["object"] == kind]


def last_of(captured: Capture, kind: str) -> dict[str, Any]:
    """Return the last record of a kind."""
    return records_of(captured, kind)[-1]


def event_names(captured: Capture) -> list[str]:
    """Return the classes of the events, oldest first."""
    return [event.event_type for event in captured.events]
