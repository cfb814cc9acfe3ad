"""An agent of Pydantic AI whose tools are governed; a test model calls each of them once."""

from __future__ import annotations

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.models.test import TestModel

from agenttool_otel import Governor
from agenttool_otel.integrations.pydantic_ai import Governance

governance = Governance(Governor(), facts={"look_up": {"read_only": True}})
agent = Agent(TestModel(), output_type=[str, DeferredToolRequests], capabilities=[governance])


@agent.tool_plain
def look_up(word: str) -> str:
    """Look a word up."""
    return f"{word}: a plant"


@agent.tool_plain
def send_mail(to: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


output = agent.run_sync("What is a tree?").output
assert isinstance(output, DeferredToolRequests)
for call in output.approvals:
    print("asked:", call.tool_name, output.metadata[call.tool_call_id]["message"])
