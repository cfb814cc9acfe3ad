"""The 17 acceptance scenarios of the standard, each with its own words as the title.

Each looks at records alone: at what the four functions return, and at what they recorded.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final

from agenttool_otel.conformance.checking import Scenario
from agenttool_otel.conformance.subject import Data, Subject
from agenttool_otel.records.base import JsonObject

SCENARIOS: Final[list[Scenario]] = []
_SECRET: Final = "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA2bC5"
_ENDS: Final = frozenset(f"tool.invocation.{word}" for word in ("succeeded", "failed", "canceled", "timed_out"))


def scenario(title: str) -> Callable[[Callable[[Subject], None]], Callable[[Subject], None]]:
    """Add a scenario, numbered in order."""

    def add(run: Callable[[Subject], None]) -> Callable[[Subject], None]:
        SCENARIOS.append(Scenario(len(SCENARIOS) + 1, title, run))
        return run

    return add


def expect(condition: object, message: str) -> None:
    """Fail the scenario unless something holds."""
    if not condition:
        raise AssertionError(message)


def of(subject: Subject, kind: str, invocation_id: str | None = None) -> list[JsonObject]:
    """Return the records of one kind, of one call or of all."""
    found = [line["record"] for line in subject.records() if line["object"] == kind]
    return found if invocation_id is None else [one for one in found if one.get("invocation_id") == invocation_id]


def tool(run: Callable[..., Any], **fields: Any) -> dict[str, Any]:
    """Describe a tool after its function."""
    return {"name": run.__name__, "namespace": "conformance", "description": run.__doc__ or "", "run": run, **fields}


def one(subject: Subject, name: str, arguments: Data, **request: Any) -> JsonObject:
    """Run one call and return its result."""
    call = {"tool": name, "arguments": arguments, **request.pop("call", {})}
    [result] = subject.invoke({"calls": [call], **request})
    return result


def error_of(result: JsonObject) -> str | None:
    """Return the class of a result's error."""
    return (result.get("error") or {}).get("error_class")


def terminal(subject: Subject, result: JsonObject) -> None:
    """Expect that a call's end is told once, by event and by records."""
    events = [event["event_type"] for event in of(subject, "tool_event", result["invocation_id"])]
    expect(len([name for name in events if name in _ENDS]) == 1, f"one terminal event, not {events}")
    expect(of(subject, "tool_invocation", result["invocation_id"]), "an invocation record")
    expect(of(subject, "tool_result", result["invocation_id"]), "a result record")


def echo(text: str) -> str:
    """Give back a text."""
    return text


def weather(town: str) -> str:
    """Tell the weather forecast of a town."""
    return f"sunny in {town}"


def _many(count: int) -> list[dict[str, Any]]:
    names = [f"ledger_{number}" for number in range(count)]
    text = "Book an amount in one of many ledgers."
    return [{**tool(echo), "name": name, "description": text, "defer": True} for name in names]


@scenario("A tool declaration can be discovered without loading every tool into the model context.")
def _discovery(subject: Subject) -> None:
    declared = subject.declare({"tools": [tool(echo), *_many(30), tool(weather, defer=True)]})
    expect(len(declared) == 32, "a declaration for every tool")
    surface = subject.surface({"scope": "session"})
    expect(len(surface["loaded_tools"]) == 1, "only the tool that is not deferred is loaded")
    names = {ref["name"] for ref in surface["deferred_tools"]}
    expect({"weather", "ledger_7"} <= names, "the others can be discovered")
    found = subject.surface({"query": "weather forecast"})
    expect(found["matches"], "words find a tool")
    expect(found["matches"][0]["name"] == "weather", "and the right one")


@scenario("A deferred tool can be found by exact name and keyword search, then loaded before invocation.")
def _deferred(subject: Subject) -> None:
    subject.declare({"tools": [tool(echo), *_many(5), tool(weather, defer=True)]})
    early = one(subject, "weather", {"town": "Rome"})
    expect(error_of(early) == "schema_not_loaded", f"too early is schema_not_loaded, not {error_of(early)}")
    missed = subject.surface({"query": "select:nobody"})
    expect(not missed["matches"] and missed["missing_names"] == ["nobody"], "a miss is machine-readable")
    expect([m["name"] for m in subject.surface({"query": "select:ledger_3"})["matches"]] == ["ledger_3"], "by name")
    expect("weather" in [m["name"] for m in subject.surface({"query": "forecast"})["matches"]], "by words")
    expect(one(subject, "weather", {"town": "Rome"})["status"] == "succeeded", "what was loaded can be called")
    expect(
        "tool.deferred.loaded" in {event["event_type"] for event in of(subject, "tool_event")}, "loading is an event"
    )


