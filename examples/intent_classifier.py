"""A classifier that answers "do the user's words want this call?": one that is a function here, and
one behind HTTP.

What it answers is a fact of the decision. It can spare a question about intent, and loosens nothing else;
what is late or fails leaves the question.
"""

from __future__ import annotations

import json
import urllib.request
from types import MappingProxyType

from agenttool_otel import Governor, agent_context
from agenttool_otel.facts.classified import IntentCheck, IntentQuestion


class Local:
    """A model in this process; here words that mean the same stand in for one."""

    name = "same-words"
    version = "2026-11"

    _SAME = MappingProxyType({"replace_order": {"broken", "damaged", "faulty"}})

    def score(self, question: IntentQuestion) -> float:
        """Return 1 where the user used a word that wants the tool."""
        words = set(" ".join(question.user_words).lower().replace(".", " ").split())
        return 1.0 if words & self._SAME.get(question.tool, set()) else 0.0


class Remote:
    """A model behind HTTP, which answers ``{"score": 0.93}``."""

    name = "intent-service"

    def __init__(self, url: str, version: str) -> None:
        self._url = url
        self.version = version

    def score(self, question: IntentQuestion) -> float:
        """Return the service's score; an error of it leaves the question."""
        body = {
            "tool": question.tool,
            "description": question.description,
            "arguments": question.arguments,
            "user": question.user_words,
        }
        request = urllib.request.Request(
            self._url, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=1) as answer:
            return float(json.load(answer)["score"])


def main() -> None:
    """Replace an order that the user calls broken, without a question."""
    # Remote("http://127.0.0.1:8080/intent", "3.1") is used in the same way
    governor = Governor(policy_preset="assistant", intent_check=IntentCheck(Local(), timeout=2.0))

    @governor.govern(namespace="desk", read_only=True, open_world=False, access_kinds=[])
    def list_orders() -> list[str]:
        return ["W2890441: a lamp"]

    @governor.govern(
        namespace="desk",
        read_only=False,
        destructive=False,
        open_world=False,
        access_kinds=[],
        write_effects=["remote_mutation"],
    )
    def replace_order(order_id: str) -> str:
        return f"{order_id} is replaced"

    said = "My lamp came broken."
    with agent_context(actor="agent:desk", session_id="s-1", user_text=said):
        list_orders()
        print(replace_order(order_id="W2890441"))


if __name__ == "__main__":
    main()
