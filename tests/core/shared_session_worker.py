"""Calls one tool in one session, as one of several processes; prints how often it ran."""

from __future__ import annotations

import sys

from agenttool_otel import Governor, ToolDenied, agent_context


def main(url: str, calls: int, budget: int) -> None:
    governor = Governor(
        sessions_url=url,
        policy_data={"agenttool": {"settings": {"budgets": {"session": {"calls": budget}}}}},
    )

    @governor.govern(namespace="t", read_only=True, access_kinds=["file_read"])
    def look() -> str:
        return "x"

    ran = 0
    print("ready", flush=True)
    sys.stdin.readline()
    with agent_context(actor="agent:a", session_id="s"):
        for _ in range(calls):
            try:
                look()
                ran += 1
            except ToolDenied:
                pass
    print(ran, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
