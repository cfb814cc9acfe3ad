"""tool_permission_profile: risk facts that a policy and a reviewer read (standard, "Permission
Profile").
"""

from __future__ import annotations

from pydantic import Field

from agenttool_otel.names import RiskLevel
from agenttool_otel.records.base import Record


class PermissionProfile(Record):
    """Facts about what a tool can do to the world; a profile is never a decision.

    Attributes:
        permission_profile_id: id.
        risk_level: ``low``, ``medium``, ``high`` or ``critical``; ``medium`` where nobody said.
        access_kinds: what it accesses (AccessKind).
        write_effects: what it changes (WriteEffect).
        network_scope: for example ``none``, ``loopback``, ``internal``, ``internet``.
        tenant_scope: for example ``single`` or ``cross``.
        credential_refs: names of the credentials it uses, never the credentials.
        sandbox_profile: sandbox it runs in.
        approval_required: a person has to agree to each call.
        approval_reason: the reason shown to that person.
        permission_channel: where the question is asked.
        prompt_avoidable: whether the prompt may be left out in non-interactive mode.
        rule_matching_fields: argument names that rules match on.
        data_sensitivity: for example ``public``, ``internal``, ``confidential``.
        retention_hint: how long results should be kept.
        redaction_required: results must be redacted before a model sees them.
        policy_refs: adjacent policies.
    """

    permission_profile_id: str
    # neither alarming nor reassuring where nothing was stated
    risk_level: RiskLevel = RiskLevel.MEDIUM
    access_kinds: list[str] = Field(default_factory=list)
    write_effects: list[str] = Field(default_factory=list)
    network_scope: str | None = None
    tenant_scope: str | None = None
    credential_refs: list[str] = Field(default_factory=list)
    sandbox_profile: str | None = None
    approval_required: bool = False
    approval_reason: str | None = None
    permission_channel: str | None = None
    prompt_avoidable: bool = False
    rule_matching_fields: list[str] = Field(default_factory=list)
    data_sensitivity: str | None = None
    retention_hint: str | None = None
    redaction_required: bool = False
    policy_refs: list[str] = Field(default_factory=list)