@scenario("Input arguments can be schema-validated before execution.")
def _schema(subject: Subject) -> None:
    ran: list[int] = []

    def double(number: int) -> int:
        """Double a number."""
        ran.append(number)
        return 2 * number

    subject.declare({"tools": [tool(double)]})
    result = one(subject, "double", {"number": "many"})
    expect(not ran, "nothing ran")
    expect(error_of(result) == "schema_validation_failed", f"schema_validation_failed, not {error_of(result)}")
    terminal(subject, result)


@scenario("Tool-specific validation can reject unsafe values before filesystem or network IO.")
def _values(subject: Subject) -> None:
    ran: list[str] = []

    def remove(path: str) -> None:
        """Remove a file."""
        ran.append(path)

    def check(arguments: Data) -> None:
        if ".." in arguments["path"]:
            raise ValueError("leaves the folder")

    subject.declare({"tools": [tool(remove, validate=check)]})
    result = one(subject, "remove", {"path": "../x"})
    expect(not ran, "nothing ran")
    expect(error_of(result) == "invalid_arguments", f"invalid_arguments, not {error_of(result)}")
    states = [step["status"] for step in of(subject, "tool_invocation")[-1]["status_transitions"]]
    expect("validation_failed" in states and "running" not in states, f"validation_failed before running: {states}")


@scenario("Sensitive arguments are redacted from telemetry unless explicitly allowed.")
def _sensitive(subject: Subject) -> None:
    def login(user: str, pin: str) -> str:
        """Log in."""
        return "welcome"

    subject.declare({"tools": [tool(login, sensitive_fields=["pin"])]})
    result = one(subject, "login", {"user": f"ada {_SECRET}", "pin": "marigold-1234"})
    expect(result["status"] == "succeeded", "the tool gets what was given")
    told = repr(list(subject.records()))
    expect(_SECRET not in told and "marigold-1234" not in told, "no record shows the secret or the sensitive field")


@scenario(
    "model_input, observable_input, permission_input, and call_input remain distinguishable after hooks and permission"
    " prompts."
)
def _inputs(subject: Subject) -> None:
    def send(text: str, copies: int = 1) -> str:
        """Send a text."""
        return f"{text} x{copies}"

    subject.declare(
        {
            "tools": [tool(send)],
            "decisions": {"send": {"behavior": "ask", "rule_ref": "r.ask", "message": "ask first"}},
            "input_hooks": {"send": lambda given: {**given, "text": "short"} if given["text"] == "long" else None},
        }
    )
    answer = {"approved": True, "arguments": {"text": "edited", "copies": 2}}
    result = one(subject, "send", {"text": "long"}, answer=answer)
    expect(result["status"] == "succeeded", f"succeeded, not {result['status']}: {error_of(result)}")
    first, last = of(subject, "tool_invocation")[0], of(subject, "tool_invocation")[-1]
    kinds = ("model_input_ref", "observable_input_ref", "permission_input_ref")
    expect(len({first[kind] for kind in kinds}) == 3, "what was given, shown and decided are told apart")
    expect(last["model_input_ref"] == first["model_input_ref"], "what the model gave stays as it was")
    expect(last["call_input_ref"] == last["permission_input_ref"], "what ran is what was decided")
    expect(last["call_input_ref"] not in {first[kind] for kind in kinds}, "and not what was asked about")
    sources = {change["source_type"] for change in of(subject, "input_mutation")}
    expect(sources >= {"hook", "permission_prompt"}, f"each change names its author: {sources}")
    named = {change["source_type"] for change in result.get("input_mutations") or []}
    expect(named >= {"hook", "permission_prompt"}, "the result names them, too")


