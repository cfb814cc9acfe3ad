"""``agenttool doctor``: what is in force, from where, and what does not work."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.cli.doctor import EXIT_CODES, app
from agenttool_otel.cli.main import app as agenttool
from agenttool_otel.context.settings import Settings
from agenttool_otel.enforcement import available
from agenttool_otel.enforcement.rehearsal import rehearsal_failure


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (*Settings.variables().values(), "OTEL_EXPORTER_OTLP_ENDPOINT"):
        monkeypatch.delenv(variable, raising=False)


def examined(code: str = "works") -> Any:
    done = CliRunner().invoke(app, ["--json"])
    assert done.exit_code == EXIT_CODES[code], done.output
    return json.loads(done.output)


def part(report: Any, name: str) -> tuple[str, str]:
    (found,) = (each for each in report["parts"] if each["name"] == name)
    return found["state"], found["detail"]


def test_nothing_is_broken_where_nothing_is_set() -> None:
    report = examined()
    assert part(report, "policy")[0] == "works"
    assert part(report, "approvals")[0] == "absent"
    assert report["versions"]["standard"] == "Agent Tool 0.2.0"


def test_each_setting_has_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTTOOL_POLICY_PRESET", "coding")
    rows = {row["variable"]: row for row in examined()["settings"]}
    assert rows.keys() == set(Settings.variables().values())
    assert rows["AGENTTOOL_POLICY_PRESET"]["value"] == "coding"
    stated = [name for name, row in rows.items() if row["source"] == "environment"]
    assert stated == ["AGENTTOOL_POLICY_PRESET"]


def test_each_sandbox_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layers = tmp_path / "layers"
    monkeypatch.setenv("AGENTTOOL_REHEARSALS_DIR", str(layers))
    report = examined()
    for name, failure in (
        ("sandbox read", available()["read"].reason),
        ("sandbox rehearse", rehearsal_failure(layers)),
    ):
        state, detail = part(report, name)
        assert state == ("absent" if failure else "works")
        assert detail == failure if failure else "held by" in detail


def test_layers_that_have_no_place_are_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("AGENTTOOL_REHEARSALS_DIR", str(tmp_path / "file" / "layers"))
    assert part(examined(), "sandbox rehearse")[0] == "absent"


def test_a_preset_that_there_is_not_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTTOOL_POLICY_PRESET", "stric")
    state, detail = part(examined("broken"), "policy")
    assert state == "broken"
    assert "did you mean 'strict'" in detail


def test_a_misspelt_variable_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTTOOL_POLICY_MOD", "shadow")
    assert part(examined("broken"), "settings")[0] == "broken"


def test_a_password_is_never_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTTOOL_APPROVALS_URL", "postgresql://u:hunter2@127.0.0.1:1/x")
    for words in ((), ("--json",)):
        done = CliRunner().invoke(app, list(words))
        assert done.exit_code == EXIT_CODES["broken"]
        assert "hunter2" not in done.output


def test_a_store_has_its_pending_requests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    ApprovalStore(file).close()
    monkeypatch.setenv("AGENTTOOL_APPROVALS_URL", str(file))
    state, detail = part(examined(), "approvals")
    assert (state, detail.endswith("0 pending")) == ("works", True)


def test_a_store_that_is_not_there_is_not_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AGENTTOOL_APPROVALS_URL", str(tmp_path / "a.db"))
    assert part(examined(), "approvals")[0] == "absent"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("listens", "state"), [(True, "works"), (False, "broken")])
def test_an_exporters_endpoint_is_tried(
    monkeypatch: pytest.MonkeyPatch, listens: bool, state: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        if not listens:
            server.close()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        assert part(examined(state), "exporters")[0] == state


def test_versions_are_printed() -> None:
    done = CliRunner().invoke(agenttool, ["--version"])
    assert done.exit_code == 0
    assert done.output.startswith("agenttool-otel ")
    assert done.output.rstrip().endswith(", Agent Tool 0.2.0")
