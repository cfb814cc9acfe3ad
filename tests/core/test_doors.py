"""The JSON door, preflight, copies, contexts and threads of a governed callable."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from pydantic import BaseModel

from agenttool_otel import (
    ApprovalAnswer,
    ApprovalRejected,
    ConfigurationError,
    ToolDenied,
    ToolInputInvalid,
    agent_context,
    carry_context,
    current_context,
    govern,
    native_call,
)
from agenttool_otel.names import Attr, GenAI
from agenttool_otel.telemetry import CaptureMode
from agenttool_otel.testing import FixedApprover, StaticEngine, capture, decision


class Point(BaseModel):
    x: int
    y: int = 0


@dataclass
class Size:
    width: int


def place(
    point: Point,
    folder: Path,
    size: Size | None = None,
    *,
    tags: list[str] | None = None,
    _secret: str = "s",
) -> str:
    """Put a point somewhere.

    Args:
        point: where.
        folder: in which folder.
    """
    assert isinstance(point, Point)
    assert isinstance(folder, Path)
    assert size is None or isinstance(size, Size)
    return f"{point.x},{point.y} in {folder} {tags} {_secret}"


@govern(name="module_level")
def module_level(x: int) -> int:
    return x


def test_json_arguments_become_what_the_annotations_ask_for() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        tool = captured.governor.govern(place).tool
        result = tool.invoke({"point": {"x": 1}, "folder": "a/b", "size": {"width": 2}}, tags=["t"])
        assert result.status == "succeeded", result.error
        assert result.value == "1,0 in a/b ['t'] s"
        assert result.content[0]["text"] == result.value


def test_python_arguments_go_through_as_they_are() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        assert captured.governor.govern(place)(Point(x=1), Path("p"), Size(3)) == "1,0 in p None s"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "point: Field required"),
        ({"point": {"x": "1"}, "folder": "f"}, "point.x: must be integer"),
        ({"point": {"x": 1}, "folder": "f", "other": 1}, "members that the schema does not have"),
        ({"point": {"x": 1}, "folder": "f", "_secret": "given by a model"}, "can't be read"),
    ],
)
def test_arguments_that_do_not_fit_end_in_a_located_error(
    arguments: dict[str, Any], told: str
) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        result = captured.governor.govern(place).tool.invoke(arguments)
        assert result.status == "failed"
        assert result.error is not None
        assert result.error.error_class == "schema_validation_failed"
        assert told in result.error.message
        assert "given by a model" not in repr(result)
        assert captured.span.attributes["agenttool.invocation.status"] == "schema_parse_failed"


def test_a_wrong_python_call_is_both_of_pythons_errors() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        governed = captured.governor.govern(place)
        for call in (lambda: governed(), lambda: governed(Point(x=1), Path("p"), nothing=1)):
            with pytest.raises(ToolInputInvalid) as invalid:
                call()
            assert isinstance(invalid.value, TypeError)
            assert isinstance(invalid.value, ValueError)


def test_internal_parameters_are_not_in_the_model_facing_schema() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        declaration = captured.governor.govern(place).tool.declaration
        assert set(declaration.input_contract.model_input_schema["properties"]) == {
            "point",
            "folder",
            "size",
            "tags",
        }
        assert declaration.input_contract.internal_only_fields == ["_secret"]
        properties = declaration.input_contract.model_input_schema["properties"]
        assert properties["folder"]["description"] == "in which folder."
        assert declaration.description == "Put a point somewhere."


def test_what_runs_was_decided_even_if_the_caller_changes_it() -> None:
    seen: list[Any] = []

    class Meddling(StaticEngine):
        def evaluate(self, *args: Any, **kwargs: Any) -> Any:
            items.append("added after the decision began")
            return super().evaluate(*args, **kwargs)

    items = ["a"]
    engine = Meddling("allow")
    with capture(policy=engine) as captured:
        captured.governor.govern(lambda items: seen.append(items), name="take")(items)
    assert seen == [["a"]]
    assert engine.documents[0]["input"] == {"items": ["a"]}


def test_preflight_runs_and_spends_nothing_and_leaves_no_span() -> None:
    def tool(x: int) -> None:
        raise AssertionError("ran")

    answers = {
        "tool": decision(
            "ask", alternatives=[{"tool": "peek", "arguments": {"x": 1}, "reason": "only reads"}]
        )
    }
    engine = StaticEngine(answers)
    with capture(policy=engine) as captured:
        answer = captured.governor.govern(tool).tool.check(x=1)
        assert answer.behavior == "ask"
        assert answer.requires_confirmation
        assert not answer.allowed
        assert answer.alternatives[0]["tool"] == "peek"
        assert answer.next_step == "call peek instead: only reads"
        assert engine.documents[0]["invocation"]["preflight"] is True
        assert captured.spans == ()
        assert captured.points("agenttool.permission.decisions") == []
        assert asyncio.run(captured.governor.govern(tool).tool.acheck(x=1)).behavior == "ask"
        bad = captured.governor.govern(tool).tool.check(x="no")
        assert bad.behavior == "deny"
        assert bad.error is not None
        assert engine.documents[-1]["session"]["counters"] == {
            "calls": 0,
            "tool_calls": 0,
            "asks": 0,
            "denials": 0,
            "result_bytes": 0,
        }


def test_an_approver_who_is_there_answers_in_place() -> None:
    ran: list[int] = []
    yes = FixedApprover(ApprovalAnswer(True, answered_by="user:bob"))
    with capture(policy=StaticEngine("ask"), approver=yes) as captured:
        captured.governor.govern(ran.append, name="note", model_input_schema={"type": "object"})
        governed = captured.governor.govern(lambda x: ran.append(x), name="note")
        governed(1)
        assert ran == [1]
        assert yes.asked[0].arguments_preview == {"x": 1}
        attributes = captured.span.attributes
        assert attributes["agenttool.approval.status"] == "consumed"
        assert attributes["agenttool.permission.outcome"] == "executed"
        assert 0 <= attributes["agenttool.approval.wait_s"] < 60
        answered = next(
            event for event in captured.span.events if event.name == "tool.approval.answered"
        )
        assert (
            answered.attributes["agenttool.approval.wait_s"]
            == attributes["agenttool.approval.wait_s"]
        )
    no = FixedApprover(ApprovalAnswer(False, answered_by="user:bob", reason="not today"))
    with capture(policy=StaticEngine("ask"), approver=no) as captured:
        with pytest.raises(ApprovalRejected, match="not today"):
            captured.governor.govern(lambda x: ran.append(x), name="note")(2)
        assert ran == [1]
        assert captured.span.attributes["error.type"] == "approval_rejected"


def test_an_edited_answer_is_decided_again_and_a_deny_wins() -> None:
    class Engine(StaticEngine):
        def evaluate(self, entry_point: str, document: Any, *, timeout: float) -> Any:
            self._answers = decision("deny" if document["input"]["x"] > 10 else "ask")
            return super().evaluate(entry_point, document, timeout=timeout)

    ran: list[int] = []
    for edited, expected in ((5, [5]), (50, [])):
        ran.clear()
        approver = FixedApprover(
            ApprovalAnswer(True, answered_by="user:bob", edited_input={"x": edited})
        )
        with capture(policy=Engine("ask"), approver=approver) as captured:
            governed = captured.governor.govern(lambda x: ran.append(x), name="note")
            if expected:
                governed(1)
            else:
                with pytest.raises(ToolDenied):
                    governed(1)
            assert ran == expected
            assert "tool.input.mutated" in [event.name for event in captured.span.events]


def test_pickle_and_copies_of_governed_callables_stay_governed() -> None:
    assert pickle.loads(pickle.dumps(module_level)) is module_level
    assert copy.copy(module_level) is module_level
    assert copy.deepcopy(module_level) is module_level
    again = pickle.loads(pickle.dumps(govern(place, read_only=True)))
    assert again.tool.declaration.name == "place"
    assert again.tool.interface.is_read_only is True


def test_a_tool_of_a_certain_governor_is_copied_but_not_pickled() -> None:
    with capture(policy=StaticEngine("deny")) as captured:
        governed = captured.governor.govern(place)
        with pytest.raises(ConfigurationError, match="govern it again where it is loaded"):
            pickle.dumps(governed)
        for again in (copy.copy(governed), copy.deepcopy([governed])[0]):
            with pytest.raises(ToolDenied):
                again(Point(x=1, y=2), Path("a"))


def test_governing_twice_is_refused_unless_nothing_is_added() -> None:
    governed = govern(place)
    assert govern(governed) is governed
    with pytest.raises(ConfigurationError):
        govern(governed, read_only=True)
    for wrong in (3, Point, "text"):
        with pytest.raises(ConfigurationError):
            govern(wrong)  # type: ignore[call-overload]
    with pytest.raises(ConfigurationError, match="has no option"):
        govern(place, readonly=True)  # type: ignore[call-overload]


def test_context_is_inherited_nested_and_restored() -> None:
    with agent_context(actor="agent:a", roles=["x"], labels={"k": "1"}):
        with agent_context(session_id="s", labels={"l": "2"}) as inner:
            assert (inner.actor, inner.roles, inner.session_id) == ("agent:a", ("x",), "s")
            assert inner.labels == {"k": "1", "l": "2"}
        assert current_context().session_id is None
    assert current_context().actor == ""


def test_carried_context_keeps_actor_and_parent_in_a_thread_pool() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        governed = captured.governor.govern(lambda x: x, name="echo")
        tracer = captured.tracer_provider.get_tracer("test")
        with (
            agent_context(actor="agent:a"),
            tracer.start_as_current_span("parent") as parent,
            ThreadPoolExecutor(2) as pool,
        ):
            assert list(pool.map(carry_context(governed), range(4))) == [0, 1, 2, 3]
        spans = [span for span in captured.spans if span.name == "execute_tool echo"]
        assert {span.parent.span_id for span in spans} == {parent.get_span_context().span_id}
        assert {span.attributes["agenttool.actor.id"] for span in spans} == {"agent:a"}


def test_the_native_call_id_travels_to_span_and_policy() -> None:
    engine = StaticEngine("allow")
    with capture(policy=engine) as captured, native_call("call_7"):
        captured.governor.govern(lambda: None, name="noop")()
        assert captured.span.attributes["gen_ai.tool.call.id"] == "call_7"
        assert engine.documents[0]["invocation"]["native_call_id"] == "call_7"


def test_a_sync_tool_holds_the_event_loop_only_when_asked_to() -> None:
    import threading

    threads: list[Any] = []

    def tool() -> None:
        threads.append(threading.current_thread())
        assert trace.get_current_span().get_span_context().is_valid

    with capture(policy=StaticEngine("allow")) as captured:
        result = asyncio.run(captured.governor.govern(tool).tool.ainvoke())
        assert result.status == "succeeded"
        assert threads[0] is not threading.main_thread()


@pytest.mark.parametrize("is_async", [False, True])
def test_a_tool_that_takes_too_long_ends_in_a_typed_timeout(is_async: bool) -> None:
    import time

    from agenttool_otel import ToolTimeout

    def slow() -> None:
        time.sleep(2)

    async def aslow() -> None:
        await asyncio.sleep(2)

    with capture(policy=StaticEngine("allow")) as captured:
        governed = captured.governor.govern(aslow if is_async else slow, timeout_ms=50)
        with pytest.raises(ToolTimeout):
            asyncio.run(governed()) if is_async else governed()
        attributes = captured.span.attributes
        assert attributes["agenttool.invocation.status"] == "timed_out"
        assert attributes["error.type"] == "timeout"


def test_retries_are_seen_and_stay_within_one_decision() -> None:
    attempts: list[int] = []

    def flaky() -> str:
        attempts.append(1)
        if len(attempts) < 3:
            raise ConnectionError("down")
        return "up"

    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        governed = captured.governor.govern(flaky, retry={"max_attempts": 3, "initial_delay_ms": 1})
        assert governed() == "up"
        assert len(engine.documents) == 1
        assert captured.span.attributes["agenttool.invocation.attempts"] == 3
        assert [e.name for e in captured.span.events].count("tool.invocation.retried") == 2


def test_a_tool_that_is_not_available_is_blocked_with_its_reason() -> None:
    for lifecycle, error_class in (
        ("disabled", "blocked_tool"),
        ("retired", "blocked_tool"),
        ("requires_setup", "setup_required"),
        ("deferred", "schema_not_loaded"),
    ):
        with capture(policy=StaticEngine("allow")) as captured:
            result = captured.governor.govern(
                lambda: 1, name="t", lifecycle=lifecycle
            ).tool.invoke()
            assert result.is_error
            assert result.error is not None
            assert result.error.error_class == error_class
            assert captured.span.attributes["agenttool.invocation.status"] == "blocked"


def test_enrich_mode_adds_to_a_frameworks_span_and_leaves_it() -> None:
    with capture(policy=StaticEngine("allow"), span_mode="enrich") as captured:
        tracer = captured.tracer_provider.get_tracer("framework")
        governed = captured.governor.govern(lambda: 1, name="t")
        with tracer.start_as_current_span("execute_tool t") as span:
            governed()
            assert span.is_recording()
        assert [s.name for s in captured.spans] == ["execute_tool t"]
        assert captured.span.attributes["agenttool.permission.behavior"] == "allow"
        governed()
        assert len(captured.spans) == 2


def test_log_events_carry_the_same_facts_as_span_events() -> None:
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

    from agenttool_otel import Governor, TelemetrySettings

    exporter = InMemoryLogRecordExporter()
    provider = LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    settings = TelemetrySettings(logger_provider=provider, events="both")
    Governor(policy=StaticEngine("allow"), telemetry=settings).govern(lambda: 1, name="t")()
    names = [record.log_record.event_name for record in exporter.get_finished_logs()]
    assert names == ["tool.permission.decided", "tool.result.created", "tool.invocation.succeeded"]


def test_captured_content_is_redacted_and_said_to_be() -> None:
    secret = "AKIA" + "Z7QK3M5N8P2RXWVT"
    with capture(policy=StaticEngine("allow"), capture="SPAN_AND_EVENT") as captured:
        governed = captured.governor.govern(
            lambda query, password: {"token": secret, "n": len(query)},
            name="t",
            sensitive_fields=["query"],
        )
        assert governed("private words", "hunter" + "2!")["token"] == secret
        text = repr([(s.attributes, s.events) for s in captured.spans])
        assert secret not in text
        assert "private words" not in text
        assert "hunter" + "2!" not in text
        assert captured.span.attributes["agenttool.redaction.state"] == "redacted"
        assert captured.span.attributes["agenttool.redaction.count"] >= 3
        assert "gen_ai.tool.call.arguments" in captured.span.attributes
        event = next(e for e in captured.span.events if e.name == "tool.arguments.redacted")
        assert set(event.attributes["agenttool.redaction.pointers"]) == {"/query", "/password"}


@pytest.mark.parametrize("behavior", ["deny", "ask"])
@pytest.mark.parametrize("mode", ["SPAN_ONLY", "EVENT_ONLY", "NO_CONTENT"])
def test_a_call_that_did_not_run_shows_what_was_wanted(behavior: str, mode: CaptureMode) -> None:
    answer = decision(behavior, obligations={"redact_input": ["/to"]})
    with capture(policy=StaticEngine({"t": answer}), capture=mode) as captured:
        governed = captured.governor.govern(lambda amount, password, to: "ran", name="t")
        governed.tool.invoke(amount=20, password="hunter" + "2!", to="ann")
        span = captured.span
        shown = {event.name: event.attributes for event in span.events}
        found = span.attributes.get(GenAI.TOOL_CALL_ARGUMENTS)
        if mode == "EVENT_ONLY":
            assert found is None
            found = shown["tool.invocation.arguments_ready"][GenAI.TOOL_CALL_ARGUMENTS]
        assert "tool.invocation.started" not in shown
        if mode == "NO_CONTENT":
            assert found is None
        else:
            assert json.loads(found)["amount"] == 20
            assert {json.loads(found)[name] for name in ("password", "to")}.isdisjoint(
                {"hunter" + "2!", "ann"}
            )


def test_arguments_that_miss_their_schema_are_not_shown() -> None:
    with capture(policy=StaticEngine("allow"), capture="SPAN_AND_EVENT") as captured:

        @captured.governor.govern(name="t")
        def t(amount: int) -> int:
            return amount

        t.tool.invoke(amount="not a number")
        assert "not a number" not in repr(
            [(span.attributes, span.events) for span in captured.spans]
        )


def test_an_obligation_to_redact_binds_at_every_door() -> None:
    answers = {"t": decision("allow", obligations={"redact_result": ["/token"]})}
    with capture(policy=StaticEngine(answers)) as captured:
        governed = captured.governor.govern(lambda: {"token": "plain words", "n": 1}, name="t")
        assert governed()["n"] == 1
        assert "plain words" not in repr(governed())
        assert "plain words" not in repr(governed.tool.invoke().to_json_object())


def test_a_large_result_is_stored_and_previewed() -> None:
    text = "\n".join(f"line {n}" for n in range(20_000))
    with capture(policy=StaticEngine("allow")) as captured:
        governed = captured.governor.govern(lambda: text, name="t", max_inline_chars=1000)
        assert governed() == text  # a plain caller gets what the function returns
        captured.clear()
        result = governed.tool.invoke()
        shown = result.model_facing_content[0]["text"]
        assert len(shown) < 5000
        assert result.resource_refs[0]["uri"].startswith("agent-runtime://")
        assert captured.span.attributes["agenttool.result.persistence"] == "preview_and_persist"
        assert captured.span.attributes["agenttool.result.size_bytes"] == len(text)
        assert "tool.result.persisted" in [e.name for e in captured.span.events]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_call_out_of_time_is_not_run_again_sync_or_async(is_async: bool) -> None:
    import time

    from agenttool_otel import ToolTimeout

    attempts: list[int] = []

    def slow() -> None:
        attempts.append(1)
        time.sleep(2)

    async def aslow() -> None:
        attempts.append(1)
        await asyncio.sleep(2)

    with capture(policy=StaticEngine("allow")) as captured:
        retry = {"max_attempts": 3, "initial_delay_ms": 1, "retry_on": ["timeout"]}
        governed = captured.governor.govern(
            aslow if is_async else slow, timeout_ms=500, retry=retry
        )
        with pytest.raises(ToolTimeout):
            asyncio.run(governed()) if is_async else governed()
        assert attempts == [1]


def test_a_timeout_raised_by_an_async_tool_itself_is_retried() -> None:
    attempts: list[int] = []

    async def flaky() -> str:
        attempts.append(1)
        if len(attempts) < 2:
            raise TimeoutError("the server")
        return "up"

    with capture(policy=StaticEngine("allow")) as captured:
        retry = {"max_attempts": 3, "initial_delay_ms": 1}
        assert (
            asyncio.run(captured.governor.govern(flaky, timeout_ms=60_000, retry=retry)()) == "up"
        )


def test_a_denials_records_are_of_the_time_of_the_denial() -> None:
    with capture(policy=StaticEngine("deny")) as captured:
        with pytest.raises(ToolDenied) as caught:
            captured.governor.govern(module_level.__wrapped__, name="t")(1)
        ended = datetime.now(UTC)
    denied = pickle.loads(pickle.dumps(caught.value))
    result, decided = caught.value.result, caught.value.decision
    assert result is not None
    assert decided is not None
    assert result.created_at <= ended
    assert decided.decision_id == (captured.span.attributes or {})[Attr.PERMISSION_DECISION_ID]
    assert result.permission == decided.to_json_object()
    assert (denied.result, denied.decision) == (result, decided)
    assert str(denied) == str(caught.value) == result.summary


@pytest.mark.parametrize("argument", ["/srv/ghp_" + "a1B2c3D4e" * 4, "/srv/notes-123456789.txt"])
def test_the_path_of_a_denial_is_shown_without_secrets(argument: str) -> None:
    def read(path: str) -> None:
        raise AssertionError("ran")

    with capture(policy=StaticEngine(decision("deny", blocked_path=argument))) as captured:
        with pytest.raises(ToolDenied) as caught:
            captured.governor.govern(read)(argument)
        clean = captured.governor.redactor.redact_text(argument).value
    assert caught.value.decision is not None
    assert caught.value.decision.blocked_path == clean
    assert (clean == argument) == ("notes" in argument)
