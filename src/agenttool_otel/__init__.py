"""Agent Tool v0.2.0 as an OpenTelemetry instrumentation and OPA policy plugin."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenttool_otel.approvals.approvers import CallbackApprover
    from agenttool_otel.approvals.console import ConsoleApprover
    from agenttool_otel.approvals.store.store import ApprovalStore
    from agenttool_otel.approvals.types import ApprovalAnswer, ApprovalRequest
    from agenttool_otel.call.batch import BatchCall
    from agenttool_otel.call.preflight import Preflight
    from agenttool_otel.call.report import EffectChange, areport_effects, report_effects
    from agenttool_otel.call.running.handle import (
        CallHandle,
        CancelState,
        RunningCall,
        current_call,
    )
    from agenttool_otel.call.running.progress import mcp_progress, progress_to, report_progress
    from agenttool_otel.call.scheduling.modifiers import ContextModifier
    from agenttool_otel.call.tool import GovernedTool
    from agenttool_otel.context.context import (
        AgentContext,
        agent_context,
        carry_context,
        current_context,
        native_call,
    )
    from agenttool_otel.context.settings import Settings
    from agenttool_otel.enforcement.commands import arun_command, run_command
    from agenttool_otel.enforcement.limits import CommandResult, Limits
    from agenttool_otel.errors import (
        AgentToolError,
        ApprovalConflict,
        ApprovalRejected,
        ApprovalRequired,
        ConfigurationError,
        EffectsDenied,
        EffectsError,
        EffectsPending,
        GovernedOutcome,
        InstanceMissing,
        PolicyError,
        PolicyLoadError,
        ResultRequired,
        SandboxUnavailable,
        ToolBlocked,
        ToolCanceled,
        ToolDenied,
        ToolInputInvalid,
        ToolTimeout,
        ToolUnavailable,
        UnknownTool,
    )
    from agenttool_otel.govern.decorators import govern
    from agenttool_otel.govern.default import aresume, configure, default_governor, resume
    from agenttool_otel.govern.governor import Governor
    from agenttool_otel.hooks import Hooks
    from agenttool_otel.integrations.langchain.agents import (
        AgentToolMiddleware as AgentToolMiddleware,
    )
    from agenttool_otel.names import SCHEMA_VERSION, Behavior, ErrorClass
    from agenttool_otel.policy.bundles.load import load_bundle
    from agenttool_otel.records import (
        PermissionDecision,
        SchedulerPolicy,
        ToolDeclaration,
        ToolError,
        ToolResult,
    )
    from agenttool_otel.telemetry import TelemetrySettings

importlib.import_module(f"{__name__}.govern")
# a package's first import sets its name here: from now on it is that of the function
globals().pop("govern")

_MODULES = {
    name: module
    for module, names in {
        "approvals.approvers": "CallbackApprover",
        "approvals.console": "ConsoleApprover",
        "approvals.store.store": "ApprovalStore",
        "approvals.types": "ApprovalAnswer ApprovalRequest",
        "call.running.handle": "CallHandle CancelState RunningCall current_call",
        "call.running.progress": "mcp_progress progress_to report_progress",
        "call.report": "EffectChange areport_effects report_effects",
        "call.batch": "BatchCall",
        "call.scheduling.modifiers": "ContextModifier",
        "call.tool": "GovernedTool",
        "context.context": "AgentContext agent_context carry_context current_context native_call",
        "context.settings": "Settings",
        "enforcement.commands": "arun_command run_command",
        "enforcement.limits": "CommandResult Limits",
        "errors": (
            "AgentToolError ApprovalConflict ApprovalRejected ApprovalRequired ConfigurationError "
            "EffectsDenied EffectsError EffectsPending "
            "GovernedOutcome InstanceMissing PolicyError PolicyLoadError ResultRequired "
            "SandboxUnavailable ToolBlocked ToolCanceled ToolDenied ToolInputInvalid ToolTimeout "
            "ToolUnavailable UnknownTool"
        ),
        "govern.decorators": "govern",
        "govern.default": "aresume configure default_governor resume",
        "govern.governor": "Governor",
        "hooks": "Hooks",
        "integrations.langchain.agents": "AgentToolMiddleware",
        "names": "Behavior ErrorClass SCHEMA_VERSION",
        "policy.bundles.load": "load_bundle",
        "call.preflight": "Preflight",
        "records": "PermissionDecision SchedulerPolicy ToolDeclaration ToolError ToolResult",
        "telemetry": "TelemetrySettings",
    }.items()
    for name in names.split()
}
"""Where each public name is: a module is imported when one of its names is asked for, so that
a program pays for what it uses alone.
"""

__all__ = [
    "SCHEMA_VERSION",
    "AgentContext",
    "AgentToolError",
    "ApprovalAnswer",
    "ApprovalConflict",
    "ApprovalRejected",
    "ApprovalRequest",
    "ApprovalRequired",
    "ApprovalStore",
    "BatchCall",
    "Behavior",
    "CallHandle",
    "CallbackApprover",
    "CancelState",
    "CommandResult",
    "ConfigurationError",
    "ConsoleApprover",
    "ContextModifier",
    "EffectChange",
    "EffectsDenied",
    "EffectsError",
    "EffectsPending",
    "ErrorClass",
    "GovernedOutcome",
    "GovernedTool",
    "Governor",
    "Hooks",
    "InstanceMissing",
    "Limits",
    "PermissionDecision",
    "PolicyError",
    "PolicyLoadError",
    "Preflight",
    "ResultRequired",
    "RunningCall",
    "SandboxUnavailable",
    "SchedulerPolicy",
    "Settings",
    "TelemetrySettings",
    "ToolBlocked",
    "ToolCanceled",
    "ToolDeclaration",
    "ToolDenied",
    "ToolError",
    "ToolInputInvalid",
    "ToolResult",
    "ToolTimeout",
    "ToolUnavailable",
    "UnknownTool",
    "agent_context",
    "areport_effects",
    "aresume",
    "arun_command",
    "carry_context",
    "configure",
    "current_call",
    "current_context",
    "default_governor",
    "govern",
    "load_bundle",
    "mcp_progress",
    "native_call",
    "progress_to",
    "report_effects",
    "report_progress",
    "resume",
    "run_command",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
