"""The functions behind the tools ``permissions_check`` and ``permissions_describe``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agenttool_otel.call.runtime import Runtime
from agenttool_otel.context.context import current_context
from agenttool_otel.names import Behavior
from agenttool_otel.preflight.host_posture import (
    checked_fields,
    host_fields,
    posture_document,
    shell_step,
)
from agenttool_otel.preflight.posture import (
    describe,
    harmless_arguments,
    preflight_call,
    tool_posture,
    without_secrets,
)
from agenttool_otel.records.base import JsonObject


def check_tool(runtime: Runtime, name: str, arguments: Mapping[str, Any] | None) -> JsonObject:
    """Return what would become of one call, as JSON data for a model.

    Args:
        runtime: the Governor.
        name: id, name or alias of the tool.
        arguments: the planned JSON arguments; plain ones are tried where none are given.
    """
    tool = runtime.find(name)
    if tool is None:
        return {
            "tool": name[:200],
            "behavior": Behavior.DENY.value,
            "requires_confirmation": False,
            "reason": "no tool of that name is governed here",
            "next_step": "call permissions_describe for the names of the tools",
        }
    context = runtime.effective(current_context())
    stands = tool_posture(runtime, tool, context)
    given = arguments if arguments is not None else harmless_arguments(runtime, tool, context)
    checked = preflight_call(runtime, tool, given, context).to_json_object()
    del checked["decision"]
    step = shell_step(runtime, context, tool.spec, checked)
    if step is not None:
        checked["next_step"] = step
    return {
        **checked,
        "tool": tool.spec.name,
        "arguments_given": arguments is not None,
        "permission_policy": stands.permission_policy,
        "evaluator_gated": stands.evaluator_gated,
        "evaluator_blocked": stands.evaluator_blocked,
        "counters": stands.counters,
        **checked_fields(runtime, context, tool.spec, checked),
    }


def permission_functions(
    runtime: Runtime,
) -> tuple[Callable[..., JsonObject], Callable[..., JsonObject]]:
    """Make the functions behind ``permissions_check`` and ``permissions_describe``, not governed yet.

    Args:
        runtime: the Governor.
    """

    def permissions_check(tool: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return whether a tool call would be allowed, asked about or denied, and what to call
        instead. Runs nothing.

        Args:
            tool: name of the tool that you plan to call.
            arguments: the arguments that you plan to call it with.
        """
        return check_tool(runtime, tool, arguments)

    def permissions_describe() -> dict[str, Any]:
        """Return what waits for an approval or a result, which tools are always asked about or
        blocked, and what to do next.
        """
        posture = describe(runtime)
        document = posture_document(posture, host_fields(runtime, posture))
        return without_secrets(runtime, document)

    return permissions_check, permissions_describe
