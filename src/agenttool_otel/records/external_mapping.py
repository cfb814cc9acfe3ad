"""tool_external_mapping: native protocol ids are preserved, never replaced (standard, "External mappings")."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class ExternalMapping(BaseModel):
    """Reference to the native operation behind a tool or an invocation.

    Attributes:
        source: kind of native system: ``mcp``, ``openapi``, ``function_calling``, ``a2a``, ``cli``, ``browser``,
            ``telemetry`` or a framework's name. The mapping fields of the standard's table (``server_id``,
            ``operation_id``, ``tool_call_id`` ...) are given as further fields and kept as they are.
    """

    model_config = ConfigDict(extra="allow")

    source: str = ""
