"""What whoever answers sees beside the arguments: places, directory, roots, the tool's words, every
rule that asks.
"""

from __future__ import annotations

import http.client
import io
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from rich.console import Console
from typer.testing import CliRunner

from agenttool_otel import ApprovalRequired, agent_context
from agenttool_otel.approvals.console import request_panel
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.approvals.types import ApprovalRequest
from agenttool_otel.approvals.web.server import ApprovalsServer
from agenttool_otel.cli.approvals import app
from agenttool_otel.testing import StaticEngine, capture, decision

ASKS = decision("ask", rule_refs=["acme.first", "acme.second"])


def asked(
    store: ApprovalStore, root: Path, arguments: dict[str, Any], **facts: Any
) -> ApprovalRequest:
    """The request that a call of a tool leaves."""

    def act(target: str) -> None:
        """Clean up old things."""

    with capture(policy=StaticEngine(ASKS), approvals=store) as captured:
        call = captured.governor.govern(
            act, **{"name": "act", "namespace": "acme", "open_world": False, **facts}
        )
        with (
            agent_context(actor="agent:x", session_id="s", cwd=root, roots=[root]),
            pytest.raises(ApprovalRequired),
        ):
            call(**arguments)
    [request] = store.list()
    return request


def page_of(store: ApprovalStore, request: ApprovalRequest) -> str:
    with ApprovalsServer(store, answered_by="user:ada") as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", "/login", urlencode({"token": server.token}), form)
        cookie = connection.getresponse().headers["set-cookie"].split(";")[0]
        connection.close()
        connection.request("GET", f"/requests/{request.request_id}", headers={"Cookie": cookie})
        return connection.getresponse().read().decode()


def test_every_view_shows_where_a_path_leads(store: ApprovalStore, tmp_path: Path) -> None:
    root, outside = tmp_path / "work", tmp_path / "elsewhere"
    root.mkdir()
    outside.mkdir()
    (root / "link").symlink_to(outside)
    request = asked(store, root, {"target": "link/old.txt"}, path_args=["target"], read_only=False)
    [place] = request.places
    assert (place["argument"], place["place"], place["note"]) == (
        "/target",
        str(outside / "old.txt"),
        "outside the roots",
    )
    printed = io.StringIO()
    Console(width=300, file=printed).print(request_panel(request))
    shown = CliRunner().invoke(
        app,
        ["show", request.request_id, "--url", str(tmp_path / "approvals.db")],
        env={"COLUMNS": "300"},
    )
    for view in (printed.getvalue(), shown.output, page_of(store, request)):
        for text in (
            str(outside / "old.txt"),
            "outside the roots",
            str(root),
            "Clean up old things.",
        ):
            assert text in view
        for rule in ("acme.first", "acme.second"):
            assert rule in view


def test_the_hosts_and_tables_of_a_call_are_shown(store: ApprovalStore, tmp_path: Path) -> None:
    request = asked(store, tmp_path, {"target": "http://127.0.0.1:8080/admin"}, url_args=["target"])
    assert [(one["access"], one["place"], one["note"]) for one in request.places] == [
        ("network", "http://127.0.0.1:8080", "loopback")
    ]


def test_the_tables_of_a_statement_are_shown(store: ApprovalStore, tmp_path: Path) -> None:
    request = asked(store, tmp_path, {"target": "DELETE FROM orders"}, sql_args=["target"])
    assert ("write", "orders") in [(one["access"], one["place"]) for one in request.places]


@pytest.mark.parametrize("how", ["stated", "detected"])
def test_a_redacted_argument_shows_no_place(store: ApprovalStore, tmp_path: Path, how: str) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    (tmp_path / "there").mkdir()
    (tmp_path / secret).symlink_to(tmp_path / "there")
    facts: dict[str, Any] = {"sensitive_fields": ["target"]} if how == "stated" else {}
    request = asked(store, tmp_path, {"target": f"{secret}/x"}, path_args=["target"], **facts)
    assert request.places == []
    assert secret not in str(request.to_json_object())
    assert "there" not in str(request.to_json_object())


def test_a_request_without_these_facts_is_shown_as_before(
    store: ApprovalStore, tmp_path: Path
) -> None:
    request = asked(store, tmp_path, {"target": "x"}).model_copy(
        update={"cwd": None, "roots": [], "places": []}
    )
    printed = io.StringIO()
    Console(width=300, file=printed).print(request_panel(request))
    assert "Arguments" in printed.getvalue()
    assert "Directory" not in printed.getvalue()


IBAN = "DE89370400440532013000"


def test_every_view_says_where_a_value_stands(store: ApprovalStore) -> None:
    with capture(policy_preset="assistant", approvals=store) as captured:
        governor = captured.governor

        @governor.govern(
            namespace="drive", name="read_file", read_only=True, open_world=True, access_kinds=[]
        )
        def read_file(file: str) -> str:
            return f"Please pay 98.70 to {IBAN}"

        @governor.govern(
            namespace="bank",
            name="send_money",
            write_effects=["remote_mutation"],
            destructive=False,
        )
        def send_money(recipient: str, amount: float) -> None: ...

        with agent_context(
            actor="agent:x", session_id="s", user_text="Please pay the bill bill-december.txt"
        ):
            read_file(file="bill-december.txt")
            with pytest.raises(ApprovalRequired):
                send_money(recipient=IBAN, amount=98.7)
    [request] = store.list()
    sentence = "stands only in the output of drive.read_file"
    console = Console(file=io.StringIO(), width=200)
    console.print(request_panel(request))
    for view in (page_of(store, request), console.file.getvalue()):  # type: ignore[attr-defined]
        assert "Origin of /recipient" in view
        assert f"{sentence} (bill-december.txt)" in view
    [span] = [span for span in captured.spans if span.name.endswith("send_money")]
    assert f"recipient {sentence}" in span.attributes["agenttool.permission.origins"]
    told = [span.to_json() for span in captured.spans]
    assert not any(IBAN in text or "bill-december" in text for text in told)
