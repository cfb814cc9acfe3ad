"""What a call looks up once, and what no call leaves to the next."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from agenttool_otel import ApprovalRequired, agent_context
from agenttool_otel.context.context import AgentContext, run_in_context
from agenttool_otel.facts.plan import FactPlan
from agenttool_otel.readers import path_fact
from agenttool_otel.readers.types import Surroundings
from agenttool_otel.redaction.text import TextRedactor
from agenttool_otel.testing import capture

READS: dict[str, Any] = {
    "read_only": True,
    "destructive": False,
    "open_world": False,
    "access_kinds": ["file_read"],
    "path_args": ["path"],
}


def stated(**facts: Any) -> AgentContext:
    with agent_context(**facts) as context:
        return context


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """A root and a directory outside of it, each with a file ``a``."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    for place in (root, outside):
        place.mkdir()
        (place / "a").write_text("x", "utf-8")
    return root, outside


def test_an_equal_context_is_the_same_context() -> None:
    facts: dict[str, Any] = {"actor": "agent:a", "roles": ["reader"], "labels": {"team": "x"}}
    assert stated(**facts) is stated(**facts)


def test_contexts_of_sessions_in_turn_are_the_same_again() -> None:
    seen = [stated(actor="agent:a", session_id=session) for session in ("one", "two") * 2]
    assert seen[0] is seen[2]
    assert seen[1] is seen[3]


@pytest.mark.parametrize(
    "change",
    [{"actor": "agent:b"}, {"roles": ["writer"]}, {"labels": {"team": "y"}}, {"mode": "strict"}],
)
def test_another_statement_is_another_context(change: dict[str, Any]) -> None:
    facts: dict[str, Any] = {"actor": "agent:a", "roles": ["reader"], "labels": {"team": "x"}}
    first, second = stated(**facts), stated(**{**facts, **change})
    assert first.identity != second.identity


def test_an_evaluation_that_was_changed_is_seen() -> None:
    evaluation = {"status": "passing"}
    first = stated(actor="agent:a", evaluation=evaluation).identity
    evaluation["status"] = "failing"
    assert stated(actor="agent:a", evaluation=evaluation).identity != first


def test_labels_that_only_compare_equal_are_not_mixed_up() -> None:
    number: Any = {"paid": 1}
    truth: Any = {"paid": True}
    stated(actor="agent:a", labels=number)
    assert stated(actor="agent:a", labels=truth).labels["paid"] is True


def test_labels_that_were_changed_outside_are_seen() -> None:
    labels = {"team": "x"}
    outer = AgentContext(actor="agent:a", labels=labels)
    first = run_in_context(outer, lambda: stated(session_id="s").identity)
    labels["team"] = "y"
    assert run_in_context(outer, lambda: stated(session_id="s").identity) != first


def test_labels_changed_in_a_context_are_in_no_later_one() -> None:
    def inside(labels: dict[str, str]) -> AgentContext:
        outer = AgentContext(actor="agent:a", labels=labels)
        return run_in_context(outer, lambda: stated(session_id="s"))

    labels = {"tier": "free"}
    inside(labels)
    labels["tier"] = "paid"
    assert inside({"tier": "free"}).labels == {"tier": "free"}


def test_a_relative_root_is_that_of_the_directory_now(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for place in places:
        monkeypatch.chdir(place)
        found.append(stated(roots=["."]).roots)
    assert found == [(str(place),) for place in places]


def test_a_root_swapped_between_two_calls_is_seen(places: tuple[Path, Path]) -> None:
    root, outside = places
    link = root.parent / "link"
    link.symlink_to(root)

    def read(path: str) -> str:
        """Read."""
        return Path(path).read_text("utf-8")

    with capture() as captured, agent_context(actor="agent:a", session_id="s", roots=[link]):
        governed = captured.governor.govern(read, **READS)
        inside = str(root / "a")
        assert governed(inside) == "x"
        link.unlink()
        link.symlink_to(outside)
        with pytest.raises(ApprovalRequired):
            governed(inside)


def test_a_place_is_looked_up_once_for_a_calls_paths(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, _ = places
    env = Surroundings(roots=(str(root),), protected=((str(root / "p"), "approval"),), looked_up={})
    looked_at: list[str] = []
    lstat = os.lstat

    def counted(path: str) -> os.stat_result:
        looked_at.append(path)
        return lstat(path)

    monkeypatch.setattr(os, "lstat", counted)
    for name in ("/b", "/c", "/d"):
        path_fact(name, "", env)
    assert looked_at.count(str(root / "p")) == 1


def test_surroundings_of_ones_own_look_again(places: tuple[Path, Path]) -> None:
    root, outside = places
    link = root.parent / "link"
    link.symlink_to(root)
    env = Surroundings(roots=(str(link),))
    assert path_fact(str(root / "a"), "", env)["inside"]
    link.unlink()
    link.symlink_to(outside)
    assert not path_fact(str(root / "a"), "", env)["inside"]


# --- within one call ------------------------------------------------------------------------------


def counted(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> list[Any]:
    """Return a list that gets the first argument of each call of a method."""
    calls: list[Any] = []
    method = getattr(owner, name)

    def noted(self: Any, *args: Any) -> Any:
        calls.append(args[0])
        return method(self, *args)

    monkeypatch.setattr(owner, name, noted)
    return calls


def test_what_a_question_repeats_is_redacted_once(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(places[0] / "notes-990364269.txt")
    writes = {**READS, "read_only": False, "access_kinds": ["file_write"]}
    with capture() as captured, agent_context(actor="agent:a", session_id="s", roots=[places[0]]):
        governed = captured.governor.govern(lambda path: None, name="write", **writes)
        looked_at = counted(monkeypatch, TextRedactor, "spans")
        with pytest.raises(ApprovalRequired):
            governed(path)
        (request,) = captured.governor.approvals.store.list("pending")
    assert request.arguments_preview == {"path": path}
    assert [place["place"] for place in request.places] == [path]
    assert looked_at.count(path) == 1


def test_facts_that_the_pipeline_takes_over_are_not_sought_again(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with capture() as captured, agent_context(actor="agent:a", session_id="s", roots=[places[0]]):
        governed = captured.governor.govern(lambda path: path, name="read", **READS)
        for _ in range(3):
            governed(str(places[0] / "a"))
        established = counted(monkeypatch, FactPlan, "establish")
        with pytest.raises(ApprovalRequired):
            governed(str(places[1] / "a"))  # no decision is cached that allows it
    assert len(established) == 1
