"""Users check the records of their own tests: by one function, or by a plugin of pytest."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agenttool_otel import current_call
from agenttool_otel.testing import Capture, StaticEngine, capture, check_records
from known_faults import KNOWN_FAULTS

TESTS = """
import pytest
from agenttool_otel import Governor, TelemetrySettings
from agenttool_otel.telemetry.sinks import CallbackSink
from agenttool_otel.testing import StaticEngine, capture


def call(governor):
    governor.govern(lambda x: x, name="add").tool.invoke(x=1)


def lose_decisions(monkeypatch):
    from agenttool_otel.call.recording import finished
    monkeypatch.setattr(finished, "decision_records", lambda call: [])


def test_a_capture_is_checked(monkeypatch):
    lose_decisions(monkeypatch)
    with capture(policy=StaticEngine("allow")) as captured:
        call(captured.governor)


def test_a_sink_is_checked(monkeypatch):
    lose_decisions(monkeypatch)
    sink = CallbackSink(lambda line: None)
    call(Governor(policy=StaticEngine("allow"), telemetry=TelemetrySettings(sinks=(sink,))))


async def test_a_coroutine_is_checked(monkeypatch):
    lose_decisions(monkeypatch)
    with capture(policy=StaticEngine("allow")) as captured:
        call(captured.governor)


@pytest.mark.unchecked_records("decisions are left out on purpose")
def test_a_marked_one_is_not(monkeypatch):
    lose_decisions(monkeypatch)
    with capture(policy=StaticEngine("allow")) as captured:
        call(captured.governor)


def test_good_records_pass():
    with capture(policy=StaticEngine("allow")) as captured:
        call(captured.governor)


def test_no_records_pass():
    pass
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest prints of the tests above."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "test_it.py").write_text(TESTS, "utf-8")
    known = "\n".join(f"    {part}" for part in KNOWN_FAULTS)
    settings = f"[pytest]\nasyncio_mode = auto\nagenttool_known_violations =\n{known}\n"
    (folder / "pytest.ini").write_text(settings, "utf-8")
    plugin = ["-p", "agenttool_otel.testing.plugin"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", *plugin, "-p", "no:cacheprovider", "."],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "", "PYTEST_ADDOPTS": ""},
        check=False,
    )
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("test", "outcome"),
    [
        ("a_capture_is_checked", "FAILED"),
        ("a_sink_is_checked", "FAILED"),
        ("a_coroutine_is_checked", "FAILED"),
        ("a_marked_one_is_not", "PASSED"),
        ("good_records_pass", "PASSED"),
        ("no_records_pass", "PASSED"),
    ],
)
def test_the_plugin_checks_each_test(report: str, test: str, outcome: str) -> None:
    assert re.search(rf"test_{test} {outcome}", report), report


@pytest.mark.slow
def test_the_plugin_names_the_rule_and_the_call(report: str) -> None:
    assert re.search(r"ran\.decided: a call ran without a decision \(inv_\w+\)", report)


def called(behavior: str) -> tuple[Capture, list[str]]:
    """A captured call, and the ids of the bodies that ran."""
    ran: list[str] = []

    def act(text: str) -> str:
        call = current_call()
        assert call is not None
        ran.append(call.invocation_id)
        return text

    with capture(policy=StaticEngine(behavior)) as captured:
        captured.governor.govern(act).tool.invoke(text="marigold")
    return captured, ran


@pytest.mark.parametrize("behavior", ["allow", "deny", "ask"])
def test_records_of_a_capture_pass(behavior: str) -> None:
    captured, ran = called(behavior)
    kinds = {line["object"] for line in captured.records}
    assert kinds >= {"tool_event", "tool_invocation"}
    assert ("tool_result" in kinds) is (behavior != "ask")
    check_records(
        captured.records,
        ran=ran,
        spans=captured.spans,
        canaries=["marigold"],
        ignore=KNOWN_FAULTS,
    )


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        (lambda one: {"ran": [one.records[-1]["record"]["invocation_id"]]}, "ran.refused"),
        (lambda one: {"ran": ["inv_nobody"]}, "ran.recorded"),
        (lambda one: {"canaries": ["the test answers deny"]}, "canary"),
        (lambda one: {"canaries": ["x"], "spans": [{"name": "x"}]}, "canary"),
    ],
)
def test_what_is_wrong_is_listed(given: Callable[[Capture], dict[str, object]], rule: str) -> None:
    captured, _ = called("deny")
    with pytest.raises(AssertionError, match=re.escape(rule)):
        check_records(captured.records, ignore=KNOWN_FAULTS, **given(captured))  # type: ignore[arg-type]


def test_rules_can_be_left_out() -> None:
    captured, _ = called("deny")
    rules = ["ran.recorded", *KNOWN_FAULTS]
    check_records(captured.records, ran=["inv_nobody"], ignore=rules)


def test_an_import_of_the_package_does_not_enable_the_plugin() -> None:
    text = (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text("utf-8")
    assert "pytest11" not in text
