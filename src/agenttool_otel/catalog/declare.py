"""From a callable (or a framework's tool) and what its developer stated to one ToolSpec.

Whatever is not stated is derived from signature, hints and docstring, or takes the standard's
fail-closed default; the interface's ``inferred`` names each safety fact that nobody stated, and
policies see that list.
"""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from agenttool_otel.catalog.identity import check_identity, spelt
from agenttool_otel.catalog.options import GovernOptions
from agenttool_otel.catalog.parameters import Parameters
from agenttool_otel.catalog.safe_schema import (
    IsSecret,
    secrets_of,
    without_secret_members,
    without_secrets,
)
from agenttool_otel.catalog.schema import SchemaCheck
from agenttool_otel.catalog.signature import read_docstring, read_parameters, without_partial
from agenttool_otel.catalog.spec import Safety, ToolRecords, ToolSpec
from agenttool_otel.catalog.vocabulary import TABLES, check_fields, check_options, check_references
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.facts.outputs import OutputTrust
from agenttool_otel.facts.plan import FactPlan, plan_facts
from agenttool_otel.names import (
    OPERATION_EXECUTE_TOOL,
    SCHEMA_VERSION,
    AccessKind,
    Attr,
    EntryPoint,
    ExecutionKind,
    GenAI,
    Lifecycle,
    MutationSource,
    Ownership,
    PersistenceStrategy,
    RiskLevel,
    SchemaVisibility,
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
from agenttool_otel.records.external_mapping import mapped

_logger = logging.getLogger("agenttool_otel.catalog")

_FILE_ACCESS = {AccessKind.FILE_READ, AccessKind.FILE_WRITE, AccessKind.CODE_EXECUTION}
_FILE_KINDS = {ToolKind.FILE_OPERATION, ToolKind.SHELL_COMMAND, ToolKind.CODE_EXECUTION}
_PRIVATE = frozenset(TABLES["private_sensitivities"])
_EXECUTION_KINDS: Mapping[str, str] = TABLES["execution_kinds"]
_CALLABLE = (Lifecycle.AVAILABLE, Lifecycle.DEFERRED, Lifecycle.DEPRECATED)
_SAFETY_FACTS: Sequence[str] = TABLES["safety_facts"]
# gen_ai.tool.type has three values: datastore for retrieval, extension for what a provider runs,
# function for the rest
_TOOL_TYPES: Mapping[str, str] = TABLES["span_tool_types"]
STATED_AS: Mapping[str, str] = TABLES["stated_as"]
"""What the interface calls an option, where the two names differ."""
_MATCHERS: Mapping[str, str] = TABLES["matchers"]
_STATED: Mapping[str, Sequence[str]] = TABLES["stated"]
"""What each record takes as it was stated, and what of the permission profile policies see."""


class ToolSource(NamedTuple):
    """What a callable or a framework's tool object states about itself."""

    name: str
    namespace: str
    description: str
    schema: Mapping[str, Any]  # JSON Schema of its arguments
    parameters: Parameters | None = None  # ``None`` for a framework's object, which binds its own
    output_schema: Mapping[str, Any] | None = None
    is_async: bool = False
    streams: bool = False
    mappings: tuple[ExternalMapping, ...] = ()  # its ids in the framework
    is_refused: bool = False  # stands for a tool whose calls are refused, whatever it is called


class Resolved(NamedTuple):
    """A tool's options and source, and what the two of them come to; every record is built
    from this.
    """

    options: Mapping[str, Any]  # what was stated
    source: ToolSource
    tool_id: str
    namespace: str
    name: str
    kind: str
    schema: dict[str, Any]  # model-facing: without internal arguments and secret defaults
    whole_schema: dict[str, Any]  # the same with all defaults, which calls are looked at with
    is_secret: IsSecret
    output_schema: dict[str, Any] | None
    internal: list[str]  # arguments that no model may produce
    access: list[str]
    effects: list[str]
    safety: Safety
    risk: RiskLevel
    ownership: str
    inferred: list[str]  # safety facts that nobody stated

    def stated(self, *names: str) -> dict[str, Any]:
        """Return those of some options that were stated, as a record takes them."""
        return {name: _copy(self.options[name]) for name in names if name in self.options}


def declare_function(
    function: Callable[..., Any],
    options: GovernOptions,
    *,
    drop_first: bool,
    is_async: bool,
    streams: bool,
) -> ToolSpec:
    """Declare a Python callable."""
    description, parameter_docs = read_docstring(function)
    target = without_partial(function)
    name = getattr(target, "__name__", None) or type(target).__name__
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
        ToolSource(
            name=name,
            namespace=spelt(_module_name(getattr(target, "__module__", None) or "local")),
            description=description or name,
            parameters=parameters,
            schema=parameters.schema,
            is_async=is_async,
            streams=streams,
            output_schema=_output_schema(function)
            if options.get("output_schema") is None
            else None,
        ),
    )


