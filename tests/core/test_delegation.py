"""An agent that another one started: who did is in the policy's input, and it is never wider."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenttool_otel import ApprovalRequired, ConfigurationError, ToolDenied, agent_context
from agenttool_otel.approvals.types import ApprovalAnswer
from agenttool_otel.context.settings import Settings
from agenttool_otel.testing import Capture, capture, decision
from function_engine import FunctionEngine

RANKS = {"allow": 0, "ask": 1, "deny": 2}
ROLES = st.lists(st.sampled_from(["reader", "writer", "boss"]), max_size=2, unique=True)
ROOTS = st.lists(
    st.sampled_from(["/srv/shop", "/srv/shop/src", "/srv", "/tmp/x"]), max_size=2, unique=True
)
AGENTS = st.fixed_dictionaries(
    {
        "roles": ROLES,
        "roots": ROOTS,
        "tenant": st.sampled_from(["acme", "umbrella"]),
        "mode": st.sampled_from(["default", "plan"]),
    }
)
CALLS = st.sampled_from(
    [
        ("read", {"path": "/srv/shop/a.txt"}),
        ("read", {"path": "/srv/shop/src/a.py"}),
        ("write", {"path": "/srv/shop/src/a.py"}),
        ("run", {"command": "ls /srv/shop"}),
        ("run", {"command": "touch /srv/shop/src/b.py"}),
        ("bill", {"tenant": "acme"}),
    ]
)
# roles that answer questions, that may cross tenants, and presets that permit writing inside of the roots
TOOLS: dict[str, Any] = {}
POLICY = {
    "preset": "coding",
    "roles": {"definitions": {"writer": {"waives": ["agenttool.rules.declared.writes"]}}},
    "tenancy": {"cross_tenant_roles": {"boss": True}},
}


@pytest.fixture(scope="module")
def captured() -> Iterator[Capture]:
    with capture(policy_data={"agenttool": {"settings": POLICY}}) as ready:
        governor = ready.governor
        file = {"tool_kind": "file_operation", "path_args": ["path"]}
        shell = {"tool_kind": "shell_command", "command_args": ["command"]}
        TOOLS["read"] = governor.govern(lambda path: "", name="read", read_only=True, **file)
        TOOLS["write"] = governor.govern(lambda path: "", name="write", read_only=False, **file)
        TOOLS["run"] = governor.govern(lambda command: "", name="run", **shell)
        TOOLS["bill"] = governor.govern(lambda tenant: "", name="bill", read_only=True)
        yield ready


def behavior(tool: str, arguments: dict[str, Any]) -> str:
    try:
        TOOLS[tool](**arguments)
    except ApprovalRequired:
        return "ask"
    except ToolDenied:
        return "deny"
    return "allow"


@settings(max_examples=150)
@given(lead=AGENTS, child=AGENTS, call=CALLS)
def test_a_child_is_never_wider_than_its_parent(
    captured: Capture, lead: dict[str, Any], child: dict[str, Any], call: tuple[str, Any]
) -> None:
    with agent_context(actor="agent:lead", **lead) as parent:
        of_parent = behavior(*call)
    with agent_context(actor="agent:child", parent=parent, **child):
        assert RANKS[behavior(*call)] >= RANKS[of_parent]


def denied_by(tool: str, **arguments: Any) -> str:
    with pytest.raises(ToolDenied) as caught:
        TOOLS[tool](**arguments)
    assert caught.value.decision is not None
    assert caught.value.decision.reason is not None
    return str(caught.value.decision.reason.rule_ref)


def test_a_wider_child_is_denied_by_a_rule_of_its_own(captured: Capture) -> None:
    with (
        agent_context(actor="agent:lead", roots=["/srv/shop"]) as parent,
        agent_context(actor="agent:child", parent=parent, roots=["/srv"]),
    ):
        assert denied_by("read", path="/srv/shop/a.txt") == "agenttool.rules.delegation.wider"


def test_a_block_inside_of_a_child_stays_one(captured: Capture) -> None:
    with (
        agent_context(actor="agent:lead") as parent,
        agent_context(actor="agent:child", parent=parent),
        agent_context(actor="agent:child", roles=["boss"]),
    ):
        assert denied_by("bill", tenant="acme") == "agenttool.rules.delegation.wider"


def test_a_child_inherits_from_its_parent() -> None:
    with agent_context(actor="agent:lead", tenant="acme", roles=["reader"]) as parent:
        pass
    with agent_context(actor="agent:child", parent=parent) as child:
        assert (child.tenant, child.roles) == ("acme", ("reader",))
        assert child.policy_actor["chain"] == [parent.as_delegator.document()]


def test_nobody_is_left_out_of_a_chain() -> None:
    with agent_context(actor="agent:other") as other:
        pass
    with (
        agent_context(actor="agent:lead") as lead,
        agent_context(actor="agent:child", parent=lead) as child,
        agent_context(actor="agent:grandchild", parent=child) as grandchild,
        agent_context(actor="agent:stray", parent=other) as stray,
    ):
        pass
    names = ["agent:lead", "agent:child"]
    assert [each.actor for each in grandchild.chain] == names
    assert [each.actor for each in stray.chain] == [*names, "agent:other"]


def test_without_a_parent_the_input_has_no_chain() -> None:
    with agent_context(actor="agent:lead"), agent_context(actor="agent:child") as child:
        assert "chain" not in child.policy_actor


def test_a_parent_is_a_context() -> None:
    with pytest.raises(ConfigurationError, match="parent"), agent_context(parent="agent:lead"):  # type: ignore[arg-type]
        pass


def test_a_setting_fills_what_a_parent_leaves_open(captured: Capture) -> None:
    with capture(settings=Settings(roots=("/srv/shop",), actor="agent:lead")) as ready:
        bill = ready.governor.govern(lambda: "done", name="bill", read_only=True)
        with agent_context() as parent, agent_context(actor="agent:child", parent=parent):
            assert bill() == "done"


def test_a_call_that_goes_on_keeps_its_chain(tmp_path: Path) -> None:
    seen = []

    def decide(document: Any) -> Any:
        seen.append([each["id"] for each in document["actor"].get("chain", [])])
        return decision("ask")

    store = f"sqlite:///{tmp_path}/approvals.db"
    with capture(policy=FunctionEngine(decide), approvals=store) as ready:
        tool = ready.governor.govern(lambda: "done", name="bill")
        with (
            agent_context(actor="agent:lead", session_id="s") as parent,
            agent_context(actor="agent:child", parent=parent),
            pytest.raises(ApprovalRequired) as caught,
        ):
            tool()
        answer = ApprovalAnswer(approved=True, answered_by="user:ada")
        ready.governor.approvals.store.answer(caught.value.request_id, answer)
        ready.governor.resume(caught.value.invocation_id)
    assert seen == [["agent:lead"]] * len(seen)
    assert len(seen) > 1
