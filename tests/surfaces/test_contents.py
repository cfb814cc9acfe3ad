"""Surfaces: what is on them and why not, that they follow what they are made of, and that
they hold.
"""

from __future__ import annotations

import gc
import json
import time
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agenttool_otel import (
    ApprovalAnswer,
    Governor,
    TelemetrySettings,
    agent_context,
    current_context,
)
from agenttool_otel.names import BlockReason, SurfaceScope
from agenttool_otel.preflight.surfaces import Surface
from agenttool_otel.records import ToolEvent

SCHEMAS = Path(__file__).resolve().parents[1] / "spec_schemas"
FACTS: Any = {"read_only": True, "access_kinds": [], "write_effects": [], "namespace": "t"}


def tool(governor: Governor, name: str, **facts: Any) -> Any:
    def body(text: str = "") -> str:
        return f"{name} {text}"

    body.__doc__ = facts.pop("doc", f"Do what {name} says.")
    return governor.govern(body, name=name, **{**FACTS, **facts})


def hidden(surface: Surface) -> dict[str, str]:
    return {found.tool_id: found.reason.value for found in (*surface.blocked, *surface.excluded)}


def hides(approvals: str | None = None, **settings: Any) -> Governor:
    return Governor(policy_data={"agenttool": {"settings": settings}}, approvals=approvals)


CLASSES = {
    "setup_required": "setup_required",
    "credential_missing": "credential_missing",
    "model_unsupported": "capability_gap",
}
"""Error classes of calls, by the reasons that have one of their own."""


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"lifecycle": "disabled"}, "feature_disabled"),
        ({"lifecycle": "retired"}, "feature_disabled"),
        ({"lifecycle": "draft"}, "feature_disabled"),
        ({"feature_gates": ["beta"]}, "feature_disabled"),
        ({"lifecycle": "requires_setup"}, "setup_required"),
        ({"requires": ["browser_session"]}, "setup_required"),
        ({"credentials": ["mail"]}, "credential_missing"),
        ({"model_requirements": ["vision"]}, "model_unsupported"),
        ({"starts_agent": "lead"}, "recursive_tool_forbidden"),
        ({"requires_user_interaction": True}, "feature_disabled"),
    ],
)
def test_a_tool_is_left_out_with_its_reason(facts: dict[str, Any], reason: str) -> None:
    governor = Governor()
    left_out = tool(governor, "left_out", **facts)
    stays = tool(governor, "stays")
    with agent_context(actor="agent:lead"):
        surface = governor.surface()
        assert hidden(surface) == {"t.left_out": reason}
        assert surface.names == {"stays"}
        with agent_context(surface=surface):
            refused = left_out.tool.invoke()
            assert stays.tool.invoke(text="a").value == "stays a"
    assert refused.error.error_class == CLASSES.get(reason, "blocked_tool")
    assert reason in refused.error.message


def test_policy_and_roles_hide_with_their_reasons() -> None:
    governor = hides(surface={"hidden_tools": ["t.secret"]}, roles={"enforce": True})
    secret = tool(governor, "secret")
    wipes = tool(governor, "wipes", risk_level="critical")
    with agent_context(actor="agent:a", roles=["reader"]):
        surface = governor.surface()
        assert hidden(surface) == {"t.secret": "policy_blocked", "t.wipes": "role_not_allowed"}
        assert [found.tool_id for found in surface.blocked] == ["t.secret"]
        assert [found.tool_id for found in surface.excluded] == ["t.wipes"]
        with agent_context(surface=surface):
            assert wipes.tool.invoke().error.error_class == "blocked_tool"
            assert secret.tool.invoke().error.error_class == "blocked_tool"


def test_what_is_confirmed_is_shown() -> None:
    governor = Governor()
    facts: Any = {"feature_gates": ["beta"], "requires": ["shop"], "credentials": ["mail"]}
    held = tool(governor, "held", model_requirements=["vision"], **facts)
    told: Any = {"gates": {"beta"}, "setup": lambda name: name == "shop", "credentials": ["mail"]}
    assert governor.surface(model={"vision": True}, **told).names == {"held"}
    assert governor.surface(**told).names == set()
    del held