def _module_name(name: str) -> str:
    """Return the name that a module has when it is imported, also where it is the program that was
    started.
    """
    if name not in ("__main__", "__mp_main__"):
        return name
    module = sys.modules.get(name)
    spec, file = getattr(module, "__spec__", None), getattr(module, "__file__", None)
    if spec is not None:  # python -m
        return str(spec.name)
    if not isinstance(file, str):
        return name  # a console, or python -c: nobody can import it
    return _name_of_file(file)


@cache
def _name_of_file(file: str) -> str:
    path = Path(file).resolve()
    parts = [path.stem]
    for folder in path.parents:
        if not (folder / "__init__.py").is_file():
            break
        parts.insert(0, folder.name)
    return ".".join(parts)


def declare(options: GovernOptions, source: ToolSource) -> ToolSpec:
    """Declare a tool from what is known of it; the stated options win over every derived value."""
    try:
        check_options(options)
        return _spec(_resolve(options, source))
    except ValueError as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(f"tool {source.name!r} can't be declared: {error}") from error


def policy_parts(options: GovernOptions) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return ``input.tool`` and ``input.permission_profile`` of a tool of which only this
    is known.
    """
    name = options["name"]
    source = ToolSource(name=name, namespace=options["namespace"], description=name, schema={})
    resolved = _resolve(options, source)
    return _policy_tool(resolved), _policy_profile(_permission(resolved))


def _resolve(stated: GovernOptions, source: ToolSource) -> Resolved:
    # copied: the records are made later, and a list may be changed meanwhile
    options = {name: _copy(value) for name, value in stated.items() if value is not None}
    name = options.get("name", source.name)
    namespace = options.get("namespace", source.namespace)
    kind = str(options.get("tool_kind", ToolKind.FUNCTION))
    schema = _copy(options.get("model_input_schema", source.schema))
    hidden = source.parameters.internal if source.parameters is not None else ()
    internal = sorted({*options.get("internal_only_fields", ()), *hidden})
    check_fields(options, schema, internal)
    check_references(options, source.parameters)
    whole = _without(schema, internal)
    is_secret = secrets_of(options.get("sensitive_fields", ()))
    if "examples" in options:
        options["examples"] = [
            without_secret_members(each, is_secret) for each in options["examples"]
        ]
    output_schema = options.get("output_schema", source.output_schema)
    access = [str(word) for word in options.get("access_kinds", ())]
    safety = _safety(options)
    effects = [str(word) for word in options.get("write_effects", ())]
    if not effects and safety.read_only is True:
        effects = [WriteEffect.NONE.value]
    return Resolved(
        options=options,
        source=source,
        tool_id=options.get("tool_id", f"{namespace}.{name}"),
        namespace=namespace,
        name=name,
        kind=kind,
        schema=without_secrets(whole, is_secret),
        whole_schema=whole,
        is_secret=is_secret,
        output_schema=_copy(output_schema) if output_schema else None,
        internal=internal,
        access=access,
        effects=effects,
        safety=safety,
        risk=RiskLevel(
            options.get(
                "risk_level", RiskLevel.LOW if safety.read_only is True else RiskLevel.MEDIUM
            )
        ),
        ownership=str(Ownership(options.get("ownership", Ownership.MANAGED))),
        inferred=[fact for fact in _SAFETY_FACTS if fact not in options],
    )


def _spec(o: Resolved) -> ToolSpec:
    if not o.source.is_refused:
        check_identity(o.tool_id, o.namespace, o.name, o.options.get("aliases", ()))
    plan = _facts(o)
    made = _records(o, plan)
    _warn_of_unread(o, plan)
    tool_type = _TOOL_TYPES.get(o.kind, "function")
    return ToolSpec(
        make=partial(_records, o, plan),
        made=made,
        parameters=o.source.parameters,
        check=SchemaCheck(o.schema, derived=_is_derived(o)),
        output_check=SchemaCheck(o.output_schema) if o.output_schema else None,
        facts=plan,
        misfit_facts=_facts(o, {"type": "object"}) if plan is None else None,
        output_trust=OutputTrust(
            o.options.get("result_trust"),
            open_world=o.safety.open_world is not False,
            family=o.namespace,
            private=o.options.get("data_sensitivity") in _PRIVATE,
            confirms=o.safety.read_only is not True,
            looks_up=o.kind == ToolKind.RETRIEVAL,
            tool=o.name,
            # else others may have shaped its records
            infer="access_kinds" in o.options and not o.access,
        ),
        safety=o.safety,
        validate=o.options.get("validate"),
        sensitive=tuple(made.declaration.input_contract.sensitive_fields),
        redact_result=tuple(made.declaration.output_contract.redaction_rules),
        max_inline_chars=o.options.get("max_inline_chars"),
        persistence=o.options.get("persistence"),
        ownership=o.ownership,
        span_name=f"{OPERATION_EXECUTE_TOOL} {o.name}",
        start_attributes={
            GenAI.OPERATION_NAME: OPERATION_EXECUTE_TOOL,
            GenAI.TOOL_NAME: o.name,
            GenAI.TOOL_TYPE: tool_type,
            Attr.SCHEMA_VERSION: SCHEMA_VERSION,
            Attr.TOOL_ID: o.tool_id,
            Attr.TOOL_NAMESPACE: o.namespace,
            Attr.TOOL_KIND: o.kind,
            Attr.TOOL_RISK_LEVEL: o.risk.value,
        },
        metric_attributes={GenAI.TOOL_NAME: o.name, GenAI.TOOL_TYPE: tool_type},
        policy_tool=_policy_tool(o),
        policy_profile=_policy_profile(made.permission),
        verbs=tuple(o.options.get("verbs", ())),
        by_reference=frozenset(o.options.get("by_reference", ())),
    )


def _is_derived(o: Resolved) -> bool:
    """Return whether a tool's schema was read from a signature of plain types."""
    parameters = o.source.parameters
    return parameters is not None and parameters.is_plain and "model_input_schema" not in o.options


