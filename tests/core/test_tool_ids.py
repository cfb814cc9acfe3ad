"""A tool has one id, however the program that declares it is started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from samples import one_case_in

_NOTES = """
import sys
from agenttool_otel import ApprovalRequired, ApprovalStore, Governor, agent_context

governor = Governor(approvals=ApprovalStore(sys.argv[1]))


@governor.govern(access_kinds=["payment"])
def pay(amount: int) -> str:
    return f"paid {amount}"


def main() -> None:
    print(pay.tool.spec.tool_id)
    with agent_context(actor="agent:a", session_id="s"):
        try:
            pay(20)
        except ApprovalRequired as asked:
            store = governor.approvals.store
            from agenttool_otel import ApprovalAnswer
            store.answer(asked.request_id, ApprovalAnswer(True, answered_by="user:b"))
            print(asked.invocation_id)


if __name__ == "__main__":
    main()
"""


def _run(*command: str, folder: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").touch()
    (tmp_path / "shop" / "notes.py").write_text(_NOTES, "utf-8")
    (tmp_path / "alone.py").write_text(_NOTES, "utf-8")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "module"),
    one_case_in(
        2,
        [
            (["alone.py"], "alone"),
            (["-m", "alone"], "alone"),
            (["-m", "shop.notes"], "shop.notes"),
            (["shop/notes.py"], "shop.notes"),
        ],
    ),
)
def test_a_started_program_resumes_where_it_is_imported(
    start: list[str], module: str, folder: Path
) -> None:
    store = str(folder / "approvals.db")
    tool_id, invocation_id = _run(*start, store, folder=folder)
    assert tool_id == f"{module}.pay"
    resume = f"import {module} as it; print(it.pay.tool.spec.tool_id, it.governor.resume({invocation_id!r}).value)"
    imported = _run("-c", f"import sys; sys.path.insert(0, ''); {resume}", store, folder=folder)
    assert imported == [tool_id, "paid", "20"]


def test_a_program_without_a_file_keeps_its_name(folder: Path) -> None:
    code = "from agenttool_otel import govern\n@govern\ndef f() -> None: ...\nprint(f.tool.spec.tool_id)"
    assert _run("-c", code, folder=folder) == ["__main__.f"]
