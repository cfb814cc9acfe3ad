"""One situation for each word of the standard: those that a developer, a host or a policy states are
made of the word, the others are ways that a call can go.
"""

from __future__ import annotations

import http.server
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final

from pydantic import AfterValidator
from situations import CONTEXT, Policy, World, declaration_of_ask, echo, hook, situation

from agenttool_otel import (
    ApprovalAnswer,
    BatchCall,
    SchedulerPolicy,
    agent_context,
    current_call,
    report_progress,
)
from agenttool_otel.hooks import (
    AdditionalContext,
    Hooks,
    Message,
    PermissionResult,
    Progress,
    Stop,
    UpdatedInput,
    UpdatedOutput,
)
from agenttool_otel.names import AbortReason, ContentType
from agenttool_otel.results.content.blocks import Block
from agenttool_otel.testing import decision
from function_engine import FunctionEngine

_SECONDS: Final = 20.0
Lower = Annotated[str, AfterValidator(str.lower)]

# --- words that are stated ------------------------------------------------------------------------


@cache
def declared(option: str, value: str, *, listed: bool = False) -> World:
    """Declare a tool of which one thing is stated."""
    world = World()
    governor = world.governor()
    tool = governor.govern(echo, name="act", **{option: [value] if listed else value})
    governor.surface()
    world.end()
    assert tool
    return world


@cache
def surfaced(scope: str = "session", tool_choice: str = "auto") -> World:
    """Make a surface of some scope."""
    world = World()
    world.governor().surface(scope, tool_choice=tool_choice)
    world.end()
    return world


@cache
def scheduled(field: str, word: str) -> World:
    """Run a batch under a policy of which one thing is stated."""
    world = World()
    governor = world.governor()
    act = governor.govern(echo, name="act")
    policy = SchedulerPolicy.from_json_object({"scheduler_policy_id": "s", field: word})
    world.results += governor.batch([BatchCall(act, {"text": "a"})], policy=policy)
    world.end()
    return world


@cache
def decided(behavior: str, reason: str = "rule", source: str = "") -> World:
    """Call a tool about which a policy has one answer."""
    world = World()
    why = {"type": reason, "rule_ref": "r", "message": "m"}
    world.call(policy=decision(behavior, reason=why, source=source))
    world.end()
    return world


@cache
def gave(word: str) -> World:
    """Call a tool that gives content of one class."""
    world = World()
    world.call(lambda text: CONTENT[word]())
    world.end()
    return world


CONTENT: Final[dict[str, Callable[[], Any]]] = {
    "text": lambda: "a",
    "structured_content": lambda: {"a": 1},
    "image": lambda: Block.media(b"\x89PNG\r\n\x1a\n", "image/png"),
    "audio": lambda: Block.media(b"RIFF", "audio/wav"),
    "video": lambda: Block.media(b"film", "video/mp4"),
    "file": lambda: b"%PDF-1.7\n",
    "resource_link": lambda: {"type": "resource_link", "uri": "https://example.org", "name": "a"},
    "embedded_resource": lambda: Block.embedded_resource("file:///a", "a"),
    "log": lambda: Block.log("it begins"),
    "diff": lambda: "--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n",
    "artifact_ref": lambda: Block.artifact("report-1"),
    "handoff_ref": lambda: Block(ContentType.HANDOFF_REF, {"target": "clerk"}),
}
"""By content class a result of it."""


# --- surfaces -------------------------------------------------------------------------------------


@situation
def tools_that_are_hidden(world: World) -> None:
    """Tools are blocked, or left out, each for another reason."""
    governor = world.governor(
        Policy("allow", hidden={"secret": "policy_blocked", "boss": "role_not_allowed"})
    )
    tools = [
        governor.govern(echo, name="secret"),
        governor.govern(echo, name="boss"),
        governor.govern(echo, name="mail", credentials=["mail"]),
        governor.govern(echo, name="click", requires=["browser"]),
        governor.govern(echo, name="look", model_requirements=["vision"]),
        governor.govern(echo, name="delegate", starts_agent="clerk"),
        governor.govern(echo, name="try_out", feature_gates=["beta"]),
        governor.govern(echo, name="later", defer=True),
    ]
    with agent_context(**CONTEXT):
        governor.surface()
        governor.search("select:later")
    assert tools


