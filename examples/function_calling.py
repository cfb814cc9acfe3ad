"""A plain loop with a model: the calls of its response are decided, run together and answered."""

from __future__ import annotations

from agenttool_otel import Governor
from agenttool_otel.integrations.function_calling import answer_calls

governor = Governor()


@governor.govern(read_only=True, concurrency_safe=True)
def look_up(word: str) -> str:
    """Look a word up."""
    return f"{word}: a plant"


response = {  # what openai or anthropic return; here without a network
    "choices": [
        {
            "message": {
                "role": "assistant",
                "tool_calls": [
                    {
                        "id": "call_1",
                        "function": {"name": "look_up", "arguments": '{"word": "tree"}'},
                    },
                    {"id": "call_2", "function": {"name": "look_up", "arguments": '{"word": '}},
                    {"id": "call_3", "function": {"name": "delete_all", "arguments": "{}"}},
                ],
            }
        }
    ]
}
for message in answer_calls(governor, response).messages:
    print(message["tool_call_id"], message["content"])
