"""A call whose commands are rehearsed: what they would change is decided before it happens."""

from __future__ import annotations

import io
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rehearsed_calls import ADA, REHEARSE, Decides, Place, ashell, stated
from rich.console import Console

from agenttool_otel import ApprovalAnswer, ApprovalRequired, ToolDenied, enforcement, run_command
from agenttool_otel.approvals.console import request_panel
from agenttool_otel.call.kept_result import result_document, result_value
from agenttool_otel.cli.spans import SpanView
from agenttool_otel.cli.story import why
from agenttool_otel.enforcement.rehearsal import Rehearsals, SealedLayer, rehearsal_failure
from agenttool_otel.errors import GovernedOutcome
from agenttool_otel.names import Attr, ErrorClass, Event
from agenttool_otel.testing import Capture, capture, decision

TOKEN = "ghp_" + "a1B2c3D4" * 4 + "e5F6"

RULES = """package agenttool.custom

allow contains {
	"rule": "own.rehearse",
	"message": "its effects are decided",
	"waives": [
		"agenttool.rules.shell.not_read_only",
		"agenttool.rules.paths.write_inside",
		"agenttool.rules.shell.sensitive_read",
		"agenttool.rules.shell.destructive",
		"agenttool.rules.declared.writes",
		"agenttool.rules.declared.access_code_execution",
	],
	"obligations": {"sandbox": {"profile": "rehearse"}},
} if {
	"rehearse" in input.execution.sandboxes
}

deny contains {"rule": "own.deletes", "message": "nothing may be deleted"} if {
	input.facts.effects.counts.deleted > 0
}
"""

Open = Callable[..., Capture]


@pytest.fixture
def opened(place: Place) -> Iterator[Open]:
    """Opens Governors with a policy."""
    contexts = []

    def open_one(policy: Decides, **settings: Any) -> Capture:
        context = capture(policy=policy.engine, rehearsals_dir=str(place.state), **settings)
        contexts.append(context)
        return context.__enter__()

    yield open_one
    for context in reversed(contexts):
        context.__exit__(None, None, None)


def events_of(captured: Capture, name: str) -> list[dict[str, Any]]:
    return [dict(event.attributes) for event in captured.span.events if event.name == name]


def asked(place: Place, captured: Capture, line: str, **facts: Any) -> ApprovalRequired:
    with pytest.raises(ApprovalRequired) as raised:
        place.call(captured, line, **facts)
    return raised.value


def answer(captured: Capture, question: ApprovalRequired, given: ApprovalAnswer = ADA) -> None:
    captured.governor.approvals.store.answer(question.request_id, given)
    captured.clear()


def test_allowed_effects_are_committed(place: Place, opened: Open) -> None:
    captured = opened(Decides(stated("allow")))
    assert place.call(captured, "echo second >> notes.txt; echo done") == "done\n"
    assert (place.root / "notes.txt").read_text() == "first\nsecond\n"
    assert place.layers == []


def test_denied_effects_are_discarded(place: Place, opened: Open) -> None:
    captured = opened(Decides(stated("deny")))
    with pytest.raises(ToolDenied):
        place.call(captured, "rm notes.txt")
    assert (place.root / "notes.txt").exists()
    assert place.layers == []


def test_without_effects_nobody_decides_again(place: Place, opened: Open) -> None:
    policy = Decides(stated("deny"))
    assert place.call(opened(policy), "cat notes.txt") == "first\n"
    assert len(policy.seen) == 1
    assert place.layers == []


def test_caches_alone_are_thrown_away(place: Place, opened: Open) -> None:
    policy = Decides(stated("deny"))
    place.call(opened(policy), "mkdir __pycache__ && touch __pycache__/a.pyc")
    assert not (place.root / "__pycache__").exists()
    assert place.layers == []


def test_the_first_decision_has_no_effects(place: Place, opened: Open) -> None:
    policy = Decides(stated("allow"))
    place.call(opened(policy), "touch a")
    assert "effects" not in policy.seen[0]["facts"]
    assert policy.seen[0]["execution"]["sandboxes"] == ["read", "rehearse", "write"]


def test_effects_take_the_place_of_words(place: Place, opened: Open) -> None:
    policy = Decides(stated("allow"))
    place.call(opened(policy), "touch made && rm notes.txt")
    facts = policy.seen[1]["facts"]
    assert facts["shell"] == []
    paths = {(path["resolved"], path["access"], path["inside"]) for path in facts["paths"]}
    names = ("made", "notes.txt")
    assert paths == {(str(place.root.resolve() / name), "write", True) for name in names}
    assert policy.seen[0]["input"] == policy.seen[1]["input"]


