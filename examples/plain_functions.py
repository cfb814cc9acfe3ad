"""Functions under governance: the stock policy decides each call, by what the arguments mean."""

from __future__ import annotations

import tempfile
from pathlib import Path

from agenttool_otel import ToolDenied, agent_context, govern


@govern(tool_kind="file_operation", access_kinds=["file_read"], read_only=True)
def read_file(path: str) -> str:
    """Read a text file."""
    return Path(path).read_text(encoding="utf-8")


@govern(tool_kind="file_operation", access_kinds=["file_write"], write_effects=["local_persistent"])
def write_file(path: str, text: str) -> str:
    """Write a text file."""
    Path(path).write_text(text, encoding="utf-8")
    return "written"


def main() -> None:
    folder = Path(tempfile.mkdtemp()).resolve()
    (folder / "notes.txt").write_text("two points are open\n", encoding="utf-8")
    (folder / ".env").write_text("TOKEN=example\n", encoding="utf-8")

    with agent_context(
        actor="agent:example", session_id="s-1", roots=[str(folder)], cwd=str(folder)
    ):
        print("allowed:", read_file(str(folder / "notes.txt")).strip())
        try:
            read_file(str(folder / ".env"))
        except ToolDenied as denied:
            print("denied:", denied.decision.reason.rule_ref)

        answer = write_file.tool.check(path=str(folder / "new.txt"), text="x")  # runs nothing
        print("a write would be:", answer.behavior.value, "-", answer.next_step)


if __name__ == "__main__":
    main()