def test_a_check_that_fails_counts_as_missing() -> None:
    governor = Governor()
    held = tool(governor, "held", feature_gates=["beta"])

    def broken(name: str) -> bool:
        raise OSError(name)

    assert governor.surface(gates=broken).names == set()
    del held


def test_a_gate_may_follow_the_mode_of_the_context() -> None:
    governor = Governor()
    held = tool(governor, "write", feature_gates=["writes"])
    surface = governor.surface(gates=lambda name: current_context().mode != "plan")
    assert surface.names == {"write"}
    with agent_context(mode="plan", surface=surface):
        assert surface.refresh().names == set()
        assert held.tool.invoke().error.error_class == "blocked_tool"


def test_an_agent_inside_an_agent_cannot_start_the_outer_one() -> None:
    governor = Governor()
    held = [tool(governor, name, starts_agent=name) for name in ("lead", "helper", "writer")]
    with agent_context(actor="agent:lead"), agent_context(actor="agent:helper"):
        assert governor.surface().names == {"writer"}
    with agent_context(actor="agent:other"):
        assert governor.surface().names == {"lead", "helper", "writer"}
    del held


@pytest.mark.parametrize("scope", list(SurfaceScope))
def test_a_surface_of_each_scope_is_a_valid_record(scope: SurfaceScope) -> None:
    governor = Governor()
    held = [
        tool(governor, "one"),
        tool(governor, "two", defer=True),
        tool(governor, "three", lifecycle="disabled"),
    ]
    with agent_context(actor="agent:a", session_id="s", roles=["reader"]):
        record = governor.surface(scope, model={"parallel": True}).record().to_json_object()
    schema = json.loads((SCHEMAS / "agenttool-tool-surface.schema.json").read_text("utf-8"))
    ref_schema = json.loads((SCHEMAS / "agenttool-deferred-tool.schema.json").read_text("utf-8"))
    jsonschema_rs.validate(schema, record)
    for ref in record["deferred_tools"]:
        jsonschema_rs.validate(ref_schema, ref)
    assert record["scope"] == scope.value
    assert record["loaded_tools"] == ["t.one"]
    assert record["tool_refs"] == ["t.one", "t.two"]
    assert [entry["tool_id"] for entry in record["excluded_tools"]] == ["t.three"]
    assert record["runtime_refs"] == ["session:s"]
    assert record["policy_refs"][0].startswith("policy:embedded@")
    del held


def test_a_surface_is_the_same_until_what_it_is_made_of_changes() -> None:
    governor = Governor()
    held = [tool(governor, "one", feature_gates=["beta"])]
    gates: set[str] = set()
    with agent_context(actor="agent:a", session_id="s"):
        first = governor.surface(gates=gates.__contains__)
        assert first.refresh() is first
        ids = {first.surface_id}
        gates.add("beta")
        opened = first.refresh()
        assert opened.names == {"one"}
        ids.add(opened.surface_id)
        held.append(tool(governor, "two"))
        ids.add(opened.refresh().surface_id)
        with agent_context(roles=["admin"]):
            ids.add(first.refresh().surface_id)
        with agent_context(mode="plan"):
            ids.add(first.refresh().surface_id)
        assert len(ids) == 5
        gates.clear()
        held.pop()
        gc.collect()
        assert first.refresh().surface_id == first.surface_id


def test_a_change_is_told_as_an_event() -> None:
    events: list[ToolEvent] = []
    governor = Governor(telemetry=TelemetrySettings(subscribers=(events.append,)))
    held = [tool(governor, "one")]
    surface = governor.surface()
    held.append(tool(governor, "two"))
    surface.refresh()
    surface.refresh()
    told = [event.event_type for event in events if event.event_type.startswith("tool.surface")]
    assert told == ["tool.surface.created", "tool.surface.updated"]