def _records(o: Resolved, plan: FactPlan | None) -> ToolRecords:
    return ToolRecords(_declaration(o), _interface(o, plan), _execution(o), _permission(o))


def _declaration(o: Resolved) -> ToolDeclaration:
    return ToolDeclaration(
        tool_id=o.tool_id,
        namespace=o.namespace,
        name=o.name,
        description=o.options.get("description", o.source.description),
        tool_kind=o.kind,
        input_contract=InputContract(
            model_input_schema=o.schema,
            defaults=_defaults(o) or None,
            internal_only_fields=o.internal,
            runtime_input_schema=_runtime_schema(o),
            **o.stated(
                "strict", "examples", "sensitive_fields", "mutation_policy", "argument_mode"
            ),
        ),
        output_contract=OutputContract(
            structured_schema=o.output_schema,
            persistence_policy_ref=o.options.get("persistence"),
            **o.options.get("output_facts", {}),
            **o.stated("content_types", "max_inline_chars", "redaction_rules"),
        ),
        interface_ref=f"tool_interface:{o.tool_id}",
        execution_profile_ref=f"execution_profile:{o.tool_id}",
        permission_profile_ref=f"permission_profile:{o.tool_id}",
        external_mappings=_mappings(o),
        **o.stated(
            "aliases", "search_hint", "title", "lifecycle", "capability_refs", "annotations"
        ),
    )


def _defaults(o: Resolved) -> dict[str, Any]:
    """Return the defaults that may be stated."""
    if o.source.parameters is None:
        return {}
    defaults = o.source.parameters.defaults
    return {name: value for name, value in defaults.items() if not o.is_secret(name, value)}


