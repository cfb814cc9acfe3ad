"""Calls, surfaces and declarations that really went so, each made once, with the records that its
sink was given.

A situation knows nothing of what a test looks for in its records.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from email.message import Message
from functools import cache, wraps
from typing import Any, Final, Protocol, cast
from urllib.error import HTTPError

from opentelemetry.sdk.trace import TracerProvider

from agenttool_otel import (
    ApprovalAnswer,
    BatchCall,
    Governor,
    SchedulerPolicy,
    TelemetrySettings,
    ToolResult,
    agent_context,
    report_progress,
)
from agenttool_otel.hooks import Hooks, PermissionResult, Stop, UpdatedInput
from agenttool_otel.names import SURFACE_REASON, EntryPoint
from agenttool_otel.policy.types import EngineAnswer
from agenttool_otel.records import ExternalMapping
from agenttool_otel.records.base import JsonObject
from agenttool_otel.results.content.blocks import Block
from agenttool_otel.telemetry.sinks import CallbackSink
from agenttool_otel.testing import StaticEngine, decision

CONTEXT: Final[Mapping[str, Any]] = {
    "actor": "agent:clerk",
    "session_id": "monday",
    "roles": ["reader"],
}
_SECONDS: Final = 30.0


class Policy(StaticEngine):
    """Decides every call in one way, and lets all tools be seen but those that it hides.

    Args:
        answer: the decision, or its behavior.
        hidden: by name of a tool the reason why it is hidden.
    """

    def __init__(self, answer: Any, hidden: Mapping[str, str] | None = None) -> None:
        super().__init__(answer)
        self._hidden = hidden or {}

    def evaluate(self, entry_point: str, document: Any, *, timeout: float) -> EngineAnswer:
        name = document["tool"]["name"]
        if entry_point == EntryPoint.VISIBLE:
            return EngineAnswer(name not in self._hidden, self.revision)
        if entry_point == SURFACE_REASON:
            return EngineAnswer(self._hidden[name], self.revision)
        return super().evaluate(entry_point, document, timeout=timeout)


class World:
    """Makes Governors, and keeps what their one sink is given and what their callers get.

    Attributes:
        results: the envelopes that callers got.
        request_ids: the questions that people answered.
        began: when the situation began.
        ended: when it had ended.
    """

    def __init__(self) -> None:
        self.results: list[ToolResult] = []
        self.request_ids: list[str] = []
        self.began = datetime.now(UTC)
        self.ended = self.began
        self._lines: list[JsonObject] = []
        self._sink = CallbackSink(self._lines.append)

    def governor(self, policy: Any = "allow", **options: Any) -> Governor:
        """Make a Governor; ``capture`` is a field of TelemetrySettings."""
        engine = policy if hasattr(policy, "evaluate") else Policy(policy)
        telemetry = TelemetrySettings(
            sinks=(self._sink,),
            verbose=True,
            tracer_provider=TracerProvider(),
            capture=options.pop("capture", "NO_CONTENT"),
        )
        return Governor(
            policy=engine,
            approvals="sqlite://",
            telemetry=telemetry,
            policy_timeout=_SECONDS,
            **options,
        )

    def call(
        self,
        body: Callable[..., Any] | None = None,
        policy: Any = "allow",
        hooks: Hooks | None = None,
        **options: Any,
    ) -> ToolResult:
        """Call a tool once, with the text "a"."""
        governor = self.governor(policy, hooks=hooks)
        tool = governor.govern(body or echo, **{"name": "act", **options}).tool
        result = tool.invoke(text="a")
        self.results.append(result)
        return result

    def wait_for(self, kind: str, **fields: Any) -> None:
        """Wait until the sink has such a record, for what goes on behind a call."""
        until = time.monotonic() + _SECONDS
        while time.monotonic() < until and not self.records(kind, **fields):
            time.sleep(0.002)

    def end(self) -> None:
        """Wait until the sink has everything."""
        assert self._sink.flush(_SECONDS)
        self.ended = datetime.now(UTC)

    @property
    def result(self) -> ToolResult:
        """The last envelope."""
        return self.results[-1]

    def records(self, kind: str, **fields: Any) -> list[JsonObject]:
        """Return the records of a kind that have all of some values, oldest first."""
        found = [line["record"] for line in self._lines if line["object"] == kind]
        return [record for record in found if fields.items() <= record.items()]

    def record(self, kind: str, **fields: Any) -> JsonObject:
        """Return the last of such records."""
        return self.records(kind, **fields)[-1]


class Situation(Protocol):
    """Returns what a situation left; it is made at the first call."""

    __name__: str

    def __call__(self) -> World: ...


def situation(make: Callable[[World], None]) -> Situation:
    """Make a situation once, however many tests look at it."""

    @cache
    @wraps(make)
    def made() -> World:
        world = World()
        make(world)
        world.end()
        return world

    return cast("Situation", made)


def echo(text: str) -> str:
    """Give a text back."""
    return text


def hook(event: str, function: Callable[[Any], Any], hook_id: str = "h", **more: Any) -> Hooks:
    """Make the hooks of a Governor that has one."""
    hooks = Hooks()
    hooks.add(function, event, hook_id=hook_id, timeout=_SECONDS, **more)
    return hooks


# --- one situation for all fields of an object ----------------------------------------------------

STATED: Final[Mapping[str, Any]] = {
    "tool_id": "desk:run",
    "namespace": "desk",
    "name": "run",
    "aliases": ["sh"],
    "search_hint": "run local shell commands",
    "title": "Shell",
    "description": "Run a command.",
    "lifecycle": "deferred",
    "tool_kind": "shell_command",
    "capability_refs": ["shell"],
    "annotations": {"note": "untrusted"},
    "external_mappings": [{"source": "cli", "command_id": "sh"}],
    "internal_only_fields": ["token"],
    "strict": False,
    "output_schema": {"type": "string"},
    "read_only": "classifier:command_read_only",
    "concurrency_safe": "same_as:is_read_only",
    "destructive": "classifier:command_destructive",
    "open_world": False,
    "requires_user_interaction": True,
    "max_inline_chars": 300,
    "persistence": "ref_only",
    "execution_kind": "shell",
    "supports_progress": True,
    "supports_cancel": True,
    "retry": {"max_attempts": 2},
    "execution_facts": {
        "supports_background": True,
        "supports_artifacts": True,
        "supports_context_modifiers": True,
    },
    "sandbox_profile": "jail",
    "timeout_ms": 5000,
    "risk_level": "high",
    "access_kinds": ["code_execution"],
    "write_effects": ["local_persistent"],
    "network_scope": "internal",
    "tenant_scope": "single",
    "credential_refs": ["vault:a"],
    "approval_required": True,
    "approval_reason": "it runs code",
    "rule_matching_fields": ["command"],
    "data_sensitivity": "internal",
    "retention_hint": "a day",
    "redaction_required": True,
}
"""What is stated of the tool of ``everything_stated``."""


@situation
def everything_stated(world: World) -> None:
    """A tool of which all is stated that can be."""

    def run(command: str, token: str = "") -> Iterator[str]:
        yield command

    governor = world.governor()
    tool = governor.govern(run, **STATED)
    governor.surface()
    assert tool


@situation
def a_surface(world: World) -> None:
    """A surface with tools that are loaded, can be found, are blocked and are left out."""
    governor = world.governor(Policy("allow", hidden={"dig": "policy_blocked"}))
    tools = [
        governor.govern(echo, name="read", capability_refs=["text"]),
        governor.govern(echo, name="find", capability_refs=["text"], defer=True),
        governor.govern(echo, name="dig", capability_refs=["text"]),
        governor.govern(echo, name="mail", capability_refs=["mail"]),
    ]
    with agent_context(**CONTEXT):
        governor.surface(
            "task",
            model={"vision": True},
            requires=["text"],
            limit=5,
            tool_choice="required",
        )
    assert tools


def declaration_of_ask() -> JsonObject:
    """Return the declaration of a tool that a server has."""
    return {
        "schema_version": "0.2.0",
        "tool_id": "docs.ask",
        "name": "ask",
        "namespace": "docs",
        "description": "Ask the documents.",
        "search_hint": "ask the documents",
        "lifecycle": "available",
        "tool_kind": "mcp_tool",
        "external_mappings": [{"source": "mcp", "server_id": "docs", "tool_name": "ask"}],
    }


@situation
def a_tool_of_a_server_that_connects(world: World) -> None:
    """A search finds a tool whose server is still connecting."""
    governor = world.governor()
    governor.catalog.add(declaration_of_ask(), provider="docs-server")
    governor.catalog.pending("docs-server")
    with agent_context(**CONTEXT):
        governor.search("select:ask")


SCHEDULE: Final[Mapping[str, Any]] = {
    "scheduler_policy_id": "sched_monday",
    "scope": "turn",
    "max_parallel": 3,
    "ordering_policy": "serial",
    "yield_policy": "all_ordered",
    "interrupt_behavior": "cancel",
    "sibling_failure_policy": "cancel_siblings",
    "context_modifier_policy": "allow_serial_only",
    "resource_locks": [{"name": "printer"}],
}


@situation
def a_batch(world: World) -> None:
    """A call of a batch from a surface, whose input a hook changes, and that makes a report."""

    def write(text: str) -> list[Block]:
        return [Block.text(text), Block.artifact("report-1", uri="store:report-1")]

    outputs = [UpdatedInput({"text": "b"}, "small letters"), PermissionResult("allow", "small")]
    hooks = hook("pre_tool_use", lambda _: outputs, "trim", tool="write")
    governor = world.governor(hooks=hooks)
    tool = governor.govern(write, name="write", namespace="desk")
    with agent_context(**CONTEXT), agent_context(surface=governor.surface()):
        calls = [BatchCall(tool, {"text": "B"}, native_call_id="call_1")]
        policy = SchedulerPolicy.from_json_object(dict(SCHEDULE))
        world.results += governor.batch(calls, policy=policy)


@situation
def a_hook_that_stops(world: World) -> None:
    """A call after which a hook wants the agent to stop."""
    world.call(hooks=hook("post_tool_use", lambda _: Stop("a letter of ada's")))


ASKED: Final[Mapping[str, Any]] = {
    "reason": {"type": "rule", "rule_ref": "rule_outside", "message": "It leaves the house."},
    "rule_refs": ["rule_outside", "rule_paper"],
    "source": "project_settings",
    "suggested_updates": [{"type": "grant", "tool_id": "desk.send", "scope": "session"}],
    "pending_classifier_check": {"classifier_ref": "exfiltration", "confidence": 0.4},
    "blocked_path": "/home/ada/letter.txt",
    "content_blocks": [{"type": "text", "text": "A letter."}],
    "expires_at": "2099-01-01T00:00:00Z",
}
"""What the policy of ``an_edited_approval`` answers beside its behavior."""


@situation
def an_edited_approval(world: World) -> None:
    """A call that a policy asks about, and that a person approves with other arguments."""
    governor = world.governor(decision("ask", **ASKED))
    tool = governor.govern(echo, name="send", namespace="desk").tool
    with agent_context(**CONTEXT, mode="careful"):
        paused = tool.invoke(text="a")
        request = governor.approvals.store.by_invocation(paused.invocation_id)
        assert request is not None
        answer = ApprovalAnswer(True, "user:ada", reason="shorter", edited_input={"text": "b"})
        governor.approvals.store.answer(request.request_id, answer)
        world.request_ids.append(request.request_id)
        world.results += [paused, governor.resume(paused.invocation_id)]


@situation
def a_policy_changes_the_input(world: World) -> None:
    """A policy allows a call with another input."""
    world.call(policy=decision("allow", updated_input={"text": "b"}))


@situation
def a_large_result(world: World) -> None:
    """A result is larger than the tool's limit, and holds what has to be redacted."""
    world.call(lambda text: "line\n" * 1000, max_inline_chars=300)


