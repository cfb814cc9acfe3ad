"""Calls that are decided over the real socket and run in a client: permitted, asked, completed,
canceled, each once.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from decision_points import Answer, Served, request, served

from agenttool_otel import ApprovalAnswer
from agenttool_otel.approvals.types import ApprovalRequest
from agenttool_otel.serve.limits import Limits
from agenttool_otel.testing import Capture, StaticEngine, capture, decision

CALLS = "/v1/invocations"


def decided(point: Served, body: Any, **headers: str) -> Any:
    answer = point.ask("POST", CALLS, body, **headers)
    assert answer.status == 200, answer.body
    return answer.json


def asked(point: Served) -> Any:
    return decided(point, request("run_command", command="rm notes.txt"))


def result(point: Served, call: Any, body: Any) -> Answer:
    return point.ask("POST", f"{CALLS}/{call['invocation_id']}/result", body)


def waited(point: Served, call: Any, seconds: float = 0.0) -> Any:
    return point.ask("GET", f"{CALLS}/{call['invocation_id']}?wait={seconds}").json


def answer(point: Served, call: Any, **given: Any) -> ApprovalRequest:
    store = point.governor.approvals.store
    return store.answer(call["request_id"], ApprovalAnswer(answered_by="user:ada", **given))


# --- decide and complete --------------------------------------------------------------------------


def test_a_permitted_call_has_its_arguments(point: Served) -> None:
    call = decided(point, request("read_file", path="notes.txt"))
    assert call["state"] == "permitted"
    assert call["arguments"] == {"path": "notes.txt"}


def test_a_refused_call_has_none(point: Served) -> None:
    call = decided(point, request("read_file", path="/etc/shadow"))
    assert call["state"] == "refused"
    assert call["arguments"] is None
    assert call["rule"] == "agenttool.rules.paths.sensitive"


def test_an_unknown_tool_is_refused(point: Served) -> None:
    assert decided(point, request("format_disk"))["state"] == "refused"


def test_a_result_comes_back_as_the_tool_gave_it(point: Served) -> None:
    call = decided(point, request("read_file", path="notes.txt"))
    done = result(point, call, {"result": {"lines": 3}}).json
    assert done["state"] == "completed"
    assert done["result"]["status"] == "succeeded"
    assert done["result"]["structured_content"] == {"lines": 3}


def test_an_obliged_result_comes_back_redacted(tmp_path: Path) -> None:
    secret = "ghp_" + "a8Kq2LmZ0xTq9RbV" + "3nWc5YdE7fGhJ1sU4pQo"
    answer = decision("allow", obligations={"redact_result": ["detected"]})
    with (
        capture(policy=StaticEngine(answer)) as captured,
        served(captured.governor, tmp_path) as point,
    ):
        call = decided(point, request("read_file", path="notes.txt"))
        done = result(point, call, {"result": f"token {secret}"})
    assert done.json["state"] == "completed"
    assert secret.encode() not in done.body


def test_a_span_has_decision_and_size_of_the_result(point: Served, captured: Capture) -> None:
    call = decided(point, request("read_file", path="notes.txt"))
    result(point, call, {"result": "12345"})
    last = captured.spans[-1].attributes
    assert last["agenttool.permission.behavior"] == "allow"
    assert last["agenttool.result.size_bytes"] == 5
    assert last["agenttool.session.id"] == "s-1"


def test_an_error_is_recorded_as_a_failure(point: Served) -> None:
    call = decided(point, request("read_file", path="notes.txt"))
    done = result(point, call, {"error": "OSError: disk"}).json
    assert done["state"] == "completed"
    assert done["result"]["status"] == "failed"


def test_a_result_is_taken_once(point: Served) -> None:
    call = decided(point, request("read_file", path="notes.txt"))
    assert result(point, call, {"result": "a"}).status == 200
    assert result(point, call, {"result": "b"}).status == 409


def test_the_same_result_again_has_the_same_answer(point: Served) -> None:
    call = decided(point, request("read_file", path="notes.txt"))
    first = result(point, call, {"result": "a"})
    assert result(point, call, {"result": "a"}).json == first.json


def test_a_refused_call_takes_no_result(point: Served) -> None:
    call = decided(point, request("read_file", path="/etc/shadow"))
    assert result(point, call, {"result": "a"}).status == 409


def test_a_result_is_one_of_two(point: Served) -> None:
    call = decided(point, request("read_file", path="notes.txt"))
    bodies: list[Any] = [{}, {"result": 1, "error": "x"}, {"error": None}]
    assert [result(point, call, body).status for body in bodies] == [400, 400, 400]


def test_an_unknown_call_is_not_found(point: Served) -> None:
    unknown = {"invocation_id": "inv_0"}
    assert result(point, unknown, {"result": 1}).status == 404
    assert point.ask("GET", f"{CALLS}/inv_0").status == 404
    assert point.ask("POST", f"{CALLS}/inv_0/cancel", {}).status == 404


def test_the_trace_of_the_client_goes_on(point: Served, captured: Capture) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    body = request("read_file", path="notes.txt")
    answer = point.ask("POST", CALLS, body, traceparent=f"00-{trace}-00f067aa0ba902b7-01")
    span = captured.spans[-1]
    assert f"{span.context.trace_id:032x}" == trace
    assert answer.headers["traceparent"] == f"00-{trace}-{span.context.span_id:016x}-01"


# --- a person -------------------------------------------------------------------------------------


def test_an_approved_call_is_permitted(point: Served) -> None:
    call = asked(point)
    assert call["state"] == "waiting"
    assert call["arguments"] is None
    answer(point, call, approved=True)
    permitted = waited(point, call, 30)
    assert permitted["state"] == "permitted"
    assert permitted["invocation_id"] == call["invocation_id"]
    assert result(point, call, {"result": "done"}).json["state"] == "completed"


def test_a_rejected_call_is_refused(point: Served) -> None:
    call = asked(point)
    answer(point, call, approved=False, reason="no")
    assert waited(point, call, 30)["state"] == "refused"


def test_an_answer_ends_the_wait(point: Served) -> None:
    call = asked(point)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(waited, point, call, 50)
        time.sleep(0.5)
        answer(point, call, approved=True)
        assert waiting.result()["state"] == "permitted"


def test_without_an_answer_it_waits_on(point: Served) -> None:
    assert waited(point, asked(point), 0.3)["state"] == "waiting"


def test_a_waiting_call_takes_no_result(point: Served) -> None:
    assert result(point, asked(point), {"result": "a"}).status == 409


def test_what_a_person_edited_is_what_may_run(point: Served) -> None:
    call = asked(point)
    answer(point, call, approved=True, edited_input={"command": "rm other.txt"})
    assert waited(point, call, 30)["arguments"] == {"command": "rm other.txt"}


# --- cancel ---------------------------------------------------------------------------------------


def test_a_canceled_call_takes_no_result(point: Served) -> None:
    call = decided(point, request("read_file", path="notes.txt"))
    ended = point.ask("POST", f"{CALLS}/{call['invocation_id']}/cancel", {"reason": "enough"})
    assert ended.json["state"] == "canceled"
    assert result(point, call, {"result": "a"}).status == 409


def test_the_request_of_a_canceled_call_is_canceled(point: Served) -> None:
    call = asked(point)
    point.ask("POST", f"{CALLS}/{call['invocation_id']}/cancel", {})
    stored = point.governor.approvals.store.get(call["request_id"])
    assert stored.status == "canceled"


# --- the same call again --------------------------------------------------------------------------


def test_the_same_call_again_is_decided_once(point: Served, captured: Capture) -> None:
    body = request("read_file", path="notes.txt")
    assert decided(point, body) == decided(point, body)
    assert len(captured.spans) == 1


def test_calls_at_once_with_one_id_are_one(point: Served, captured: Capture) -> None:
    body = request("read_file", path="notes.txt")
    with ThreadPoolExecutor(8) as pool:
        calls = list(pool.map(lambda _: decided(point, body), range(8)))
    assert len({call["invocation_id"] for call in calls}) == 1
    assert len(captured.spans) == 1


def test_an_id_of_another_call_is_refused(point: Served) -> None:
    decided(point, request("read_file", "same-id", path="notes.txt"))
    other = point.ask("POST", CALLS, request("read_file", "same-id", path="/etc/shadow"))
    assert other.status == 409


def test_an_id_of_another_session_is_another_call(point: Served) -> None:
    body = request("read_file", "shared-id", path="notes.txt")
    other = body | {"context": {**body["context"], "session_id": "s-2"}}
    assert decided(point, body)["invocation_id"] != decided(point, other)["invocation_id"]


def test_an_ended_call_again_has_its_end(point: Served) -> None:
    body = request("read_file", path="notes.txt")
    call = decided(point, body)
    done = result(point, call, {"result": "a"}).json
    assert decided(point, body) == done


# --- many, and too many ---------------------------------------------------------------------------


@pytest.mark.slow
def test_fifty_clients_at_once_get_their_own_calls(point: Served) -> None:
    start = threading.Barrier(50)

    def client(number: int) -> str:
        start.wait(60)
        call = decided(point, request("read_file", path=f"{number}.txt"))
        done = result(point, call, {"result": f"of {number}"}).json
        assert call["arguments"] == {"path": f"{number}.txt"}
        assert done["result"]["content"][0]["text"] == f"of {number}"
        return str(call["invocation_id"])

    with ThreadPoolExecutor(50) as pool:
        ids = list(pool.map(client, range(50)))
    assert Counter(ids).most_common(1)[0][1] == 1


def test_waiting_calls_are_bounded(tmp_path: Path) -> None:
    with (
        capture(policy=StaticEngine("allow")) as captured,
        served(captured.governor, tmp_path, limits=Limits(open_calls=1)) as point,
    ):
        states = [point.ask("POST", CALLS, request("read_file", path="a")).status for _ in range(3)]
    assert states == [200, 503, 503]


def test_sessions_are_bounded(tmp_path: Path) -> None:
    with (
        capture(policy=StaticEngine("allow")) as captured,
        served(captured.governor, tmp_path, limits=Limits(sessions=1)) as point,
    ):
        body = request("read_file", path="a")
        other = request("read_file", path="a") | {"context": {"session_id": "s-2"}}
        states = [point.ask("POST", CALLS, one).status for one in (body, other, body)]
    assert states == [200, 503, 200]


@pytest.mark.slow
def test_a_call_without_a_result_is_canceled_in_time(tmp_path: Path) -> None:
    with (
        capture(policy=StaticEngine("allow")) as captured,
        served(captured.governor, tmp_path, limits=Limits(result_seconds=0.1)) as point,
    ):
        call = decided(point, request("read_file", path="a"))
        until = time.monotonic() + 60
        while waited(point, call)["state"] == "permitted" and time.monotonic() < until:
            time.sleep(0.2)
        assert waited(point, call)["state"] == "canceled"