def _runtime_schema(o: Resolved) -> dict[str, Any] | None:
    """Return the model's schema with the fields that no model may give, marked; ``None`` where
    there are none.
    """
    if not o.internal:
        return None
    marked = {
        name: {"visibility": "internal", "mutation_source": MutationSource.HOOK.value}
        for name in o.internal
    }
    return {**o.schema, "properties": {**o.schema.get("properties", {}), **marked}}


def _interface(o: Resolved, plan: FactPlan | None) -> ToolInterface:
    found = plan.describe() if plan is not None else []
    kinds, commands = (
        {kind for _, kind, _ in found},
        {pointer for pointer, kind, _ in found if kind == "command"},
    )
    return ToolInterface(
        interface_id=f"tool_interface:{o.tool_id}",
        tool_id=o.tool_id,
        name=o.name,
        model_input_schema=o.schema,
        output_schema=o.output_schema,
        is_read_only=_shown(o.safety.read_only),
        is_concurrency_safe=_shown(o.safety.concurrency_safe),
        is_destructive=_shown(o.safety.destructive),
        is_open_world=_shown(o.safety.open_world),
        classifier_input=", ".join(
            f"input{pointer.replace('/', '.')}" for pointer in sorted(commands)
        ),
        permission_matcher=next(
            (word for option, word in _MATCHERS.items() if option[:-5] in kinds), None
        ),
        runtime_input_schema=_runtime_schema(o),
        persistence_policy_ref=f"persistence:{o.options.get('persistence', 'default')}",
        rendering={
            "model": "model_facing_content",
            "ui": "ui_facing_summary",
            "transcript": "transcript_search_text",
        },
        execution_profile_ref=f"execution_profile:{o.tool_id}",
        permission_profile_ref=f"permission_profile:{o.tool_id}",
        inferred=o.inferred,
        schema_visibility=SchemaVisibility.DEFERRED if _waits(o) else SchemaVisibility.LOADED,
        is_enabled=o.options.get("lifecycle", Lifecycle.AVAILABLE) in _CALLABLE,
        schema_validation="strict" if o.options.get("strict", True) else "tolerant",
        value_validation="validate" in o.options,
        io_preflight_validation="validate" in o.options,
        deny_before_io=True,
        result_mapper="content_blocks",
        decision_ref=EntryPoint.DECISION.value,
        abort_semantics="cancel" if o.options.get("supports_cancel", o.source.is_async) else "wait",
        empty_result_policy="empty_marker",
        redaction_policy_refs=[EntryPoint.OBLIGATIONS.value],
        external_mappings=_mappings(o),
        **{to: _copy(o.options[name]) for name, to in STATED_AS.items() if name in o.options},
        **o.stated(*_STATED["tool_interface"]),
    )


def _waits(o: Resolved) -> bool:
    return bool(o.options.get("defer")) or o.options.get("lifecycle") == Lifecycle.DEFERRED


def _mappings(o: Resolved) -> list[ExternalMapping]:
    return [
        *o.source.mappings,
        *(ExternalMapping(**mapping) for mapping in o.options.get("external_mappings", ())),
    ]


def _execution(o: Resolved) -> ExecutionProfile:
    derived = _EXECUTION_KINDS.get(o.kind, ExecutionKind.EMBEDDED_RUNTIME)
    return ExecutionProfile(
        execution_profile_id=f"execution_profile:{o.tool_id}",
        execution_kind=str(o.options.get("execution_kind", derived)),
        supports_cancel=o.options.get("supports_cancel", o.source.is_async),
        supports_resume=True,
        external_mappings=_mappings(o),
        supports_persistence=o.options.get("persistence") != PersistenceStrategy.NEVER_PERSIST,
        **({"parsing_strategy": "tree-sitter-bash"} if o.kind == ToolKind.SHELL_COMMAND else {}),
        supports_retries="retry" in o.options,
        supports_partial_results=o.source.streams,
        sandboxed="sandbox_profile" in o.options,
        **o.stated(*_STATED["tool_execution_profile"]),
        **o.options.get("execution_facts", {}),
    )


def _permission(o: Resolved) -> PermissionProfile:
    return PermissionProfile(
        permission_profile_id=f"permission_profile:{o.tool_id}",
        risk_level=o.risk,
        access_kinds=o.access,
        write_effects=o.effects,
        **o.stated(*_STATED["tool_permission_profile"]),
    )