def test_the_limit_leaves_the_rest_to_be_found() -> None:
    governor = Governor()
    held = [tool(governor, f"tool_{n}") for n in range(5)] + [
        tool(governor, "first", always_load=True)
    ]
    surface = governor.surface(limit=3)
    assert len(surface.loaded) == 3
    assert "first" in surface.names
    assert len(surface.deferred) == 3
    del held


def test_what_was_asked_for_is_not_pushed_out_by_a_limit() -> None:
    governor = hides(surface={"hidden_tools": []})
    held = [tool(governor, f"tool_{n}") for n in range(4)]
    with agent_context(session_id="s"):
        assert len(governor.surface(limit=2).loaded) == 2
        with agent_context(surface=governor.surface(limit=2)):
            assert len(governor.load(["tool_0", "tool_1", "tool_2"]).loaded) == 3
    assert held


def test_calls_outside_the_surface_get_the_right_errors() -> None:
    governor = Governor()
    one, two, three = (
        tool(governor, "one"),
        tool(governor, "two", defer=True),
        tool(governor, "three"),
    )
    surface = governor.surface(tools=[one, "t.two"])
    with agent_context(surface=surface):
        assert one.tool.invoke().error is None
        deferred = two.tool.invoke().error
        assert three.tool.invoke().error.error_class == "unknown_tool"
        assert two.tool.check().error.error_class == "schema_not_loaded"
        with agent_context(surface="a label"):
            assert three.tool.invoke().error.error_class == "unknown_tool"
        with agent_context(surface=""):
            assert three.tool.invoke().error is None
    assert deferred.error_class == "schema_not_loaded"
    assert deferred.retry.discovery_required


def test_a_policy_that_changes_is_in_force_at_the_next_call(tmp_path: Path) -> None:
    governor = Governor()
    held = tool(governor, "held", feature_gates=["beta"])
    gates = {"beta"}
    surface = governor.surface(gates=gates.__contains__)
    with agent_context(surface=surface):
        assert held.tool.invoke().error is None
        gates.clear()
        assert held.tool.invoke().error.error_class == "blocked_tool"


def test_shadow_mode_hides_nothing_by_policy() -> None:
    governor = Governor(
        policy_data={"agenttool": {"settings": {"surface": {"hidden_tools": ["t.secret"]}}}},
        policy_mode="shadow",
    )
    held = tool(governor, "secret")
    assert governor.surface().names == {"secret"}
    del held


@pytest.mark.covers("declaration-capabilities-choose")
def test_capabilities_choose_tools() -> None:
    governor = Governor()
    held = [
        tool(governor, "mail", capability_refs=["mail.send"]),
        tool(governor, "note", capability_refs=["notes"]),
    ]
    assert governor.surface(requires=["mail.send"]).names == {"mail"}
    del held


