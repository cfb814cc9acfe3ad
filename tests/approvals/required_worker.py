"""A process of its own for the tests of calls that wait for results: ``required_worker.py ROLE URL
KEY ...``.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from agenttool_otel import ApprovalAnswer, agent_context
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.errors import InvocationConflict
from agenttool_otel.testing import Capture, FixedApprover, StaticEngine, capture


def pick_file(title: str) -> str:
    """Let the user pick a file."""
    raise AssertionError("a custom tool must not run here")


def governed(captured: Capture) -> Any:
    tool = captured.governor.govern(pick_file, name="pick", namespace="ui", ownership="custom")
    # a Governor knows a tool for as long as somebody holds it
    captured.__dict__.setdefault("tools", []).append(tool)
    return tool


def pause(url: str, key: str, behavior: str) -> None:
    """Let one call wait for its result, tell its ids, and wait to be killed."""
    approver = FixedApprover(ApprovalAnswer(True, answered_by="user:eve"))
    store = ApprovalStore(url, key=key)
    with capture(policy=StaticEngine(behavior), approvals=store, approver=approver) as captured:
        with agent_context(actor="agent:a", session_id="s1", tenant="acme"):
            result = governed(captured).tool.invoke(title="which?")
        span = captured.span
        told = {
            "invocation_id": result.invocation_id,
            "status": result.status,
            "span_id": span.context.span_id,
            "attributes": dict(span.attributes or {}),
            "asked": approver.asked[0].request_id if approver.asked else None,
        }
        print(json.dumps(told), flush=True)
        time.sleep(120)


def race(url: str, key: str, invocation_id: str, name: str) -> None:
    """Complete one call as soon as told; say whether it was ours."""
    with capture(
        policy=StaticEngine("deny"), approvals=ApprovalStore(url, key=key, timeout=30)
    ) as captured:
        governed(captured)
        print("ready", flush=True)
        sys.stdin.readline()
        try:
            print(f"won {captured.governor.complete(invocation_id, name).value}", flush=True)
        except InvocationConflict as error:
            print(f"lost {error}", flush=True)


if __name__ == "__main__":
    {"pause": pause, "race": race}[sys.argv[1]](*sys.argv[2:])
