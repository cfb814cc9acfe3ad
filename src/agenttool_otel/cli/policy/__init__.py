"""``agenttool policy``: start, check, test, explain, build and ask a policy."""

from __future__ import annotations

from agenttool_otel.cli.policy.app import EXIT_CODES, app

__all__ = ["EXIT_CODES", "app"]