def _policy_tool(o: Resolved) -> dict[str, Any]:
    safety = o.safety
    return {
        "id": o.tool_id,
        "namespace": o.namespace,
        "name": o.name,
        "aliases": list(o.options.get("aliases", ())),
        "kind": o.kind,
        "lifecycle": str(o.options.get("lifecycle", Lifecycle.AVAILABLE)),
        "ownership": o.ownership,
        "read_only": safety.read_only is True and safety.destructive is False,
        "destructive": safety.destructive is not False,
        "open_world": safety.open_world is not False,
        "concurrency_safe": safety.concurrency_safe is True,
        "requires_user_interaction": o.options.get("requires_user_interaction", False),
        "inferred": o.inferred,
        "capability_refs": list(o.options.get("capability_refs", ())),
        **mapped(_mappings(o)),
    }


def _policy_profile(permission: PermissionProfile) -> dict[str, Any]:
    return permission.model_dump(mode="json", include=set(_STATED["input.permission_profile"]))


def _facts(o: Resolved, schema: Mapping[str, Any] | None = None) -> FactPlan | None:
    names = {option: tuple(o.options.get(option, ())) for option in _MATCHERS}
    return plan_facts(
        schema=o.whole_schema if schema is None else schema,
        write_effects=tuple(o.effects),
        access_kinds=tuple(o.access),
        read_only=o.safety.read_only is True,
        tool_kind=o.kind,
        inert_args=tuple(o.options.get("inert_args", ())),
        family=o.namespace,
        tool=o.name,
        destroys=o.options.get("destructive", False) is not False,
        sources=o.options.get("sources"),
        path_base=o.options.get("path_base"),
        # it is not stated what the tool uses, or it uses files: then a name may mean a file
        file_access="access_kinds" not in o.options
        or o.kind in _FILE_KINDS
        or bool(_FILE_ACCESS.intersection(o.access)),
        **names,
    )


def _warn_of_unread(o: Resolved, plan: FactPlan | None) -> None:
    """Warn at decoration which arguments keep the tool's commands from being proven to only read."""
    names = (
        plan.unread_arguments()
        if plan is not None and o.safety.read_only == "classifier:command_read_only"
        else []
    )
    if names:
        _logger.warning(
            "%s: nothing states what the texts of %s do to the command, so a call that gives one is not proven to only"
            " read: name each in command_args, path_args, url_args, sql_args or inert_args",
            o.tool_id,
            ", ".join(names),
        )


def _without(schema: dict[str, Any], internal: list[str]) -> dict[str, Any]:
    """Take internal-only arguments out of a model-facing schema, its author's own included."""
    properties = schema.get("properties")
    if not isinstance(properties, dict) or properties.keys().isdisjoint(internal):
        return schema
    kept = {
        **schema,
        "properties": {name: value for name, value in properties.items() if name not in internal},
    }
    if isinstance(schema.get("required"), list):
        kept["required"] = [name for name in schema["required"] if name not in internal]
    return kept


def _safety(options: Mapping[str, Any]) -> Safety:
    facts = (
        options.get("read_only", False),
        options.get("destructive", False),
        options.get(
            "open_world", True
        ),  # nothing else that is stated closes it: what a file holds, others may have written
        options.get("concurrency_safe", False),
    )
    return Safety(*facts, static=all(isinstance(fact, bool) for fact in facts))


def _shown(fact: Any) -> bool | str:
    return (
        fact
        if isinstance(fact, (bool, str))
        else f"classifier:{getattr(fact, '__name__', 'function')}"
    )


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _copy(entry) for name, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [_copy(entry) for entry in value]
    return value


def _output_schema(function: Callable[..., Any]) -> dict[str, Any] | None:
    """Only a pydantic model or dataclass as return type is a promise worth checking; ``dict`` or
    ``str`` is none.
    """
    try:
        annotation = inspect.signature(function, eval_str=True).return_annotation
    except Exception:
        return None
    if not isinstance(annotation, type):
        return None
    if not (
        hasattr(annotation, "model_json_schema") or hasattr(annotation, "__dataclass_fields__")
    ):
        return None
    from pydantic import TypeAdapter

    try:
        return TypeAdapter(annotation).json_schema(mode="serialization")
    except Exception:
        return None