@situation
def a_reference_is_added(world: World) -> None:
    """A catalog is given a tool of which no more is known than its name and a hint."""
    governor = world.governor()
    governor.catalog.add({"tool_id": "docs.find", "name": "find", "search_hint": "find a page"})


@situation
def a_deferred_tool_is_loaded(world: World) -> None:
    """A search finds a deferred tool, which is loaded and found again; a server can't be reached."""
    governor = world.governor()
    act = governor.govern(echo, name="act", defer=True)
    governor.catalog.add(declaration_of_ask(), provider="docs")
    governor.catalog.failed("docs", "no route")
    with agent_context(**CONTEXT):
        surface = governor.surface()
        governor.search("select:act,ask")
        governor.load([act.tool.spec.tool_id])
        governor.search("select:act")
        surface.refresh()


# --- calls that end before anything runs ----------------------------------------------------------


@situation
def nobody_has_such_a_tool(world: World) -> None:
    """A model calls a tool that there is not."""
    world.results += world.governor().batch([BatchCall("nobody", {})])


@situation
def arguments_of_another_type(world: World) -> None:
    """The arguments don't fit the schema."""
    schema = {"type": "object", "properties": {"text": {"type": "integer"}}}
    world.call(model_input_schema=schema)


@situation
def values_that_a_check_refuses(world: World) -> None:
    """The tool's own check refuses the arguments."""
    world.call(validate=fail)


@situation
def a_deferred_tool_called_too_early(world: World) -> None:
    """The schema of the tool was never loaded."""
    world.call(lifecycle="deferred")


@situation
def a_tool_that_is_not_set_up(world: World) -> None:
    """The tool requires setup."""
    world.call(lifecycle="requires_setup")


@situation
def a_tool_that_is_switched_off(world: World) -> None:
    """The tool is disabled."""
    world.call(lifecycle="disabled")


@situation
def a_policy_denies(world: World) -> None:
    """A policy denies the call."""
    world.call(policy="deny")


@situation
def a_policy_that_breaks(world: World) -> None:
    """A policy can't be evaluated."""
    world.call(policy=FunctionEngine(fail))


@situation
def a_person_says_no(world: World) -> None:
    """A person rejects the call."""
    answered(world, ApprovalAnswer(False, "user:ada"))


@situation
def a_person_says_yes(world: World) -> None:
    """A person approves the call."""
    hooks = hook("permission_request", lambda _: None)
    hooks.add(lambda _: None, "permission_decision", hook_id="second", timeout=_SECONDS)
    answered(world, ApprovalAnswer(True, "user:ada"), hooks)


@situation
def a_person_changes_the_arguments(world: World) -> None:
    """A person approves the call with other arguments."""
    answered(world, ApprovalAnswer(True, "user:ada", edited_input={"text": "b"}))


def answered(world: World, answer: ApprovalAnswer, hooks: Hooks | None = None) -> None:
    """Pause a call, answer it, and resume it."""
    governor = world.governor("ask", hooks=hooks)
    act = governor.govern(echo, name="act")
    paused = act.tool.invoke(text="a")
    request = governor.approvals.store.by_invocation(paused.invocation_id)
    assert request is not None
    world.request_ids.append(request.request_id)
    governor.approvals.store.answer(request.request_id, answer)
    world.results += [paused, governor.resume(paused.invocation_id)]


@situation
def a_hook_objects(world: World) -> None:
    """A hook denies the call."""
    world.call(hooks=hook("pre_tool_use", lambda _: PermissionResult("deny", "no")))


@situation
def a_hook_breaks(world: World) -> None:
    """A hook before the body fails."""
    world.call(hooks=hook("pre_tool_use", fail))


@situation
def a_hook_gives_what_does_not_fit(world: World) -> None:
    """A hook's input does not fit the schema."""
    world.call(hooks=hook("pre_tool_use", lambda _: UpdatedInput({"text": 5})))


@situation
def a_hook_changes_the_input(world: World) -> None:
    """A hook gives another input."""
    world.call(hooks=hook("pre_tool_use", lambda _: UpdatedInput({"text": "b"})))


