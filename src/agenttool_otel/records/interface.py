"""tool_interface: how a declared tool behaves at run time (standard, "Tool Interface")."""

from __future__ import annotations

from pydantic import Field

from agenttool_otel.names import InterruptBehavior, SchemaVisibility
from agenttool_otel.records.base import JsonObject, JsonValue, Record
from agenttool_otel.records.external_mapping import ExternalMapping


class ToolInterface(Record):
    """Runtime contract of one tool; the defaults are the standard's fail-closed ones.

    Attributes:
        interface_id: id that the declaration refers to.
        tool_id: the tool.
        name: name, as in the declaration.
        aliases: other names.
        search_hint: words for discovery.
        model_input_schema: what a model may produce.
        runtime_input_schema: with internal fields.
        output_schema: structured output.
        strict: arguments outside the schema are refused.
        schema_visibility: who sees the schema.
        is_enabled: availability, or a reference to it.
        is_read_only: ``True``, ``False`` or a classifier's name (``classifier:...``); unknown is
          ``False``.
        is_concurrency_safe: the same for running beside others; unknown is ``False``.
        is_destructive: the same for destroying something; ``False`` unless detected.
        is_open_world: touches what nobody here controls; ``True`` for network, browser and shell
          tools.
        requires_user_interaction: needs a person while it runs.
        classifier_input: expression or value that safety classifiers read.
        permission_matcher: kind of rule matching (``path``, ``shell_pattern``, ``url`` ...).
        interrupt_behavior: ``cancel`` or ``block``.
        execution_profile_ref: id of the execution profile.
        permission_profile_ref: id of the permission profile.
        persistence_policy_ref: rule for large results.
        max_inline_chars: characters that may enter a prompt.
        rendering: hints; never the canonical output.
        external_mappings: native ids.
        user_facing_name: name for people.
        should_defer: kept from models until it is searched for or selected.
        always_load: on every surface, whatever the limit.
        requires_setup: names of what has to be set up first.
        required_credentials: names of credentials without which it is not shown.
        model_requirements: what the model has to support.
        feature_gate_refs: gates that have to be open.
        starts_agent: the agent that it starts.
        sandbox_profile: sandbox that it runs in.
        schema_validation: ``strict`` where arguments outside the schema are refused, else
          ``tolerant``.
        value_validation: whether the values are checked beyond the schema.
        io_preflight_validation: whether a check of the developer's runs before any side effect.
        permission_channel: through whom a question is answered.
        result_mapper: what maps a result to content.
        deny_before_io: facts and policy come before any input or output of the tool.
        decision_ref: entry point that decides.
        abort_semantics: ``cancel`` where a running call can be cancelled, else ``wait``.
        progress_schema: schema of its progress.
        context_modifier_policy: what becomes of changes of context that it returns.
        empty_result_policy: how an empty result differs from a missing one.
        redaction_policy_refs: what redacts its arguments and results.
        ui_summary: hint for people of what it does.
        activity_description: what is shown while it runs.
        progress_render_hint: hint for user interfaces.
        rejected_render_hint: the same for a refusal.
        error_render_hint: the same for an error.
        inferred: names of the fields that nobody stated and that were derived (standard: "records
            should still say which facts were inferred").
    """

    interface_id: str
    tool_id: str
    name: str | None = None
    aliases: list[str] = Field(default_factory=list)
    search_hint: str | None = None
    model_input_schema: JsonObject | None = None
    runtime_input_schema: JsonObject | None = None
    output_schema: JsonObject | None = None
    strict: bool = True
    schema_visibility: SchemaVisibility = SchemaVisibility.LOADED
    is_enabled: bool | str = True
    # "Fail-closed defaults": what nobody stated is neither read-only nor safe beside others
    is_read_only: bool | str = False
    is_concurrency_safe: bool | str = False
    is_destructive: bool | str = False
    # "true for network/browser/shell unless scoped otherwise"
    is_open_world: bool | str = True
    requires_user_interaction: bool = False
    classifier_input: JsonValue = ""
    permission_matcher: str | None = None
    # "If omitted, use block"
    interrupt_behavior: InterruptBehavior = InterruptBehavior.BLOCK
    execution_profile_ref: str | None = None
    permission_profile_ref: str | None = None
    persistence_policy_ref: str | None = None
    max_inline_chars: int | None = None
    rendering: JsonObject | None = None
    external_mappings: list[ExternalMapping] = Field(default_factory=list)
    user_facing_name: str | None = None
    should_defer: bool = False
    always_load: bool = False
    requires_setup: list[str] = Field(default_factory=list)
    required_credentials: list[str] = Field(default_factory=list)
    model_requirements: list[str] = Field(default_factory=list)
    feature_gate_refs: list[str] = Field(default_factory=list)
    starts_agent: str | None = None
    sandbox_profile: str | None = None
    schema_validation: str | None = None
    value_validation: bool | None = None
    io_preflight_validation: bool | None = None
    deny_before_io: bool | None = None
    permission_channel: str | None = None
    result_mapper: str | None = None
    decision_ref: str | None = None
    abort_semantics: str | None = None
    progress_schema: JsonObject | None = None
    context_modifier_policy: str | None = None
    empty_result_policy: str | None = None
    redaction_policy_refs: list[str] = Field(default_factory=list)
    ui_summary: str | None = None
    activity_description: str | None = None
    progress_render_hint: str | None = None
    rejected_render_hint: str | None = None
    error_render_hint: str | None = None
    # "exported Agent Tool records should still say which facts were inferred"
    inferred: list[str] = Field(default_factory=list)