def test_effects_are_counted_and_listed(place: Place, opened: Open) -> None:
    policy = Decides(stated("allow"))
    place.call(opened(policy), "echo x > made; chmod +x made; echo y >> notes.txt; false")
    effects = policy.effects
    counts = {"created": 1, "changed": 1, "deleted": 0, "mode": 0, "owner": 0, "linked": 0}
    assert effects["counts"] == {**counts, "connections": 0, "reported": 0}
    listed = {(path["operation"], path["kind"], path["executable"]) for path in effects["paths"]}
    assert listed == {("created", "file", True), ("changed", "file", False)}
    assert effects["complete"]
    assert effects["commands"] == [{"exit_code": 1, "timed_out": False}]


def test_connections_are_effects(place: Place, opened: Open) -> None:
    policy = Decides(stated("deny"))
    line = "python3 -c 'import socket; socket.create_connection((\"10.255.255.53\", 9))'"
    with pytest.raises(ToolDenied):
        place.call(opened(policy), line)
    assert policy.effects["connections"][0]["host"] == "10.255.255.53"
    assert policy.effects["counts"]["connections"] == 1


def test_a_policy_without_an_answer_denies(place: Place, opened: Open) -> None:
    captured = opened(Decides(lambda document: None))
    with pytest.raises(ToolDenied):
        place.call(captured, "touch a")
    assert not (place.root / "a").exists()
    assert place.layers == []


def test_a_broken_engine_denies(place: Place, opened: Open) -> None:
    def broken(document: Any) -> Any:
        raise RuntimeError("no")

    with pytest.raises(ToolDenied):
        place.call(opened(Decides(broken)), "touch a")
    assert not (place.root / "a").exists()
    assert place.layers == []


def test_a_changed_input_is_no_answer(place: Place, opened: Open) -> None:
    policy = Decides(lambda document: decision("allow", updated_input={"command": "true"}))
    with pytest.raises(ToolDenied):
        place.call(opened(policy), "touch a")
    assert not (place.root / "a").exists()


def test_an_obligation_to_only_read_denies(place: Place, opened: Open) -> None:
    read = {"sandbox": {"profile": "read"}}
    policy = Decides(lambda document: decision("allow", obligations=read))
    with pytest.raises(ToolDenied):
        place.call(opened(policy), "touch a")
    assert not (place.root / "a").exists()


def test_a_body_that_raises_leaves_nothing(place: Place, opened: Open) -> None:
    def fails(command: str) -> str:
        run_command(command)
        raise ValueError("broken")

    policy = Decides(stated("allow"))
    with pytest.raises(ValueError, match="broken"):
        place.call(opened(policy), "touch a", fails)
    assert not (place.root / "a").exists()
    assert place.layers == []
    assert len(policy.seen) == 1


def test_the_body_itself_may_write_nothing(place: Place, opened: Open) -> None:
    def writes(command: str) -> str:
        (place.root / "own").write_text("x")
        return run_command(command).text

    with pytest.raises(PermissionError):
        place.call(opened(Decides(stated("allow"))), "touch a", writes)
    assert [entry.name for entry in place.root.iterdir()] == ["notes.txt"]


def test_each_attempt_has_a_layer_of_its_own(place: Place, opened: Open) -> None:
    runs = []

    def flaky(command: str) -> str:
        runs.append(run_command(f"{command}; echo again >> notes.txt; cat notes.txt").text)
        if len(runs) == 1:
            raise ConnectionError("again")
        return runs[-1]

    retry = {"max_attempts": 2, "initial_delay_ms": 1, "retry_on": ["dependency_unavailable"]}
    captured = opened(Decides(stated("allow")))
    assert place.call(captured, "true", flaky, retry=retry) == "first\nagain\n"
    assert runs == ["first\nagain\n", "first\nagain\n"]
    assert (place.root / "notes.txt").read_text() == "first\nagain\n"


def test_a_time_limit_leaves_nothing(place: Place, opened: Open) -> None:
    captured = opened(Decides(stated("allow")))
    with pytest.raises(GovernedOutcome):
        place.call(captured, "touch a; sleep 60", timeout_ms=2_000)
    assert not (place.root / "a").exists()
    assert place.layers == []


def test_commands_of_a_coroutine_are_rehearsed(place: Place, opened: Open) -> None:
    captured = opened(Decides(stated("allow")))
    assert place.call(captured, "touch a; echo done", ashell) == "done\n"
    assert (place.root / "a").exists()


