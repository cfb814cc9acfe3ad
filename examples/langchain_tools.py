"""LangChain tools under governance: the tool object stays a tool, and a denial is a message that
the model can read.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from langchain_core.tools import tool

from agenttool_otel import agent_context, govern


@tool
def read_file(path: str) -> str:
    """Read a text file."""
    return Path(path).read_text(encoding="utf-8")


@tool
def run_shell(command: str) -> str:
    """Run a shell command."""
    return os.popen(command).read()


TOOLS = [
    govern(read_file, tool_kind="file_operation", access_kinds=["file_read"], read_only=True),
    govern(
        run_shell,
        tool_kind="shell_command",
        access_kinds=["file_read", "file_write", "code_execution"],
        command_args=["command"],
        read_only="classifier:command_read_only",
        destructive="classifier:command_destructive",
    ),
]


def main() -> None:
    os.chdir(tempfile.mkdtemp())
    Path("notes.txt").write_text("two points are open\n", encoding="utf-8")
    # what a model would send; give TOOLS to create_agent or bind_tools as they are
    calls = [
        ("read_file", {"path": "notes.txt"}),
        ("read_file", {"path": "/etc/shadow"}),
        ("run_shell", {"command": "wc -l notes.txt"}),
        ("run_shell", {"command": "mkfs.ext4 /dev/example"}),
    ]
    by_name = {governed.name: governed for governed in TOOLS}
    with agent_context(actor="agent:example", session_id="s-1", roots=["."]):
        for number, (name, args) in enumerate(calls):
            message = by_name[name].invoke(
                {"type": "tool_call", "id": f"call-{number}", "name": name, "args": args}
            )
            print(
                f"{name} {args}: {message.status}: {str(message.content).splitlines()[0].strip()}"
            )


if __name__ == "__main__":
    main()
