"""Every event class, error class and state of the standard, each seen in the records of a call that
really went so.
"""

from __future__ import annotations

import http.server
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agenttool_otel import (
    ApprovalAnswer,
    BatchCall,
    Governor,
    SchedulerPolicy,
    TelemetrySettings,
    agent_context,
    current_call,
    report_progress,
)
from agenttool_otel.hooks import Hooks, PermissionResult, UpdatedInput
from agenttool_otel.names import (
    AbortReason,
    ErrorClass,
    HookEvent,
    InvocationStatus,
    ProgressStatus,
    ResultStatus,
)
from agenttool_otel.telemetry.sinks import CallbackSink
from agenttool_otel.testing import StaticEngine, decision
from function_engine import FunctionEngine

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from coverage_table import EVENTS, _shown  # type: ignore[import-not-found]  # noqa: E402

Way = Callable[["World"], Any]
WAYS: dict[str, tuple[Way, tuple[str, ...]]] = {}
"""By name what is done, and words that its records are to show."""


class World:
    """Makes Governors, and keeps what their one sink gets."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.sink = CallbackSink(self.lines.append)

    def governor(self, policy: Any = "allow", **options: Any) -> Governor:
        engine = policy if hasattr(policy, "evaluate") else StaticEngine(policy)
        telemetry = TelemetrySettings(sinks=(self.sink,), verbose=True)
        return Governor(
            policy=engine, approvals="sqlite://", telemetry=telemetry, policy_timeout=60, **options
        )

    def call(
        self, body: Any = None, policy: Any = "allow", hooks: Hooks | None = None, **options: Any
    ) -> Any:
        governor = self.governor(policy, hooks=hooks)
        return governor.govern(body or echo, **{"name": "act", **options}).tool.invoke(text="a")

    def shown(self) -> set[str]:
        assert self.sink.flush(30)
        return {word for line in self.lines for word in _shown(line["object"], line["record"])}


def way(*words: str) -> Callable[[Way], Way]:
    def add(function: Way) -> Way:
        WAYS[function.__name__] = function, words
        return function

    return add


def echo(text: str) -> str:
    return text


def raising(error: BaseException) -> Callable[[str], None]:
    def act(text: str) -> None:
        raise error

    return act


def hook(event: str, function: Callable[[Any], Any]) -> Hooks:
    hooks = Hooks()
    hooks.add(function, event, hook_id="h", timeout=60)
    return hooks


def fail(context: Any) -> None:
    raise ValueError("broken")


# --- calls that end before anything runs ----------------------------------------------------------


@way("error class unknown_tool", "invocation state blocked")
def nobody_has_such_a_tool(world: World) -> None:
    world.governor().batch([BatchCall("nobody", {})])


@way("error class schema_validation_failed", "invocation state schema_parse_failed")
def arguments_of_another_type(world: World) -> None:
    world.call(
        lambda text: text,
        model_input_schema={"type": "object", "properties": {"text": {"type": "integer"}}},
    )


@way("error class invalid_arguments", "invocation state validation_failed")
def values_that_a_check_refuses(world: World) -> None:
    world.call(validate=fail)


@way("error class schema_not_loaded")
def a_deferred_tool_called_too_early(world: World) -> None:
    world.call(lifecycle="deferred")


@way("error class setup_required")
def a_tool_that_is_not_set_up(world: World) -> None:
    world.call(lifecycle="requires_setup")


@way("error class blocked_tool")
def a_tool_that_is_switched_off(world: World) -> None:
    world.call(lifecycle="disabled")


@way("error class permission_denied", "invocation state denied", "result status denied")
def a_policy_denies(world: World) -> None:
    world.call(policy="deny")


@way("error class policy_blocked")
def a_policy_that_breaks(world: World) -> None:
    world.call(policy=FunctionEngine(fail))


@way(
    "error class approval_rejected", "result status rejected", "invocation state awaiting_approval"
)
def a_person_says_no(world: World) -> None:
    answered(world, approved=False)


@way(
    "invocation state approved",
    "progress status waiting_for_permission",
    "event tool.permission.requested",
)
def a_person_says_yes(world: World) -> None:
    answered(world, approved=True)


@way("mutation source permission_prompt", "hook event permission_request")
def a_person_changes_the_arguments(world: World) -> None:
    answered(
        world,
        approved=True,
        edited={"text": "b"},
        hooks=hook("permission_request", lambda ctx: None),
    )


@way("mutation source runtime", "hook event permission_decision")
def a_policy_changes_the_arguments(world: World) -> None:
    changes = decision("allow", updated_input={"text": "b"})
    world.call(policy=changes, hooks=hook("permission_decision", lambda ctx: None))


def answered(
    world: World, *, approved: bool, edited: Any = None, hooks: Hooks | None = None
) -> None:
    governor = world.governor("ask", hooks=hooks)
    act = governor.govern(echo, name="act")
    paused = act.tool.invoke(text="a")
    request = governor.approvals.store.by_invocation(paused.invocation_id)
    assert request is not None
    answer = ApprovalAnswer(approved=approved, answered_by="user:ada", edited_input=edited)
    governor.approvals.store.answer(request.request_id, answer)
    governor.resume(paused.invocation_id)


@way(
    "error class hook_blocked",
    "invocation state pre_hooks_running",
    "event tool.hook.pre.completed",
)
def a_hook_objects(world: World) -> None:
    world.call(hooks=hook("pre_tool_use", lambda ctx: PermissionResult("deny", "no")))


@way("error class hook_failed")
def a_hook_breaks(world: World) -> None:
    world.call(hooks=hook("pre_tool_use", fail))


@way("error class input_mutation_failed")
def a_hook_gives_what_does_not_fit(world: World) -> None:
    world.call(hooks=hook("pre_tool_use", lambda ctx: UpdatedInput({"text": 5})))


# --- calls that run and fail ----------------------------------------------------------------------


@way(
    "error class execution_failed",
    "event tool.invocation.failed",
    "hook event post_tool_use_failure",
)
def a_body_raises(world: World) -> None:
    world.call(raising(RuntimeError("no")), hooks=hook("post_tool_use_failure", lambda ctx: None))


@way("error class capability_gap")
def a_body_that_is_not_written_yet(world: World) -> None:
    world.call(raising(NotImplementedError()))


@way("error class partial_failure")
def a_body_that_fails_in_several_ways(world: World) -> None:
    world.call(raising(ExceptionGroup("two", [ValueError("a"), ConnectionError("b")])))


@way("error class dependency_unavailable")
def nobody_listens(world: World) -> None:
    world.call(lambda text: socket.create_connection(("127.0.0.1", 1)))


@way("error class credential_missing", "error class rate_limited")
def a_server_refuses(world: World) -> None:
    class Refuses(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(int(self.path[1:]))

        def log_message(self, *args: Any) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Refuses) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        for status in (401, 429):
            world.call(
                lambda text, to=status: direct.open(f"http://127.0.0.1:{server.server_port}/{to}")
            )
        server.shutdown()


SANDBOXED = """
import ctypes, os, signal, struct
libc, kill = ctypes.CDLL(None), struct.pack("HBBI", 0x06, 0, 0, 0x80000000)
rule = ctypes.create_string_buffer(kill)
libc.prctl(38, 1, 0, 0, 0)
libc.prctl(22, 2, ctypes.create_string_buffer(struct.pack("HP", 1, ctypes.addressof(rule))))
os.kill(os.getpid(), signal.SIGSYS)
"""
"""Leaves a seccomp sandbox in which no system call is allowed; where there is none, it ends in the
same way.
"""


@way("error class sandbox_violation")
def a_command_leaves_its_sandbox(world: World) -> None:
    world.call(
        lambda text: subprocess.run(
            [sys.executable, "-c", SANDBOXED], check=True, capture_output=True
        )
    )


@way(
    "error class timeout",
    "result status timed_out",
    "invocation state timed_out",
    "event tool.invocation.timed_out",
)
def a_body_takes_too_long(world: World) -> None:
    world.call(lambda text: time.sleep(0.2), timeout_ms=20)


@way(
    "error class canceled",
    "result status canceled",
    "event tool.invocation.canceled",
    "progress status canceled",
)
def somebody_stops_a_call(world: World) -> None:
    stopped(world, "user_interruption")


@way("error class streaming_fallback_discarded", "result status discarded")
def another_model_answers_instead(world: World) -> None:
    stopped(world, "fallback")


def stopped(world: World, reason: Any, body: Any = None) -> None:
    started = threading.Event()

    def wait(text: str) -> str:
        call = current_call()
        assert call is not None
        started.set()
        until = time.monotonic() + 20
        while time.monotonic() < until and not call.canceled:
            time.sleep(0.005)
        return body() if body else call.raise_if_canceled()

    governor = world.governor()
    thread = threading.Thread(
        target=governor.govern(wait, name="act").tool.invoke, kwargs={"text": "a"}
    )
    thread.start()
    assert started.wait(20)
    governor.cancel(
        next(iter(governor.pipeline.running)), "enough", abort_reason=AbortReason(reason)
    )
    thread.join()


@way("error class sibling_canceled", "result status synthetic_error", "progress status queued")
def a_sibling_fails(world: World) -> None:
    governor = world.governor()
    bad = governor.govern(raising(OSError("no disk")), name="bad")
    act = governor.govern(echo, name="act")
    policy = SchedulerPolicy(sibling_failure_policy="cancel_dependent")
    governor.batch(
        [BatchCall(bad, {"text": "a"}), BatchCall(act, {"text": "b"}, depends_on=[0])],
        policy=policy,
    )


# --- calls whose result is more than a value ------------------------------------------------------


@dataclass
class Weather:
    degrees: int


@way("error class result_mapping_failed")
def a_result_that_misses_its_schema(world: World) -> None:
    def act(text: str) -> Weather:
        return Weather("warm")  # type: ignore[arg-type]

    world.call(act)


class Odd:
    """What nobody can read."""

    __slots__ = ()


@way("error class result_too_large", "result status too_large")
def a_large_result_that_nobody_can_keep(world: World) -> None:
    world.call(lambda text: Odd(), policy=decision("allow", obligations={"max_inline_chars": 5}))


@way("event tool.result.redacted")
def a_policy_has_a_result_redacted(world: World) -> None:
    world.call(
        lambda text: {"a": 1}, policy=decision("allow", obligations={"redact_result": ["/a"]})
    )


@way("error class result_redacted", "result status redacted")
def a_result_that_can_not_be_redacted(world: World) -> None:
    world.call(lambda text: Odd(), policy=decision("allow", obligations={"redact_result": ["/a"]}))


@way(
    "error class post_hook_failed",
    "invocation state post_hooks_running",
    "event tool.hook.post.completed",
)
def a_hook_that_breaks_afterwards(world: World) -> None:
    world.call(hooks=hook("post_tool_use", fail))


@way("result status partial_succeeded")
def a_stopped_body_gives_what_it_has(world: World) -> None:
    stopped(world, "user_interruption", lambda: "half")


@way(
    "invocation state partial_result",
    "event tool.invocation.partial_result",
    "progress status partial_result",
)
def a_stream(world: World) -> None:
    def act(text: str) -> Iterator[str]:
        report_progress(50, status="partial_result", partial_result_refs=["part:1"])
        yield from text

    list(world.governor().govern(act)("ab"))


@way("result status pending", "invocation state needs_input", "progress status waiting_for_input")
def a_custom_tool_waits_for_its_result(world: World) -> None:
    with agent_context(session_id="s"):
        world.call(ownership="custom")


@way("progress status backgrounded", "progress status started")
def a_body_goes_on_behind_its_limit(world: World) -> None:
    a_body_takes_too_long(world)
    time.sleep(0.3)


@way("event tool.result.persisted", "hook event result_persistence")
def a_large_result(world: World) -> None:
    hooks = hook("result_persistence", lambda ctx: None)
    world.call(lambda text: "line\n" * 1000, max_inline_chars=100, hooks=hooks)


@way(
    "invocation state yielded",
    "event tool.invocation.yielded",
    "tool_scheduler_policy.max_parallel",
)
def a_batch(world: World) -> None:
    governor = world.governor()
    governor.batch([BatchCall(governor.govern(echo, name="act"), {"text": "a"})])


@way(
    *(
        "event tool.declared",
        "event tool.surface.updated",
        "event tool.deferred.loaded",
        "tool_surface.surface_id",
    ),
    *(
        "deferred_tool_ref.selection_ref",
        "tool_declaration.input_contract",
        "tool_interface.is_read_only",
    ),
    *("tool_execution_profile.execution_kind", "tool_permission_profile.risk_level"),
)
def a_search(world: World) -> None:
    governor = world.governor(FunctionEngine(lambda document: True))
    act = governor.govern(echo, name="act", defer=True)
    with agent_context(session_id="s"):
        surface = governor.surface()
        governor.load([match["tool_id"] for match in governor.search("act").matches])
        assert act.tool.spec.tool_id in surface.refresh().record().loaded_tools


@way("event tool.invocation.succeeded", "result status succeeded", "progress status completed")
def a_call_that_reports(world: World) -> None:
    def act(text: str) -> str:
        report_progress(10)
        return text

    world.call(act)


@pytest.fixture(scope="module")
def seen() -> dict[str, set[str]]:
    found = {}
    for name, (function, _) in WAYS.items():
        world = World()
        function(world)
        found[name] = world.shown()
    return found


@pytest.mark.parametrize("name", WAYS)
def test_a_call_that_goes_so_says_so(name: str, seen: dict[str, set[str]]) -> None:
    assert set(WAYS[name][1]) - seen[name] == set()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("error class", list(ErrorClass)),
        ("invocation state", list(InvocationStatus)),
        ("result status", list(ResultStatus)),
        ("progress status", list(ProgressStatus)),
        ("hook event", list(HookEvent)),
        ("mutation source", ["hook", "permission_prompt", "runtime"]),
        ("event", [f"tool.{name}" for name in EVENTS]),
    ],
)
def test_every_word_of_the_standard_is_seen(
    kind: str, words: list[str], seen: dict[str, set[str]]
) -> None:
    assert {f"{kind} {word}" for word in words} - set[str]().union(*seen.values()) == set()
