"""Hooks: code of yours around every governed call, typed, bounded in time and recorded
(docs/hooks.md).
"""

from agenttool_otel.hooks.context import HookContext
from agenttool_otel.hooks.outputs import (
    AdditionalContext,
    HookOutput,
    Message,
    PermissionResult,
    Progress,
    Resources,
    Stop,
    UpdatedInput,
    UpdatedOutput,
)
from agenttool_otel.hooks.registry import Hook, Hooks
from agenttool_otel.names import HookEvent

__all__ = [
    "AdditionalContext",
    "Hook",
    "HookContext",
    "HookEvent",
    "HookOutput",
    "Hooks",
    "Message",
    "PermissionResult",
    "Progress",
    "Resources",
    "Stop",
    "UpdatedInput",
    "UpdatedOutput",
]