@situation
def an_adapter_reads_the_input(world: World) -> None:
    """LangChain reads a changed input in another way."""
    from langchain_core.tools import tool  # no other situation needs it

    @tool
    def shell(command: Lower) -> str:
        """Run a command."""
        return command

    hooks = hook("pre_tool_use", lambda _: UpdatedInput({"command": "RM"}))
    world.governor(hooks=hooks).govern(shell).invoke({"command": "ls"})


# --- calls that run and fail ----------------------------------------------------------------------


def fail(_: Any) -> None:
    """Raise what no table knows."""
    raise ValueError("broken")


def raising(error: BaseException) -> Callable[[str], None]:
    """Make a body that raises."""

    def act(text: str) -> None:
        raise error

    return act


@situation
def a_body_raises(world: World) -> None:
    """A body raises."""
    world.call(raising(RuntimeError("no")), hooks=hook("post_tool_use_failure", lambda _: None))


@situation
def a_body_that_is_not_written_yet(world: World) -> None:
    """A body can't do what it is asked for."""
    world.call(raising(NotImplementedError()))


@situation
def a_body_that_fails_in_several_ways(world: World) -> None:
    """A body raises a group."""
    world.call(raising(ExceptionGroup("two", [ValueError("a"), ConnectionError("b")])))


@situation
def nobody_listens(world: World) -> None:
    """A body connects to a port where nobody listens."""
    world.call(lambda text: socket.create_connection(("127.0.0.1", 1)))


