"""A rule that can't succeed in this bundle is not read: only where that is certain."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agenttool_otel.names import EntryPoint
from agenttool_otel.policy.engines.embedded import EmbeddedEngine

POLICY = """package agenttool.permission

decision := {"behavior": "deny", "reason": {"type": "rule", "message": "used up"}} if over
else := {"behavior": "allow", "reason": {"type": "rule", "message": "fine"}} if input.tool.name

over if {
	%s
	input.session.counters.calls > data.agenttool.limits.calls
}

configured if data.agenttool.limits.calls
depends_on_mode if input.session.mode == "strict"
depends_on_tool if input.tool.kind == "shell_command"
depends_on_profile if "network" in input.permission_profile.access_kinds
depends_on_names if "calls" in object.keys(input.input)
depends_on_actor if input.actor.id == "a"
depends_on_arguments if input.input.n == 3
guessed if rand.intn("x", 2) == 1
"""


COUNTED = {"tool.name.~truth", "session.counters.calls"}


def reads(
    tmp_path: Path, first: str, data: dict[str, object], document: dict[str, object] | None = None
) -> set[str]:
    (tmp_path / "policy.rego").write_text(POLICY % first, encoding="utf-8")
    (tmp_path / "data.json").write_text(json.dumps({"agenttool": data}), encoding="utf-8")
    found = EmbeddedEngine(tmp_path).reads(EntryPoint.DECISION, document or {})
    if found is None:
        return {"not provable"}
    return {".".join(path).replace("\0", "~") for path in found[1].paths}


def test_a_rule_behind_a_false_data_guard_is_not_read(tmp_path: Path) -> None:
    assert reads(tmp_path, "configured", {}) == {"tool.name.~truth"}
    assert reads(tmp_path, "data.agenttool.permission.configured", {}) == {"tool.name.~truth"}


def test_it_is_read_once_the_guard_holds(tmp_path: Path) -> None:
    assert reads(tmp_path, "configured", {"limits": {"calls": 3}}) == {
        "tool.name.~truth",
        "session.counters.calls",
    }


GUARDED = [
    (
        "depends_on_mode",
        {"session": {"mode": "default"}},
        {"session": {"mode": "strict"}},
        "session.mode.~word",
    ),
    (
        "depends_on_tool",
        {"tool": {"kind": "function"}},
        {"tool": {"kind": "shell_command"}},
        "tool.kind.~word",
    ),
    (
        "depends_on_profile",
        {"permission_profile": {"access_kinds": []}},
        {"permission_profile": {"access_kinds": ["network"]}},
        "permission_profile.access_kinds.~each.~word permission_profile.access_kinds.~keys",
    ),
    ("depends_on_names", {"input": {"n": 1}}, {"input": {"calls": 1}}, "input.~keys"),
]


@pytest.mark.parametrize(("first", "fails", "holds", "read"), GUARDED)
def test_guards_of_mode_tool_profile_and_names(
    tmp_path: Path, first: str, fails: dict[str, object], holds: dict[str, object], read: str
) -> None:
    assert reads(tmp_path, first, {}, fails) == {"tool.name.~truth"}
    assert reads(tmp_path, first, {}, holds) == COUNTED | set(read.split())
    assert reads(tmp_path, first, {}, {}) == COUNTED | set(read.split()), (
        "what is not told may hold"
    )


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        ("not configured", {"tool.name.~truth", "session.counters.calls"}),
        ("depends_on_arguments", {"tool.name.~truth", "session.counters.calls", "input.n.~word"}),
        ("depends_on_actor", COUNTED | {"actor.id.~word"}),
        ("configured == true", {"tool.name.~truth", "session.counters.calls"}),
        (
            "input.session.interactive; configured",
            {"tool.name.~truth", "session.counters.calls", "session.interactive.~truth"},
        ),
    ],
)
def test_anything_else_counts_as_read(tmp_path: Path, first: str, expected: set[str]) -> None:
    assert reads(tmp_path, first, {}) == expected