@situation
def a_report_of_progress(world: World) -> None:
    """A body reports all that can be reported."""

    def copy(text: str) -> str:
        report_progress(
            40,
            "copying",
            current_step="second",
            total_steps=3,
            bytes_read=5,
            bytes_written=4,
            line_count=2,
            task_id="task-1",
            partial_result_refs=["part:1"],
            artifact_refs=[{"artifact_id": "copy-1"}],
        )
        return text

    governor = world.governor(capture="EVENT_ONLY")
    world.results.append(governor.govern(copy).tool.invoke(text="a"))


@situation
def a_result_of_many_kinds(world: World) -> None:
    """A tool gives data, a link to a resource, and a deliverable."""

    def make(text: str) -> list[Block]:
        from agenttool_otel.names import ContentType

        return [
            Block(ContentType.STRUCTURED_CONTENT, {"data": {"text": text}}),
            Block.resource_link("https://example.org/a", name="a"),
            Block.artifact("report-1"),
        ]

    world.call(make)


@situation
def a_body_that_fails(world: World) -> None:
    """A body raises."""

    def fail(text: str) -> str:
        raise OSError("no disk")

    world.call(fail)


# --- parts of objects -----------------------------------------------------------------------------

INTERFACE: Final[Mapping[str, Any]] = {
    "user_facing_name": "Shell",
    "always_load": True,
    "sandbox_profile": "jail",
    "model_requirements": ["vision"],
    "progress_schema": {"type": "object"},
    "interrupt_behavior": "cancel",
    "ui_summary": "runs a command",
    "activity_description": "running",
    "progress_render_hint": "bar",
    "rejected_render_hint": "red",
    "error_render_hint": "box",
}
"""What is stated of the tool of ``interfaces_stated`` and stands on its interface by that name."""


