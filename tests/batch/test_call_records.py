"""What records say of a call's schedule, its cancellation and its native ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agenttool_otel import (
    BatchCall,
    CancelState,
    Governor,
    SchedulerPolicy,
    current_call,
    native_call,
)
from agenttool_otel.records import CliMapping, McpMapping, OpenApiMapping
from agenttool_otel.telemetry import TelemetrySettings
from agenttool_otel.telemetry.losses import Losses
from agenttool_otel.telemetry.sinks import Sink
from agenttool_otel.testing import decision
from function_engine import FunctionEngine

SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"


class Kept(Sink):
    """A sink that keeps records."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[tuple[str, dict[str, Any]]] = []

    def watched_by(self, losses: Losses) -> None:
        self.losses = losses

    def put(self, build: Callable[[], Any]) -> None:
        self.records += build()

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [record for name, record in self.records if name == kind]

    def flush(self, timeout: float = 0) -> None:
        """Nothing waits."""


def world() -> tuple[Governor, Kept, list[Any]]:
    kept, documents = Kept(), list[Any]()

    def decide(document: Any) -> Any:
        documents.append(document)
        return decision("allow")

    sinks: Any = (kept,)
    return (
        Governor(policy=FunctionEngine(decide), telemetry=TelemetrySettings(sinks=sinks)),
        kept,
        documents,
    )


def test_an_invocation_says_what_a_scheduler_needs() -> None:
    governor, kept, _ = world()

    @governor.govern(
        read_only=True, concurrency_safe=True, resource_locks=["db"], interrupt_behavior="cancel"
    )
    def read() -> int:
        return 1

    policy = SchedulerPolicy(scheduler_policy_id="sched_1", resource_locks=[{"name": "all"}])
    governor.batch([BatchCall(read, {})], policy=policy)
    record = kept.of("tool_invocation")[0]
    assert record["scheduler_policy_ref"] == "sched_1"
    assert record["scheduler"] == {
        "is_concurrency_safe": True,
        "is_read_only": True,
        "is_destructive": False,
        "is_open_world": record["scheduler"]["is_open_world"],
        "requires_exclusive_context": False,
        "context_modifier_policy": None,
        "resource_locks": ["all", "db"],
        "interrupt_behavior": "cancel",
        "state": "completed",
    }
    assert [step["status"] for step in record["status_transitions"]].count("queued") == 1


def test_a_cancellation_is_on_the_record_fact_by_fact() -> None:
    governor, kept, _ = world()

    @governor.govern
    def stop() -> None:
        call = current_call()
        assert call is not None
        call.request(CancelState(call.invocation_id, "enough", "fallback"))
        call.raise_if_canceled()

    result = stop.tool.invoke()
    assert (str(result.status), result.abort_reason) == ("discarded", "fallback")
    told = kept.of("tool_invocation")[0]["cancellation"]
    assert told.keys() == {"reason", "abort_reason", "requested_at", "acknowledged_at", "outcome"}
    assert (told["abort_reason"], told["outcome"]) == ("fallback", "canceled")


def test_native_ids_are_on_records_and_before_the_policy() -> None:
    governor, kept, documents = world()
    static: dict[str, Any] = {"source": "openapi", "operation_id": "getPet"}

    @governor.govern(external_mappings=[static])
    def work() -> int:
        call = current_call()
        assert call is not None
        call.map(CliMapping(exit_code=0, signal=SECRET))
        return 1

    with native_call("call_1", McpMapping(server_id="s", jsonrpc_request_id=7)):
        result = work.tool.invoke()
    sources = [mapping["source"] for mapping in kept.of("tool_invocation")[0]["external_mappings"]]
    assert sources == ["function_calling", "mcp", "cli"]
    assert SECRET not in str(kept.records)
    assert result.external_mappings is not None
    told = result.to_json_object()["external_mappings"]
    assert [one["source"] for one in told] == sources
    assert told[1]["jsonrpc_request_id"] == 7
    seen = documents[0]["invocation"]["external_mappings"]
    assert (seen[0]["source"], seen[0]["server_id"]) == ("mcp", "s")
    assert documents[0]["tool"]["external_mappings"][0]["operation_id"] == "getPet"


def test_a_batch_carries_the_native_ids_of_each_call() -> None:
    governor, _, _ = world()
    work = governor.govern(lambda: 1, name="work")
    calls = [
        BatchCall(work, {}, native_call_id=f"c{n}", mappings=[OpenApiMapping(path=f"/{n}")])
        for n in range(2)
    ]
    told = [result.to_json_object()["external_mappings"] for result in governor.batch(calls)]
    assert [(one[0]["tool_call_id"], one[1]["path"]) for one in told] == [
        ("c0", "/0"),
        ("c1", "/1"),
    ]
