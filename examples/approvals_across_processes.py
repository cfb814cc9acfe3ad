"""One process asks and ends, a second one approves, a third one runs exactly what was approved, once.

python approvals_across_processes.py            # all three, one after the other python
approvals_across_processes.py ask|approve|resume FOLDER [INVOCATION]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from agenttool_otel import ApprovalAnswer, ApprovalRequired, ApprovalStore, Governor, agent_context

FOLDER = Path(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp())
governor = Governor(approvals=ApprovalStore(str(FOLDER / "approvals.db")))


@governor.govern(access_kinds=["payment"], write_effects=["remote_mutation"], tool_id="example.pay")
def pay(recipient: str, amount: int) -> str:
    """Pay an amount in euros."""
    return f"paid {amount} to {recipient}"


def ask() -> None:
    """Call the tool: the policy asks, nobody is there to answer, and the request is stored,
    sealed.
    """
    with agent_context(actor="agent:example", session_id="s-1"):
        try:
            pay("Ada", 20)
        except ApprovalRequired as required:
            print(required.invocation_id)


def approve() -> None:
    """Answer what waits; on the command line: agenttool approvals approve REQUEST."""
    store = governor.approvals.store
    for request in store.list():
        store.answer(
            request.request_id, ApprovalAnswer(approved=True, answered_by="user:treasurer")
        )
        print("approved:", request.tool_name, request.arguments_preview)


def resume(invocation_id: str) -> None:
    """Run what was approved; a second time there is nothing left to run."""
    print("resumed:", governor.resume(invocation_id).summary)
    print("again:", governor.resume(invocation_id).summary)


def main() -> None:
    def run(*args: str) -> str:
        command = [sys.executable, __file__, args[0], str(FOLDER), *args[1:]]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    invocation_id = run("ask")
    print("asked:", invocation_id)
    print(run("approve"))
    print(run("resume", invocation_id))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["ask", _]:
            ask()
        case ["approve", _]:
            approve()
        case ["resume", _, invocation]:
            resume(invocation)
        case _:
            main()