def test_denied_effects_of_a_coroutine_are_gone(place: Place, opened: Open) -> None:
    captured = opened(Decides(stated("deny")))
    with pytest.raises(ToolDenied):
        place.call(captured, "touch a", ashell)
    assert not (place.root / "a").exists()
    assert place.layers == []


def test_an_approval_commits_what_was_shown(place: Place, opened: Open) -> None:
    captured = opened(Decides(stated("ask")))
    question = asked(place, captured, "echo second >> notes.txt; echo done")
    assert (place.root / "notes.txt").read_text() == "first\n"
    answer(captured, question)
    with place.context():
        result = captured.governor.resume(question.invocation_id)
    assert "done" in json.dumps(result.to_json_object())
    assert (place.root / "notes.txt").read_text() == "first\nsecond\n"
    assert place.layers == []


def test_the_body_does_not_run_again(place: Place, opened: Open) -> None:
    runs = []

    def counted(command: str) -> str:
        runs.append(command)
        return run_command(command).text

    captured = opened(Decides(stated("ask")))
    question = asked(place, captured, "touch a", function=counted)
    answer(captured, question)
    with place.context():
        captured.governor.resume(question.invocation_id)
    assert len(runs) == 1


def test_an_approver_in_place_is_shown_the_diff(place: Place, opened: Open) -> None:
    shown = []

    class Approver:
        def ask(self, request: Any) -> ApprovalAnswer:
            shown.append(request)
            return ADA

    captured = opened(Decides(stated("ask")), approver=Approver())
    place.call(captured, "echo second >> notes.txt")
    assert "+second" in shown[0].diff
    assert shown[0].effects["counts"]["changed"] == 1
    assert (place.root / "notes.txt").read_text() == "first\nsecond\n"


def test_secrets_in_the_diff_are_redacted(place: Place, opened: Open) -> None:
    captured = opened(Decides(stated("ask")))
    (place.root / "settings.txt").write_text(f"token={TOKEN}\n")
    question = asked(place, captured, "sed s/token=/key=/ settings.txt > copy.txt")
    request = captured.governor.approvals.store.get(question.request_id)
    assert "+key=" in request.diff
    assert TOKEN not in request.model_dump_json()
    assert TOKEN not in captured.span.to_json()


def test_another_process_commits(place: Place, opened: Open, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'approvals.db'}"
    first = opened(Decides(stated("ask")), approvals=url)
    question = asked(place, first, "touch a; echo done")
    second = opened(Decides(stated("ask")), approvals=url)
    place.govern(second)
    answer(second, question)
    with place.context():
        result = second.governor.resume(question.invocation_id)
    assert "done" in json.dumps(result.to_json_object())
    assert (place.root / "a").exists()


def test_a_command_result_is_the_same_elsewhere() -> None:
    result = run_command("echo out; echo no >&2; exit 3")
    assert result_value(json.loads(json.dumps(result_document(result)))) == result


@pytest.mark.parametrize("value", [(1, 2), {1: 2}, {"a": float("nan")}, b"bytes", object()])
def test_a_result_that_is_no_json_is_not_kept(value: object) -> None:
    assert result_document(value) is None


def test_a_result_that_no_other_process_can_read(
    place: Place, opened: Open, tmp_path: Path
) -> None:
    def odd(command: str) -> Any:
        run_command(command)
        return object()

    url = f"sqlite:///{tmp_path / 'approvals.db'}"
    question = asked(place, opened(Decides(stated("ask")), approvals=url), "touch a", function=odd)
    second = opened(Decides(stated("ask")), approvals=url)
    place.govern(second, odd)
    answer(second, question)
    with place.context():
        result = second.governor.resume(question.invocation_id)
    assert result.error.error_class is ErrorClass.POLICY_BLOCKED
    assert not (place.root / "a").exists()
    assert place.layers == []


def test_a_rejection_discards(place: Place, opened: Open) -> None:
    captured = opened(Decides(stated("ask")))
    question = asked(place, captured, "touch a")
    answer(captured, question, ApprovalAnswer(approved=False, answered_by="user:ada"))
    with place.context():
        result = captured.governor.resume(question.invocation_id)
    assert result.error.error_class is ErrorClass.APPROVAL_REJECTED
    assert not (place.root / "a").exists()
    assert place.layers == []


def test_an_expired_question_discards(place: Place, opened: Open) -> None:
    captured = opened(Decides(stated("ask")), approvals_ttl=0.5)
    question = asked(place, captured, "touch a")
    assert len(place.layers) == 1
    time.sleep(1)
    captured.clear()
    with place.context():
        result = captured.governor.resume(question.invocation_id)
    assert result.error.error_class is ErrorClass.POLICY_BLOCKED
    assert not (place.root / "a").exists()
    assert place.layers == []


