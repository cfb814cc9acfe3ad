"""From a callable (or a framework's tool) and what its developer stated to one ToolSpec.

Whatever is not stated is derived from signature, hints and docstring, or takes the standard's fail-closed default; the
interface's ``inferred`` names each safety fact that nobody stated, and policies see that list.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from agenttool_otel.catalog.docstring import read_docstring
from agenttool_otel.catalog.options import GovernOptions
from agenttool_otel.catalog.parameters import Parameters
from agenttool_otel.catalog.schema import SchemaCheck
from agenttool_otel.catalog.signature import read_parameters
from agenttool_otel.catalog.spec import Safety, ToolSpec
from agenttool_otel.catalog.vocabulary import check_fields, check_stated
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.facts.plan import plan_facts
from agenttool_otel.names import (
    OPERATION_EXECUTE_TOOL,
    SCHEMA_VERSION,
    AccessKind,
    Attr,
    ExecutionKind,
    GenAI,
    Ownership,
    RiskLevel,
    ToolKind,
    WriteEffect,
)
from agenttool_otel.records import (
    ExecutionProfile,
    ExternalMapping,
    InputContract,
    OutputContract,
    PermissionProfile,
    ToolDeclaration,
    ToolInterface,
)
from agenttool_otel.records.canonical import digest

__all__ = ["declare", "declare_function"]

_OPEN_ACCESS = {AccessKind.NETWORK, AccessKind.BROWSER, AccessKind.EXTERNAL_SEND, AccessKind.CODE_EXECUTION}
_CLOSED_KINDS = {ToolKind.FUNCTION, ToolKind.FILE_OPERATION, ToolKind.POLICY_CHECK, ToolKind.ARTIFACT_OPERATION}
_EXECUTION_KINDS = {
    ToolKind.SHELL_COMMAND: ExecutionKind.SHELL,
    ToolKind.CODE_EXECUTION: ExecutionKind.LOCAL_PROCESS,
    ToolKind.MCP_TOOL: ExecutionKind.MCP_SERVER,
    ToolKind.OPENAPI_OPERATION: ExecutionKind.HTTP_API,
    ToolKind.WEB_SEARCH: ExecutionKind.HTTP_API,
    ToolKind.BROWSER_ACTION: ExecutionKind.BROWSER,
    ToolKind.MODEL_TASK: ExecutionKind.MODEL_SERVICE,
    ToolKind.PEER_AGENT_TOOL: ExecutionKind.PEER_AGENT,
    ToolKind.NATIVE_TOOL: ExecutionKind.NATIVE_APP,
}
_SAFETY_FACTS = ("read_only", "destructive", "open_world", "concurrency_safe")
_STATED_FACTS = (*_SAFETY_FACTS, "risk_level", "access_kinds", "write_effects")
# gen_ai.tool.type knows three words: datastore for retrieval, extension for what a provider runs, function for the rest
_TOOL_TYPES = {ToolKind.RETRIEVAL: "datastore", ToolKind.WEB_SEARCH: "extension", ToolKind.MCP_TOOL: "extension"}


def declare_function(
    function: Callable[..., Any],
    options: GovernOptions,
    *,
    drop_first: bool,
    is_async: bool,
    streams: bool,
) -> ToolSpec:
    """Declare a Python callable.

    Args:
        function: the callable without its binding.
        options: what the developer stated.
        drop_first: leave out ``self`` or ``cls``.
        is_async: a coroutine function or async generator, so that a call can be cancelled.
        streams: a generator, so that results come in parts.

    Raises:
        ConfigurationError: a stated fact is not usable.
    """
    description, parameter_docs = read_docstring(function)
    target: Any = function
    while hasattr(target, "func") and hasattr(target, "keywords"):
        target = target.func
    name = getattr(target, "__name__", None) or type(target).__name__
    module = getattr(target, "__module__", None) or "local"
    if "description" not in options and target is not function:
        description, parameter_docs = read_docstring(target)
    parameters = read_parameters(
        function,
        drop_first=drop_first,
        internal_only=options.get("internal_only_fields", ()),
        descriptions=parameter_docs,
        strict=options.get("strict", True),
    )
    return declare(
        options,
        name=name,
        namespace=module,
        description=description or name,
        parameters=parameters,
        schema=parameters.schema,
        is_async=is_async,
        streams=streams,
        output_schema=_output_schema(function) if options.get("output_schema") is None else None,
    )


def declare(
    options: GovernOptions,
    *,
    name: str,
    namespace: str,
    description: str,
    parameters: Parameters | None,
    schema: Mapping[str, Any],
    is_async: bool,
    streams: bool,
    output_schema: Mapping[str, Any] | None = None,
    mappings: tuple[ExternalMapping, ...] = (),
) -> ToolSpec:
    """Declare a tool from what is known of it; the stated options win over every derived value.

    Args:
        options: what the developer stated.
        name: derived name.
        namespace: derived namespace.
        description: derived description.
        parameters: its parameters, when this package binds them.
        schema: derived model-facing schema.
        is_async: whether a running call can be cancelled.
        streams: whether results come in parts.
        output_schema: derived schema of structured output.
        mappings: native ids known from the framework.

    Raises:
        ConfigurationError: a stated fact is not usable.
    """
    try:
        check_stated(options)
        return _declare(
            options, name, namespace, description, parameters, schema, is_async, streams, output_schema, mappings
        )
    except ValueError as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(f"tool {name!r} can't be declared: {error}") from error


def _declare(
    options: GovernOptions,
    name: str,
    namespace: str,
    description: str,
    parameters: Parameters | None,
    schema: Mapping[str, Any],
    is_async: bool,
    streams: bool,
    output_schema: Mapping[str, Any] | None,
    mappings: tuple[ExternalMapping, ...],
) -> ToolSpec:
    name = options.get("name", name)
    namespace = options.get("namespace", namespace)
    tool_id = options.get("tool_id", f"{namespace}.{name}")
    kind = str(options.get("tool_kind", ToolKind.FUNCTION))
    model_schema = dict(options.get("model_input_schema", schema))
    internal = sorted({*options.get("internal_only_fields", ()), *(parameters.internal if parameters else ())})
    check_fields(options, model_schema, internal)
    model_schema = _without(model_schema, internal)
    out_schema = options.get("output_schema", output_schema)
    access = [str(kind_) for kind_ in options.get("access_kinds", ())]
    safety = _safety(options, kind, access)
    inferred = [fact for fact in _STATED_FACTS if fact not in options]
    risk = RiskLevel(options.get("risk_level", RiskLevel.LOW if safety.read_only is True else RiskLevel.MEDIUM))
    effects = [str(effect) for effect in options.get("write_effects", ())]
    if not effects and safety.read_only is True:
        effects = [WriteEffect.NONE.value]
    ownership = str(Ownership(options.get("ownership", Ownership.MANAGED)))

    declaration = ToolDeclaration(
        tool_id=tool_id,
        namespace=namespace,
        name=name,
        aliases=list(options.get("aliases", ())),
        search_hint=options.get("search_hint"),
        title=options.get("title"),
        description=options.get("description", description),
        lifecycle=options.get("lifecycle", "available"),
        tool_kind=kind,
        capability_refs=list(options.get("capability_refs", ())),
        input_contract=InputContract(
            model_input_schema=model_schema,
            strict=options.get("strict", True),
            defaults=parameters.defaults if parameters and parameters.defaults else None,
            examples=[dict(example) for example in options["examples"]] if "examples" in options else None,
            sensitive_fields=list(options.get("sensitive_fields", ())),
            internal_only_fields=internal,
            mutation_policy=options.get("mutation_policy", "allow"),
        ),
        output_contract=OutputContract(
            structured_schema=dict(out_schema) if out_schema else None,
            content_types=list(options.get("content_types", ())),
            max_inline_chars=options.get("max_inline_chars"),
            persistence_policy_ref=options.get("persistence"),
            redaction_rules=list(options.get("redaction_rules", ())),
        ),
        interface_ref=f"tool_interface:{tool_id}",
        execution_profile_ref=f"execution_profile:{tool_id}",
        permission_profile_ref=f"permission_profile:{tool_id}",
        external_mappings=[*mappings, *(ExternalMapping(**m) for m in options.get("external_mappings", ()))],
        annotations=dict(options.get("annotations", {})),
    )
    interface = ToolInterface(
        interface_id=f"tool_interface:{tool_id}",
        tool_id=tool_id,
        name=name,
        aliases=declaration.aliases,
        search_hint=declaration.search_hint,
        model_input_schema=model_schema,
        output_schema=declaration.output_contract.structured_schema,
        strict=declaration.input_contract.strict,
        is_read_only=_shown(safety.read_only),
        is_concurrency_safe=_shown(safety.concurrency_safe),
        is_destructive=_shown(safety.destructive),
        is_open_world=_shown(safety.open_world),
        requires_user_interaction=options.get("requires_user_interaction", False),
        classifier_input=", ".join(f"input.{name_}" for name_ in options.get("command_args", ())),
        permission_matcher=_matcher(options),
        interrupt_behavior=options.get("interrupt_behavior", "block"),
        execution_profile_ref=declaration.execution_profile_ref,
        permission_profile_ref=declaration.permission_profile_ref,
        max_inline_chars=options.get("max_inline_chars"),
        inferred=inferred,
    )
    execution = ExecutionProfile(
        execution_profile_id=f"execution_profile:{tool_id}",
        execution_kind=str(options.get("execution_kind", _EXECUTION_KINDS.get(kind, ExecutionKind.EMBEDDED_RUNTIME))),  # type: ignore[call-overload]
        supports_progress=options.get("supports_progress", False),
        supports_cancel=options.get("supports_cancel", is_async),
        supports_resume=True,
        supports_retries="retry" in options,
        supports_partial_results=streams,
        sandboxed="sandbox_profile" in options,
        sandbox_profile=options.get("sandbox_profile"),
        timeout_ms=options.get("timeout_ms"),
        retry=dict(options["retry"]) if "retry" in options else None,
        resource_locks=list(options.get("resource_locks", ())),
    )
    permission = PermissionProfile(
        permission_profile_id=f"permission_profile:{tool_id}",
        risk_level=risk,
        access_kinds=access,
        write_effects=effects,
        network_scope=options.get("network_scope"),
        tenant_scope=options.get("tenant_scope"),
        credential_refs=list(options.get("credential_refs", ())),
        sandbox_profile=options.get("sandbox_profile"),
        approval_required=options.get("approval_required", False),
        approval_reason=options.get("approval_reason"),
        prompt_avoidable=options.get("prompt_avoidable", False),
        rule_matching_fields=list(options.get("rule_matching_fields", ())),
        data_sensitivity=options.get("data_sensitivity"),
        retention_hint=options.get("retention_hint"),
        redaction_required=options.get("redaction_required", False),
    )
    plan = plan_facts(
        schema=model_schema,
        path_args=tuple(options.get("path_args", ())),
        url_args=tuple(options.get("url_args", ())),
        command_args=tuple(options.get("command_args", ())),
        sql_args=tuple(options.get("sql_args", ())),
        write_effects=tuple(effects),
        access_kinds=tuple(access),
        read_only=safety.read_only is True,
        tool_kind=kind,
    )
    policy_profile = permission.model_dump(
        mode="json",
        include={
            "risk_level", "access_kinds", "write_effects", "network_scope", "tenant_scope", "credential_refs",
            "sandbox_profile", "approval_required", "approval_reason", "prompt_avoidable", "data_sensitivity",
            "redaction_required",
        },
    )  # fmt: skip
    policy_tool = {
        "id": tool_id,
        "namespace": namespace,
        "name": name,
        "aliases": declaration.aliases,
        "kind": kind,
        "lifecycle": declaration.lifecycle.value,
        "ownership": ownership,
        "read_only": safety.read_only is True and safety.destructive is False,
        "destructive": safety.destructive is not False,
        "open_world": safety.open_world is not False,
        "concurrency_safe": safety.concurrency_safe is True,
        "requires_user_interaction": interface.requires_user_interaction,
        "inferred": inferred,
        "capability_refs": declaration.capability_refs,
    }
    return ToolSpec(
        declaration=declaration,
        interface=interface,
        execution=execution,
        permission=permission,
        parameters=parameters,
        check=SchemaCheck(model_schema),
        output_check=SchemaCheck(out_schema) if out_schema else None,
        facts=plan,
        safety=safety,
        validate=options.get("validate"),
        sensitive=tuple(declaration.input_contract.sensitive_fields),
        redact_result=tuple(declaration.output_contract.redaction_rules),
        max_inline_chars=options.get("max_inline_chars"),
        persistence=options.get("persistence"),
        ownership=ownership,
        digest=digest([record.to_json_object() for record in (declaration, interface, permission)]),
        span_name=f"{OPERATION_EXECUTE_TOOL} {name}",
        start_attributes={
            GenAI.OPERATION_NAME: OPERATION_EXECUTE_TOOL,
            GenAI.TOOL_NAME: name,
            GenAI.TOOL_TYPE: _TOOL_TYPES.get(kind, "function"),  # type: ignore[call-overload]
            Attr.SCHEMA_VERSION: SCHEMA_VERSION,
            Attr.TOOL_ID: tool_id,
            Attr.TOOL_NAMESPACE: namespace,
            Attr.TOOL_KIND: kind,
            Attr.TOOL_RISK_LEVEL: risk.value,
        },
        metric_attributes={GenAI.TOOL_NAME: name, GenAI.TOOL_TYPE: _TOOL_TYPES.get(kind, "function")},  # type: ignore[call-overload]
        policy_tool=policy_tool,
        policy_profile=policy_profile,
    )


def _without(schema: dict[str, Any], internal: list[str]) -> dict[str, Any]:
    """Take internal-only arguments out of a model-facing schema, whoever wrote it."""
    properties = schema.get("properties")
    if not isinstance(properties, dict) or properties.keys().isdisjoint(internal):
        return schema
    kept = {**schema, "properties": {name: value for name, value in properties.items() if name not in internal}}
    if isinstance(schema.get("required"), list):
        kept["required"] = [name for name in schema["required"] if name not in internal]
    return kept


def _safety(options: GovernOptions, kind: str, access: list[str]) -> Safety:
    read_only = options.get("read_only", False)
    destructive = options.get("destructive", False)
    closed = kind in _CLOSED_KINDS and bool(access) and not _OPEN_ACCESS.intersection(access)
    open_world = options.get("open_world", not closed)
    concurrency_safe = options.get("concurrency_safe", False)
    facts = (read_only, destructive, open_world, concurrency_safe)
    return Safety(*facts, static=all(isinstance(fact, bool) for fact in facts))


def _shown(fact: Any) -> bool | str:
    return fact if isinstance(fact, (bool, str)) else f"classifier:{getattr(fact, '__name__', 'function')}"


def _matcher(options: GovernOptions) -> str | None:
    for key, matcher in (
        ("command_args", "shell_pattern"),
        ("path_args", "path"),
        ("url_args", "url"),
        ("sql_args", "sql"),
    ):
        if options.get(key):
            return matcher
    return None


def _output_schema(function: Callable[..., Any]) -> dict[str, Any] | None:
    """Only a pydantic model or dataclass as return type is a promise worth checking; ``dict`` or ``str`` is none."""
    try:
        annotation = inspect.signature(function, eval_str=True).return_annotation
    except Exception:
        return None
    if not isinstance(annotation, type):
        return None
    if not (hasattr(annotation, "model_json_schema") or hasattr(annotation, "__dataclass_fields__")):
        return None
    from pydantic import TypeAdapter

    try:
        return TypeAdapter(annotation).json_schema(mode="serialization")
    except Exception:
        return None
