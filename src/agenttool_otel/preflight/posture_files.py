"""The permission posture as files for agents that read files, and as Markdown for people."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from agenttool_otel.call.runtime import Runtime
from agenttool_otel.preflight.host_posture import (
    host_fields,
    permissions_document,
    posture_document,
)
from agenttool_otel.preflight.posture import (
    Posture,
    ToolPosture,
    describe,
    described_tools,
    without_secrets,
)
from agenttool_otel.records.base import JsonObject
from agenttool_otel.values.files import replace_file


def managed_tools(runtime: Runtime, posture: Posture) -> list[dict[str, Any]]:
    """Return what openboa keeps in ``managed-tools.json``: each tool's contract, with its policy as
    it is now.
    """
    standing = {tool.tool_id: tool for tool in posture.tools}
    found = []
    for tool in described_tools(runtime):
        stands = standing.get(tool.spec.tool_id)
        if stands is None:
            continue  # declared since
        interface = tool.spec.interface
        output_schema = None
        if tool.spec.output_check is not None:
            output_schema = tool.spec.output_check.schema
        found.append(
            {
                "name": stands.name,
                "toolId": stands.tool_id,
                "description": tool.spec.declaration.description,
                "inputSchema": dict(tool.spec.check.schema),
                "outputSchema": output_schema,
                "ownership": stands.ownership,
                "permissionPolicy": stands.permission_policy,
                "effects": stands.write_effects,
                "readOnly": stands.read_only,
                "destructive": stands.destructive,
                "interruptBehavior": str(interface.interrupt_behavior),
            }
        )
    return found


def posture_markdown(posture: Posture, fields: Mapping[str, Any]) -> str:
    """Write a posture as Markdown; nothing in it can end its cell or start markup of its own.

    Args:
        posture: the posture.
        fields: its ``host_fields``.
    """
    engines = ", ".join(
        f"{entry['name']} {entry['revision']}" for entry in posture.policy.get("engines", ())
    )
    policy_mode = str(posture.policy.get("mode", ""))
    actor = posture.actor or "nobody in particular"
    session = posture.session_id or "-"
    lines = [
        "# Permission posture",
        "",
        f"Described at {posture.described_at.isoformat()} for {cell(actor)}, "
        f"session {cell(session)}, mode {cell(posture.mode)}.",
        f"Policy: {cell(engines or 'none')}, {cell(policy_mode)}.",
        "",
        f"**Next step:** {cell(posture.next_step)}",
        "",
        "## Pending confirmations",
        "",
    ]
    if posture.pending:
        lines += [_pending_line(entry) for entry in posture.pending]
    elif posture.pending_unreadable:
        lines.append("The approval store can't be read.")
    else:
        lines.append("None.")
    custom = [
        entry for entry in fields.get("requiresAction", ()) if entry["kind"] == "custom_tool_result"
    ]
    if custom:
        lines += ["", "## Calls that wait for a result", ""]
        lines += [_custom_line(entry) for entry in custom]
    for name, title in _SECTIONS.items():
        if name in fields:
            lines += ["", f"## {title}", "", _code(fields[name])]
    lines += [
        "",
        "## Tools",
        "",
        "| Tool | Policy | Evaluator | Rule | Reason |",
        "|---|---|---|---|---|",
    ]
    lines += [_tool_row(tool) for tool in posture.tools]
    lines.append("")
    return "\n".join(lines)


_SECTIONS: Final = {
    "outcomeEvaluation": "Evaluator",
    "nextOutcomeStep": "Next step for the evaluator",
    "contextPressure": "Context pressure",
    "shellMutationPosture": "Shell",
    "nextShellStep": "Next step for the shell",
    "shellReadFirstAlternatives": "Look first",
}
"""Which fields stand in sections of their own, with their titles."""


def _custom_line(entry: JsonObject) -> str:
    tool = cell(entry["toolName"])
    arguments = _code(entry["arguments"])
    invocation = cell(entry["invocationId"])
    return f"- {tool} {arguments} (invocation {invocation})"


def _pending_line(entry: JsonObject) -> str:
    tool = cell(entry["tool"])
    arguments = _code(entry["arguments"])
    reason = cell(entry["reason"])
    request = cell(entry["request_id"])
    line = f"- {tool} {arguments}: {reason} (request {request})"
    for safer in entry["alternatives"]:
        name = cell(str(safer.get("tool")))
        line += f"; instead: {name} {_code(safer.get('arguments'))}"
    return line


def _tool_row(tool: ToolPosture) -> str:
    gate = "-"
    if tool.evaluator_blocked:
        gate = "blocks"
    elif tool.evaluator_gated:
        gate = "gated"
    cells = (tool.name, tool.permission_policy, gate, tool.rule or "-", tool.reason or "-")
    return "| " + " | ".join(map(cell, cells)) + " |"


def write_posture(runtime: Runtime, folder: str | Path) -> list[Path]:
    """Write the posture as JSON and Markdown, ``managed-tools.json`` and ``permissions.json``, each
    at one stroke.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    described = describe(runtime)
    posture = Posture.from_json_object(without_secrets(runtime, described.to_json_object()))
    fields = without_secrets(runtime, host_fields(runtime, described))
    tools = without_secrets(runtime, {"tools": managed_tools(runtime, described)})
    return [
        replace_file(place / "permission-posture.json", _json(posture_document(posture, fields))),
        replace_file(place / "permission-posture.md", posture_markdown(posture, fields).encode()),
        replace_file(place / "managed-tools.json", _json(tools)),
        replace_file(place / "permissions.json", _json(permissions_document(posture, fields))),
    ]


def _json(document: Mapping[str, Any]) -> bytes:
    return (
        orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS, default=str)
        + b"\n"
    )


_MARKUP: Final = str.maketrans({char: f"\\{char}" for char in "\\`*_[]<>|#!~"})


def cell(text: str) -> str:
    """Return a text as it may stand in a cell of a Markdown table.

    Args:
        text: any text; what is behind its first 500 characters is left out.
    """
    return " ".join(text.split())[:500].translate(_MARKUP)


def _code(value: Any) -> str:
    return cell(orjson.dumps(value, default=str).decode())
