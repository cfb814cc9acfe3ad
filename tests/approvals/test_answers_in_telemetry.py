"""Who answered, by which way and after how long: in spans, events, metrics and the log of answers.

Whoever answers records it, because the call's own process may be gone or never ask again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from approval_helpers import ARGS, FakeClock, a_request, no, yes
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from typer.testing import CliRunner

from agenttool_otel import ApprovalAnswer, ApprovalRequired, ApprovalStore, Governor
from agenttool_otel.cli.approvals import EXIT_CODES, app
from agenttool_otel.names import AnswerWay, Attr
from agenttool_otel.telemetry import TelemetrySettings
from agenttool_otel.testing import Capture, FixedApprover, StaticEngine, capture
from agenttool_otel.values.canonical import keyed_digest

SUE = ApprovalAnswer(approved=True, answered_by="user:sue")
BOB = ApprovalAnswer(approved=False, answered_by="user:bob", reason="too much")


def ask(captured: Capture, name: str = "pay") -> ApprovalRequired:
    with pytest.raises(ApprovalRequired) as waiting:
        captured.governor.govern(lambda: 1, name=name)()
    return waiting.value


@pytest.fixture
def captured() -> Iterator[Capture]:
    with capture(policy=StaticEngine("ask")) as captured:
        yield captured


def attributes_of(span: Any) -> dict[str, Any]:
    return dict(span.attributes or {})


# --- spans ----------------------------------------------------------------------------------------


def test_a_rejection_nobody_continues_has_a_span(captured: Capture) -> None:
    waiting = ask(captured)
    captured.governor.approvals.store.answer(waiting.request_id, BOB)
    (answer,) = captured.answers
    found = attributes_of(answer)
    assert answer.name == "answer_approval pay"
    assert found[Attr.APPROVAL_STATUS] == "rejected"
    assert found[Attr.INVOCATION_ID] == waiting.invocation_id
    assert found[Attr.APPROVAL_WAIT] >= 0


def test_an_answer_is_linked_to_the_span_that_asked(captured: Capture) -> None:
    waiting = ask(captured)
    captured.governor.approvals.store.answer(waiting.request_id, SUE)
    (answer,) = captured.answers
    asked = captured.span.get_span_context()
    (link,) = answer.links
    assert (link.context.trace_id, link.context.span_id) == (asked.trace_id, asked.span_id)


def test_who_answered_is_a_keyed_digest(captured: Capture) -> None:
    waiting = ask(captured)
    captured.governor.approvals.store.answer(waiting.request_id, SUE)
    (answer,) = captured.answers
    assert attributes_of(answer)[Attr.APPROVAL_ANSWERED_BY] == keyed_digest("user:sue")
    assert "user:sue" not in answer.to_json()


def test_who_answered_is_plain_where_that_is_asked_for() -> None:
    with capture(policy=StaticEngine("ask"), answerers="plain") as captured:
        waiting = ask(captured)
        captured.governor.approvals.store.answer(waiting.request_id, SUE)
        (answer,) = captured.answers
        assert attributes_of(answer)[Attr.APPROVAL_ANSWERED_BY] == "user:sue"


def test_the_continued_call_has_who_and_by_which_way(captured: Capture) -> None:
    waiting = ask(captured)
    captured.governor.approvals.store.answer(waiting.request_id, SUE)
    captured.governor.resume(waiting.invocation_id)
    found = attributes_of(captured.spans[-1])
    assert found[Attr.APPROVAL_ANSWERED_BY] == keyed_digest("user:sue")
    assert found[Attr.APPROVAL_WAY] == "program"


def test_an_approver_in_place_is_its_own_way() -> None:
    with capture(policy=StaticEngine("ask"), approver=FixedApprover(SUE)) as captured:
        assert captured.governor.govern(lambda: 1, name="pay")() == 1
        (answer,) = captured.answers
        assert attributes_of(answer)[Attr.APPROVAL_WAY] == "approver"


def test_an_answer_that_is_refused_has_no_span(captured: Capture) -> None:
    waiting = ask(captured)
    store = captured.governor.approvals.store
    store.answer(waiting.request_id, SUE)
    with pytest.raises(Exception, match="approved already"):
        store.answer(waiting.request_id, BOB)
    assert len(captured.answers) == 1


@pytest.mark.parametrize("way", [None, "page", 3])
def test_a_way_that_is_no_way_is_refused(captured: Capture, way: Any) -> None:
    waiting = ask(captured)
    store = captured.governor.approvals.store
    with pytest.raises(Exception, match="way"):
        store.answer(waiting.request_id, replace(SUE, way=way))
    assert store.get(waiting.request_id).status == "pending"


@pytest.mark.parametrize("way", AnswerWay)
def test_the_way_of_an_answer_is_kept(captured: Capture, way: AnswerWay) -> None:
    waiting = ask(captured)
    store = captured.governor.approvals.store
    store.answer(waiting.request_id, replace(SUE, way=way))
    answer = store.stored_call(waiting.request_id).answer
    assert answer is not None
    assert answer.way is way


def test_telemetry_that_fails_takes_no_answer_back(captured: Capture) -> None:
    class Broken(TracerProvider):
        def get_tracer(self, *args: Any, **kwargs: Any) -> Any:
            raise RuntimeError("no tracer")

    waiting = ask(captured)
    store = captured.governor.approvals.store
    governor = Governor(
        StaticEngine("ask"), approvals=store, telemetry=TelemetrySettings(tracer_provider=Broken())
    )
    governor.approvals.watch()
    assert store.answer(waiting.request_id, SUE).status == "approved"
    governor.decider.close()


# --- log events -----------------------------------------------------------------------------------


def test_one_log_event_of_an_answer_that_is_used() -> None:
    exporter = InMemoryLogRecordExporter()
    loggers = LoggerProvider()
    loggers.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    telemetry = TelemetrySettings(events="log", logger_provider=loggers)
    governor = Governor(StaticEngine("ask"), telemetry=telemetry)
    with pytest.raises(ApprovalRequired) as waiting:
        governor.govern(lambda: 1, name="pay")()
    governor.approvals.store.answer(waiting.value.request_id, SUE)
    governor.resume(waiting.value.invocation_id)
    governor.close()
    records = [record.log_record for record in exporter.get_finished_logs()]
    (found,) = [record for record in records if record.event_name == "tool.approval.answered"]
    assert found.attributes is not None
    assert found.attributes[Attr.APPROVAL_STATUS] == "approved"
    assert found.attributes[Attr.APPROVAL_WAY] == "program"


# --- levels ---------------------------------------------------------------------------------------


def value(captured: Capture, metric: str) -> dict[tuple[Any, ...], float]:
    points = captured.points(metric)
    return {tuple(sorted((point.attributes or {}).items())): point.value for point in points}


MEMORY = (("agenttool.approval.store", "memory"),)


def test_what_waits_is_what_the_store_has(captured: Capture) -> None:
    asked = [ask(captured) for _ in range(3)]
    assert value(captured, "agenttool.approvals.pending") == {MEMORY: 3}
    captured.governor.approvals.store.answer(asked[0].request_id, BOB)
    assert value(captured, "agenttool.approvals.pending") == {MEMORY: 2}
    captured.governor.approvals.store.cancel(asked[1].request_id, "no longer needed")
    assert value(captured, "agenttool.approvals.pending") == {MEMORY: 1}


def test_a_request_that_expired_waits_no_longer() -> None:
    clock = FakeClock()
    store = ApprovalStore("sqlite://", clock=clock, ticks=clock.ticks)
    with capture(policy=StaticEngine("ask"), approvals=store) as captured:
        ask(captured)
        clock.move(30 * 86_400)
        assert value(captured, "agenttool.approvals.pending") == {MEMORY: 0}


def test_the_age_is_that_of_the_oldest_request() -> None:
    clock = FakeClock()
    store = ApprovalStore("sqlite://", clock=clock, ticks=clock.ticks)
    with capture(policy=StaticEngine("ask"), approvals=store) as captured:
        first = ask(captured)
        clock.move(600)
        ask(captured)
        assert value(captured, "agenttool.approvals.oldest") == {MEMORY: pytest.approx(600, abs=1)}
        store.answer(first.request_id, SUE)
        assert value(captured, "agenttool.approvals.oldest") == {MEMORY: pytest.approx(0, abs=1)}


def test_answers_are_counted_by_tool_and_answer(captured: Capture) -> None:
    store = captured.governor.approvals.store
    for name, answer in (("pay", SUE), ("pay", BOB), ("pay", BOB), ("deploy", SUE)):
        store.answer(ask(captured, name).request_id, answer)
    counted = {
        (
            point.attributes["gen_ai.tool.name"],
            point.attributes["agenttool.approval.status"],
        ): point.value
        for point in captured.points("agenttool.approvals.answered")
    }
    assert counted == {("pay", "approved"): 1, ("pay", "rejected"): 2, ("deploy", "approved"): 1}


def test_an_approval_that_was_used_still_counts(captured: Capture) -> None:
    waiting = ask(captured)
    captured.governor.approvals.store.answer(waiting.request_id, SUE)
    captured.governor.resume(waiting.invocation_id)
    (count,) = value(captured, "agenttool.approvals.answered").values()
    assert count == 1


_OTHER = """
import sys
from agenttool_otel import ApprovalAnswer, ApprovalStore
store = ApprovalStore(sys.argv[1])
store.answer(sys.argv[2], ApprovalAnswer(approved=False, answered_by="user:bob"))
"""


def test_an_answer_of_another_process_is_seen_here(tmp_path: Path) -> None:
    path = tmp_path / "approvals.db"
    with capture(policy=StaticEngine("ask"), approvals=str(path)) as captured:
        waiting = ask(captured)
        command = [sys.executable, "-c", _OTHER, str(path), waiting.request_id]
        subprocess.run(command, check=True, env=dict(os.environ))
        (pending,) = value(captured, "agenttool.approvals.pending").items()
        assert pending == ((("agenttool.approval.store", "lasting"),), 0)
        (answered,) = value(captured, "agenttool.approvals.answered").values()
        assert answered == 1


def test_a_store_that_can_not_be_read_has_no_point(tmp_path: Path) -> None:
    path = tmp_path / "approvals.db"
    with capture(policy=StaticEngine("ask"), approvals=str(path)) as captured:
        ask(captured)
        path.write_bytes(b"this is no database" * 100)
        assert value(captured, "agenttool.approvals.pending") == {}


# --- the log of answers ---------------------------------------------------------------------------


@pytest.fixture
def answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ApprovalStore:
    path = tmp_path / "approvals.db"
    monkeypatch.setenv("AGENTTOOL_APPROVALS_URL", str(path))
    monkeypatch.setenv("COLUMNS", "200")
    store = ApprovalStore(path)
    for name, answer in (("read", yes()), ("write", no()), ("write", no(answered_by="user:bob"))):
        request = store.create(a_request(tool_name=name, tool_id=f"local.files/{name}"), ARGS)
        store.answer(request.request_id, answer)
    return store


def log(*options: str) -> list[dict[str, Any]]:
    done = CliRunner().invoke(app, ["log", "--json", *options])
    assert done.exit_code == 0, done.output
    found: list[dict[str, Any]] = json.loads(done.output)
    return found


@pytest.mark.usefixtures("answered")
def test_the_log_has_each_answer_in_order() -> None:
    assert [entry["answer"] for entry in log()] == ["approved", "rejected", "rejected"]


@pytest.mark.usefixtures("answered")
def test_the_log_is_narrowed_by_person_and_tool() -> None:
    assert [entry["by"] for entry in log("--by", "user:bob")] == ["user:bob"]
    assert [entry["tool"] for entry in log("--tool", "write")] == ["write", "write"]
    assert log("--by", "user:bob", "--tool", "read") == []


@pytest.mark.usefixtures("answered")
def test_the_log_begins_where_it_is_asked_to() -> None:
    assert len(log("--since", "1h")) == 3
    assert log("--since", "2999-01-01") == []
    assert len(log("--since", "2020-01-01T00:00:00+02:00")) == 3


@pytest.mark.usefixtures("answered")
@pytest.mark.parametrize("since", ["yesterday", "h", "-1h", "1x"])
def test_a_since_that_is_no_time_is_refused(since: str) -> None:
    done = CliRunner().invoke(app, ["log", f"--since={since}"])
    assert done.exit_code == EXIT_CODES["usage"]


def test_the_log_names_the_way_of_the_command_line(answered: ApprovalStore) -> None:
    request = answered.create(a_request(), ARGS)
    command = ["approve", request.request_id, "--yes", "--as", "user:ada", "--role", "operator"]
    assert CliRunner().invoke(app, command).exit_code == 0
    assert log()[-1]["way"] == "command_line"
    assert log()[-1]["by"] == "user:ada"
