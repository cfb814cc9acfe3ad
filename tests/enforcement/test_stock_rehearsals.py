"""The stock policy with a shell tool whose commands can be held: who is asked, and about what."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rehearsed_calls import ADA, Place

from agenttool_otel import ApprovalRequired, ToolDenied, run_command
from agenttool_otel.errors import GovernedOutcome
from agenttool_otel.testing import Capture, capture

SHELL: dict[str, Any] = {"tool_kind": "shell_command", "access_kinds": ["code_execution"]}
WRITES = "python3 -c \"open('made.txt', 'w').write('made')\""
Open = Callable[[str], Capture]


@pytest.fixture
def opened(place: Place) -> Iterator[Open]:
    """Opens Governors with a preset of the stock policy."""
    contexts = []

    def open_one(preset: str) -> Capture:
        context = capture(policy_preset=preset, rehearsals_dir=str(place.state))
        contexts.append(context)
        return context.__enter__()

    yield open_one
    for context in reversed(contexts):
        context.__exit__(None, None, None)


def run(place: Place, captured: Capture, line: str, **facts: Any) -> Any:
    """Run a line in the root, without a word about where that is."""

    def shell(command: str) -> str:
        """Run a command."""
        return run_command(command, cwd=place.root, timeout=60).text

    tool = place.govern(captured, shell, **{**SHELL, **facts})
    with place.context():
        return tool(line)


def rule_of(outcome: BaseException) -> str:
    assert isinstance(outcome, GovernedOutcome)
    return str(outcome.decision.reason.rule_ref)


@pytest.mark.parametrize("preset", ["balanced", "coding"])
def test_a_program_without_effects_needs_no_question(
    place: Place, opened: Open, preset: str
) -> None:
    assert run(place, opened(preset), "python3 -c 'print(41 + 1)'") == "42\n"


def test_coding_commits_what_is_written_inside(place: Place, opened: Open) -> None:
    run(place, opened("coding"), WRITES)
    assert (place.root / "made.txt").read_text() == "made"
    assert place.layers == []


def test_balanced_asks_about_what_would_be_written(place: Place, opened: Open) -> None:
    captured = opened("balanced")
    with pytest.raises(ApprovalRequired) as asked:
        run(place, captured, WRITES)
    request = captured.governor.approvals.store.get(asked.value.request_id)
    assert "made.txt" in request.diff
    assert not (place.root / "made.txt").exists()
    captured.governor.approvals.store.answer(request.request_id, ADA)
    captured.governor.resume(request.invocation_id)
    assert (place.root / "made.txt").read_text() == "made"


@pytest.mark.parametrize("preset", ["balanced", "coding"])
def test_a_hook_is_never_written_without_a_question(
    place: Place, opened: Open, preset: str
) -> None:
    line = "python3 -c \"import os; os.makedirs('.git/hooks'); open('.git/hooks/pre-commit', 'w')\""
    with pytest.raises((ApprovalRequired, ToolDenied)) as outcome:
        run(place, opened(preset), line)
    assert rule_of(outcome.value).startswith(("agenttool.rules.paths.", "agenttool.rules.effects."))
    assert not (place.root / ".git").exists()


def test_coding_asks_about_many_deletions(place: Place, opened: Open) -> None:
    for number in range(30):
        (place.root / f"f{number}").touch()
    line = "python3 -c \"import os; [os.remove(f'f{n}') for n in range(30)]\""
    with pytest.raises(ApprovalRequired) as asked:
        run(place, opened("coding"), line)
    assert rule_of(asked.value) == "agenttool.rules.effects.deletions"
    assert (place.root / "f0").exists()


def test_coding_asks_about_a_push_before_it_runs(place: Place, opened: Open) -> None:
    with pytest.raises(ApprovalRequired) as asked:
        run(place, opened("coding"), "touch made.txt && git push origin main")
    assert asked.value.request_id
    assert place.layers == []
    assert not (place.root / "made.txt").exists()


def test_coding_asks_where_a_program_wants_the_network(place: Place, opened: Open) -> None:
    line = "python3 -c \"import socket; socket.socket().connect_ex(('127.0.0.1', 9))\""
    with pytest.raises(ApprovalRequired) as asked:
        run(place, opened("coding"), line)
    assert rule_of(asked.value) == "agenttool.rules.effects.connections"


@pytest.mark.parametrize("preset", ["plan", "strict"])
def test_a_careful_preset_lets_nothing_be_written(place: Place, opened: Open, preset: str) -> None:
    with pytest.raises(GovernedOutcome):
        run(place, opened(preset), WRITES)
    assert not (place.root / "made.txt").exists()


def test_a_tool_that_runs_no_commands_is_asked_about(place: Place, opened: Open) -> None:
    with pytest.raises(ApprovalRequired):
        run(place, opened("coding"), WRITES, runs_commands=False)
    assert not (place.root / "made.txt").exists()