@scenario("A risky tool call can pause for approval and then resume with the same invocation id.")
def _pause(subject: Subject) -> None:
    ran: list[str] = []

    def pay(to: str) -> str:
        """Pay somebody."""
        ran.append(to)
        return "paid"

    asked = {"pay": {"behavior": "ask", "rule_ref": "r.ask", "message": "payments are asked about"}}
    subject.declare({"tools": [tool(pay)], "decisions": asked})
    waiting = one(subject, "pay", {"to": "ada"})
    expect(not ran and waiting["status"] == "pending", "it waits")
    paid = one(subject, "pay", {"to": "bob"}, answer={"approved": True})
    expect(ran == ["bob"] and paid["status"] == "succeeded", "it runs once it is approved")
    told = of(subject, "tool_invocation", paid["invocation_id"])
    first, last = told[0], told[-1]
    states = [step["status"] for step in last["status_transitions"]]
    expected = ["awaiting_approval", "approved", "running", "succeeded"]
    expect([state for state in states if state in expected] == expected, f"all states under one id: {states}")
    expect(last["created_at"] == first["created_at"], "it began when it was asked about")


@scenario("A denied or rejected call produces a terminal error result instead of disappearing.")
def _refused(subject: Subject) -> None:
    decisions = {
        "echo": {"behavior": "deny", "rule_ref": "r.deny", "message": "no echoes"},
        "weather": {"behavior": "ask", "rule_ref": "r.ask", "message": "ask first"},
    }
    subject.declare({"tools": [tool(echo), tool(weather)], "decisions": decisions})
    denied = one(subject, "echo", {"text": "a"})
    rejected = one(subject, "weather", {"town": "Rome"}, answer={"approved": False, "reason": "not now"})
    for result, status, error in ((denied, "denied", "permission_denied"), (rejected, "rejected", "approval_rejected")):
        expect(result["is_error"] and result["status"] == status, f"{status}, not {result['status']}")
        expect(error_of(result) == error, f"{error}, not {error_of(result)}")
        expect(result["content"], "it says so to the model")
        terminal(subject, result)


@scenario("A long-running call emits ordered progress and can report cancellation support accurately.")
def _progress(subject: Subject) -> None:
    def copy(call: Any) -> str:
        """Copy many files."""
        for percent in range(0, 50, 10):
            call.progress(percent, f"{percent} files")
        until = time.monotonic() + 20
        while not call.canceled and time.monotonic() < until:
            time.sleep(0.01)
        return "stopped early"

    def burn() -> str:
        """Work without looking up."""
        time.sleep(0.4)
        return "done"

    subject.declare({"tools": [tool(copy, supports_cancel=True, supports_progress=True), tool(burn)]})
    result = one(subject, "copy", {}, cancel_after=0.3)
    numbers = [step["sequence"] for step in of(subject, "tool_progress", result["invocation_id"])]
    expect(len(numbers) > 1 and numbers == list(range(numbers[0], numbers[0] + len(numbers))), f"in order: {numbers}")
    events = {event["event_type"] for event in of(subject, "tool_event", result["invocation_id"])}
    expect(any("cancel" in name for name in events), "the request to stop is an event")
    # a body that took notice may end as canceled, or give what it has: what it must not do is succeed as if nothing was
    expect(result["status"] in ("canceled", "partial_succeeded"), f"it stopped, not {result['status']}")
    stubborn = one(subject, "burn", {}, cancel_after=0.05)
    told = [event for event in of(subject, "tool_event", stubborn["invocation_id"]) if "cancel" in event["event_type"]]
    expect(told, "a request that can't be met is an event as well")
    expect(stubborn["status"] == "succeeded", "what could not be stopped is not called canceled")


@scenario("Parallel read tools can run together while exclusive write tools preserve order.")
def _parallel(subject: Subject) -> None:
    together, order, now = threading.Barrier(3), list[str](), list[str]()

    def read(name: str) -> str:
        """Read something."""
        together.wait(10)
        return name

    def write(name: str) -> str:
        """Write something."""
        now.append(name)
        order.append(name if len(now) == 1 else f"{name} beside another")
        time.sleep(0.05)
        now.remove(name)
        return name

    reading = tool(read, read_only=True, destructive=False, open_world=False, concurrency_safe=True)
    subject.declare({"tools": [reading, tool(write, concurrency_safe=False)]})
    wanted = [("read", "a"), ("read", "b"), ("read", "c"), ("write", "d"), ("write", "e"), ("write", "f")]
    calls = [{"tool": name, "arguments": {"name": value}} for name, value in wanted]
    results = subject.invoke({"calls": calls, "scheduler_policy": {"max_parallel": 6}})
    expect([result["status"] for result in results] == ["succeeded"] * 6, "all of them ran")
    expect([result["content"][0]["text"] for result in results] == list("abcdef"), "results in the calls' order")
    expect(order == ["d", "e", "f"], f"writes one after the other: {order}")