def test_a_kill_before_the_commit_changes_nothing(
    place: Place, opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'approvals.db'}"
    question = asked(place, opened(Decides(stated("ask")), approvals=url), "echo more >> notes.txt")
    _killed_at("commit", place, url, question, monkeypatch)
    assert (place.root / "notes.txt").read_text() == "first\n"


def test_a_kill_before_the_commit_is_asked_again(
    place: Place, opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'approvals.db'}"
    question = asked(place, opened(Decides(stated("ask")), approvals=url), "echo more >> notes.txt")
    _killed_at("commit", place, url, question, monkeypatch)
    third = opened(Decides(stated("ask")), approvals=url)
    place.govern(third)
    store = third.governor.approvals.store
    pending = [request for request in store.list() if request.status.value == "pending"]
    assert [request.invocation_id for request in pending] == [question.invocation_id]
    assert "+more" in pending[0].diff
    store.answer(pending[0].request_id, ADA)
    third.clear()
    with place.context():
        third.governor.resume(question.invocation_id)
    assert (place.root / "notes.txt").read_text() == "first\nmore\n"
    assert place.layers == []


def test_a_kill_in_the_commit_never_commits_twice(
    place: Place, opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'approvals.db'}"
    question = asked(place, opened(Decides(stated("ask")), approvals=url), "echo more >> notes.txt")
    _killed_at("finish_commit", place, url, question, monkeypatch)
    assert len(Rehearsals(place.state).sweep().finished) == 1
    assert (place.root / "notes.txt").read_text() == "first\nmore\n"
    third = opened(Decides(stated("ask")), approvals=url)
    place.govern(third)
    store = third.governor.approvals.store
    for request in store.list():
        if request.status.value == "pending":
            store.answer(request.request_id, ADA)
    with place.context():
        result = third.governor.resume(question.invocation_id)
    assert result.error.error_class is ErrorClass.POLICY_BLOCKED
    assert (place.root / "notes.txt").read_text() == "first\nmore\n"


