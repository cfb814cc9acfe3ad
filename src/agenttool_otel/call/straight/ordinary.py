"""Which calls are ordinary: of each part that a call depends on, whether anything unusual concerns it.

Each function looks at one part. What it finds unusual takes the pipeline, which knows what to do with it.
"""

from __future__ import annotations

from agenttool_otel.call.runtime import Runtime
from agenttool_otel.catalog.spec import ToolSpec
from agenttool_otel.context.context import AgentContext
from agenttool_otel.names import Behavior, ContextOrigin, Lifecycle, Ownership, PolicyMode
from agenttool_otel.policy.types import Verdict

_RUNS = frozenset({Lifecycle.AVAILABLE, Lifecycle.DEPRECATED})
"""States in which a tool is called as it is."""


def is_ordinary_tool(spec: ToolSpec) -> bool:
    """Return whether a tool's calls take their arguments and give their results as they are, and wait
    for nothing.

    Args:
        spec: the tool.
    """
    parameters = spec.parameters
    if parameters is not None and (parameters.reader is not None or parameters.internal):
        return False
    if not spec.safety.static:
        return False
    if spec.validate is not None or spec.output_check is not None or spec.shapes_result:
        return False
    if spec.locks or spec.exclusive or spec.reports_effects or spec.by_reference:
        return False
    if spec.execution.timeout_ms or spec.execution.supports_retries:
        return False
    if spec.ownership == Ownership.CUSTOM or spec.exempt or spec.unknown:
        return False
    return not spec.declaration.input_contract.internal_only_fields


def may_be_called(spec: ToolSpec) -> bool:
    """Return whether a tool may be called now as it is: a program may change that.

    Args:
        spec: the tool.
    """
    return spec.declaration.lifecycle in _RUNS and not spec.refusal


def is_ordinary_context(context: AgentContext) -> bool:
    """Return whether nothing of a context may change behind it, and no surface is in force.

    Args:
        context: who calls.
    """
    if context.user_text or context.surface_in_force is not None:
        return False
    if context.evaluation is not None or context.resources:
        return False
    # labels={"paid": 1} equals labels={"paid": True}, and a policy decides them differently
    return all(type(label) is str for label in context.labels.values())


def is_ordinary_runtime(runtime: Runtime, context: AgentContext) -> bool:
    """Return whether a Governor asks the policy alone, and its telemetry goes to spans, metrics and
    decision records alone.

    Args:
        runtime: the Governor.
        context: who calls.
    """
    pipeline = runtime.pipeline
    events = runtime.telemetry.events
    if runtime.hooks is not None:
        return False
    if events.elsewhere or events.every_class or not events.lean:
        return False
    if runtime.telemetry.settings.guardrail_names:
        return False  # they name the call, and a straight call's attributes are made before it
    if pipeline.span.redaction.captures or pipeline.reporter.every_step:
        return False
    return not runtime.settings.require_context or context.origin is ContextOrigin.STATED


def is_ordinary_verdict(verdict: Verdict) -> bool:
    """Return whether a decision lets a call run and obliges nothing.

    Args:
        verdict: the decision.
    """
    if verdict.behavior is not Behavior.ALLOW or verdict.mode is not PolicyMode.ENFORCE:
        return False
    if verdict.updated_input is not None or verdict.expires_at is not None:
        return False
    if verdict.sandbox is not None or verdict.fail_closed is not None:
        return False
    return verdict.shadow is None and not verdict.redact_input
