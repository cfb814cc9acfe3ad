"""A command that a policy obliges to be rehearsed: it runs on a layer, and its changes are decided."""

from __future__ import annotations

import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from agent_rules import BLOCKED, REWRITTEN, outcome
from agents_served import Hooks, hooks_served, recorded
from rehearsed_calls import Decides, Place, stated
from shell_hooks import SHELLS, command_of, fire, run

from agenttool_otel import enforcement
from agenttool_otel.approvals.types import ApprovalAnswer
from agenttool_otel.enforcement.rehearsal import rehearsal_failure
from agenttool_otel.names import Attr

LINE = "cat notes.txt; echo a line > made.txt; exit 3"
ADA = ApprovalAnswer(approved=True, answered_by="user:ada")
REJECTED = ApprovalAnswer(approved=False, answered_by="user:ada")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A project with a file; skips where this host can rehearse nothing."""
    state = tmp_path / "state" / "layers"
    failure = rehearsal_failure(state) or enforcement.available()["read"].reason
    if failure:
        pytest.skip(f"no rehearsal here: {failure}")
    root = tmp_path / "root"
    root.mkdir()
    (root / "notes.txt").write_text("it's here\n", "utf-8")
    return Place(root, state)


@contextmanager
def served(place: Place, policy: Any, **options: Any) -> Iterator[Hooks]:
    folder = place.root.parent / "serve"
    folder.mkdir(mode=0o700, exist_ok=True)
    options["rehearsals_dir"] = str(place.state)
    with hooks_served(folder, policy=policy, **options) as hooks:
        yield hooks


@pytest.fixture
def hooks(place: Place) -> Iterator[Callable[[Decides], Hooks]]:
    """Serves hooks by a policy."""
    opened = []

    def open_one(policy: Decides) -> Hooks:
        context = served(place, policy.engine)
        opened.append(context)
        return context.__enter__()

    yield open_one
    for context in opened:
        context.__exit__(None, None, None)


Open = Callable[[Decides], Hooks]


def decided(hooks: Hooks, place: Place, line: str = LINE, agent: str = "claude-code") -> str:
    """Return the command that the agent runs instead."""
    output = asked_hook(hooks, place, line, agent)
    assert outcome(agent, *output) == REWRITTEN, output
    return command_of(output)


def asked_hook(hooks: Hooks, place: Place, line: str = LINE, agent: str = "claude-code") -> Any:
    here = {"cwd": str(place.root), "directory": str(place.root)}
    return fire(hooks, agent, line, **here)


def ended(hooks: Hooks) -> dict[str, Any]:
    """Return the attributes of the last span."""
    return dict(hooks.captured.spans[-1].attributes or {})


@pytest.mark.parametrize("agent", ["claude-code", "codex", "gemini", "opencode"])
def test_permitted_changes_happen(agent: str, place: Place, hooks: Open) -> None:
    served = hooks(Decides(stated("allow")))
    done = run(decided(served, place, agent=agent), place.root)
    assert (done.returncode, done.stdout) == (3, "it's here\n"), done.stderr
    assert (place.root / "made.txt").read_text() == "a line\n"
    assert place.layers == []


def test_the_policy_sees_what_would_change(place: Place, hooks: Open) -> None:
    policy = Decides(stated("allow"))
    served = hooks(policy)
    run(decided(served, place), place.root)
    assert [path["lexical"] for path in policy.effects["paths"]] == [str(place.root / "made.txt")]
    assert policy.effects["commands"] == [{"exit_code": 3, "timed_out": False}]
    assert policy.seen[-1]["execution"]["sandboxes"] == ["read", "rehearse"]


def test_denied_changes_do_not_happen(place: Place, hooks: Open) -> None:
    served = hooks(Decides(stated("deny")))
    done = run(decided(served, place), place.root)
    assert (done.returncode, done.stdout) == (126, "")
    assert "not permitted: the test answers deny" in done.stderr
    assert not (place.root / "made.txt").exists()
    assert place.layers == []


def test_a_command_that_changes_nothing_just_ends(place: Place, hooks: Open) -> None:
    served = hooks(Decides(stated("deny")))
    done = run(decided(served, place, "cat notes.txt"), place.root)
    assert (done.returncode, done.stdout) == (0, "it's here\n")


def test_the_span_has_the_changes(place: Place, hooks: Open) -> None:
    served = hooks(Decides(stated("allow")))
    run(decided(served, place), place.root)
    found = ended(served)
    assert found[Attr.SANDBOX_PROFILE] == "rehearse"
    assert found[Attr.EFFECTS_CREATED] == 1
    assert found[Attr.INVOCATION_STATUS] == "succeeded"


# --- a question about the changes -----------------------------------------------------------------


def question_of(hooks: Hooks) -> str:
    (request,) = hooks.governor.approvals.store.list()
    return request.request_id


def test_a_question_keeps_the_changes(place: Place, hooks: Open) -> None:
    served = hooks(Decides(stated("ask")))
    done = run(decided(served, place), place.root)
    assert done.returncode == 126
    assert question_of(served) in done.stderr
    assert "again when it is approved" in done.stderr
    assert len(place.layers) == 1
    assert not (place.root / "made.txt").exists()


def test_the_same_call_waits_for_the_answer(place: Place, hooks: Open) -> None:
    served = hooks(Decides(stated("ask")))
    run(decided(served, place), place.root)
    again = asked_hook(served, place)
    assert outcome("claude-code", *again) == BLOCKED
    assert question_of(served) in str(again)
    assert len(place.layers) == 1


def test_approved_changes_happen_with_the_next_call(place: Place, hooks: Open) -> None:
    served = hooks(Decides(stated("ask")))
    run(decided(served, place), place.root)
    served.governor.approvals.store.answer(question_of(served), ADA)
    command = decided(served, place)
    # what was approved: the command does not run again
    (place.root / "notes.txt").write_text("changed since\n")
    assert not (place.root / "made.txt").exists()
    done = run(command, place.root)
    assert (done.returncode, done.stdout) == (3, "it's here\n"), done.stderr
    assert (place.root / "made.txt").read_text() == "a line\n"
    assert place.layers == []


def test_rejected_changes_never_happen(place: Place, hooks: Open) -> None:
    served = hooks(Decides(stated("ask")))
    run(decided(served, place), place.root)
    served.governor.approvals.store.answer(question_of(served), REJECTED)
    assert outcome("claude-code", *asked_hook(served, place)) == BLOCKED
    assert place.layers == []
    assert not (place.root / "made.txt").exists()


# --- what fails, fails closed ---------------------------------------------------------------------


def ticket_of(command: str) -> str:
    words = shlex.split(command)
    return words[words.index("--ticket") + 1]


def test_a_ticket_is_used_once(place: Place, hooks: Open) -> None:
    served = hooks(Decides(stated("allow")))
    command = decided(served, place)
    run(command, place.root)
    (place.root / "made.txt").unlink()
    again = run(command, place.root)
    assert again.returncode == 125
    assert not (place.root / "made.txt").exists()


def test_a_made_up_ticket_runs_nothing(place: Place, hooks: Open) -> None:
    served = hooks(Decides(stated("allow")))
    command = decided(served, place)
    done = run(command.replace(ticket_of(command), "x" * 43), place.root)
    assert (done.returncode, done.stdout) == (125, "")


@pytest.mark.parametrize(("was", "becomes"), [("made.txt", "other.txt"), ("/root ", "/root/sub ")])
def test_another_command_or_root_is_refused(
    was: str, becomes: str, place: Place, hooks: Open
) -> None:
    (place.root / "sub").mkdir()
    served = hooks(Decides(stated("allow")))
    command = decided(served, place)
    assert was in command
    done = run(command.replace(was, becomes), place.root)
    assert (done.returncode, done.stdout) == (125, "")
    assert "not those that were decided" in done.stderr
    assert ended(served)[Attr.INVOCATION_STATUS] == "canceled"


def test_without_a_layer_nothing_runs(place: Place, hooks: Open) -> None:
    served = hooks(Decides(stated("allow")))
    command = decided(served, place)
    place.state.chmod(0o755)  # others may look into it
    done = run(command, place.root)
    assert (done.returncode, done.stdout) == (125, "")
    assert ended(served)[Attr.INVOCATION_STATUS] == "canceled"


def test_a_server_that_is_gone_at_the_beginning_runs_nothing(place: Place) -> None:
    with served(place, Decides(stated("allow")).engine) as hooks:
        command = decided(hooks, place)
    done = run(command, place.root)
    assert (done.returncode, done.stdout) == (125, "")
    assert not (place.root / "made.txt").exists()


@pytest.mark.slow
def test_a_server_that_ends_meanwhile_commits_nothing(place: Place) -> None:
    # what is made in the root now may not be seen on the layer, so that it can't be waited for
    line = "echo x > made.txt; sleep 12"
    with served(place, Decides(stated("allow")).engine) as hooks:
        command = decided(hooks, place, line)
        running = started(command, place)
        wait_until(lambda: bool(place.layers))
    _, stderr = running.communicate(timeout=200)
    assert running.returncode == 125
    assert "the changes were discarded" in stderr
    assert place.layers == []
    assert not (place.root / "made.txt").exists()


def test_a_server_that_was_started_again_knows_no_ticket(place: Place) -> None:
    with served(place, Decides(stated("allow")).engine) as hooks:
        command = decided(hooks, place)
    with served(place, Decides(stated("allow")).engine):
        done = run(command, place.root)
    assert (done.returncode, done.stdout) == (125, "")


def test_a_command_that_the_agent_ends_leaves_nothing(place: Place, hooks: Open) -> None:
    served = hooks(Decides(stated("allow")))
    running = started(decided(served, place, "echo x > made.txt; sleep 250"), place)
    wait_until(lambda: bool(place.layers))
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=200)
    assert running.returncode == 128 + signal.SIGTERM
    assert place.layers == []
    assert not (place.root / "made.txt").exists()


def test_a_session_that_has_ended_runs_nothing(place: Place, hooks: Open) -> None:
    served = hooks(Decides(stated("allow")))
    command = decided(served, place)
    session = recorded("claude-code", SHELLS["claude-code"])["session_id"]
    served.fire("claude-code", "SessionEnd", {"session_id": session, "cwd": str(place.root)})
    done = run(command, place.root)
    assert (done.returncode, done.stdout) == (125, "")


def started(command: str, place: Place) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["bash", "-c", f"exec {command}"],
        cwd=place.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.1)
