"""The standard's word for what redaction did to a value."""

from __future__ import annotations

from enum import StrEnum


class RedactionState(StrEnum):
    """What redaction did to a value (standard, "Result schema")."""

    NONE = "none"
    """Nothing was found in it."""
    REDACTED = "redacted"
    """Secrets were taken out."""
    DROPPED = "dropped"
    """The value was dropped whole."""
    FAILED = "failed"
    """Redaction failed, so that the value is not shown."""
