"""Requirements of openboa's page on agent tools: definitions, confirmations, custom tools and what a
model can ask about its permissions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agenttool_otel import ApprovalAnswer, agent_context
from agenttool_otel.testing import Capture, StaticEngine, capture, decision

SESSION = {"actor": "agent:a", "session_id": "s", "tenant": "acme"}
FAILING = {"status": "fail", "trend": "improving", "next_step": "read the tests"}


@pytest.fixture
def asking() -> Iterator[Capture]:
    with capture(policy=StaticEngine("ask")) as made, agent_context(**SESSION):
        yield made


def written(captured: Capture, folder: Path) -> dict[str, Any]:
    """Write the posture and return the files by name, JSON as data."""
    files = {}
    for path in captured.governor.write_posture(folder):
        text = path.read_text(encoding="utf-8")
        files[path.name] = json.loads(text) if path.suffix == ".json" else text
    return files


def checked(captured: Capture, tool: str, **arguments: Any) -> dict[str, Any]:
    check, _ = captured.governor.permission_tools()
    found: dict[str, Any] = check.tool.invoke({"tool": tool, "arguments": arguments}).value
    return found


def described(captured: Capture) -> dict[str, Any]:
    _, describe = captured.governor.permission_tools()
    found: dict[str, Any] = describe.tool.invoke().value
    return found


# --- definitions ----------------------------------------------------------------------------------

SCHEMA = {
    "type": "object",
    "properties": {"note": {"type": "string"}},
    "required": ["note"],
    "additionalProperties": False,
}
DEFINITION = {
    "name": "promote",
    "description": "Promote a note",
    "inputSchema": SCHEMA,
    "outputSchema": {"type": "object"},
    "ownership": "mcp",
    "permissionPolicy": "always_ask",
    "effects": ["local_persistent"],
    "readOnly": False,
    "destructive": True,
    "interruptBehavior": "cancel",
}
ROWS = {
    "name": "name",
    "description": "description",
    "inputSchema": "input-schema",
    "outputSchema": "output-schema",
    "ownership": "ownership",
    "permissionPolicy": "permission-policy",
    "effects": "effects",
    "readOnly": "read-only",
    "destructive": "destructive",
    "interruptBehavior": "interrupt-behavior",
}


def promoting(captured: Capture) -> Any:
    return captured.governor.govern(
        lambda note: {},
        name="promote",
        description="Promote a note",
        model_input_schema=SCHEMA,
        output_schema={"type": "object"},
        ownership="mcp",
        write_effects=["local_persistent"],
        destructive=True,
        interrupt_behavior="cancel",
    )


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.covers(f"openboa-definition-{row}"), id=name)
        for name, row in ROWS.items()
    ],
)
def test_a_definition_has_the_fields_of_openboa(name: str, asking: Capture, tmp_path: Path) -> None:
    tool = promoting(asking)
    assert tool
    [definition] = written(asking, tmp_path)["managed-tools.json"]["tools"]
    assert definition[name] == DEFINITION[name]


@pytest.mark.covers(
    "openboa-posture-file",
    "openboa-posture-page",
    "openboa-permissions-file",
    "openboa-managed-tools-file",
)
def test_the_posture_is_in_four_files(asking: Capture, tmp_path: Path) -> None:
    files = written(asking, tmp_path)
    assert sorted(files) == [
        "managed-tools.json",
        "permission-posture.json",
        "permission-posture.md",
        "permissions.json",
    ]


# --- ownership and custom tools -------------------------------------------------------------------


@pytest.mark.covers("openboa-managed-runs-here")
def test_a_tool_without_ownership_runs_here() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        assert captured.governor.govern(lambda: 5, name="act").tool.invoke().value == 5


@pytest.mark.covers("openboa-ownership-before-policy")
def test_a_policy_sees_whose_tool_it_is() -> None:
    engine = StaticEngine("ask")
    with capture(policy=engine) as captured:
        promoting(captured).tool.invoke(note="a")
        assert engine.documents[0]["tool"]["ownership"] == "mcp"


def pick(title: str) -> str:
    raise AssertionError("a custom tool runs elsewhere")


@pytest.mark.covers(
    "openboa-custom-does-not-run-here",
    "openboa-custom-use-is-told",
    "openboa-custom-result-resumes",
)
def test_a_custom_call_waits_for_its_result() -> None:
    with capture(policy=StaticEngine("allow")) as captured, agent_context(**SESSION):
        waiting = captured.governor.govern(pick, ownership="custom").tool.invoke(title="which?")
        assert waiting.status == "pending"
        required = waiting.to_json_object()["requires_action"]
        assert (required["type"], required["tool_name"]) == ("tool_result", "pick")
        assert required["arguments"] == {"title": "which?"}
        done = captured.governor.complete(waiting.invocation_id, "notes.txt")
        assert (done.status, done.value) == ("succeeded", "notes.txt")


@pytest.mark.covers("openboa-interrupt-clears-custom-call")
def test_an_interrupt_clears_a_custom_call() -> None:
    with capture(policy=StaticEngine("allow")) as captured, agent_context(**SESSION):
        waiting = captured.governor.govern(pick, ownership="custom").tool.invoke(title="which?")
        captured.governor.interrupt(waiting.invocation_id, "something else")
        assert captured.governor.required_actions == []


# --- confirmations --------------------------------------------------------------------------------


@pytest.mark.covers(
    "openboa-ask-pauses-before-effect", "openboa-requires-action", "openboa-pending-is-stored"
)
def test_an_asked_call_waits_before_it_does_anything(asking: Capture) -> None:
    ran: list[int] = []
    act = asking.governor.govern(lambda: ran.append(1), name="act")
    paused = act.tool.invoke()
    assert ran == []
    required = paused.to_json_object()["requires_action"]
    assert required["type"] == "tool_confirmation"
    [pending] = asking.governor.describe().pending
    assert pending["request_id"] == required["request_id"]


@pytest.mark.covers("openboa-describe-lists-pending")
def test_what_waits_is_described_with_redacted_arguments(asking: Capture) -> None:
    act = asking.governor.govern(lambda note, pin: 1, name="act", sensitive_fields=["pin"])
    act.tool.invoke(note="hello", pin="marigold")
    [pending] = asking.governor.describe().pending
    assert pending["arguments"]["note"] == "hello"
    assert "marigold" not in str(pending)


@pytest.mark.covers("openboa-describe-of-session-alone")
def test_another_session_has_no_pending_call_of_this_one(asking: Capture) -> None:
    act = asking.governor.govern(lambda: 1, name="act")
    act.tool.invoke()
    with agent_context(session_id="another"):
        assert asking.governor.describe().pending == []


@pytest.mark.covers("openboa-confirmation-resumes")
def test_a_confirmation_resumes_the_call(asking: Capture) -> None:
    ran: list[int] = []
    act = asking.governor.govern(lambda: ran.append(1), name="act")
    paused = act.tool.invoke()
    [pending] = asking.governor.describe().pending
    asking.governor.approvals.store.answer(
        pending["request_id"], ApprovalAnswer(approved=True, answered_by="user:ada")
    )
    assert asking.governor.resume(paused.invocation_id).status == "succeeded"
    assert ran == [1]


@pytest.mark.covers("openboa-interrupt-clears-confirmation")
def test_an_interrupt_clears_a_confirmation(asking: Capture) -> None:
    act = asking.governor.govern(lambda: 1, name="act")
    paused = act.tool.invoke()
    asking.governor.interrupt(paused.invocation_id, "something else")
    assert asking.governor.describe().pending == []


# --- what a model can ask -------------------------------------------------------------------------

OPEN = {name: decision("allow") for name in ("permissions_check", "permissions_describe")}


def judging(**answers: Any) -> Any:
    return capture(policy=StaticEngine({**OPEN, **answers}))


@pytest.mark.covers("openboa-check-states-confirmation")
def test_a_check_states_whether_a_person_is_asked() -> None:
    with judging(act=decision("ask"), free=decision("allow")) as captured:
        tools = [captured.governor.govern(lambda: 1, name=name) for name in ("act", "free")]
        assert tools
        assert checked(captured, "act")["requires_confirmation"] is True
        assert checked(captured, "free")["requires_confirmation"] is False


@pytest.mark.covers("openboa-check-has-evaluator-verdict", "openboa-check-has-verification-step")
def test_a_check_has_the_evaluators_verdict_and_step() -> None:
    with judging(act=decision("ask")) as captured, agent_context(evaluation=FAILING):
        act = captured.governor.govern(lambda: 1, name="act")
        assert act
        found = checked(captured, "act")
        assert (found["evaluation"], found["next_step"]) == (FAILING, "read the tests")


@pytest.mark.covers("openboa-trend-prefers-history")
@pytest.mark.parametrize("trend", ["stable", "regressing"])
def test_a_trend_that_is_no_better_is_looked_at_first(trend: str) -> None:
    with (
        judging(act=decision("ask")) as captured,
        agent_context(evaluation={**FAILING, "trend": trend}),
    ):
        act = captured.governor.govern(lambda: 1, name="act")
        assert act
        assert checked(captured, "act")["next_step"] == "outcome_history"


@pytest.mark.covers("openboa-passing-verdict-has-no-step")
def test_a_passing_verdict_asks_for_nothing() -> None:
    with (
        judging(act=decision("ask")) as captured,
        agent_context(evaluation={**FAILING, "status": "pass"}),
    ):
        act = captured.governor.govern(lambda: 1, name="act")
        assert act
        assert checked(captured, "act")["next_step"].startswith("call it and wait")


@pytest.mark.covers(
    "openboa-check-states-evaluator-gate",
    "openboa-describe-lists-evaluator-gated",
    "openboa-describe-has-evaluator-verdict",
    "openboa-describe-lists-always-ask",
)
def test_what_an_evaluator_gates_is_stated() -> None:
    facts: dict[str, Any] = {
        "read_only": True,
        "destructive": False,
        "open_world": False,
        "access_kinds": [],
        "capability_refs": ["agenttool.evaluator_gated"],
    }
    with capture() as captured, agent_context(**SESSION, evaluation=FAILING):
        gated = captured.governor.govern(lambda: 1, name="promote", **facts)
        unstated = captured.governor.govern(lambda: 1, name="mystery")
        assert gated
        assert unstated
        assert checked(captured, "promote")["evaluator_gated"] is True
        found = described(captured)
        assert found["evaluator_gated"] == ["promote"]
        assert found["always_ask"] == ["mystery"]
        assert found["evaluation"] == FAILING
