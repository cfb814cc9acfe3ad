"""The stock policy with a shell tool whose commands can be held: who is asked, and about what."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from rehearsed_calls import ADA, Place

from agenttool_otel import ApprovalAnswer, ApprovalRequired, ToolDenied, run_command
from agenttool_otel.errors import GovernedOutcome
from agenttool_otel.names import Attr, ErrorClass
from agenttool_otel.testing import Capture, capture

SHELL: dict[str, Any] = {"tool_kind": "shell_command", "access_kinds": ["code_execution"]}
WRITES = "python3 -c \"open('made.txt', 'w').write('made')\""
Open = Callable[..., Capture]


@pytest.fixture
def opened(place: Place) -> Iterator[Open]:
    """Opens Governors with a preset of the stock policy."""
    contexts = []

    def open_one(preset: str, **settings: Any) -> Capture:
        context = capture(policy_preset=preset, rehearsals_dir=str(place.state), **settings)
        contexts.append(context)
        return context.__enter__()

    yield open_one
    for context in reversed(contexts):
        context.__exit__(None, None, None)


def tool(place: Place, captured: Capture, **facts: Any) -> Any:
    """Govern a shell in the root, without a word about where that is."""

    def shell(command: str) -> str:
        """Run a command."""
        return run_command(command, cwd=place.root, timeout=60).text

    return place.govern(captured, shell, **{**SHELL, **facts})


def run(place: Place, captured: Capture, line: str, **facts: Any) -> Any:
    """Run a line in the root."""
    governed = tool(place, captured, **facts)
    with place.context():
        return governed(line)


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
    with suppress(GovernedOutcome):  # denied, or held while it fails
        run(place, opened(preset), WRITES)
    assert not (place.root / "made.txt").exists()


def test_plan_runs_what_it_can_not_prove_under_read(place: Place, opened: Open) -> None:
    line = "python3 -c \"print(open('notes.txt').read()); open('made.txt', 'w')\""
    output = run(place, opened("plan"), line)
    assert "first" in output
    assert "Permission denied" in output
    assert not (place.root / "made.txt").exists()


def test_a_tool_that_runs_no_commands_is_asked_about(place: Place, opened: Open) -> None:
    with pytest.raises(ApprovalRequired):
        run(place, opened("coding"), WRITES, runs_commands=False)
    assert not (place.root / "made.txt").exists()


CONNECTS = "python3 -c \"import socket; print(socket.socket().connect_ex(('127.0.0.1', PORT)))\""


@pytest.fixture
def connecting() -> Iterator[str]:
    """A line that prints 0 where it reaches a listener."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield CONNECTS.replace("PORT", str(listener.getsockname()[1]))


def test_made_again_a_person_may_let_it_run_outside(
    place: Place, opened: Open, connecting: str
) -> None:
    captured = opened("coding")
    with pytest.raises(ApprovalRequired):
        run(place, captured, connecting)
    first = captured.span
    captured.clear()
    with pytest.raises(ApprovalRequired) as asked:
        run(place, captured, connecting)
    assert asked.value.decision.reason.rule_ref == "agenttool.rules.override.outside"
    assert asked.value.decision.reason.type == "sandbox_override"
    assert len(place.layers) == 1, "the first question alone has a layer"
    captured.clear()
    captured.governor.approvals.store.answer(asked.value.request_id, ADA)
    with place.context():
        result = captured.governor.resume(asked.value.invocation_id)
    assert '"0\\n"' in json.dumps(result.to_json_object())
    assert captured.span.attributes.get(Attr.SANDBOX_PROFILE) is None
    assert first.context in [link.context for link in captured.span.links]


def test_another_process_lets_it_run_outside(
    place: Place, opened: Open, connecting: str, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'approvals.db'}"
    first = opened("coding", approvals=url)
    for _ in range(2):
        with pytest.raises(ApprovalRequired) as asked:
            run(place, first, connecting)
    second = opened("coding", approvals=url)
    second.governor.approvals.store.answer(asked.value.request_id, ADA)
    tool(place, second)
    with place.context():
        result = second.governor.resume(asked.value.invocation_id)
    assert '"0\\n"' in json.dumps(result.to_json_object())


def test_a_rejected_override_does_not_run(place: Place, opened: Open, connecting: str) -> None:
    captured = opened("coding")
    for _ in range(2):
        with pytest.raises(ApprovalRequired) as asked:
            run(place, captured, connecting)
    rejected = ApprovalAnswer(approved=False, answered_by="user:ada")
    captured.governor.approvals.store.answer(asked.value.request_id, rejected)
    with place.context():
        result = captured.governor.resume(asked.value.invocation_id)
    assert result.error.error_class is ErrorClass.APPROVAL_REJECTED


@pytest.mark.slow
def test_another_call_is_held_as_before(place: Place, opened: Open, connecting: str) -> None:
    captured = opened("coding")
    with pytest.raises(ApprovalRequired):
        run(place, captured, connecting)
    assert run(place, captured, "python3 -c 'print(41 + 1)'") == "42\n"


def test_strict_holds_again_what_was_refused(place: Place, opened: Open) -> None:
    captured = opened("strict")
    line = 'python3 -c \'open("/etc/agenttool-new", "w")\''
    for _ in range(2):
        captured.clear()
        with suppress(GovernedOutcome):
            run(place, captured, line)
    assert captured.span.attributes[Attr.PERMISSION_RULE] != "agenttool.rules.override.outside"
