"""What rules can read of the application and of the session's own past."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from history_rules import HISTORY_RULES
from pydantic import BaseModel

from agenttool_otel import ConfigurationError, Governor, ToolDenied, agent_context
from agenttool_otel.hooks import HookContext, Hooks, Resources

RULES = (
    """# METADATA
# title: Orders
# scope: package
# schemas:
#   - input: schema.input
package agenttool.custom

# METADATA
# title: Only the owner's open orders are cancelled
deny contains {"rule": "custom.owner", "message": "not yours, or not open"} if not mine

mine if input.tool.name != "cancel_order"

mine if {
	input.resources.order.owner == input.actor.id
	input.resources.order.status == "open"
}

"""
    + HISTORY_RULES
)
READS: dict[str, Any] = {"read_only": True, "access_kinds": ["file_read"]}
WRITES: dict[str, Any] = {
    "read_only": False,
    "destructive": False,
    "write_effects": ["local_draft"],
    "access_kinds": [],
}


@dataclass
class Order:
    owner: str
    status: str


class Model(BaseModel):
    owner: str
    status: str


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    folder = tmp_path / "bundle" / "agenttool" / "custom"
    folder.mkdir(parents=True)
    (folder / "orders.rego").write_text(RULES, "utf-8")
    manifest = {"revision": "x", "rego_version": 1, "roots": ["agenttool/custom"]}
    (tmp_path / "bundle" / ".manifest").write_text(json.dumps(manifest), "utf-8")
    return tmp_path / "bundle"


def shop(rules: Path, hooks: Hooks | None = None) -> tuple[Any, Any]:
    settings = {
        "effects": {
            "agenttool.rules.declared.writes": "allow",
            "agenttool.rules.declared.unstated": "allow",
        }
    }
    governor = Governor(
        extension=rules, hooks=hooks, policy_data={"agenttool": {"settings": settings}}
    )

    @governor.govern(namespace="shop", **READS)
    def get_order(order_id: str) -> str:
        return "open"

    @governor.govern(namespace="shop", **WRITES)
    def cancel_order(order_id: str) -> str:
        return "cancelled"

    return get_order, cancel_order


@pytest.mark.parametrize("order", [Order("agent:a", "open"), Model(owner="agent:a", status="open")])
def test_a_look_up_hook_gives_rules_the_state_of_what_is_asked(rules: Path, order: Any) -> None:
    hooks, asked = Hooks(), []

    @hooks.on("pre_tool_use", tool="cancel_order")
    def look(context: HookContext) -> Resources:
        asked.append(context.arguments["order_id"])
        if context.arguments["order_id"] == "broken":
            raise OSError
        return Resources(
            {"order": order if context.arguments["order_id"] == "1" else Order("agent:b", "open")}
        )

    get_order, cancel_order = shop(rules, hooks)
    with agent_context(actor="agent:a", session_id="s"):
        for order_id in ("1", "2", "broken"):
            get_order(order_id)
        assert cancel_order("1") == "cancelled"
        with pytest.raises(ToolDenied, match="not yours"):
            cancel_order("2")
        with pytest.raises(ToolDenied, match="OSError"):
            cancel_order("broken")
    assert asked == ["1", "2", "broken"]


def test_once_and_only_after_can_be_written(rules: Path) -> None:
    get_order, cancel_order = shop(rules)
    with agent_context(
        actor="agent:a", session_id="s", resources={"order": Order("agent:a", "open")}
    ):
        with pytest.raises(ToolDenied, match="look at it first"):
            cancel_order("1")
        get_order("1")
        with pytest.raises(ToolDenied, match="look at it first"):
            cancel_order("2")
        assert cancel_order("1") == "cancelled"
        assert cancel_order.tool.check(order_id="1").behavior == "deny"
        with pytest.raises(ToolDenied, match="cancelled already"):
            cancel_order("1")
    with (
        agent_context(
            actor="agent:a", session_id="other", resources={"order": Order("agent:a", "open")}
        ),
        pytest.raises(ToolDenied, match="look at it first"),
    ):
        cancel_order("1")


async def test_calls_at_the_same_time_see_each_other(rules: Path) -> None:
    get_order, cancel_order = shop(rules)
    with agent_context(
        actor="agent:a", session_id="s", resources={"order": Order("agent:a", "open")}
    ):
        get_order("1")
        results = await asyncio.gather(*(cancel_order.tool.ainvoke(order_id="1") for _ in range(5)))
    assert sum(result.status == "succeeded" for result in results) <= 1


def test_the_history_is_bounded_and_says_when_it_forgot(rules: Path) -> None:
    get_order, _ = shop(rules)
    governor = get_order.tool.governor
    with agent_context(actor="agent:a", session_id="s") as context:
        for number in range(250):
            get_order(str(number))
    entries, complete = governor.sessions.of(context).past_calls({"order_id": "249"}, without=None)
    assert len(entries) == 200
    assert not complete
    assert [entry["same"] for entry in entries[-2:]] == [[], ["/order_id"]]


def test_no_history_is_kept_where_no_rule_reads_it() -> None:
    governor = Governor()

    @governor.govern(**READS)
    def look() -> str:
        return "x"

    with agent_context(actor="agent:a", session_id="s") as context:
        look()
        assert not governor.sessions.of(context).history


@pytest.mark.parametrize(
    "value", [object(), {"order": object()}, {"order": iter(())}, {1: 2}, [], "order"]
)
def test_state_without_a_whole_json_form_is_refused(value: Any) -> None:
    with pytest.raises(ConfigurationError), agent_context(resources=value):
        pass
    with pytest.raises(ConfigurationError):
        Resources(value)


def test_decisions_on_other_state_are_other_decisions(rules: Path) -> None:
    get_order, cancel_order = shop(rules)
    for number, (status, cancelled) in enumerate(
        [("open", True), ("closed", False), ("open", True), (True, False)]
    ):
        order_id = str(number)
        with agent_context(
            actor="agent:a",
            session_id="s",
            resources={"order": {"owner": "agent:a", "status": status}},
        ):
            get_order(order_id)
            assert (cancel_order.tool.invoke(order_id=order_id).status == "succeeded") is cancelled
