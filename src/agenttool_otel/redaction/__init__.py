"""Taking secrets and personal data out of values before they leave the process.

It has nothing to do with agents, tools or calls, and can be used alone:

    >>> from agenttool_otel.redaction import Redactor
    >>> Redactor().redact({"password": "correct horse"}).value
    {'password': '[redacted:password]'}

The redactor is imported when it is first used: its patterns take a while to compile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenttool_otel.values.lazy import lazy_attributes

if TYPE_CHECKING:
    from agenttool_otel.redaction.redactor import Redactor, default_redactor
    from agenttool_otel.redaction.types import (
        Detector,
        Redacted,
        Redaction,
        RedactionSettings,
        Span,
    )

__all__ = [
    "Detector",
    "Redacted",
    "Redaction",
    "RedactionSettings",
    "Redactor",
    "Span",
    "default_redactor",
]

_HOMES = dict.fromkeys(__all__, "types") | dict.fromkeys(
    ("Redactor", "default_redactor"), "redactor"
)

__getattr__ = lazy_attributes(__name__, _HOMES)
