"""The interceptor of agent-hooks, in a host of the SDK's own emitter."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

pytest.importorskip("agent_hooks", reason="agent-hooks-sdk is not installed")

from agent_hooks import (
    ApprovalOutcome,
    ApprovalResolution,
    Decision,
    InterceptionBlocked,
    InterceptionEmitter,
    Transform,
    Verdict,
)
from agent_hooks.ctk import load_vectors, run_vector
from agent_hooks.ctk.reference import ReferenceHarness
from hooks_host import HooksDriver, HostTool

from agenttool_otel import ApprovalAnswer
from agenttool_otel.integrations.agent_hooks import AgentToolInterceptor
from agenttool_otel.testing import Capture, StaticEngine, capture
from agenttool_otel.testing.doors import DOOR_CHECKS, SCHEMA

# a call has two spans here, its decision's and its result's, and its body runs in the host
BODY_CHECKS = {
    "allowed_call_runs",
    "approved_call_resumes_in_another_process",
    "tool_error_is_recorded",
    "canceled_call_ends",
    "spans_nest",
    "native_id_is_recorded",
}
VECTORS = [vector for vector in load_vectors() if "host_declaration" not in vector]


@pytest.mark.parametrize(
    "check",
    [check for check in DOOR_CHECKS if check.__name__ not in BODY_CHECKS],
    ids=lambda check: check.__name__,
)
def test_the_door_passes(check: Any) -> None:
    check(HooksDriver())


class HarnessWithDoor(ReferenceHarness):
    """The kit's host, with the Governor's interceptor after those of a vector."""

    door: Any = None

    def setup(self, scenario: Any, interceptors: Any, *rest: Any) -> None:
        super().setup(scenario, [*interceptors, self.door] if interceptors else [], *rest)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_a_host_that_has_it_passes_the_kit(vector: dict[str, Any]) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        harness = HarnessWithDoor()
        harness.door = AgentToolInterceptor(captured.governor, facts={"*": {"read_only": True}})
        result = asyncio.run(run_vector(harness, vector))
    if result.status == "skip":
        pytest.skip(result.detail)
    assert result.status == "pass", "\n".join(result.failures)


RAN: list[dict[str, Any]] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


async def look_up(arguments: dict[str, Any]) -> str:
    RAN.append(dict(arguments))
    return f"found {arguments['word']}"


def host(captured: Capture, **options: Any) -> HostTool:
    """A host whose emitter has the interceptor, as its resolver, too."""
    facts = {"*": {"read_only": True}}
    tool = HostTool("look_up", SCHEMA, options.pop("body", look_up))
    tool.governor = captured.governor
    tool.door = AgentToolInterceptor(
        captured.governor, tools={"look_up": SCHEMA}, facts=facts, wait_seconds=0.0
    )
    tool.emitter = InterceptionEmitter(
        resolver=options.pop("resolver", tool.door), timeout=None
    ).register(tool.door)
    return tool


def call(tool: HostTool, **arguments: Any) -> Any:
    try:
        return asyncio.run(tool.call(arguments or {"word": "tree"}, "call_1"))
    except InterceptionBlocked as blocked:
        return blocked.result.verdict


def statuses(captured: Capture) -> list[Any]:
    name = "agenttool.invocation.status"
    return [span.attributes.get(name) for span in captured.spans if "look_up" in span.name]


def wait_for_question(captured: Capture) -> None:
    while not captured.governor.approvals.store.list():
        time.sleep(0.01)


def answer(captured: Capture, **fields: Any) -> None:
    store = captured.governor.approvals.store
    (request,) = store.list()
    store.answer(request.request_id, ApprovalAnswer(answered_by="user:me", **fields))


def test_a_result_ends_the_call_that_was_permitted() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        assert call(host(captured)) == "found tree"
        ids = {span.attributes["agenttool.invocation.id"] for span in captured.spans}
        assert statuses(captured)[-1] == "succeeded"
    assert len(ids) == 1


def test_the_spans_have_the_hosts_id_of_the_call() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        call(host(captured))
        ids = {span.attributes["gen_ai.tool.call.id"] for span in captured.spans}
    assert ids == {"call_1"}


def test_a_tools_error_is_recorded() -> None:
    async def fail(arguments: dict[str, Any]) -> str:
        raise ValueError("no such word")

    with capture(policy=StaticEngine("allow")) as captured:
        with pytest.raises(ValueError):
            call(host(captured, body=fail))
        assert statuses(captured)[-1] == "failed"


def test_an_answer_lifts_the_denial() -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        tool = host(captured)
        assert call(tool).decision is Decision.DENY
        answer(captured, approved=True)
        assert call(tool) == "found tree"


def test_an_approval_in_time_lets_the_call_run() -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        tool = host(captured)
        tool.door._wait_seconds = 60.0

        async def both() -> Any:
            running = asyncio.create_task(tool.call({"word": "tree"}, "call_1"))
            await asyncio.to_thread(wait_for_question, captured)
            answer(captured, approved=True, edited_input={"word": "bush"})
            return await running

        assert asyncio.run(both()) == "found bush"
    assert RAN == [{"word": "bush"}]


def test_another_interceptor_goes_on_with_a_stored_ask() -> None:
    # as in another process of the same session
    with capture(policy=StaticEngine("ask")) as captured:
        call(host(captured))
        answer(captured, approved=True)
        assert call(host(captured)) == "found tree"
    assert len(RAN) == 1


def test_a_call_that_the_host_lifts_is_recorded() -> None:
    class Lifts:
        def resolve(self, request: Any) -> Any:
            return ApprovalResolution(
                ApprovalOutcome.APPROVE, request.context_identity, Verdict.allow()
            )

    with capture(policy=StaticEngine("ask")) as captured:
        assert call(host(captured, resolver=Lifts())) == "found tree"
        (request,) = captured.governor.approvals.store.list()
        assert statuses(captured)[-1] == "succeeded"
    assert request.answered_by == "agent_hooks:host"


def test_a_result_of_other_arguments_is_withheld() -> None:
    class Redirects:
        def intercept(self, context: Any) -> Any:
            if context["interception_point"] != "pre_tool_call":
                return Verdict.allow()
            changed = Transform("$target.word", "/etc/shadow")
            return Verdict(Decision.TRANSFORM, transform=changed)

    with capture(policy=StaticEngine("allow")) as captured:
        tool = host(captured)
        tool.emitter.register(Redirects())
        assert call(tool).reason == "agenttool:arguments_changed"
        assert statuses(captured)[-1] == "failed"


def test_a_result_without_a_permission_is_withheld() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        tool = host(captured)
        after = tool.builder.post_tool_call(call_id="c", name="look_up", args={}, value="found")
        record = asyncio.run(tool.emitter.emit_unchecked(after))
    assert record.verdict.reason == "agenttool:not_permitted"


def test_a_name_that_no_tool_has_is_denied() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        tool = host(captured)
        tool.name = "other"
        assert call(tool).reason == "agenttool:unknown_tool"


def test_tools_are_known_from_the_start_of_the_agent() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        tool = host(captured)
        tool.name = "other"
        asyncio.run(tool.emitter.emit(tool.builder.agent_startup(tools_registered=["other"])))
        assert call(tool) == "found tree"


def test_calls_that_did_not_run_end_with_the_agent() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        tool = host(captured)

        async def session() -> None:
            before = tool.builder.pre_tool_call(call_id="c", name="look_up", args={"word": "tree"})
            await tool.emitter.emit(before)
            await tool.emitter.emit(tool.builder.agent_shutdown(reason="completed"))

        asyncio.run(session())
        assert statuses(captured)[-1] == "canceled"
        assert not list(captured.governor.required_actions)


def test_the_hosts_session_and_actor_are_the_calls() -> None:
    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        tool = host(captured)
        tool.builder.with_l2(actor={"id": "ann", "kind": "human"})
        call(tool)
    actor = engine.documents[-1]["actor"]
    assert (actor["id"], engine.documents[-1]["session"]["id"]) == ("user:ann", "s-1")