@situation
def interfaces_stated(world: World) -> None:
    """Tools of whose interface all is stated that can be; one of them waits."""
    governor = world.governor()
    tools = [
        governor.govern(
            echo,
            name="act",
            **INTERFACE,
            requires=["browser"],
            credentials=["mail"],
            feature_gates=["beta"],
            validate=lambda arguments: None,
            supports_cancel=True,
            context_modifiers="refuse",
        ),
        governor.govern(echo, name="later", defer=True),
    ]
    governor.surface()
    assert tools


MAPPINGS: Final[Mapping[str, Mapping[str, Any]]] = {
    "mcp": {
        "server_id": "docs",
        "mcp_session_id": "session-1",
        "mcp_protocol_version": "2025-06-18",
        "method": "tools/call",
        "tool_name": "ask",
        "jsonrpc_request_id": 7,
        "structuredContent": {"answer": 42},
        "isError": False,
        "_meta": {"progressToken": "p"},
    },
    "openapi": {
        "operation_id": "getLetter",
        "method": "GET",
        "path": "/letters/{id}",
        "server_url": "https://example.org",
        "security_scheme_refs": ["oauth"],
    },
    "function_calling": {
        "tool_call_id": "call_1",
        "function_name": "act",
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "strict": True,
        "defer_loading": False,
    },
    "a2a": {
        "agent_card_url": "https://example.org/card",
        "agent_skill_id": "letters",
        "task_id": "task-1",
        "context_id": "context-1",
        "message_id": "message-1",
        "artifact_id": "artifact-1",
    },
    "cli": {
        "command_id": "sh",
        "argv_ref": "argv:1",
        "cwd_ref": "cwd:1",
        "env_policy_ref": "env:clean",
        "exit_code": 0,
        "signal": "SIGTERM",
        "sandbox_ref": "jail",
    },
    "browser": {
        "browser_session_id": "browser-1",
        "page_id": "page-1",
        "action_id": "click-1",
        "observation_ref": "observation-1",
        "screenshot_ref": "screenshot-1",
    },
    "telemetry": {
        "trace_id": "0af7651916cd43dd8448eb211c80319c",
        "span_id": "b7ad6b7169203331",
        "tool_name": "act",
        "tool_call_id": "call_1",
        "request_id": "request-1",
        "duration_ms": 12,
        "result_size_bytes": 1,
    },
}
"""By native system the ids that the call of ``a_call_with_native_ids`` has there."""


@situation
def a_call_with_native_ids(world: World) -> None:
    """A call that has ids in every kind of native system."""
    governor = world.governor()
    tool = governor.govern(echo, name="act")
    mappings = [ExternalMapping(source=name, **ids) for name, ids in MAPPINGS.items()]
    world.results += governor.batch([BatchCall(tool, {"text": "a"}, mappings=mappings)])


@situation
def a_call_with_scheduler_facts(world: World) -> None:
    """A call of a tool of which everything is stated that a scheduler wants to know."""
    facts = {"read_only": True, "concurrency_safe": True, "open_world": False}
    world.call(**facts, context_modifiers="defer", resource_locks=["printer"])


@situation
def a_call_that_destroys(world: World) -> None:
    """A call that has to be alone, and destroys something."""
    world.call(destructive=True, requires_exclusive_context=True)


@situation
def a_server_that_is_busy(world: World) -> None:
    """A body raises what a server's answer 429 is raised as."""
    headers = Message()
    headers["Retry-After"] = "7"

    def act(text: str) -> str:
        raise HTTPError("https://example.org", 429, "Too Many Requests", headers, None)

    world.call(act)
