"""The standard's records as pydantic models, one file for each contract document.

They tolerate unknown fields and keep them; their defaults are the standard's fail-closed ones. Each
validates against its JSON Schema (``tests/records``).
"""

from agenttool_otel.records.base import Record, utc_now
from agenttool_otel.records.contracts import InputContract, OutputContract
from agenttool_otel.records.declaration import ToolDeclaration
from agenttool_otel.records.error import RetryGuidance, ToolError
from agenttool_otel.records.event import ToolEvent
from agenttool_otel.records.execution_profile import ExecutionProfile
from agenttool_otel.records.external_mapping import (
    A2aMapping,
    BrowserMapping,
    CliMapping,
    ExternalMapping,
    FunctionCallMapping,
    McpMapping,
    OpenApiMapping,
    TelemetryMapping,
)
from agenttool_otel.records.hook import HookRecord
from agenttool_otel.records.interface import ToolInterface
from agenttool_otel.records.invocation import InvocationRecord, StatusTransition
from agenttool_otel.records.mutation import InputMutation
from agenttool_otel.records.permission_decision import (
    DecisionReason,
    Obligations,
    PermissionDecision,
)
from agenttool_otel.records.permission_profile import PermissionProfile
from agenttool_otel.records.persistence import ResultPersistence
from agenttool_otel.records.progress import ToolProgress
from agenttool_otel.records.result import ToolResult
from agenttool_otel.records.scheduler_policy import SchedulerPolicy
from agenttool_otel.records.surface import DeferredToolRef, ToolSearchResult, ToolSurface
from agenttool_otel.values.ids import new_id

__all__ = [
    "A2aMapping",
    "BrowserMapping",
    "CliMapping",
    "DecisionReason",
    "DeferredToolRef",
    "ExecutionProfile",
    "ExternalMapping",
    "FunctionCallMapping",
    "HookRecord",
    "InputContract",
    "InputMutation",
    "InvocationRecord",
    "McpMapping",
    "Obligations",
    "OpenApiMapping",
    "OutputContract",
    "PermissionDecision",
    "PermissionProfile",
    "Record",
    "ResultPersistence",
    "RetryGuidance",
    "SchedulerPolicy",
    "StatusTransition",
    "TelemetryMapping",
    "ToolDeclaration",
    "ToolError",
    "ToolEvent",
    "ToolInterface",
    "ToolProgress",
    "ToolResult",
    "ToolSearchResult",
    "ToolSurface",
    "new_id",
    "utc_now",
]
