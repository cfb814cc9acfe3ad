"""What hooks say beside the decision: messages, progress, context, stops and outputs, recorded,
told and redacted.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from agenttool_otel.call.drivers import arun, run
from agenttool_otel.call.records import invocation_record
from agenttool_otel.hooks import (
    AdditionalContext,
    HookContext,
    Hooks,
    Message,
    PermissionResult,
    Progress,
    Stop,
    UpdatedInput,
    UpdatedOutput,
)
from agenttool_otel.testing import StaticEngine, capture, decision

SCHEMA = Path(__file__).parent.parent / "spec_schemas" / "agenttool-hook.schema.json"
HOOK = jsonschema_rs.validator_for(json.loads(SCHEMA.read_text()))
SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"


def echo(text: str = "hello") -> Any:
    return {"text": text}


@pytest.mark.parametrize("asynchronous", [False, True])
def test_every_hook_run_leaves_a_record_and_two_events(asynchronous: bool) -> None:
    hooks = Hooks()

    @hooks.on("pre_tool_use", tool="ec*", hook_id="before")
    async def before(ctx: HookContext) -> Any:
        yield Progress("looking", percent=50)
        yield Message("looked")
        yield UpdatedInput({"text": "changed"}, "tidy")
        yield PermissionResult("allow", "fine")

    @hooks.on("permission_decision", hook_id="judge")
    def judge(ctx: HookContext) -> None:
        assert ctx.decision == "allow"

    @hooks.on("post_tool_use", hook_id="after")
    def after(ctx: HookContext) -> Any:
        assert ctx.result == {"text": "changed"}
        assert ctx.status == "succeeded"
        return [
            AdditionalContext("the file is old", source="mtime"),
            Stop("enough"),
            UpdatedOutput(1),
        ]

    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        governor = captured.governor
        tool = governor.govern(echo).tool
        call, target = tool.plan({}), tool.json_target()
        steps = governor.pipeline.run(call, target)
        call = asyncio.run(arun(call, steps)) if asynchronous else run(call, steps)
        assert call.value == {"text": "changed"}
        records = call.decision.hook_records
        for record in records:
            assert HOOK.is_valid(record.to_json_object()), record
            assert record.invocation_id == call.id
            assert record.started_at is not None
            assert record.ended_at is not None
            assert record.started_at <= record.ended_at
        assert [record.hook_id for record in records] == ["before", "judge", "after"]
        assert invocation_record(call).hook_refs == ["before", "judge", "after"]
        assert records[0].matcher == {"tool": ["ec*"]}
        assert [output["kind"] for output in records[0].outputs] == [
            "progress", "message", "updated_input", "permission_result",
        ]  # fmt: skip
        assert records[0].outputs[2]["applied"] is True
        assert records[0].permission_result == {"behavior": "allow", "message": "fine"}
        assert records[0].updated_input is None  # content was not asked for
        assert records[2].additional_context[0]["text"] == "the file is old"
        assert records[2].stop == {"effect": "passed_on", "reason": "enough"}
        assert records[2].outputs[2]["ignored"]
        told = [(e.event_type, e.data.get("agenttool.hook.id"), e.data.get("agenttool.hook.outputs")) for e in
                captured.events if "hook" in e.event_type]  # fmt: skip
        assert told == [
            ("tool.hook.pre.started", "before", None),
            (
                "tool.hook.pre.completed",
                "before",
                ["progress", "message", "updated_input", "permission_result"],
            ),
            ("tool.hook.pre.started", "judge", None),
            ("tool.hook.pre.completed", "judge", []),
            ("tool.hook.post.started", "after", None),
            ("tool.hook.post.completed", "after", ["additional_context", "stop", "updated_output"]),
        ]
        (progress,) = [e for e in captured.events if e.event_type == "tool.invocation.progress"]
        assert progress.data["agenttool.progress.percent"] == 50.0
        assert {event.name for event in captured.span.events} >= {
            "tool.hook.pre.started",
            "tool.hook.post.completed",
        }
        states = [transition.status for transition in invocation_record(call).status_transitions]
        assert states[-3:] == ["running", "post_hooks_running", "succeeded"]
        assert "pre_hooks_running" in states
        assert call.outcome.status == "succeeded"


def test_messages_context_and_a_stop_come_with_the_envelope() -> None:
    hooks = Hooks()
    hooks.add(lambda ctx: Message("careful", level="warning"), "pre_tool_use", hook_id="m")
    hooks.add(
        lambda ctx: [AdditionalContext("c"), Stop("budget spent")], "post_tool_use", hook_id="s"
    )
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        result = captured.governor.govern(echo).tool.invoke().to_json_object()
        assert result["hook_messages"] == [{"hook_id": "m", "level": "warning", "text": "careful"}]
        assert result["additional_context"] == [{"hook_id": "s", "text": "c", "source": ""}]
        assert result["stop"] == {"hook_id": "s", "reason": "budget spent"}
        assert result["status"] == "succeeded"


def test_what_hooks_say_is_redacted_wherever_it_goes() -> None:
    hooks = Hooks()
    hooks.add(
        lambda ctx: [
            Message(f"found {SECRET}"),
            Progress(f"found {SECRET}"),
            AdditionalContext(f"found {SECRET}", source=SECRET),
            PermissionResult("allow", f"found {SECRET}"),
            UpdatedInput({"text": f"found {SECRET}"}, f"found {SECRET}"),
        ],
        "pre_tool_use",
    )
    hooks.add(
        lambda ctx: [Stop(f"found {SECRET}"), UpdatedOutput({"k": SECRET}, SECRET)], "post_tool_use"
    )
    hooks.add(
        lambda ctx: PermissionResult("deny", f"found {SECRET}"),
        "pre_tool_use",
        tool="denied",
        order=9,
    )
    with capture(
        policy=StaticEngine("allow"), hooks=hooks, capture="SPAN_AND_EVENT", verbose=True
    ) as captured:
        governor = captured.governor
        for name in ("allowed", "denied"):
            tool = governor.govern(lambda text="a": "done", name=name).tool
            call = tool.plan({})
            run(call, governor.pipeline.run(call, tool.json_target()))
            kept = [record.to_json_object() for record in call.decision.hook_records]
            assert SECRET not in json.dumps(kept)
            assert "found" in json.dumps(kept)
            assert SECRET not in repr([m.to_json_object() for m in call.inputs.mutations])
            assert SECRET not in repr(tool.invoke())
        # captured, and so shown, redacted
        assert kept[0]["updated_input"]["text"].startswith("found ")
        assert SECRET not in repr(captured.events)
        assert SECRET not in "".join(span.to_json() for span in captured.spans)


# --- updated_output -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "owns", "replaced"),
    [
        ({}, False, False),
        ({}, True, True),
        ({"tool_kind": "mcp_tool"}, False, True),
        ({"tool_kind": "peer_agent_tool"}, False, True),
        ({"tool_kind": "openapi_operation"}, False, True),
        ({"ownership": "mcp"}, False, True),
        ({"tool_kind": "shell_command"}, False, False),
    ],
)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_only_remote_tools_and_owned_outputs_can_be_replaced(
    facts: dict[str, Any], owns: bool, replaced: bool, asynchronous: bool
) -> None:
    hooks = Hooks()
    new = {"text": "from the hook"}
    hooks.add(lambda ctx: UpdatedOutput(new, "unwrapped"), "post_tool_use", owns_output=owns)
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        governed = captured.governor.govern(echo, **facts)
        assert governed() == ({"text": "from the hook"} if replaced else {"text": "hello"})
        result = asyncio.run(governed.tool.ainvoke()) if asynchronous else governed.tool.invoke()
        assert result.value == ({"text": "from the hook"} if replaced else {"text": "hello"})
        text = json.dumps(result.model_facing_content)
        assert ("from the hook" in text) is replaced
        assert ("hello" in text) is not replaced
        new["text"] = "changed later"
        assert "changed later" not in repr(result.value)


def test_the_last_owner_wins_and_each_sees_the_one_before() -> None:
    hooks, seen = Hooks(), []

    def grow(ctx: HookContext) -> UpdatedOutput:
        seen.append(ctx.result)
        return UpdatedOutput([*ctx.result, "hook"])

    hooks.add(grow, "post_tool_use", owns_output=True)
    hooks.add(grow, "post_tool_use", owns_output=True)
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        assert captured.governor.govern(lambda: ["tool"], name="t")() == ["tool", "hook", "hook"]
        assert captured.span.attributes["agenttool.result.size_bytes"] > 0
    assert seen == [["tool"], ["tool", "hook"]]


def test_a_replaced_output_meets_the_policys_obligations() -> None:
    hooks = Hooks()
    hooks.add(
        lambda ctx: UpdatedOutput({"password": "from-the-" + "hook"}),
        "post_tool_use",
        owns_output=True,
    )
    answer = decision("allow", obligations={"redact_result": ["/password"]})
    with capture(policy=StaticEngine(answer), hooks=hooks) as captured:
        assert "from-the-hook" not in repr(captured.governor.govern(echo)())


def test_a_failure_can_not_be_turned_into_a_success() -> None:
    def broken() -> None:
        raise KeyError("k")

    hooks = Hooks()
    hooks.add(
        lambda ctx: [UpdatedOutput("fine"), AdditionalContext("try b")],
        "post_tool_use_failure",
        tool="broken",
    )
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        governed = captured.governor.govern(broken, tool_kind="mcp_tool")
        result = governed.tool.invoke()
        assert result.status == "failed"
        assert result.to_json_object()["additional_context"][0]["text"] == "try b"
        with pytest.raises(KeyError):
            governed()


# --- other shapes ---------------------------------------------------------------------------------


def test_post_hooks_of_a_stream_run_at_its_end_with_its_items() -> None:
    hooks, seen = Hooks(), []
    hooks.add(
        lambda ctx: [seen.append((ctx.status, ctx.items)), UpdatedOutput([])][1], "post_tool_use"
    )

    def count() -> Any:
        yield from range(3)

    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        governed = captured.governor.govern(count, tool_kind="mcp_tool")
        stream = governed()
        assert next(stream) == 0
        assert seen == []
        assert list(stream) == [1, 2]
        assert seen == [("succeeded", 3)]
        stream = governed()
        next(stream)
        stream.close()
        assert seen[1][0] == "partial_succeeded"


async def test_post_hooks_of_an_asynchronous_stream_run_at_its_end() -> None:
    hooks, seen = Hooks(), []

    @hooks.on("post_tool_use")
    async def after(ctx: HookContext) -> None:
        seen.append(ctx.items)

    async def count() -> Any:
        for number in range(3):
            yield number

    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        assert [item async for item in captured.governor.govern(count)()] == [0, 1, 2]
    assert seen == [3]


def test_a_persisted_result_is_told_to_its_hooks(tmp_path: Path) -> None:
    hooks, seen = Hooks(), []
    hooks.add(lambda ctx: seen.append(ctx.persistence), "result_persistence", hook_id="p")
    with capture(policy=StaticEngine("allow"), hooks=hooks, results_dir=str(tmp_path)) as captured:
        tool = captured.governor.govern(lambda n: "x" * n, name="big", max_inline_chars=100).tool
        assert tool.invoke(n=10).status == "succeeded"
        assert seen == []
        assert tool.invoke(n=100_000).status == "succeeded"
        assert len(seen) == 1
        assert seen[0]["strategy"] == "preview_and_persist"
        assert [
            e.event_type for e in captured.events if e.data.get("agenttool.hook.id") == "p"
        ] == [
            "tool.hook.post.started",
            "tool.hook.post.completed",
        ]


def test_hooks_that_match_nothing_leave_no_trace() -> None:
    hooks = Hooks()
    for event in ("pre_tool_use", "permission_decision", "post_tool_use"):
        hooks.add(lambda ctx: Stop("x"), event, tool="other")
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        governor = captured.governor
        tool = governor.govern(echo).tool
        call = tool.plan({})
        run(call, governor.pipeline.run(call, tool.json_target()))
        assert call.ran
        assert call.decision.hook_records == []
        assert not [e for e in captured.events if "hook" in e.event_type]


def test_an_unsampled_call_runs_its_hooks_all_the_same() -> None:
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

    hooks = Hooks()
    hooks.add(lambda ctx: PermissionResult("deny"), "pre_tool_use")
    with capture(policy=StaticEngine("allow"), hooks=hooks, sampler=ALWAYS_OFF) as captured:
        assert captured.governor.govern(echo).tool.invoke().status == "denied"


def test_all_that_hooks_and_custom_tools_tell_is_in_the_registry() -> None:
    import semconv_check

    hooks = Hooks()
    hooks.add(
        lambda ctx: [Progress("p", 10), UpdatedInput({"text": "b", "_internal": 1}), Message("m")],
        "pre_tool_use",
    )
    hooks.add(lambda ctx: 1 / 0, "post_tool_use")
    hooks.add(lambda ctx: PermissionResult("deny", "no"), "permission_decision", tool="denied")

    def tool(text: str, _internal: int = 0) -> str:
        return text

    with capture(
        policy=StaticEngine("allow"), hooks=hooks, capture="SPAN_AND_EVENT", verbose=True
    ) as captured:
        governor = captured.governor
        assert governor.govern(tool)("a") == "b"
        governor.govern(tool, name="denied").tool.invoke(text="a")
        for end in (lambda i: governor.complete(i, "x"), lambda i: governor.interrupt(i, "why")):
            end(
                governor.govern(tool, name="custom", ownership="custom")
                .tool.invoke(text="a")
                .invocation_id
            )
        assert len(captured.spans) == 6
        problems = [
            problem
            for problem in semconv_check.check_spans(captured.spans)
            if "'static'" not in problem
        ]
        assert problems == []  # the test's own engine has no entry