@scenario("A sibling failure can cancel dependent tools with synthetic result records.")
def _siblings(subject: Subject) -> None:
    ran: list[str] = []

    def fail() -> None:
        """Fail."""
        raise OSError("no disk")

    def follow(name: str) -> str:
        """Go on with what came before."""
        ran.append(name)
        return name

    subject.declare({"tools": [tool(fail), tool(follow)]})
    calls = [
        {"tool": "fail", "arguments": {}},
        {"tool": "follow", "arguments": {"name": "dependent"}, "depends_on": [0]},
        {"tool": "follow", "arguments": {"name": "free"}},
    ]
    policy = {"sibling_failure_policy": "cancel_dependent"}
    failed, canceled, free = subject.invoke({"calls": calls, "scheduler_policy": policy})
    expect(failed["status"] == "failed" and free["status"] == "succeeded", "the others go on")
    expect(ran == ["free"], "the dependent one never ran")
    expect(canceled["status"] == "synthetic_error", f"synthetic_error, not {canceled['status']}")
    expect(error_of(canceled) == "sibling_canceled", f"sibling_canceled, not {error_of(canceled)}")
    terminal(subject, canceled)


@scenario("A large result returns refs or previews rather than embedding the full payload.")
def _large(subject: Subject) -> None:
    def dump() -> str:
        """Give a long text."""
        return "line of text\n" * 5_000

    subject.declare({"tools": [tool(dump, max_inline_chars=500)]})
    result = one(subject, "dump", {})
    shown = sum(len(block.get("text", "")) for block in result["model_facing_content"])
    expect(shown < 5_000, f"the model gets a preview, not {shown} characters")
    expect(result.get("persistence_refs"), "what became of the rest is referred to")
    [kept] = of(subject, "tool_result_persistence", result["invocation_id"])
    expect(kept["original_size_bytes"] == 65_000 and kept.get("persisted_ref"), "and can be fetched")


@scenario("Empty successful output is distinguishable from missing output.")
def _empty(subject: Subject) -> None:
    def quiet() -> None:
        """Do something and say nothing."""

    denied = {"echo": {"behavior": "deny", "rule_ref": "r.deny", "message": "no echoes"}}
    subject.declare({"tools": [tool(quiet), tool(echo)], "decisions": denied})
    empty, missing = one(subject, "quiet", {}), one(subject, "echo", {"text": "a"})
    expect(empty["status"] == "succeeded" and not empty["is_error"], "nothing is a result")
    expect(any(block.get("empty") for block in empty["content"]), "marked as empty")
    expect(missing["is_error"] and not any(block.get("empty") for block in missing["content"]), "a missing one is not")


@scenario("A tool result can create or link to an Agent Artifact.")
def _artifact(subject: Subject) -> None:
    def draw() -> list[dict[str, Any]]:
        """Make an image."""
        return [{"type": "artifact_ref", "artifact_id": "img-1", "uri": "artifact://img-1", "media_type": "image/png"}]

    subject.declare({"tools": [tool(draw)]})
    result = one(subject, "draw", {})
    expect([ref["artifact_id"] for ref in result["artifact_refs"]] == ["img-1"], "the result refers to it")
    [call] = of(subject, "tool_invocation", result["invocation_id"])
    expect([ref["artifact_id"] for ref in call["artifact_refs"]] == ["img-1"], "and the invocation, too")


