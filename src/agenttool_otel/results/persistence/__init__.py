"""Keeping results that are too large to show."""

from __future__ import annotations

from agenttool_otel.results.persistence.keeper import ResultKeeper

__all__ = ["ResultKeeper"]
