"""``agenttool policy``: start, check, test, explain, build and ask a policy."""

from __future__ import annotations

from agenttool_otel.cli.policy.app import app
from agenttool_otel.cli.policy.common import EXIT_CODES

__all__ = [
    "EXIT_CODES",
    "app",
]
