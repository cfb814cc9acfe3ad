"""What records have in common with spans, schemas and each other."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from agenttool_otel import BatchCall, Governor, SchedulerPolicy, TelemetrySettings, current_call
from agenttool_otel.conformance.own import ScenarioPolicy
from agenttool_otel.names import ToolKind
from agenttool_otel.telemetry.sinks import CallbackSink
from agenttool_otel.testing import StaticEngine, capture, decision

SURFACE = Path(__file__).parent.parent / "spec_schemas" / "agenttool-tool-surface.schema.json"


def act(text: str = "a") -> str:
    return text


@pytest.mark.parametrize("kind", ToolKind)
def test_a_span_names_the_kind_of_its_tool(kind: str) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        captured.governor.govern(act, tool_kind=kind).tool.invoke(text="b")
        assert captured.span.attributes["agenttool.tool.kind"] == kind


def test_a_deferred_ref_has_its_hint_and_native_ids() -> None:
    with capture(policy=ScenarioPolicy({"act": decision("allow")})) as captured:
        mapping = {"source": "mcp", "server_id": "docs"}
        tool = captured.governor.govern(
            act, defer=True, search_hint="act on text", external_mappings=[mapping]
        )
        [match] = captured.governor.search("select:act").matches
        assert tool
        assert match["ref"]["search_hint"] == "act on text"
        assert "docs" in str(match["ref"]["native_ref"])


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

    record = lines_of(ScenarioPolicy({}), use)["tool_surface"]
    assert len(record["deferred_tools"]) == listed
    assert (
        list(jsonschema_rs.validator_for(json.loads(SURFACE.read_text())).iter_errors(record)) == []
    )


def test_a_batch_follows_its_order_of_results() -> None:
    policy = SchedulerPolicy(ordering_policy="serial", yield_policy="all_ordered")
    with capture(policy=StaticEngine("allow")) as captured:
        tool = captured.governor.govern(act)
        results = captured.governor.batch(
            [BatchCall(tool, {"text": word}) for word in "abc"], policy=policy
        )
        assert [result.value for result in results] == ["a", "b", "c"]


@pytest.mark.covers("synthetic-result-for-fallback")
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
