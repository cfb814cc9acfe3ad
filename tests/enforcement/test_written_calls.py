"""A call whose commands may write: below its roots alone, and into no protected place."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rehearsed_calls import ADA, Place, ashell, shell

from agenttool_otel import ApprovalRequired, ToolDenied, enforcement, run_command
from agenttool_otel.enforcement.rehearsal import SealedLayer, rehearsal_failure
from agenttool_otel.errors import SandboxUnavailable
from agenttool_otel.names import Attr, ErrorClass, FailClosedCause, GenAI
from agenttool_otel.testing import Capture, capture, decision
from function_engine import FunctionEngine

WRITE = {"sandbox": {"profile": "write", "network": "none"}}
KEY = "-----BEGIN " + "PRIVATE KEY-----"


class Obliges:
    """A policy that obliges the profile write, and keeps what it was given."""

    def __init__(self, behavior: str = "allow") -> None:
        self.seen: list[dict[str, Any]] = []
        self._behavior = behavior

    def engine(self) -> FunctionEngine:
        return FunctionEngine(self._decide)

    def _decide(self, document: Any) -> Any:
        self.seen.append(document)
        return decision(self._behavior, obligations=WRITE)


Open = Callable[..., Capture]


@pytest.fixture
def opened(place: Place, tmp_path: Path) -> Iterator[Open]:
    """Opens Governors with a policy."""
    contexts = []

    def open_one(policy: Obliges | None = None) -> Capture:
        context = capture(
            policy=(policy or Obliges()).engine(),
            rehearsals_dir=str(place.state),
            approvals=f"sqlite:///{tmp_path / 'approvals.db'}",
        )
        contexts.append(context)
        return context.__enter__()

    yield open_one
    for context in reversed(contexts):
        context.__exit__(None, None, None)


@pytest.mark.parametrize("function", [shell, ashell])
def test_a_command_writes_below_the_roots(place: Place, opened: Open, function: Any) -> None:
    captured = opened()
    place.call(captured, "echo new > a && chmod +x a && rm notes.txt", function)
    assert [path.name for path in place.root.iterdir()] == ["a"]
    assert (place.root / "a").stat().st_mode & 0o111
    attributes = captured.span.attributes
    assert (attributes[Attr.SANDBOX_PROFILE], attributes[Attr.SANDBOX_ENFORCED]) == ("write", True)
    assert place.layers == []


def test_nobody_decides_again(place: Place, opened: Open) -> None:
    policy = Obliges()
    place.call(opened(policy), "touch a")
    assert len(policy.seen) == 1


def test_a_command_writes_nowhere_else(place: Place, opened: Open) -> None:
    outside = place.root.parent / "outside"
    place.call(opened(), f"touch {outside}; touch a")
    assert not outside.exists()
    assert (place.root / "a").exists()


def test_a_secret_below_the_roots_is_masked(place: Place, opened: Open) -> None:
    (place.root / "id_rsa").write_text(KEY, "utf-8")
    place.call(opened(), "cat id_rsa > copy; true")
    assert (place.root / "copy").read_text("utf-8") == ""
    assert (place.root / "id_rsa").read_text("utf-8") == KEY


def test_a_command_reaches_no_network(place: Place, opened: Open) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = server.getsockname()[1]
        connect = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)"
        place.call(opened(), f'python3 -c "{connect}"; touch a')
        with pytest.raises(TimeoutError):
            server.accept()
    assert (place.root / "a").exists()


@pytest.mark.parametrize("name", [".git/hooks/pre-commit", ".claude/settings.json", "id_rsa"])
def test_a_protected_place_takes_all_changes_with_it(place: Place, opened: Open, name: str) -> None:
    captured = opened()
    with pytest.raises(ToolDenied) as raised:
        place.call(captured, f"mkdir -p $(dirname {name}) && echo x > {name}; touch a")
    assert [path.name for path in place.root.iterdir()] == ["notes.txt"]
    attributes = captured.span.attributes
    assert attributes[GenAI.ERROR_TYPE] == ErrorClass.SANDBOX_VIOLATION
    assert attributes[Attr.SANDBOX_VIOLATIONS] == 1
    assert str(place.root / Path(name).parts[0]) in str(raised.value)
    assert place.layers == []


@pytest.mark.parametrize("line", ["touch a; chmod u+s a", "touch a; chmod g+s a"])
def test_a_file_gets_no_rights_of_its_owner(place: Place, opened: Open, line: str) -> None:
    captured = opened()
    with pytest.raises(ToolDenied):
        place.call(captured, line)
    assert captured.span.attributes[GenAI.ERROR_TYPE] == ErrorClass.SANDBOX_VIOLATION
    assert not (place.root / "a").exists()


def test_the_body_itself_may_write_nothing(place: Place, opened: Open) -> None:
    def write(command: str) -> str:
        (place.root / "a").write_text("x", "utf-8")
        return run_command(command).text

    captured = opened()
    with pytest.raises(PermissionError):
        place.call(captured, "touch b", write)
    assert [path.name for path in place.root.iterdir()] == ["notes.txt"]
    assert captured.span.attributes[GenAI.ERROR_TYPE] == ErrorClass.SANDBOX_VIOLATION


def test_the_profile_is_what_the_command_is_given(place: Place, opened: Open) -> None:
    seen = []

    def run(command: str) -> None:
        seen.append(run_command(command).profile)

    place.call(opened(), "true", run)
    assert seen == ["write"]


def test_an_approved_call_stays_held(place: Place, opened: Open) -> None:
    captured = opened(Obliges("ask"))
    outside = place.root.parent / "outside"
    with pytest.raises(ApprovalRequired) as asked:
        place.call(captured, f"touch a {outside}")
    captured.governor.approvals.store.answer(asked.value.request_id, ADA)
    with place.context():
        captured.governor.resume(asked.value.invocation_id)
    assert (place.root / "a").exists()
    assert not outside.exists()


def test_the_policy_sees_what_was_proven(
    place: Place, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = Obliges()
    captured = opened(policy)
    place.call(captured, "touch a")
    captured.clear()
    monkeypatch.setattr(enforcement.rehearsal, "rehearsal_failure", lambda *_: "no overlay")
    with pytest.raises(ToolDenied, match="no overlay"):
        place.call(captured, "touch b")
    attributes = captured.span.attributes
    assert attributes[Attr.PERMISSION_FAIL_CLOSED] == FailClosedCause.SANDBOX_UNAVAILABLE
    listed = ["write" in document["execution"]["sandboxes"] for document in policy.seen]
    assert listed == [True, False]
    assert not (place.root / "b").exists()


def test_a_tool_that_runs_no_commands_is_denied(place: Place, opened: Open) -> None:
    with pytest.raises(ToolDenied, match="runs_commands"):
        place.call(opened(), "touch a", runs_commands=False)
    assert not (place.root / "a").exists()


def test_a_layer_that_commits_nothing_is_not_proven(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SealedLayer, "commit", lambda self, digest: None)
    assert "committed" in rehearsal_failure(place.state.parent / "other")


def test_a_canceled_call_leaves_nothing(place: Place, opened: Open) -> None:
    tool = place.govern(opened(), ashell)

    async def cancel() -> None:
        task = asyncio.ensure_future(tool(place.in_root("touch a; sleep 60")))
        await asyncio.sleep(2)
        task.cancel()
        with pytest.raises((asyncio.CancelledError, SandboxUnavailable)):
            await task

    with place.context():
        asyncio.run(cancel())
    assert not (place.root / "a").exists()
    assert place.layers == []
