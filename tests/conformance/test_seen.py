"""Fields and words of the standard that the scenarios don't show, each in a real call, surface or
declaration.
"""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from opentelemetry.sdk.trace import TracerProvider

from agenttool_otel import (
    BatchCall,
    Governor,
    SchedulerPolicy,
    TelemetrySettings,
    agent_context,
    current_call,
    progress_to,
    report_progress,
)
from agenttool_otel.conformance.own import _Policy
from agenttool_otel.names import ReasonType, SurfaceScope, ToolKind
from agenttool_otel.telemetry.sinks import CallbackSink
from agenttool_otel.testing import StaticEngine, capture, decision

SURFACE = Path(__file__).parent.parent / "spec_schemas" / "agenttool-tool-surface.schema.json"


def act(text: str = "a") -> str:
    return text


@pytest.mark.parametrize(
    "kind",
    [
        *(
            "native_tool",
            "browser_action",
            "web_search",
            "retrieval",
            "model_task",
            "skill_tool",
            "policy_check",
        ),
        *(
            "artifact_operation",
            "evidence_export",
            "function",
            "mcp_tool",
            "openapi_operation",
            "peer_agent_tool",
        ),
    ],
)
def test_a_tool_of_each_kind_is_called(kind: str) -> None:
    assert kind in set(ToolKind)
    with capture(policy=StaticEngine("allow")) as captured:
        tool = captured.governor.govern(act, tool_kind=kind).tool
        assert tool.invoke(text="b").status == "succeeded"
        assert captured.span.attributes["agenttool.tool.kind"] == kind


@pytest.mark.parametrize(
    "scope",
    [
        "turn",
        "task",
        "session",
        "tenant",
        "skill",
        "peer_agent",
        "workspace",
        "role",
        "model_request",
    ],
)
def test_a_surface_has_the_scope_it_was_asked_for(scope: str) -> None:
    assert scope in set(SurfaceScope)
    with capture(policy=StaticEngine("allow")) as captured:
        assert captured.governor.surface(scope).record().scope == scope


@pytest.mark.parametrize(
    "reason",
    [
        "working_dir",
        "sandbox_override",
        "safety_check",
        "async_agent",
        "subcommand_results",
        "classifier",
    ],
)
def test_a_decision_keeps_the_kind_of_its_reason(reason: str) -> None:
    assert reason in set(ReasonType)
    answer = decision("deny", reason={"type": reason, "rule_ref": "r", "message": "m"})
    with capture(policy=StaticEngine(answer)) as captured:
        permission = captured.governor.govern(act).tool.invoke(text="b").permission
        assert permission is not None
        assert permission["reason"]["type"] == reason


def test_declaration_interface_and_profiles_have_their_fields() -> None:
    def count(text: str) -> dict[str, int]:
        return {text: 1}

    with capture(policy=StaticEngine("allow")) as captured:
        spec = captured.governor.govern(
            count,
            search_hint="count words",
            capability_refs=["text"],
            output_schema={"type": "object"},
            concurrency_safe=True,
            destructive=False,
            open_world=False,
            supports_progress=True,
            sandbox_profile="jail",
            retry={"max_attempts": 2},
            credential_refs=["vault:a"],
        ).tool.spec
    declaration, interface, execution, permission = (
        spec.declaration,
        spec.interface,
        spec.execution,
        spec.permission,
    )
    assert (declaration.search_hint, declaration.capability_refs) == ("count words", ["text"])
    assert (interface.search_hint, interface.output_schema) == ("count words", {"type": "object"})
    assert (interface.is_concurrency_safe, interface.is_destructive, interface.is_open_world) == (
        True,
        False,
        False,
    )
    assert interface.execution_profile_ref == execution.execution_profile_id
    assert interface.permission_profile_ref == permission.permission_profile_id
    assert execution.supports_progress
    assert execution.supports_resume
    assert execution.supports_retries
    assert execution.sandboxed
    assert not execution.supports_partial_results
    assert execution.supports_context_modifiers is None
    assert permission.credential_refs == ["vault:a"]


def test_a_surface_says_what_it_was_made_for() -> None:
    with capture(policy=_Policy({"act": decision("allow")})) as captured:
        tool = captured.governor.govern(
            act, requires=["browser"], defer=True, search_hint="act", capability_refs=["x"]
        )
        surface = captured.governor.surface(
            model={"vision": True}, requires=["x"], setup=lambda name: False
        ).record()
        assert tool
        assert surface.model_capabilities == {"vision": True}
        assert surface.capability_requirements == ["x"]
        assert surface.blocked_tools + surface.excluded_tools + surface.deferred_tools


def test_a_deferred_ref_has_its_hint_and_native_ids() -> None:
    with capture(policy=_Policy({"act": decision("allow")})) as captured:
        mapping = {"source": "mcp", "server_id": "docs"}
        tool = captured.governor.govern(
            act, defer=True, search_hint="act on text", external_mappings=[mapping]
        )
        [match] = captured.governor.search("select:act").matches
        assert tool
        assert match["ref"]["search_hint"] == "act on text"
        assert "docs" in str(match["ref"]["native_ref"])


