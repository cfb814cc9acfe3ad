"""Which calls the stock bundle holds instead of asking, asked of every engine."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, get_type_hints

import pytest
from stock_bundle import EMBEDDED, Opa, call, fixture, merged, shell_call, write_call

from agenttool_otel.facts.types import EffectCounts

Decided = Callable[..., list[Any]]
BOTH = ["read", "rehearse"]
# a test run, of which nobody knows what it writes
UNPROVEN = shell_call(
    read_only=False,
    complete=False,
    commands=[
        merged(
            fixture("shell_fact")["commands"][0],
            {"read_only": False, "complete": False, "category": "unknown", "places": []},
        )
    ],
)

# the same by a tool that states what it does
STATED = merged(UNPROVEN, {"tool": {"inferred": []}})


def on(document: Any, sandboxes: Any) -> Any:
    return merged(document, {"execution": {"sandboxes": sandboxes, "scope": "thread"}})


def effects(*paths: Any, **changes: Any) -> dict[str, Any]:
    document = {
        "counts": dict.fromkeys(get_type_hints(EffectCounts), 0),
        "paths": list(paths),
        "connections": [],
        "complete": True,
        "reasons": [],
        "commands": [{"exit_code": 0, "timed_out": False}],
        "changes": [],
        "digest": "ab",
    }
    return merged(document, changes)  # type: ignore[no-any-return]


def effect(**changes: Any) -> dict[str, Any]:
    """One changed path."""
    more = {"operation": "changed", "kind": "file", "executable": False, "noise": False, "below": 0}
    return {**fixture("path_fact"), "access": "write", "argument": "/command", **more, **changes}


def after(*paths: Any, **changes: Any) -> Any:
    """The input of a second decision."""
    own = fixture("path_fact")
    judged = [{name: path[name] for name in own} for path in paths]
    facts = {"shell": [], "paths": judged, "effects": effects(*paths, **changes)}
    return on(merged(UNPROVEN, {"facts": facts}), BOTH)


@functools.cache
def engine(kind: type[Any], preset: str) -> Any:
    return kind({"preset": preset})


@pytest.fixture(
    params=[*EMBEDDED, pytest.param(Opa, marks=pytest.mark.opa)], ids=lambda kind: kind.name
)
def decided(request: pytest.FixtureRequest) -> Decided:
    """Returns what an engine decides with a preset."""
    return lambda preset, *documents: engine(request.param, preset).decide(documents)  # type: ignore[no-any-return]


def held_by(answer: Any) -> Any:
    return answer["obligations"].get("sandbox")


def behaviors(answers: list[Any]) -> list[str]:
    return [answer["behavior"] for answer in answers]


@pytest.mark.parametrize("preset", ["balanced", "coding"])
def test_a_command_of_unknown_effects_is_rehearsed(decided: Decided, preset: str) -> None:
    [answer] = decided(preset, on(UNPROVEN, BOTH))
    assert answer["behavior"] == "allow"
    assert answer["reason"]["rule_ref"] == "agenttool.sandbox.rehearse"
    assert "agenttool.rules.shell.not_read_only" in answer["rule_refs"]
    assert held_by(answer) == {"profile": "rehearse", "network": "none"}


def test_where_nothing_is_proven_it_is_asked_about(decided: Decided) -> None:
    sandboxes = [[], ["read"], ["write"], "rehearse", None, {"rehearse": True}]
    answers = decided("balanced", UNPROVEN, *[on(UNPROVEN, each) for each in sandboxes])
    assert behaviors(answers) == ["ask"] * 7
    assert [held_by(answer) for answer in answers] == [None] * 7


@pytest.mark.parametrize("preset", ["plan", "strict"])
def test_careful_presets_rehearse_nothing(decided: Decided, preset: str) -> None:
    only, both = decided(preset, on(UNPROVEN, ["rehearse"]), on(UNPROVEN, BOTH))
    assert only["behavior"] != "allow"
    assert "rehearse" not in str(held_by(both))


def test_plan_holds_what_it_can_not_prove(decided: Decided) -> None:
    held, unheld = decided("plan", on(STATED, ["read"]), on(STATED, ["rehearse"]))
    assert (held["behavior"], unheld["behavior"]) == ("allow", "deny")
    assert held["reason"]["rule_ref"] == "agenttool.sandbox.read"
    assert held_by(held) == {"profile": "read", "network": "none"}


def test_plan_denies_where_a_reason_is_left(decided: Decided) -> None:
    shell = STATED["facts"]["shell"][0]
    connects = {"network": True, "connects": True}
    changes = [connects, {"sensitive_read": True}, {"destructive": True}]
    documents = [
        on(merged(STATED, {"facts": {"shell": [{**shell, **change}]}}), BOTH) for change in changes
    ]
    other = on(merged(STATED, {"tool": {"kind": "function"}}), BOTH)
    assert behaviors(decided("plan", *documents, other, on(UNPROVEN, BOTH))) == ["deny"] * 5


@pytest.mark.parametrize("granted", [True, False])
def test_an_approval_does_not_take_the_place_of_a_profile(decided: Decided, granted: bool) -> None:
    answered = {
        "invocation": {"resumed": not granted},
        "approval": {**fixture("approved"), "granted": granted},
    }
    [answer] = decided("plan", on(merged(STATED, answered), BOTH))
    assert answer["behavior"] == "deny"


def test_one_question_outside_of_the_table_is_asked_with_all(decided: Decided) -> None:
    changes = [{"network": True, "connects": True}, {"sensitive_read": True}]
    documents = [
        on(
            merged(UNPROVEN, {"facts": {"shell": [{**UNPROVEN["facts"]["shell"][0], **change}]}}),
            BOTH,
        )
        for change in changes
    ]
    answers = decided("coding", *documents)
    assert behaviors(answers) == ["ask", "ask"]
    assert [held_by(answer) for answer in answers] == [None, None]


@pytest.mark.parametrize("preset", ["balanced", "coding"])
def test_a_network_that_is_only_possible_is_rehearsed(decided: Decided, preset: str) -> None:
    unknown = {**UNPROVEN["facts"]["shell"][0], "network": True, "connects": False}
    [answer] = decided(preset, on(merged(UNPROVEN, {"facts": {"shell": [unknown]}}), BOTH))
    assert held_by(answer) == {"profile": "rehearse", "network": "none"}


def test_a_denial_is_no_question(decided: Decided) -> None:
    downloads = {**UNPROVEN["facts"]["shell"][0], "runs_download": True}
    [answer] = decided("coding", on(merged(UNPROVEN, {"facts": {"shell": [downloads]}}), BOTH))
    assert answer["behavior"] == "deny"


def test_a_tool_that_runs_no_command_is_asked_about(decided: Decided) -> None:
    other = merged(UNPROVEN, {"tool": {"kind": "function"}})
    answers = decided("balanced", on(write_call(), BOTH), on(other, BOTH))
    assert behaviors(answers) == ["ask", "ask"]


def test_nobody_has_to_be_reachable(decided: Decided) -> None:
    alone = merged(on(UNPROVEN, BOTH), {"session": {"interactive": False}})
    assert behaviors(decided("balanced", alone)) == ["allow"]


def test_a_call_without_questions_is_not_held(decided: Decided) -> None:
    answers = decided("balanced", on(call(), BOTH), on(shell_call(), BOTH))
    assert behaviors(answers) == ["allow", "allow"]
    assert [held_by(answer) for answer in answers] == [None, None]


def test_after_the_rehearsal_the_words_are_not_asked_about(decided: Decided) -> None:
    [answer] = decided("balanced", after())
    assert answer["behavior"] == "allow"
    assert held_by(answer) is None


def test_balanced_asks_about_effects_and_coding_keeps_them(decided: Decided) -> None:
    [asked] = decided("balanced", after(effect()))
    [kept] = decided("coding", after(effect()))
    assert asked["reason"]["rule_ref"] == "agenttool.rules.paths.write_inside"
    assert (asked["behavior"], kept["behavior"]) == ("ask", "allow")


def test_an_effect_outside_of_the_roots_is_denied(decided: Decided) -> None:
    outside = effect(lexical="/usr/bin/x", resolved="/usr/bin/x", inside=False)
    assert behaviors(decided("coding", after(outside))) == ["deny"]


def test_effects_that_nobody_rehearsed_answer_nothing(decided: Decided) -> None:
    changes: list[dict[str, Any]] = [
        {"execution": {"sandboxes": ["read"]}},
        {"execution": {"sandboxes": "rehearse"}},
        {"invocation": {"preflight": True}},
        {"tool": {"kind": "function"}},
        {"facts": {"shell": UNPROVEN["facts"]["shell"]}},
    ]
    answers = decided("coding", *[merged(after(), change) for change in changes])
    assert behaviors(answers) == ["ask"] * 5


def test_effects_of_another_type_are_denied(decided: Decided) -> None:
    wrong: list[Any] = [None, False, "x", {}, []]
    documents = [after() for _ in wrong]
    for document, value in zip(documents, wrong, strict=True):
        document["facts"]["effects"] = value
    assert behaviors(decided("coding", *documents)) == ["deny"] * 5


def test_a_claim_of_effects_starts_no_rehearsal(decided: Decided) -> None:
    claimed = merged(on(UNPROVEN, BOTH), {"facts": {"effects": effects()}})
    assert behaviors(decided("coding", claimed)) == ["ask"]
