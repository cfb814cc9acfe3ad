"""AuthZEN's evaluations over the real socket: what would be decided, with reasons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from decision_points import Served, request, served

from agenttool_otel.govern.governor import Governor
from agenttool_otel.testing import Capture, capture

EVALUATION = "/access/v1/evaluation"
EVALUATIONS = "/access/v1/evaluations"

SEEN = """package agenttool.custom.seen

deny contains {"rule": "custom.seen.all", "message": "seen"} if {
	input.resources.authzen == {
		"subject": {"team": "blue"},
		"action": {"method": "GET"},
		"resource": {"type": "record", "id": "r-7"},
	}
	input.actor.roles == ["reader"]
}
"""


def evaluated(point: Served, body: Any) -> Any:
    answer = point.ask("POST", EVALUATION, body)
    assert answer.status == 200, answer.body
    return answer.json


def test_a_read_inside_of_the_roots_is_permitted(point: Served) -> None:
    answer = evaluated(point, request("read_file", path="notes.txt"))
    assert answer["decision"] is True
    assert answer["context"]["behavior"] == "allow"


def test_a_denial_has_its_rule_and_reason(point: Served) -> None:
    answer = evaluated(point, request("read_file", path="/etc/shadow"))
    assert answer["decision"] is False
    assert answer["context"]["rule"].startswith("agenttool.rules.paths")
    assert answer["context"]["reason"]


def test_a_question_is_a_denial_that_can_be_requested(point: Served) -> None:
    answer = evaluated(point, request("run_command", command="rm notes.txt"))
    assert answer["decision"] is False
    assert answer["context"]["behavior"] == "ask"
    assert answer["context"]["requestable"]
    assert answer["context"]["request_endpoint"] == "/v1/invocations"


def test_an_unknown_tool_is_denied(point: Served) -> None:
    answer = evaluated(point, request("format_disk", path="x"))
    assert answer["decision"] is False
    assert answer["context"]["error_class"] == "unknown_tool"


def test_arguments_that_fit_no_schema_are_denied(point: Served) -> None:
    answer = evaluated(point, request("read_file", path=["a"]))
    assert answer["decision"] is False
    assert answer["context"]["error_class"] == "schema_validation_failed"


def test_an_evaluation_leaves_no_span(point: Served, captured: Capture) -> None:
    evaluated(point, request("read_file", path="notes.txt"))
    assert not captured.spans


@pytest.mark.parametrize(
    "change",
    [
        {"subject": None},
        {"subject": {"type": "agent"}},
        {"action": {"name": ""}},
        {"context": {"root": ["/srv"]}},
        {"context": {"sessionId": "s-1", "note": "x"}},
        {"context": {"roots": ["src"]}},
        {"context": {"interactive": "yes"}},
        {"extra": 1, "subject": None},
        {"extra": 1e400},
    ],
    ids=str,
)
def test_what_is_not_understood_is_refused(point: Served, change: Any) -> None:
    answer = point.ask("POST", EVALUATION, request("read_file", path="a") | change)
    assert answer.status == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json["type"] == "urn:agenttool:problem:bad-request"


def test_what_is_ignored_is_named(point: Served) -> None:
    change = {"extra": {"a": 1}, "context": {"roots": ["/srv/project"], "ip": "192.0.2.1"}}
    answer = evaluated(point, request("read_file", path="/srv/project/a") | change)
    assert answer["decision"] is True
    assert set(answer["context"]["ignored"]) == {"/extra", "/context/ip"}


def test_a_batch_names_what_is_ignored(point: Served) -> None:
    whole = request("read_file", path="a.txt")
    batch = whole | {"evaluations": [{}, {"note": 1}]}
    answer = point.ask("POST", EVALUATIONS, batch).json
    assert answer["evaluations"][0]["context"]["ignored"] == ["/evaluations/1/note"]


def test_a_call_ignores_nothing(point: Served) -> None:
    body = request("read_file", path="a.txt") | {"extra": 1}
    assert point.ask("POST", "/v1/invocations", body).status == 400


def test_more_properties_are_for_rules_of_an_operators_own(tmp_path: Path) -> None:
    rules = tmp_path / "rules.rego"
    rules.write_text(SEEN)
    with capture(extension=rules) as captured, served(captured.governor, tmp_path) as point:
        body = request("read_file", path="a.txt")
        body["subject"]["properties"] = {"roles": ["reader"], "team": "blue"}
        body["action"]["properties"] = {"method": "GET"}
        body["resource"] |= {"type": "record", "id": "r-7"}
        answers = [evaluated(point, body)["context"]]
        answers.append(point.ask("POST", "/v1/invocations", body).json)
    assert [answer["rule"] for answer in answers] == ["custom.seen.all"] * 2


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"action": 1, "action": 2}', b"[" * 5000])
def test_a_body_that_is_no_request_is_refused(point: Served, body: bytes) -> None:
    assert point.ask("POST", EVALUATION, body).status == 400


def test_a_refusal_repeats_nothing_of_the_request(point: Served) -> None:
    body = request("read_file", path="a") | {"subject": "hunter" + "2-token"}
    assert b"hunter2" not in point.ask("POST", EVALUATION, body).body


def test_a_batch_has_defaults(point: Served) -> None:
    whole = request("read_file", path="notes.txt")
    shadow = {"type": "tool_call", "id": "c-2", "properties": {"path": "/etc/shadow"}}
    batch = whole | {"evaluations": [{}, {"resource": shadow}]}
    answer = point.ask("POST", EVALUATIONS, batch).json
    assert [one["decision"] for one in answer["evaluations"]] == [True, False]


@pytest.mark.parametrize(
    ("semantic", "decisions"),
    [
        ("execute_all", [True, False, True]),
        ("deny_on_first_deny", [True, False]),
        ("permit_on_first_permit", [True]),
    ],
)
def test_a_batch_ends_as_its_semantic_asks_for(
    point: Served, semantic: str, decisions: list[bool]
) -> None:
    whole = request("read_file")
    parts = [
        {"resource": {"type": "tool_call", "id": "c", "properties": {"path": path}}}
        for path in ("a.txt", "/etc/shadow", "b.txt")
    ]
    batch = whole | {"evaluations": parts, "options": {"evaluations_semantic": semantic}}
    answer = point.ask("POST", EVALUATIONS, batch).json
    assert [one["decision"] for one in answer["evaluations"]] == decisions


def test_a_batch_without_a_list_is_one_evaluation(point: Served) -> None:
    answer = point.ask("POST", EVALUATIONS, request("read_file", path="a.txt"))
    assert answer.json["decision"] is True


def test_the_discovery_document_names_both(point: Served) -> None:
    found = point.ask("GET", "/.well-known/authzen-configuration").json
    assert found["access_evaluation_endpoint"] == f"{point.server.url}{EVALUATION}"
    assert found["access_evaluations_endpoint"] == f"{point.server.url}{EVALUATIONS}"


def test_the_id_of_a_request_is_given_back(point: Served) -> None:
    body = request("read_file", path="a.txt")
    answer = point.ask("POST", EVALUATION, body, X_Request_ID="r-17")
    assert answer.headers["x-request-id"] == "r-17"


def test_roots_of_a_client_do_not_widen_the_operators(tmp_path: Path) -> None:
    governor = Governor(roots=(str(tmp_path / "project"),))
    with served(governor, tmp_path) as point:
        answer = point.ask("POST", EVALUATION, request("read_file", path="a"))
    assert answer.status == 400
    assert "outside of the roots" in answer.json["detail"]


def test_a_child_that_is_wider_than_who_started_it_is_denied(point: Served) -> None:
    body = request("read_file", path="notes.txt")
    lead = {"id": "agent:lead", "roots": ["/srv/project"]}
    body["context"]["chain"] = [lead]
    assert evaluated(point, body)["decision"] is True
    body["context"]["chain"] = [{**lead, "roots": ["/srv/project/src"]}]
    answer = evaluated(point, body)
    assert answer["context"]["rule"] == "agenttool.rules.delegation.wider"
