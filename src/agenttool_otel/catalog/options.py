"""What a developer may state about a tool: the standard's names, as the keyword arguments of
``govern``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypedDict, get_type_hints

Classifier = bool | str | Callable[[Mapping[str, Any]], bool]
"""A safety fact that may depend on the input: ``True``/``False``, the name of a classifier that the
standard's examples use (``classifier:command_read_only``, ``classifier:command_destructive``,
``same_as:is_read_only``), or a function of the arguments. Whatever a classifier can't answer is the
dangerous answer.
"""


class RetryOptions(TypedDict, total=False):
    """When a failed attempt is followed by another one, within the same decision.

    Attributes:
        max_attempts: runs in all, the first one included; 3 where not given.
        initial_delay_ms: before the second attempt; 200 where not given.
        max_delay_ms: longest wait; 30,000 where not given.
        multiplier: growth of the delay; 2 where not given.
        jitter: share of the delay that is random; 0.5 where not given.
        retry_on: error classes; timeout, rate_limited and dependency_unavailable where not given.
    """

    max_attempts: int
    initial_delay_ms: float
    max_delay_ms: float
    multiplier: float
    jitter: float
    retry_on: Sequence[str]


class DeclarationOptions(TypedDict, total=False):
    """Who the tool is: as its ``tool_declaration`` states it.

    Attributes:
        namespace: collision boundary; the function's module where not given.
        name: machine-oriented name; the function's name where not given.
        tool_id: stable id; ``namespace.name`` where not given.
        aliases: other names.
        title: name for people.
        description: guidance for models; the docstring where not given.
        search_hint: three to ten words for discovery.
        verbs: words by which people ask for what it does, beside those of its name, title and hint;
          in any language.
        lifecycle: draft, available, disabled, requires_setup, deferred, deprecated or retired.
        tool_kind: what kind of tool it is, for example function, file_operation, shell_command,
          web_search, mcp_tool.
        ownership: managed, mcp or custom (openboa).
        capability_refs: capability keys.
        annotations: untrusted hints.
        external_mappings: native ids, each with a ``source``.
    """

    namespace: str
    name: str
    tool_id: str
    aliases: Sequence[str]
    title: str
    description: str
    search_hint: str
    verbs: Sequence[str]
    lifecycle: Literal[
        "draft", "available", "disabled", "requires_setup", "deferred", "deprecated", "retired"
    ]
    tool_kind: str
    ownership: Literal["managed", "mcp", "custom"]
    capability_refs: Sequence[str]
    annotations: Mapping[str, Any]
    external_mappings: Sequence[Mapping[str, Any]]


class InterfaceOptions(TypedDict, total=False):
    """What a call does, as far as a caller depends on it, and how the tool is shown: its
    ``tool_interface``.

    Attributes:
        read_only: changes nothing. Unknown counts as no.
        destructive: may destroy something.
        open_world: reaches, or gives, what others may have written. Unknown counts as yes.
        concurrency_safe: may run beside other calls. Unknown counts as no.
        requires_user_interaction: needs a person while it runs.
        interrupt_behavior: cancel or block.
        context_modifiers: what becomes of changes of context that it returns: allow, defer or
          refuse.
        defer: its schema is kept from models until the tool is searched for or selected.
        always_load: its schema is on every surface, whatever the limit.
        requires: names of what has to be set up first, for example ``browser_session``.
        credentials: names of credentials without which the tool is not shown.
        feature_gates: names of gates that all have to be open.
        model_requirements: what the model has to support, for example ``vision``.
        starts_agent: name of the agent that it starts; the tool is left out inside that agent.
        user_facing_name: name for people where it is shown that the tool runs.
        ui_summary: hint for people of what it does.
        activity_description: what is shown while it runs.
        progress_schema: JSON Schema of its progress, where it is not the standard's.
        progress_render_hint: hint for user interfaces of how its progress is shown.
        rejected_render_hint: the same for a refusal.
        error_render_hint: the same for an error.
    """

    read_only: Classifier
    destructive: Classifier
    open_world: Classifier
    concurrency_safe: Classifier
    requires_user_interaction: bool
    interrupt_behavior: Literal["cancel", "block"]
    context_modifiers: Literal["allow", "defer", "refuse"]
    defer: bool
    always_load: bool
    requires: Sequence[str]
    credentials: Sequence[str]
    feature_gates: Sequence[str]
    model_requirements: Sequence[str]
    starts_agent: str
    user_facing_name: str
    ui_summary: str
    activity_description: str
    progress_schema: Mapping[str, Any]
    progress_render_hint: str
    rejected_render_hint: str
    error_render_hint: str


class PermissionOptions(TypedDict, total=False):
    """What the tool uses, and who has to agree: its ``tool_permission_profile``.

    Attributes:
        risk_level: low, medium, high or critical.
        access_kinds: what it uses: file_read, file_write, network, browser, credential, payment,
            external_send, code_execution; the stock policy asks about any other word.
        write_effects: what it changes: none, local_draft, local_persistent, remote_mutation,
          irreversible.
        network_scope: how far it reaches: none, loopback, internal or internet.
        tenant_scope: single, cross, or the one tenant that it belongs to.
        credential_refs: names of credentials that it uses.
        sandbox_profile: sandbox that it runs in.
        approval_required: a person has to agree to each call.
        approval_reason: what that person is shown as the reason.
        prompt_avoidable: the prompt may be left out where nobody can answer.
        rule_matching_fields: arguments that rules match on.
        data_sensitivity: none, public, low, internal, confidential, restricted, secret or
            credential; results of the last three are never written to a store.
        retention_hint: how long results should be kept.
        redaction_required: results are redacted before anyone sees them.
    """

    risk_level: Literal["low", "medium", "high", "critical"]
    access_kinds: Sequence[str]
    write_effects: Sequence[str]
    network_scope: str
    tenant_scope: str
    credential_refs: Sequence[str]
    sandbox_profile: str
    approval_required: bool
    approval_reason: str
    prompt_avoidable: bool
    rule_matching_fields: Sequence[str]
    data_sensitivity: str
    retention_hint: str
    redaction_required: bool


class InputOptions(TypedDict, total=False):
    """What its arguments are: the ``input_contract`` of its declaration.

    Attributes:
        path_args: arguments that are paths (names or JSON pointers).
        path_base: the directory that a tool's own file system begins at: ``/a`` is ``a`` in it. Or
            directories by the beginnings of its paths (``{"/": "/work", "/memories/": "nowhere"}``);
            ``nowhere`` for paths that are keys of a store and name no file of this machine.
        url_args: arguments that are URLs.
        command_args: arguments that are shell commands.
        sql_args: arguments that are SQL.
        inert_args: arguments whose texts change nothing about what a command does, or whom a call
            reaches, such as a label; a classifier answers that a call only reads only where every text
            is a command, path, URL or SQL, or is named here.
        sources: where the value of an argument may come from, by its name or JSON pointer: ``user``,
            ``counterparties``, and globs of the tools that may have given it (``contacts.*``; without a
            dot, of its own namespace). Any other value is asked about, whoever gave it.
        sensitive_fields: arguments whose values are never shown (names or JSON pointers).
        internal_only_fields: arguments that a model must never produce.
        by_reference: arguments that the function changes in place for its caller; it gets the
            caller's own object, if that is still what was decided. All others are copies.
        model_input_schema: JSON Schema of the arguments, where the derived one should not be used.
        strict: arguments outside the schema are refused.
        examples: argument objects for models.
        validate: function of the arguments that raises ValueError for values the schema can't
          refuse.
        mutation_policy: who may replace the input: allow, hooks_only, approval_only or forbid.
        argument_mode: how arguments travel: json, text, file, multipart or stream.
    """

    path_args: Sequence[str]
    path_base: str | Mapping[str, str]
    url_args: Sequence[str]
    command_args: Sequence[str]
    sql_args: Sequence[str]
    inert_args: Sequence[str]
    sources: Mapping[str, Sequence[str]]
    sensitive_fields: Sequence[str]
    internal_only_fields: Sequence[str]
    by_reference: Sequence[str]
    model_input_schema: Mapping[str, Any]
    strict: bool
    examples: Sequence[Mapping[str, Any]]
    validate: Callable[[Mapping[str, Any]], None]
    mutation_policy: Literal["allow", "hooks_only", "approval_only", "forbid"]
    argument_mode: str


class OutputOptions(TypedDict, total=False):
    """What it gives back: the ``output_contract`` of its declaration.

    Attributes:
        output_schema: JSON Schema of structured output.
        content_types: content classes of the result.
        result_trust: who wrote the result, by JSON pointer (``*`` for any key or position), or one
            word for all of it: ``trusted`` for what only the application writes, ``record`` for
            what it keeps about others (a sender, an id), ``free_text`` for what anybody may have
            written. Where it states nothing, ``open_world`` counts.
        redaction_rules: JSON pointers in the result that are redacted before anyone sees them.
        max_inline_chars: characters of a result that may enter a prompt.
        persistence: strategy, where the choice by size should not be used: inline,
            preview_and_persist, ref_only, redact, drop_with_reason or never_persist.
        output_facts: further fields of the output contract: ``artifact_expectations``,
            ``max_inline_bytes``, ``rendering_boundary``, ``fallback_summary``.
    """

    output_schema: Mapping[str, Any]
    content_types: Sequence[str]
    result_trust: Mapping[str, str] | Literal["trusted", "record", "free_text"]
    redaction_rules: Sequence[str]
    max_inline_chars: int
    persistence: Literal[
        "inline", "preview_and_persist", "ref_only", "redact", "drop_with_reason", "never_persist"
    ]
    output_facts: Mapping[str, Any]


class ExecutionOptions(TypedDict, total=False):
    """How it runs: its ``tool_execution_profile``.

    Attributes:
        execution_kind: how it is run.
        timeout_ms: limit of one attempt, in milliseconds.
        retry: ``max_attempts``, ``initial_delay_ms``, ``max_delay_ms``, ``multiplier``, ``jitter``,
          ``retry_on``.
        supports_progress: emits progress.
        supports_cancel: can be cancelled.
        resource_locks: names of exclusive resources that a call holds while it runs, for the whole
          Governor.
        requires_exclusive_context: has its session's context for itself while it runs.
        reports_effects: calls ``report_effects`` before it commits anything, so that what it is about to
          do is decided; until then the call has not run.
        runs_commands: does all that it does by ``run_command`` and ``arun_command``. So a
            coroutine function can be held where a policy obliges a sandbox: its commands are.
        runs_elsewhere: hands its work to a process or a host that was there before, as a shell that
            stays open does. No sandbox holds that, so a call that a policy obliges to be held is
            denied.
        execution_facts: further fields of the execution profile, for example
            ``supports_background``, ``supports_artifacts``, ``supports_offline``, and of a command
            tool ``cwd_policy``, ``env_policy``.
    """

    execution_kind: str
    timeout_ms: int
    retry: RetryOptions
    supports_progress: bool
    supports_cancel: bool
    resource_locks: Sequence[str]
    requires_exclusive_context: bool
    reports_effects: bool
    runs_commands: bool
    runs_elsewhere: bool
    execution_facts: Mapping[str, Any]


class GovernOptions(
    DeclarationOptions,
    InterfaceOptions,
    PermissionOptions,
    InputOptions,
    OutputOptions,
    ExecutionOptions,
    total=False,
):
    """Every fact that can be stated about a tool; what is not given is derived, and marked as
    derived.

    A fact stands alone (``risk_level="low"``) or in the group of the record that holds it
    (``permission={"risk_level": "low"}``).

    Attributes:
        declaration: facts of DeclarationOptions.
        interface: facts of InterfaceOptions.
        permission: facts of PermissionOptions.
        input: facts of InputOptions.
        output: facts of OutputOptions.
        execution: facts of ExecutionOptions.
    """

    declaration: DeclarationOptions
    interface: InterfaceOptions
    permission: PermissionOptions
    input: InputOptions
    output: OutputOptions
    execution: ExecutionOptions


GROUPS: Final[Mapping[str, Mapping[str, Any]]] = {
    "declaration": get_type_hints(DeclarationOptions),
    "interface": get_type_hints(InterfaceOptions),
    "permission": get_type_hints(PermissionOptions),
    "input": get_type_hints(InputOptions),
    "output": get_type_hints(OutputOptions),
    "execution": get_type_hints(ExecutionOptions),
}
"""The facts of each group, and what each takes."""
