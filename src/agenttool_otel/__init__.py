"""Agent Tool v0.2.0 as an OpenTelemetry instrumentation and OPA policy plugin."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from agenttool_otel.approvals.types import ApprovalAnswer, ApprovalRequest
from agenttool_otel.config import Settings
from agenttool_otel.context import AgentContext, agent_context, carry_context, current_context, native_call
from agenttool_otel.decorators import govern
from agenttool_otel.errors import (
    AgentToolError,
    ApprovalRejected,
    ApprovalRequired,
    ConfigurationError,
    GovernedOutcome,
    InstanceMissing,
    PolicyError,
    PolicyLoadError,
    ResultRequired,
    ToolBlocked,
    ToolDenied,
    ToolInputInvalid,
    ToolTimeout,
    UnknownTool,
)
from agenttool_otel.governor import Governor, aresume, configure, default_governor, resume
from agenttool_otel.names import SCHEMA_VERSION, Behavior, ErrorClass
from agenttool_otel.policy.preflight import Preflight
from agenttool_otel.records import PermissionDecision, ToolDeclaration, ToolError, ToolResult
from agenttool_otel.telemetry import TelemetrySettings
from agenttool_otel.tool import GovernedTool

if TYPE_CHECKING:
    from agenttool_otel.approvals.approvers import CallbackApprover, ConsoleApprover
    from agenttool_otel.approvals.store import ApprovalStore
    from agenttool_otel.errors import ApprovalConflict
    from agenttool_otel.hooks import Hooks
    from agenttool_otel.integrations.langchain_agents import AgentToolMiddleware as AgentToolMiddleware
    from agenttool_otel.policy.load import load_bundle

_LATER = {
    "AgentToolMiddleware": "agenttool_otel.integrations.langchain_agents",
    "ApprovalConflict": "agenttool_otel.errors",
    "ApprovalStore": "agenttool_otel.approvals.store",
    "CallbackApprover": "agenttool_otel.approvals.approvers",
    "ConsoleApprover": "agenttool_otel.approvals.approvers",
    "Hooks": "agenttool_otel.hooks",
    "load_bundle": "agenttool_otel.policy.load",
}
"""Names that are imported when somebody asks for them: one needs LangChain, the others not every program."""

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
    "Behavior",
    "CallbackApprover",
    "ConfigurationError",
    "ConsoleApprover",
    "ErrorClass",
    "GovernedOutcome",
    "GovernedTool",
    "Governor",
    "Hooks",
    "InstanceMissing",
    "PermissionDecision",
    "PolicyError",
    "PolicyLoadError",
    "Preflight",
    "ResultRequired",
    "Settings",
    "TelemetrySettings",
    "ToolBlocked",
    "ToolDeclaration",
    "ToolDenied",
    "ToolError",
    "ToolInputInvalid",
    "ToolResult",
    "ToolTimeout",
    "UnknownTool",
    "agent_context",
    "aresume",
    "carry_context",
    "configure",
    "current_context",
    "default_governor",
    "govern",
    "load_bundle",
    "native_call",
    "resume",
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