def _killed_at(
    step: str,
    place: Place,
    url: str,
    question: ApprovalRequired,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Resume a call in another process, which is killed where it takes a step of the commit."""
    process = os.fork()
    if not process:
        # a child proves anew, and the canary of layers is committed
        assert not rehearsal_failure(place.state)
        monkeypatch.setattr(SealedLayer, step, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        _resumed_elsewhere(place, url, question)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(process, 0)[1]) == signal.SIGKILL


def _resumed_elsewhere(place: Place, url: str, question: ApprovalRequired) -> None:
    with capture(
        policy=Decides(stated("ask")).engine, rehearsals_dir=str(place.state), approvals=url
    ) as captured:
        place.govern(captured)
        captured.governor.approvals.store.answer(question.request_id, ADA)
        with place.context():
            captured.governor.resume(question.invocation_id)


def test_a_denial_after_the_answer_discards(place: Place, opened: Open) -> None:
    policy = Decides(lambda document: decision("deny" if document["approval"] else "ask"))
    captured = opened(policy)
    question = asked(place, captured, "touch a")
    answer(captured, question)
    with place.context():
        result = captured.governor.resume(question.invocation_id)
    assert result.error.error_class is ErrorClass.PERMISSION_DENIED
    assert not (place.root / "a").exists()
    assert place.layers == []


def test_a_yes_to_the_command_is_none_to_its_effects(place: Place, opened: Open) -> None:
    def first(document: Any) -> Any:
        return decision("allow" if document["approval"] else "ask", obligations=REHEARSE)

    policy = Decides(stated("ask"), first=first)
    captured = opened(policy)
    question = asked(place, captured, "touch a")
    answer(captured, question)
    with place.context():
        captured.governor.resume(question.invocation_id)
    assert policy.effects
    assert policy.seen[-1]["approval"] is None
    assert not (place.root / "a").exists()


def test_a_conflict_merges_nothing(place: Place, opened: Open) -> None:
    captured = opened(Decides(stated("ask")))
    question = asked(place, captured, "echo second >> notes.txt; touch a")
    (place.root / "notes.txt").write_text("by somebody else\n")
    answer(captured, question)
    with place.context():
        result = captured.governor.resume(question.invocation_id)
    assert result.error.error_class is ErrorClass.DEPENDENCY_UNAVAILABLE
    assert (place.root / "notes.txt").read_text() == "by somebody else\n"
    assert not (place.root / "a").exists()
    assert place.layers == []


def test_an_approval_is_used_once(place: Place, opened: Open) -> None:
    captured = opened(Decides(stated("ask")))
    question = asked(place, captured, "echo second >> notes.txt")
    answer(captured, question)
    with place.context():
        captured.governor.resume(question.invocation_id)
        again = captured.governor.resume(question.invocation_id)
    assert again.error.error_class is ErrorClass.POLICY_BLOCKED
    assert (place.root / "notes.txt").read_text() == "first\nsecond\n"


def test_a_tool_without_commands_is_not_rehearsed(place: Place, opened: Open) -> None:
    policy = Decides(stated("allow"))
    with pytest.raises(ToolDenied):
        place.call(opened(policy), "touch a", runs_commands=False)
    assert policy.seen[0]["execution"]["sandboxes"] == ["read"]
    assert not (place.root / "a").exists()


def test_a_host_that_can_not_rehearse_denies(
    place: Place, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enforcement.rehearsal, "rehearsal_failure", lambda *_: "no overlay")
    captured = opened(Decides(stated("allow")))
    with pytest.raises(ToolDenied):
        place.call(captured, "touch a")
    assert captured.span.attributes[Attr.PERMISSION_FAIL_CLOSED] == "sandbox_unavailable"
    assert not (place.root / "a").exists()


@pytest.fixture
def by_rules(place: Place, tmp_path: Path) -> Iterator[Capture]:
    """A Governor with rules of its own beside the stock bundle, in the embedded engine."""
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "own.rego").write_text(RULES)
    with capture(extension=folder, rehearsals_dir=str(place.state)) as captured:
        yield captured


def test_rules_of_ones_own_let_effects_happen(place: Place, by_rules: Capture) -> None:
    place.call(by_rules, "touch a")
    assert (place.root / "a").exists()


def test_rules_of_ones_own_deny_effects(place: Place, by_rules: Capture) -> None:
    with pytest.raises(ToolDenied) as denied:
        place.call(by_rules, "rm notes.txt")
    assert denied.value.decision.reason.rule_ref == "own.deletes"
    assert (place.root / "notes.txt").exists()


def test_the_stock_rules_on_paths_judge_effects(place: Place, by_rules: Capture) -> None:
    with pytest.raises(GovernedOutcome) as outcome:
        place.call(by_rules, "mkdir .git && touch .git/config")
    assert "paths" in str(outcome.value.decision.reason.rule_ref)
    assert not (place.root / ".git").exists()


def test_the_span_counts_effects_without_paths(place: Place, opened: Open) -> None:
    captured = opened(Decides(stated("allow")))
    place.call(captured, "touch marked-a marked-b; rm notes.txt")
    attributes = captured.span.attributes
    assert attributes[Attr.EFFECTS_CREATED] == 2
    assert attributes[Attr.EFFECTS_DELETED] == 1
    assert attributes[Attr.SANDBOX_PROFILE] == "rehearse"
    assert attributes[Attr.SANDBOX_ENFORCED] is True
    assert [
        event[Attr.EFFECTS_CREATED] for event in events_of(captured, Event.EFFECTS_COMMITTED)
    ] == [2]
    assert len(events_of(captured, Event.PERMISSION_DECIDED)) == 2
    assert "marked-a" not in captured.span.to_json()


def test_the_story_has_the_effects(place: Place, opened: Open) -> None:
    captured = opened(Decides(stated("allow")))
    place.call(captured, "touch a b; rm notes.txt")
    story = why(SpanView.from_sdk(captured.span))
    assert "ran on a layer, where they created 2 paths, deleted 1 path." in story
    assert "decided a second time, and committed" in story


def test_a_person_is_shown_the_diff_first(place: Place, opened: Open) -> None:
    captured = opened(Decides(stated("ask")))
    question = asked(place, captured, "echo second >> notes.txt")
    console = Console(record=True, width=120, file=io.StringIO())
    console.print(request_panel(captured.governor.approvals.store.get(question.request_id)))
    text = console.export_text()
    assert 0 < text.index("+second") < text.index("Arguments")
    assert "1 changed" in text


def test_discarded_effects_are_an_event(place: Place, opened: Open) -> None:
    captured = opened(Decides(stated("deny")))
    with pytest.raises(ToolDenied):
        place.call(captured, "touch a")
    assert len(events_of(captured, Event.EFFECTS_DISCARDED)) == 1
    assert events_of(captured, Event.EFFECTS_COMMITTED) == []