def test_records_refer_to_their_trace() -> None:
    lines: list[dict[str, Any]] = []
    sink = CallbackSink(lines.append)
    settings = TelemetrySettings(sinks=(sink,), tracer_provider=TracerProvider())
    governor = Governor(policy=StaticEngine("allow"), approvals="sqlite://", telemetry=settings)
    result = governor.govern(act).tool.invoke(text="b")
    governor.close()
    sink.close(10)
    assert result.ui_facing_summary
    trace = result.telemetry_refs[0]["trace_id"]
    records = {line["object"]: line["record"] for line in lines}
    assert records["tool_invocation"]["telemetry_refs"][0]["trace_id"] == trace
    assert records["tool_event"]["trace_refs"][0]["trace_id"] == trace


def lines_of(policy: Any, use: Any) -> dict[str, Any]:
    lines: list[dict[str, Any]] = []
    sink = CallbackSink(lines.append)
    governor = Governor(
        policy=policy, approvals="sqlite://", telemetry=TelemetrySettings(sinks=(sink,))
    )
    use(governor)
    governor.close()
    sink.close(10)
    return {line["object"]: line["record"] for line in lines}


def test_a_decision_refers_to_the_input_that_it_changed() -> None:
    policy = StaticEngine(decision("allow", updated_input={"text": "marigold"}))
    records = lines_of(policy, lambda governor: governor.govern(act).tool.invoke(text="b"))
    changed = records["tool_permission_decision"]["updated_input_ref"]
    assert changed == records["tool_invocation"]["permission_input_ref"]
    assert "marigold" not in str(records)


@pytest.mark.parametrize(("count", "listed"), [(3, 3), (101, 0)])
def test_a_sink_gets_the_surface_that_was_made(count: int, listed: int) -> None:
    def use(governor: Governor) -> None:
        tools = [governor.govern(act, name=f"act_{number}", defer=True) for number in range(count)]
        governor.surface()
        assert tools

    record = lines_of(_Policy({}), use)["tool_surface"]
    assert len(record["deferred_tools"]) == listed
    assert (
        list(jsonschema_rs.validator_for(json.loads(SURFACE.read_text())).iter_errors(record)) == []
    )


def test_a_report_of_progress_has_its_steps_and_bytes() -> None:
    seen: list[Any] = []

    def copy() -> str:
        report_progress(
            10,
            "copying",
            current_step="two",
            total_steps=3,
            bytes_read=5,
            bytes_written=4,
            line_count=1,
        )
        return "done"

    with capture(policy=StaticEngine("allow")) as captured, progress_to(seen.append):
        captured.governor.govern(copy, supports_progress=True).tool.invoke()
    [step] = [one for one in seen if one.message == "copying"]
    assert (step.current_step, step.total_steps, step.bytes_written, step.task_id) == (
        "two",
        3,
        4,
        None,
    )


def test_a_batch_follows_its_order_of_results() -> None:
    policy = SchedulerPolicy(ordering_policy="serial", yield_policy="all_ordered")
    with capture(policy=StaticEngine("allow")) as captured:
        tool = captured.governor.govern(act)
        results = captured.governor.batch(
            [BatchCall(tool, {"text": word}) for word in "abc"], policy=policy
        )
        assert [result.value for result in results] == ["a", "b", "c"]


def test_a_fallback_discards_what_ran() -> None:
    started = threading.Event()

    def stream() -> str:
        call = current_call()
        assert call is not None
        running.append(call.invocation_id)
        started.set()
        for _ in range(500):
            call.raise_if_canceled()
            time.sleep(0.01)
        return "late"

    running: list[str] = []
    with capture(policy=StaticEngine("allow")) as captured:
        tool = captured.governor.govern(stream, supports_cancel=True).tool
        results: list[Any] = []
        thread = threading.Thread(target=lambda: results.append(tool.invoke()))
        thread.start()
        assert started.wait(10)
        captured.governor.cancel(running[0], "another model answers", abort_reason="fallback")
        thread.join(10)
    [result] = results
    assert (result.status, result.error.error_class) == (
        "discarded",
        "streaming_fallback_discarded",
    )


def test_a_call_that_takes_too_long_has_its_own_event() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        result = captured.governor.govern(
            lambda: time.sleep(0.3), name="slow", timeout_ms=20
        ).tool.invoke()
        assert result.status == "timed_out"
        assert "tool.invocation.timed_out" in [event.event_type for event in captured.events]


def test_a_custom_call_waits_for_input() -> None:
    seen: list[Any] = []
    with (
        capture(policy=StaticEngine("allow")) as captured,
        progress_to(seen.append),
        agent_context(session_id="s"),
    ):
        tool = captured.governor.govern(act, ownership="custom").tool
        assert tool.invoke(text="b").status == "pending"
        assert "waiting_for_input" in [step.status for step in seen]