@scenario("Evidence can reconstruct which tool ran, with what native id, and why the result is trusted or not.")
def _evidence(subject: Subject) -> None:
    asked = {"weather": {"behavior": "ask", "rule_ref": "r.ask", "message": "ask first"}}
    tools = [tool(echo, open_world=False), tool(weather, open_world=True)]
    declared = {item["name"]: item["tool_id"] for item in subject.declare({"tools": tools, "decisions": asked})}
    own = one(subject, "echo", {"text": "a"}, call={"native_call_id": "call_1"})
    foreign = one(subject, "weather", {"town": "Rome"}, call={"native_call_id": "call_2"}, answer={"approved": True})
    for result, name, native, level in (
        (own, "echo", "call_1", "trusted"),
        (foreign, "weather", "call_2", "untrusted"),
    ):
        call = of(subject, "tool_invocation", result["invocation_id"])[-1]
        kept = of(subject, "tool_result", result["invocation_id"])[-1]
        expect((call["tool_id"], call["native_call_id"]) == (declared[name], native), "tool and native id")
        expect(kept["trust"]["level"] == level and kept["trust"]["reason"], f"{level}, and why")
    expect(foreign["evidence_refs"], "who approved is in the evidence")


@scenario("Policy can explain why a tool was allowed, denied, deferred, or waived.")
def _explained(subject: Subject) -> None:
    stated = {
        "echo": {"behavior": "deny", "rule_ref": "r.deny", "message": "no echoes"},
        "pay": {"behavior": "ask", "rule_ref": "r.ask", "message": "ask first"},
        "look": {"behavior": "allow", "rule_ref": "r.allow", "message": "looking is free"},
    }
    tools = [{**tool(echo), "name": name} for name in stated]
    subject.declare({"tools": [*tools, tool(weather, defer=True)], "decisions": stated})
    one(subject, "look", {"text": "a"})
    one(subject, "echo", {"text": "a"})
    one(subject, "pay", {"text": "a"}, answer={"approved": True, "reason": "known payee"})
    said = of(subject, "tool_permission_decision")
    told = {(one["behavior"], one["source"], one["reason"]["rule_ref"]) for one in said}
    expect(("allow", "policy", "r.allow") in told, "why it was allowed")
    expect(("deny", "policy", "r.deny") in told, "why it was denied")
    expect(any(one["behavior"] == "allow" and one["source"] == "user" for one in said), "who waived the question")
    [ref] = subject.surface({"scope": "session"})["deferred_tools"]
    expect(ref["reason"] == "deferred_until_discovered", "why it is deferred")


_NATIVE: Final[dict[str, dict[str, Any]]] = {
    "mcp": {"server_id": "docs", "mcp_session_id": "s-1", "method": "tools/call", "jsonrpc_request_id": "7"},
    "openapi": {"operation_id": "getPet", "method": "get", "path": "/pets/{id}", "server_url": "https://api.example"},
    "function_calling": {"tool_call_id": "call_9", "function_name": "f", "strict": True, "parallel_tool_calls": False},
    "cli": {"command_id": "ls", "argv_ref": "sha256:1", "exit_code": 0},
    "browser": {"browser_session_id": "b-1", "page_id": "p-1", "action_id": "click-3"},
    "a2a": {"agent_card_url": "https://agent.example", "task_id": "t-1", "context_id": "c-1", "message_id": "m-1"},
}


@scenario("MCP, OpenAPI, provider function calling, CLI, browser, and peer-agent tools preserve their native ids.")
def _native_ids(subject: Subject) -> None:
    tools = [
        {**tool(echo), "name": f"{source}_tool", "external_mappings": [{"source": source, **ids}]}
        for source, ids in _NATIVE.items()
    ]
    for item, (source, ids) in zip(subject.declare({"tools": tools}), _NATIVE.items(), strict=True):
        expect({"source": source, **ids} in item["external_mappings"], f"{source} on the declaration")
    for source, ids in _NATIVE.items():
        mapping = {"source": source, **ids}
        call = {"native_call_id": f"native-{source}", "external_mappings": [mapping]}
        result = one(subject, f"{source}_tool", {"text": "a"}, call=call)
        [kept] = of(subject, "tool_invocation", result["invocation_id"])
        expect(kept["native_call_id"] == f"native-{source}", f"the native id of {source}")
        expect(mapping in kept.get("external_mappings", []), f"{source} on the invocation")
        expect(mapping in result.get("external_mappings", []), f"{source} on the result")
