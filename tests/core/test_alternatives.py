"""An ask or a denial of a shell command names the dedicated tool that would do, when there
is one.
"""

from __future__ import annotations

import pytest

from agenttool_otel import ToolDenied
from agenttool_otel.testing import StaticEngine, capture, decision


@pytest.mark.parametrize(
    ("command", "tool", "arguments"),
    [
        ("cat notes.txt", "read_file", {"path": "notes.txt"}),
        ("grep -n TODO notes.txt", "search_text", {"pattern": "TODO", "path": "notes.txt"}),
    ],
)
def test_a_reading_command_is_answered_with_the_tool_that_reads(
    command: str, tool: str, arguments: dict
) -> None:
    with capture(policy=StaticEngine({"run": decision("deny")})) as captured:
        govern = captured.governor.govern

        @govern(access_kinds=["file_read"], read_only=True, tool_kind="file_operation")
        def read_file(path: str) -> str: ...

        @govern(access_kinds=["file_read"], read_only=True, tool_kind="file_operation")
        def search_text(pattern: str, path: str) -> str: ...

        @govern(command_args=["command"], tool_kind="shell_command")
        def run(command: str) -> str: ...

        with pytest.raises(ToolDenied) as denied:
            run(command)
        assert denied.value.decision is not None
        offered = denied.value.decision.alternatives
        assert {"tool": tool, "arguments": arguments} in [
            {"tool": entry["tool"], "arguments": entry["arguments"]} for entry in offered
        ]
        assert run.tool.check(command=command).next_step.startswith(f"call {tool} instead")
