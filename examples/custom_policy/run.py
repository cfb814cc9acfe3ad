"""Rules of one's own beside the stock policy: a role for large payments, and a limit that nobody
may pass.
"""

from __future__ import annotations

from pathlib import Path

from agenttool_otel import Governor, agent_context

governor = Governor(extension=Path(__file__).parent / "policy")


@governor.govern(access_kinds=["payment"], write_effects=["remote_mutation"])
def pay(recipient: str, amount: int) -> str:
    """Pay an amount in euros."""
    return f"paid {amount} to {recipient}"


def main() -> None:
    with agent_context(actor="agent:example", session_id="s-1"):
        for amount in (20, 5_000, 50_000):
            answer = pay.tool.check(recipient="Ada", amount=amount)
            print(amount, answer.behavior.value, *answer.decision.rule_refs)


if __name__ == "__main__":
    main()