@situation
def a_server_refuses(world: World) -> None:
    """A server answers 401, then 429."""

    class Refuses(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(int(self.path[1:]))

        def log_message(self, *args: Any) -> None:
            pass

    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with http.server.HTTPServer(("127.0.0.1", 0), Refuses) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        at = f"http://127.0.0.1:{server.server_port}"
        world.call(lambda text: direct.open(f"{at}/401"))
        world.call(lambda text: direct.open(f"{at}/429"))
        server.shutdown()


SANDBOXED: Final = """
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


@situation
def a_command_leaves_its_sandbox(world: World) -> None:
    """A command is ended by its sandbox."""
    command = [sys.executable, "-S", "-c", SANDBOXED]
    world.call(lambda text: subprocess.run(command, check=True, capture_output=True))


@situation
def a_body_takes_too_long(world: World) -> None:
    """A body's time is over; it goes on, and ends later."""
    over = threading.Event()

    def act(text: str) -> None:
        over.wait(_SECONDS)

    governor = world.governor()
    tool = governor.govern(act, timeout_ms=20).tool
    world.results.append(tool.invoke(text="a"))
    over.set()
    world.wait_for("tool_progress", status="completed")


@situation
def somebody_stops_a_call(world: World) -> None:
    """A person stops a call, whose body stops."""
    stopped(world, AbortReason.USER_INTERRUPTION)


@situation
def another_model_answers_instead(world: World) -> None:
    """The model's answer is dropped for another."""
    stopped(world, AbortReason.FALLBACK)


@situation
def a_stopped_body_gives_what_it_has(world: World) -> None:
    """A body that is stopped gives a part of its result."""
    stopped(world, AbortReason.USER_INTERRUPTION, gives="half")


def stopped(world: World, reason: AbortReason, *, gives: str | None = None) -> None:
    """Run a call of a batch, and stop it while its body runs."""
    running, asked = threading.Event(), threading.Event()

    def wait(text: str) -> str | None:
        call = current_call()
        assert call is not None
        ids.append(call.invocation_id)
        running.set()
        assert asked.wait(_SECONDS)
        if gives is None:
            call.raise_if_canceled()
        return gives if call.canceled else text

    ids: list[str] = []
    governor = world.governor()
    calls = [BatchCall(governor.govern(wait, name="act"), {"text": "a"})]
    thread = threading.Thread(target=lambda: world.results.extend(governor.batch(calls)))
    thread.start()
    assert running.wait(_SECONDS)
    governor.cancel(ids[0], "enough", abort_reason=reason)
    asked.set()
    thread.join()


@situation
def a_sibling_fails(world: World) -> None:
    """A call that another one depends on fails."""
    governor = world.governor()
    bad = governor.govern(raising(OSError("no disk")), name="bad")
    act = governor.govern(echo, name="act")
    policy = SchedulerPolicy(sibling_failure_policy="cancel_dependent")
    calls = [BatchCall(bad, {"text": "a"}), BatchCall(act, {"text": "b"}, depends_on=[0])]
    world.results += governor.batch(calls, policy=policy)


@situation
def the_program_ends(world: World) -> None:
    """A body ends the program."""
    with suppress(SystemExit):
        world.call(raising(SystemExit(0)))


# --- calls whose result is more than a value ------------------------------------------------------


@dataclass
class Weather:
    """What a tool promises."""

    degrees: int


class Odd:
    """What nobody can read."""

    __slots__ = ()


@situation
def a_result_that_misses_its_schema(world: World) -> None:
    """A result is not what the tool promises."""

    def act(text: str) -> Weather:
        return Weather("warm")  # type: ignore[arg-type]

    world.call(act)


@cache
def kept(strategy: str) -> World:
    """Call a tool whose contract states a strategy; what is not redacted is larger than its limit."""
    world = World()
    sensitive = ["/a"] if strategy == "redact" else []
    value: Any = {"a": 1} if sensitive else "line\n" * 100
    world.call(
        lambda text: value, persistence=strategy, max_inline_chars=100, redaction_rules=sensitive
    )
    world.end()
    return world


@situation
def a_large_result(world: World) -> None:
    """A result is larger than the tool's limit."""
    hooks = hook("result_persistence", lambda _: None)
    world.call(lambda text: "line\n" * 100, max_inline_chars=100, hooks=hooks)


@situation
def a_large_result_that_nobody_can_keep(world: World) -> None:
    """A result is larger than the policy's limit, and can't be stored."""
    world.call(lambda text: Odd(), policy=decision("allow", obligations={"max_inline_chars": 5}))


@situation
def a_policy_has_a_result_redacted(world: World) -> None:
    """A policy has a part of the result redacted."""
    obligations = {"redact_result": ["/a"]}
    world.call(lambda text: {"a": 1}, policy=decision("allow", obligations=obligations))


@situation
def a_result_that_can_not_be_redacted(world: World) -> None:
    """A result that has to be redacted can't be read."""
    obligations = {"redact_result": ["/a"]}
    world.call(lambda text: Odd(), policy=decision("allow", obligations=obligations))


@situation
def a_hook_that_breaks_afterwards(world: World) -> None:
    """A hook after the body fails."""
    world.call(hooks=hook("post_tool_use", fail))


@situation
def a_hook_with_all_outputs(world: World) -> None:
    """Hooks give all that a hook may give."""
    outputs = [
        Message("it ran"),
        Progress("half", 50),
        AdditionalContext("it is Monday"),
        Stop("enough"),
        UpdatedOutput("b"),
    ]
    hooks = hook("post_tool_use", lambda _: outputs, "after", owns_output=True)
    before = [UpdatedInput({"text": "c"}), PermissionResult("allow")]
    hooks.add(lambda _: before, "pre_tool_use", hook_id="before", timeout=_SECONDS)
    world.call(hooks=hooks)


@situation
def a_stream(world: World) -> None:
    """A tool gives its result in parts."""

    def act(text: str) -> Iterator[str]:
        report_progress(50, status="partial_result", partial_result_refs=["part:1"])
        yield from text

    list(world.governor().govern(act)("ab"))


@situation
def a_custom_tool_waits_for_its_result(world: World) -> None:
    """Somebody outside does the work."""
    with agent_context(**CONTEXT):
        world.call(ownership="custom")


@situation
def a_batch_of_one(world: World) -> None:
    """A batch hands its result on."""
    governor = world.governor()
    act = governor.govern(echo, name="act")
    world.results += governor.batch([BatchCall(act, {"text": "a"})])


@situation
def a_call_that_reports(world: World) -> None:
    """A body reports how far it is."""

    def act(text: str) -> str:
        report_progress(10)
        return text

    world.call(act)
