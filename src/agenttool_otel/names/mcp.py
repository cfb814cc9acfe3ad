"""Words of the MCP doors: what clients of a governed server read."""

from __future__ import annotations

from enum import StrEnum


class McpMeta(StrEnum):
    """Keys of ``_meta`` in what a governed server answers."""

    RESULT = "agenttool/result"
    """Why a call has not run: status, error class, invocation and approval request."""


class PinState(StrEnum):
    """What a tool is, beside its pin."""

    SAME = "same"
    """As it was accepted."""
    CHANGED = "changed"
    """Its description, schema, title or annotations are others."""
    NEW = "new"
    """It has no pin."""
    GONE = "gone"
    """It has a pin, and is not listed any more."""
