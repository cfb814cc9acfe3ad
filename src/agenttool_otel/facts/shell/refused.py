"""How a proof ends."""

from __future__ import annotations

__all__ = ["Refused", "refuse"]


class Refused(Exception):
    """Ends the proof of one command; the message says why."""


def refuse(reason: str) -> None:
    """Ends the proof when there is a reason to."""
    if reason:
        raise Refused(reason)
