"""Agent Tool v0.2.0 as an OpenTelemetry instrumentation and OPA policy plugin."""

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

__all__ = [
    "SCHEMA_VERSION",
    "AgentContext",
    "AgentToolError",
    "ApprovalAnswer",
    "ApprovalRejected",
    "ApprovalRequest",
    "ApprovalRequired",
    "Behavior",
    "ConfigurationError",
    "ErrorClass",
    "GovernedOutcome",
    "GovernedTool",
    "Governor",
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
    "native_call",
    "resume",
]
