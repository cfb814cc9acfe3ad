"""tool_declaration: the portable description of one callable capability (standard, "Tool
declaration").
"""

from __future__ import annotations

from pydantic import Field

from agenttool_otel.names import Lifecycle, ToolKind
from agenttool_otel.records.base import JsonObject, Record
from agenttool_otel.records.contracts import InputContract, OutputContract
from agenttool_otel.records.external_mapping import ExternalMapping


class ToolDeclaration(Record):
    """Stable description of one callable capability.

    Attributes:
        tool_id: stable id, scoped by producer.
        namespace: collision boundary.
        name: machine-oriented name, the one a model calls.
        aliases: backwards-compatible names.
        search_hint: three to ten words for discovery.
        title: human-readable title.
        description: model-facing usage guidance.
        lifecycle: lifecycle state.
        tool_kind: execution kind, one of ToolKind or a producer's own word.
        capability_refs: capability keys.
        input_contract: what the tool takes.
        output_contract: what it gives back.
        interface_ref: id of the tool_interface.
        execution_profile_ref: id of the execution profile.
        permission_profile_ref: id of the permission profile.
        external_mappings: native ids.
        annotations: untrusted hints.
    """

    tool_id: str
    namespace: str
    name: str
    aliases: list[str] = Field(default_factory=list)
    search_hint: str | None = None
    title: str | None = None
    description: str
    lifecycle: Lifecycle = Lifecycle.AVAILABLE
    # "Initial tool_kind values": a producer may have its own
    tool_kind: str = ToolKind.FUNCTION.value
    capability_refs: list[str] = Field(default_factory=list)
    input_contract: InputContract = Field(default_factory=InputContract)
    output_contract: OutputContract = Field(default_factory=OutputContract)
    interface_ref: str | None = None
    execution_profile_ref: str | None = None
    permission_profile_ref: str | None = None
    external_mappings: list[ExternalMapping] = Field(default_factory=list)
    annotations: JsonObject = Field(default_factory=dict)
