"""tool_permission_decision: what was decided for one invocation, and why (standard, "Permission
Decision").
"""

from __future__ import annotations

from typing import Final

from pydantic import Field

from agenttool_otel.names import (
    Behavior,
    DecisionSource,
    ReasonType,
    SandboxNetwork,
)
from agenttool_otel.records.base import (
    JsonObject,
    JsonValue,
    Part,
    Record,
    Timestamp,
    id_field,
    utc_now,
)

DEFAULT_MODE: Final = "default"
"""Mode of a host that names none."""


class DecisionReason(Part):
    """Why.

    Attributes:
        type: kind of reason (standard, "Decision reasons").
        rule_ref: the rule that decided, for example ``agenttool.rules.paths.protected``.
        message: for people; it holds no argument or result content.
    """

    type: ReasonType = ReasonType.OTHER
    rule_ref: str | None = None
    message: str = ""


class SandboxObligation(Part):
    """What has to hold the call's body (docs/policies.md).

    Attributes:
        profile: ``read``, ``rehearse``, ``write``, or the name of a profile of one's own.
        network: ``none``, where the policy names it.
    """

    profile: str
    network: SandboxNetwork | None = None


class Obligations(Part):
    """What the policy demands beside its behavior (docs/policies.md).

    Attributes:
        redact_input: JSON pointers into the input whose values are redacted wherever they are
          shown.
        redact_result: JSON pointers into the result, redacted before anyone sees it; ``detected``
            for whatever the detectors find inside of it, ``*`` for all of it.
        max_inline_chars: upper limit of characters that reach the model inline.
        persistence: required persistence strategy (PersistenceStrategy).
        sandbox: what has to hold the body; the call is denied where that can't be had.
    """

    redact_input: list[str] = Field(default_factory=list)
    redact_result: list[str] = Field(default_factory=list)
    max_inline_chars: int | None = None
    persistence: str | None = None
    sandbox: SandboxObligation | None = None


class PermissionDecision(Record):
    """One decision. ``behavior`` is the verdict; whether the call ran is a fact of the invocation,
    not of this.

    Attributes:
        decision_id: sortable id.
        invocation_id: the call that was decided.
        behavior: allow, ask, deny or passthrough.
        mode: permission mode of the host, as ``agent_context(mode=)`` states it.
        enforced: whether the decision bound; in shadow mode it was recorded alone.
        shadow: what a shadow policy would have decided: ``behavior``, ``rule_ref``.
        source: who decided (DecisionSource, or a rule source of the standard).
        reason: why.
        rule_refs: every rule that contributed, the deciding one first.
        policy_refs: bundles and revisions, ``policy:<engine>@<revision>``.
        updated_input: the input that the policy wants instead; it is decided again before it runs.
        updated_input_ref: reference to it where it is not inlined.
        user_modified: a person changed the input.
        suggested_updates: policy changes that an approver may accept; not decisions themselves.
        pending_classifier_check: state of an automated classifier.
        blocked_path: the path that the denial is about, if one.
        content_blocks: blocks to show with the decision.
        accept_feedback: an approver's words when accepting.
        alternatives: safer tool calls, ``{"tool", "arguments", "reason"}``.
        obligations: what must be done to input and result.
        decided_at: when.
        expires_at: until when the decision may be used.
    """

    decision_id: str = id_field("perm")
    invocation_id: str
    behavior: Behavior
    mode: str = DEFAULT_MODE
    enforced: bool = True
    shadow: JsonObject | None = None
    # a rule source of the standard ("user_settings", "cli_arg") is a word too
    source: str = DecisionSource.POLICY.value
    reason: DecisionReason = Field(default_factory=DecisionReason)
    rule_refs: list[str] = Field(default_factory=list)
    policy_refs: list[str] = Field(default_factory=list)
    updated_input: JsonValue = None
    updated_input_ref: str | None = None
    user_modified: bool = False
    suggested_updates: list[JsonObject] = Field(default_factory=list)
    pending_classifier_check: JsonObject | None = None
    blocked_path: str | None = None
    content_blocks: list[JsonObject] = Field(default_factory=list)
    accept_feedback: str | None = None
    alternatives: list[JsonObject] = Field(default_factory=list)
    obligations: Obligations = Field(default_factory=Obligations)
    decided_at: Timestamp = Field(default_factory=utc_now)
    expires_at: Timestamp | None = None
