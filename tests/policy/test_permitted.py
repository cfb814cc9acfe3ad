"""An answer that allows is found by less than the decision reads: only where that is sure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from policy_inputs import make_document

from agenttool_otel import Governor, agent_context
from agenttool_otel.errors import (
    PolicyError,
    PolicyEvaluationError,
    PolicyTimeout,
    PolicyUnavailable,
)
from agenttool_otel.names import Behavior, EntryPoint
from agenttool_otel.policy.bundles.bundle import bundle_from_files, default_bundle_path
from agenttool_otel.policy.cache import DecisionCache
from agenttool_otel.policy.decider import Decider
from agenttool_otel.policy.engines.embedded import EmbeddedEngine

PERMITTED = """
default permitted := {}
permitted := {"behavior": "allow"} if input.tool.read_only
"""
FIRST = """
decision := permitted if {
	permitted.behavior == "allow"
} else := {"behavior": "deny", "reason": {"type": "rule", "message": input.tool.id}}
"""


def engine(rules: str) -> EmbeddedEngine:
    text = f"package agenttool.permission\n{rules}"
    return EmbeddedEngine(bundle_from_files({"p.rego": text.encode()}, origin="t"))


def test_the_stock_decision_begins_with_it() -> None:
    assert EmbeddedEngine(default_bundle_path()).has_permitted


@pytest.mark.parametrize(
    "rules",
    [
        FIRST,
        PERMITTED + FIRST + 'decision := {"behavior": "deny"} if input.tool.destructive',
        PERMITTED + FIRST.replace("permitted.behavior", "input.tool.read_only; permitted.behavior"),
        PERMITTED + FIRST.replace('== "allow"', '!= "deny"'),
        PERMITTED + FIRST.replace('"allow"', '"ask"'),
        PERMITTED + FIRST.replace(":= permitted if", ":= input.tool if"),
        PERMITTED + 'decision := {"behavior": "deny"} if input.tool.destructive else := permitted',
        PERMITTED + "decision := permitted",
        PERMITTED + "default decision := {}\n" + FIRST,
    ],
)
def test_any_other_decision_is_found_by_all_that_it_reads(rules: str) -> None:
    if "permitted :=" not in rules:
        rules = FIRST.replace("permitted", "allowed") + PERMITTED.replace("permitted", "allowed")
    assert not engine(rules).has_permitted


def test_what_only_a_denial_reads_does_not_miss() -> None:
    decider = Decider([engine(PERMITTED + FIRST)], cache=DecisionCache())
    one, other = make_document({"tool.id": "a"}), make_document({"tool.id": "b"})
    assert not decider.decide(one).cached
    assert decider.decide(other).cached


def test_a_denial_is_found_by_all_that_it_reads() -> None:
    decider = Decider([engine(PERMITTED + FIRST)], cache=DecisionCache())
    for name in ("a", "b"):
        denied = decider.decide(make_document({"tool.id": name, "tool.read_only": False}))
        assert (denied.message, denied.cached) == (name, False)
    again = decider.decide(make_document({"tool.id": "a", "tool.read_only": False}))
    assert (again.message, again.cached) == ("a", True)


def test_an_answer_that_is_not_of_it_is_found_by_all() -> None:
    other = FIRST.replace('"deny", "reason"', '"allow", "reason"')
    decider = Decider([engine(PERMITTED + other)], cache=DecisionCache())
    for name in ("a", "b"):
        allowed = decider.decide(make_document({"tool.id": name, "tool.read_only": False}))
        assert (allowed.message, allowed.cached) == (name, False)


@pytest.mark.parametrize("error", [PolicyTimeout, PolicyUnavailable, PolicyEvaluationError])
def test_an_answer_stands_where_its_rule_is_not_answered(
    monkeypatch: pytest.MonkeyPatch, error: type[PolicyError]
) -> None:
    subject = engine(PERMITTED + FIRST)
    evaluate = subject.evaluate

    def fails(entry_point: str, document: Any, *, timeout: float) -> Any:
        if entry_point == EntryPoint.PERMITTED:
            raise error("not in time")
        return evaluate(entry_point, document, timeout=timeout)

    monkeypatch.setattr(subject, "evaluate", fails)
    decider = Decider([subject], cache=DecisionCache())
    assert decider.decide(make_document()).behavior is Behavior.ALLOW


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("one.txt", "other.txt", ".env"):
        (tmp_path / name).write_text("text", encoding="utf-8")
    return tmp_path


def checked(root: Path, roots: list[Path], names: list[str]) -> tuple[list[str], int]:
    """What a tool that reads files may do with some names, and the hits of the cache."""
    governor = Governor()

    def read(path: str) -> str:
        """Read a file."""
        return Path(path).read_text(encoding="utf-8")

    facts = {"tool_kind": "file_operation", "access_kinds": ["file_read"], "path_args": ["path"]}
    tool = governor.govern(read, read_only=True, **facts)
    with agent_context(actor="agent:a", roots=roots, interactive=False):
        behaviors = [tool.tool.check(path=str(root / name)).behavior.value for name in names]
    assert governor.decider._cache is not None
    return behaviors, governor.decider._cache.stats().hits


def test_files_inside_are_found_whatever_their_names(root: Path) -> None:
    names = ["one.txt", "other.txt", ".env", "../x"]
    assert checked(root, [root], names) == (["allow", "allow", "deny", "ask"], 1)


def test_files_of_no_root_are_found_whatever_their_names(root: Path) -> None:
    names = ["one.txt", "other.txt", ".env"]
    assert checked(root, [], names) == (["allow", "allow", "deny"], 1)


def test_urls_of_one_host_are_found_whatever_their_paths() -> None:
    governor = Governor()
    facts = {"read_only": True, "open_world": True, "access_kinds": ["network"]}
    tool = governor.govern(lambda url: url, name="fetch", url_args=["url"], **facts)
    found = [tool.tool.check(url=f"https://docs.python.org/3/{name}").behavior for name in "ab"]
    assert governor.decider._cache is not None
    assert found == [Behavior.ALLOW] * 2
    assert governor.decider._cache.stats().hits == 1
