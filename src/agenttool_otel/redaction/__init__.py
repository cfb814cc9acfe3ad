"""Taking secrets and personal data out of values before they leave the process."""

from __future__ import annotations

from agenttool_otel.redaction.redactor import Redactor, default_redactor, redact_log_lines
from agenttool_otel.redaction.types import Detector, Redacted, Redaction, RedactionSettings, Span

__all__ = [
    "Detector",
    "Redacted",
    "Redaction",
    "RedactionSettings",
    "Redactor",
    "Span",
    "default_redactor",
]

redact_log_lines()
