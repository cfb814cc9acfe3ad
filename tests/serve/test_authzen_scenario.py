"""The certification scenario of AuthZEN's Authorization API 1.0 (draft of 2026): its fixture as rules on
top of the stock policy, and its levels Basic, Batch and Discovery.

https://github.com/openid/authzen/blob/main/certification/authorization-api-1_0-scenario.md. Search is a
level of its own that a decision point may leave out. TLS is a proxy's in front.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from decision_points import Served

from agenttool_otel.serve.server import DecisionServer
from agenttool_otel.serve.tools import declare_tools
from agenttool_otel.testing import capture

EVALUATION = "/access/v1/evaluation"
EVALUATIONS = "/access/v1/evaluations"
FIXTURE = Path(__file__).parent / "authzen"
PUBLIC_URL = "https://pdp.example.com"


@pytest.fixture(scope="module")
def pdp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("pdp")
    folder.chmod(0o700)
    with capture(extension=FIXTURE / "records.rego") as captured:
        server = DecisionServer(
            captured.governor,
            declare_tools(str(FIXTURE / "tools.json"), captured.governor),
            socket_path=folder / "serve.sock",
            port=0,
            token_file=folder / "token",
            public_url=PUBLIC_URL,
        )
        with server:
            yield Served(server, captured.governor, folder)


def alice(**properties: Any) -> dict[str, Any]:
    return {"type": "user", "id": "alice", **_properties(properties)}


def bob(**properties: Any) -> dict[str, Any]:
    return {"type": "user", "id": "bob", **_properties(properties)}


def to(name: str, **properties: Any) -> dict[str, Any]:
    return {"name": name, **_properties(properties)}


def record(number: int, **properties: Any) -> dict[str, Any]:
    return {"type": "record", "id": f"record-{number}", **_properties(properties)}


def _properties(properties: dict[str, Any]) -> dict[str, Any]:
    return {"properties": properties} if properties else {}


def asked(subject: Any, action: Any, resource: Any, **others: Any) -> dict[str, Any]:
    return {"subject": subject, "action": action, "resource": resource, **others}


def decisions(pdp: Served, body: dict[str, Any]) -> list[bool]:
    answer = pdp.ask("POST", EVALUATIONS, body)
    assert answer.status == 200
    return [each["decision"] for each in answer.json["evaluations"]]


MANY = {"department": "Sales", "role": "manager"}
READ = asked(alice(), to("read"), record(1))

FIXED: dict[str, tuple[dict[str, Any], bool]] = {
    "alice reads": (READ, True),
    "alice writes": (asked(alice(), to("write"), record(1)), True),
    "bob reads": (asked(bob(), to("read"), record(1)), True),
    "bob writes": (asked(bob(), to("write"), record(1)), False),
    "archived": (asked(alice(), to("write"), record(2, status="archived")), False),
    "admin": (asked(bob(role="admin"), to("write"), record(2, status="archived")), True),
    "soft": (asked(alice(), to("delete", soft=True), record(1)), True),
    "hard": (asked(alice(), to("delete", soft=False), record(1)), False),
    "context": (READ | {"context": {"time": "2025-06-27T18:03-07:00", "ip": "192.168.1.1"}}, True),
    "more properties": (
        asked(alice(**MANY), to("read", method="GET"), record(1, status="active", owner="bob")),
        True,
    ),
    "unknown fields": (READ | {"foo": "bar", "futureField": {"nested": True}}, True),
}


@pytest.mark.parametrize("name", FIXED)
def test_an_evaluation_has_the_decision_of_the_fixture(pdp: Served, name: str) -> None:
    body, decision = FIXED[name]
    answer = pdp.ask("POST", EVALUATION, body)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json["decision"] is decision
    assert isinstance(answer.json["context"], dict)


def without(*path: str) -> dict[str, Any]:
    """READ without a member."""
    body = {name: dict(part) for name, part in READ.items()}
    if len(path) == 1:
        del body[path[0]]
    else:
        del body[path[0]][path[1]]
    return body


WRONG: dict[str, dict[str, Any]] = {
    "no subject": without("subject"),
    "no action": without("action"),
    "no resource": without("resource"),
    "subject without type": without("subject", "type"),
    "subject without id": without("subject", "id"),
    "action without name": without("action", "name"),
    "resource without type": without("resource", "type"),
    "resource without id": without("resource", "id"),
    "subject is a text": READ | {"subject": "alice"},
    "a number for a name": READ | {"action": {"name": 123}},
}


@pytest.mark.parametrize("path", [EVALUATION, EVALUATIONS])
@pytest.mark.parametrize("name", WRONG)
def test_what_is_missing_or_of_another_type_is_a_bad_request(
    pdp: Served, name: str, path: str
) -> None:
    assert pdp.ask("POST", path, WRONG[name]).status == 400


@pytest.mark.parametrize("path", [EVALUATION, EVALUATIONS])
@pytest.mark.parametrize("body", [b"", b"{", b"not json"])
def test_what_is_no_json_is_a_bad_request(pdp: Served, body: bytes, path: str) -> None:
    assert pdp.ask("POST", path, body).status == 400


@pytest.mark.parametrize("path", [EVALUATION, EVALUATIONS])
def test_another_media_type_is_a_bad_request(pdp: Served, path: str) -> None:
    assert pdp.ask("POST", path, READ, Content_Type="text/plain").status == 400


def test_the_id_of_a_request_is_echoed(pdp: Served) -> None:
    answer = pdp.ask("POST", EVALUATIONS, READ, X_Request_ID="3f2a-9")
    assert answer.headers["x-request-id"] == "3f2a-9"


def test_the_same_request_gets_the_same_decision(pdp: Served) -> None:
    found = [pdp.ask("POST", EVALUATION, READ).json["decision"] for _ in range(5)]
    assert found == [True] * 5


BATCHES: dict[str, tuple[dict[str, Any], list[bool]]] = {
    "of resources": (
        {
            "subject": alice(),
            "action": to("read"),
            "evaluations": [{"resource": record(1)}, {"resource": record(2)}],
        },
        [True, True],
    ),
    "of actions": (
        {
            "subject": bob(),
            "resource": record(1),
            "evaluations": [{"action": to("read")}, {"action": to("write")}],
        },
        [True, False],
    ),
    "of properties": (
        {
            "subject": alice(),
            "action": to("write"),
            "evaluations": [
                {"resource": record(1, status="active")},
                {"resource": record(2, status="archived")},
            ],
        },
        [True, False],
    ),
    "of subjects": (
        {
            "action": to("write"),
            "resource": record(2, status="archived"),
            "evaluations": [{"subject": alice()}, {"subject": bob(role="admin")}],
        },
        [False, True],
    ),
    "without defaults": (
        {"evaluations": [READ, asked(bob(), to("write"), record(1))]},
        [True, False],
    ),
    "with contexts": (
        {
            "subject": alice(),
            "action": to("read"),
            "context": {"time": "2025-06-27T18:03-07:00"},
            "evaluations": [
                {"resource": record(1)},
                {"resource": record(2), "context": {"time": "x", "source": "batch-override"}},
            ],
        },
        [True, True],
    ),
    "with a default for all": (
        asked(
            alice(),
            to("write"),
            record(1, status="active"),
            evaluations=[{}, {"resource": record(2, status="archived")}],
        ),
        [True, False],
    ),
    "with one that lacks a resource": (
        {
            "subject": alice(),
            "action": to("read"),
            "options": {"evaluations_semantic": "execute_all"},
            "evaluations": [{"resource": record(1)}, {}],
        },
        [True, False],
    ),
}


@pytest.mark.parametrize("name", BATCHES)
def test_a_batch_has_the_decisions_of_the_fixture(pdp: Served, name: str) -> None:
    body, expected = BATCHES[name]
    assert decisions(pdp, body) == expected


@pytest.mark.parametrize("body", [READ, READ | {"evaluations": []}], ids=["none", "empty"])
def test_a_batch_of_none_is_one_evaluation(pdp: Served, body: dict[str, Any]) -> None:
    answer = pdp.ask("POST", EVALUATIONS, body)
    assert (answer.status, answer.json["decision"]) == (200, True)
    assert "evaluations" not in answer.json


def test_the_metadata_has_the_public_addresses(pdp: Served) -> None:
    answer = pdp.ask("GET", "/.well-known/authzen-configuration")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json == {
        "policy_decision_point": PUBLIC_URL,
        "access_evaluation_endpoint": PUBLIC_URL + EVALUATION,
        "access_evaluations_endpoint": PUBLIC_URL + EVALUATIONS,
    }
