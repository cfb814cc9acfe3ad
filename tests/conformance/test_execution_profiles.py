"""Requirements of "Execution Profile"."""

from __future__ import annotations

from collections.abc import Iterator
from subprocess import CompletedProcess
from typing import Any

import pytest

from agenttool_otel.testing import Capture, StaticEngine, capture


@pytest.fixture
def captured() -> Iterator[Capture]:
    with capture(policy=StaticEngine("allow")) as made:
        yield made


def plain(text: str = "a") -> str:
    return text


def stream(text: str = "a") -> Iterator[str]:
    yield text


def profile(captured: Capture, function: Any = plain, **facts: Any) -> dict[str, Any]:
    governed = captured.governor.govern(function, **facts)
    found: dict[str, Any] = governed.tool.spec.execution.to_json_object()
    return found


@pytest.mark.covers("tool-kind-has-its-execution-kind")
@pytest.mark.parametrize(
    ("tool_kind", "execution_kind"),
    [
        ("shell_command", "shell"),
        ("code_execution", "local_process"),
        ("mcp_tool", "mcp_server"),
        ("openapi_operation", "http_api"),
        ("browser_action", "browser"),
        ("model_task", "model_service"),
        ("peer_agent_tool", "peer_agent"),
        ("native_tool", "native_app"),
        ("function", "embedded_runtime"),
    ],
)
def test_an_execution_kind_follows_from_the_tool_kind(
    tool_kind: str, execution_kind: str, captured: Capture
) -> None:
    assert profile(captured, tool_kind=tool_kind)["execution_kind"] == execution_kind


@pytest.mark.covers("stated-execution-kind-is-kept")
def test_a_stated_execution_kind_is_kept(captured: Capture) -> None:
    assert profile(captured, execution_kind="hybrid")["execution_kind"] == "hybrid"


@pytest.mark.covers(
    "capability-progress-stated", "capability-resume-stated", "capability-sandboxing-stated"
)
def test_a_profile_states_what_is_not_supported(captured: Capture) -> None:
    found = profile(captured)
    assert (found["supports_progress"], found["supports_resume"]) == (False, True)
    assert found["sandboxed"] is False
    assert profile(captured, name="jailed", sandbox_profile="jail")["sandboxed"] is True


@pytest.mark.covers("capability-partial-results-stated")
def test_a_generator_gives_partial_results(captured: Capture) -> None:
    assert profile(captured, stream)["supports_partial_results"] is True
    assert profile(captured)["supports_partial_results"] is False


@pytest.mark.covers("capability-persistence-stated")
def test_a_profile_states_that_results_are_not_persisted(captured: Capture) -> None:
    assert profile(captured)["supports_persistence"] is True
    opted_out = profile(captured, name="other", persistence="never_persist")
    assert opted_out["supports_persistence"] is False


@pytest.mark.covers("stated-capabilities-are-kept", "shell-policies-are-kept")
def test_what_the_host_states_is_on_the_profile(captured: Capture) -> None:
    stated = {
        "supports_background": False,
        "supports_offline": True,
        "cwd_policy": "workspace",
        "env_policy": "clean",
        "exit_code_policy": "0 is success",
    }
    found = profile(captured, tool_kind="shell_command", execution_facts=stated)
    assert {name: found[name] for name in stated} == stated


@pytest.mark.covers("declared-retries-happen")
def test_a_tool_that_declares_retries_is_run_again(captured: Capture) -> None:
    runs: list[int] = []

    def flaky() -> str:
        runs.append(1)
        if len(runs) == 1:
            raise ConnectionError("no route")
        return "there"

    retry = {"max_attempts": 2, "initial_delay_ms": 1}
    assert captured.governor.govern(flaky, retry=retry)() == "there"


# --- shells and remote tools ----------------------------------------------------------------------


@pytest.mark.covers("shell-parsing-strategy", "shell-classifier-input")
def test_a_shell_tool_declares_how_commands_are_read(captured: Capture) -> None:
    def run(command: str) -> str:
        return command

    spec = captured.governor.govern(
        run, tool_kind="shell_command", command_args=["command"]
    ).tool.spec
    assert spec.execution.to_json_object()["parsing_strategy"] == "tree-sitter-bash"
    assert spec.interface.classifier_input == "input.command"


@pytest.mark.covers("exit-code-is-a-failure")
def test_an_exit_code_other_than_0_is_a_failure(captured: Capture) -> None:
    def run(code: int) -> CompletedProcess[str]:
        return CompletedProcess(["ls"], code, "out", "")

    act = captured.governor.govern(run)
    assert act.tool.invoke(code=0).status == "succeeded"
    failed = act.tool.invoke(code=2)
    assert failed.error is not None
    assert (failed.status, failed.error.native_error_ref) == ("failed", "exit:2")


@pytest.mark.covers("remote-ids-on-profile")
def test_a_remote_tool_has_its_native_ids_on_the_profile(captured: Capture) -> None:
    mapping = {"source": "mcp", "server_id": "github", "mcp_protocol_version": "2025-06-18"}
    found = profile(captured, tool_kind="mcp_tool", external_mappings=[mapping])
    assert found["external_mappings"] == [mapping]
