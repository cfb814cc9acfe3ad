"""The permission posture as files for agents that read files, and as Markdown for people."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from agenttool_otel.call.runtime import Runtime
from agenttool_otel.preflight.host_posture import permissions_document
from agenttool_otel.preflight.posture import Posture, describe, described_tools, without_secrets
from agenttool_otel.values.files import replace_file


def managed_tools(runtime: Runtime, posture: Posture) -> list[dict[str, Any]]:
    """Return what openboa keeps in ``managed-tools.json``: each tool's contract, with its policy as
    it is now.
    """
    standing = {tool.tool_id: tool for tool in posture.tools}
    found = []
    for tool in described_tools(runtime):
        if (stands := standing.get(tool.spec.tool_id)) is None:
            continue  # declared since
        interface = tool.spec.interface
        found.append(
            {
                "name": stands.name,
                "toolId": stands.tool_id,
                "description": tool.spec.declaration.description,
                "inputSchema": dict(tool.spec.check.schema),
                "outputSchema": tool.spec.output_check.schema
                if tool.spec.output_check is not None
                else None,
                "ownership": stands.ownership,
                "permissionPolicy": stands.permission_policy,
                "effects": stands.write_effects,
                "readOnly": stands.read_only,
                "destructive": stands.destructive,
                "interruptBehavior": str(interface.interrupt_behavior),
            }
        )
    return found


def posture_markdown(posture: Posture) -> str:
    """Write a posture as Markdown; nothing in it can end its cell or start markup of its own."""
    engines = ", ".join(
        f"{entry['name']} {entry['revision']}" for entry in posture.policy.get("engines", ())
    )
    lines = [
        "# Permission posture",
        "",
        f"Described at {posture.described_at.isoformat()} for {_cell(posture.actor or 'nobody in particular')}, "
        f"session {_cell(posture.session_id or '-')}, mode {_cell(posture.mode)}.",
        f"Policy: {_cell(engines or 'none')}, {_cell(str(posture.policy.get('mode', '')))}.",
        "",
        f"**Next step:** {_cell(posture.next_step)}",
        "",
        "## Pending confirmations",
        "",
    ]
    lines += [
        f"- {_cell(entry['tool'])} {_code(entry['arguments'])}: {_cell(entry['reason'])} "
        f"(request {_cell(entry['request_id'])})"
        + "".join(
            f"; instead: {_cell(str(a.get('tool')))} {_code(a.get('arguments'))}"
            for a in entry["alternatives"]
        )
        for entry in posture.pending
    ] or ["The approval store can't be read." if posture.pending_unreadable else "None."]
    if posture.evaluation is not None:
        lines += ["", "## Evaluator", "", _code(posture.evaluation)]
    lines += [
        "",
        "## Tools",
        "",
        "| Tool | Policy | Evaluator | Rule | Reason |",
        "|---|---|---|---|---|",
    ]
    for tool in posture.tools:
        gate = "blocks" if tool.evaluator_blocked else "gated" if tool.evaluator_gated else "-"
        cells = (tool.name, tool.permission_policy, gate, tool.rule or "-", tool.reason or "-")
        lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    return "\n".join([*lines, ""])


def write_posture(runtime: Runtime, folder: str | Path) -> list[Path]:
    """Write the posture as JSON and Markdown, ``managed-tools.json`` and ``permissions.json``, each
    at one stroke.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    described = describe(runtime)
    posture = Posture.from_json_object(without_secrets(runtime, described.to_json_object()))
    tools = without_secrets(runtime, {"tools": managed_tools(runtime, described)})
    permissions = without_secrets(runtime, permissions_document(runtime, described))
    return [
        replace_file(place / "permission-posture.json", _json(posture.to_json_object())),
        replace_file(place / "permission-posture.md", posture_markdown(posture).encode()),
        replace_file(place / "managed-tools.json", _json(tools)),
        replace_file(place / "permissions.json", _json(permissions)),
    ]


def _json(document: Mapping[str, Any]) -> bytes:
    return (
        orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS, default=str)
        + b"\n"
    )


_MARKUP: Final = str.maketrans({char: f"\\{char}" for char in "\\`*_[]<>|#!~"})


def _cell(text: str) -> str:
    return " ".join(text.split())[:500].translate(_MARKUP)


def _code(value: Any) -> str:
    return _cell(orjson.dumps(value, default=str).decode())