def test_tool_lists_are_as_providers_want_them() -> None:
    governor = Governor()
    held = [tool(governor, "one"), tool(governor, "two", defer=True)]
    with agent_context(session_id="s"):
        surface = governor.surface()
        assert [entry["function"]["name"] for entry in surface.openai_tools()] == ["one"]
        assert surface.mcp_tools()[0]["inputSchema"]["type"] == "object"
        native = surface.anthropic_tools(defer_loading=True)
        assert [entry.get("defer_loading", False) for entry in native] == [False, False, True]
        assert native[0]["type"].startswith("tool_search_tool")
        with agent_context(surface=surface):
            assert held[1].tool.invoke().error is None  # the provider's search may have shown it
        responses = surface.refresh().openai_tools(defer_loading=True)
        assert [entry["name"] for entry in responses] == ["two", "one"]


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "lifecycle": st.sampled_from(
                    ["available", "deferred", "disabled", "deprecated", "retired"]
                ),
                "feature_gates": st.just(["closed"]),
                "defer": st.booleans(),
                "always_load": st.booleans(),
                "credentials": st.just(["none"]),
            },
        ),
        min_size=1,
        max_size=6,
    ),
    st.sets(st.integers(0, 5)),
    st.none() | st.integers(0, 3),
)
def test_nothing_hidden_is_shown_found_or_run(
    facts: list[Any], forbidden: set[int], limit: int | None
) -> None:
    governor = hides(surface={"hidden_tools": [f"t.tool_{n}" for n in forbidden]})
    ran: list[str] = []
    held = []
    for number, stated in enumerate(facts):

        def body(text: str = "", number: int = number) -> None:
            ran.append(f"t.tool_{number}")

        held.append(governor.govern(body, name=f"tool_{number}", **{**FACTS, **stated}))
    out = {f"t.tool_{n}" for n in forbidden}
    out |= {
        f"t.tool_{n}"
        for n, stated in enumerate(facts)
        if stated.get("lifecycle") in ("disabled", "retired")
        or {"feature_gates", "credentials"} & stated.keys()
    }
    everything = "select:" + ",".join(f"tool_{n},t.tool_{n}" for n in range(6))
    with agent_context(session_id="s"):
        surface = governor.surface(limit=limit)
        with agent_context(surface=surface):
            for query in (everything, "tool what says do", "tool 1 2 3 4 5 0"):
                found = governor.search(query, limit=50)
                assert out.isdisjoint(match["tool_id"] for match in found.matches)
                assert found.total_deferred_tools == len(surface.deferred)
            governor.load([f"tool_{n}" for n in range(6)])
            now = surface.refresh()
            shown = json.dumps(
                [now.openai_tools(), now.anthropic_tools(defer_loading=True), now.mcp_tools()]
            )
            for handle in held:
                handle.tool.invoke()
    assert out.isdisjoint(ran)
    assert all(f'"{tool_id.partition(".")[2]}"' not in shown for tool_id in out)
    assert set(ran) == {f"t.tool_{n}" for n in range(len(facts))} - out


def test_every_reason_of_the_standard_has_its_word() -> None:
    assert len(BlockReason) == 8


@pytest.mark.parametrize("hides_by_now", [False, True])
def test_a_resumed_call_without_its_surface_is_looked_at_again(
    hides_by_now: bool, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'approvals.db'}"
    ran: list[str] = []

    def pay(amount: int) -> str:
        ran.append("pay")
        return f"paid {amount}"

    facts: Any = {"namespace": "t", "access_kinds": ["payment"], "lifecycle": "deferred"}
    first = Governor(approvals=url)
    asked = first.govern(pay, **facts)
    with agent_context(actor="agent:a", session_id="s"):
        first.load(["t.pay"])
        with agent_context(surface=first.surface()):
            pending = asked.tool.invoke(amount=20)
    request_id = first.approvals.store.list()[0].request_id
    first.approvals.store.answer(request_id, ApprovalAnswer(True, answered_by="user:b"))
    first.close()
    second = hides(surface={"hidden_tools": ["t.pay"]} if hides_by_now else {}, approvals=url)
    held = second.govern(pay, **facts)
    result = second.resume(pending.invocation_id)
    if hides_by_now:
        assert result.error is not None
        assert result.error.error_class == "blocked_tool"
        assert ran == []
    else:
        assert result.value == "paid 20"
    del held


@pytest.mark.speed
def test_a_surface_of_a_thousand_tools_is_built_in_time() -> None:
    governor = Governor()
    held = [tool(governor, f"tool_{n}") for n in range(1_000)]
    governor.surface()
    with agent_context(session_id="s"):
        started = time.process_time()
        surface = governor.surface()
        built = time.process_time() - started
        started = time.process_time()
        for _ in range(100):
            assert surface.refresh() is surface
        refreshed = (time.process_time() - started) / 100
    assert len(surface.loaded) == len(held)
    assert built <= 5  # 0.1 s on a quiet machine
    assert refreshed <= built / 5
