"""Public helpers for the tests of programs that use this package: capture what calls leave, state
decisions, and check records.

``capture()`` gives a Governor that records into memory; it alone needs opentelemetry-sdk (the
``cli`` extra has it). ``StaticEngine`` answers with the decisions that a test wants, without Rego.
``check_records`` fails where records show what must not be so; the pytest plugin
``agenttool_otel.testing.plugin`` checks those of every test.
"""

from __future__ import annotations

from agenttool_otel.policy.engines.static import StaticEngine, decision
from agenttool_otel.testing.capture import Capture, FixedApprover, capture
from agenttool_otel.testing.records import KeptRecords, check_records

__all__ = [
    "Capture",
    "FixedApprover",
    "KeptRecords",
    "StaticEngine",
    "capture",
    "check_records",
    "decision",
]
