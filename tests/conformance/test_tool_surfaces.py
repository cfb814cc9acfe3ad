"""What a surface promises: only the tools of its context are on it, every other one is left out for a
reason that a program can read, and it is made anew when what it is made of changes.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agenttool_otel import Governor, agent_context, current_context
from agenttool_otel.policy.bundles.source import BundleSource
from agenttool_otel.policy.engines.embedded import EmbeddedEngine
from agenttool_otel.preflight.surfaces import Surface

FACTS: Any = {"read_only": True, "access_kinds": [], "namespace": "t", "open_world": False}


@pytest.fixture
def governor() -> Iterator[Governor]:
    made = Governor()
    yield made
    made.close()


def tool(governor: Governor, name: str = "act", **facts: Any) -> Any:
    def body(text: str = "") -> str:
        return f"{name} {text}"

    return governor.govern(body, name=name, **{**FACTS, **facts})


def left_out(surface: Surface) -> dict[str, str]:
    record = surface.record().to_json_object()
    return {
        entry["tool_id"]: entry["reason"]
        for entry in (*record["blocked_tools"], *record["excluded_tools"])
    }


# --- what is on it --------------------------------------------------------------------------------


@pytest.mark.covers("surface-is-not-the-catalog")
def test_a_tool_of_the_catalog_is_not_on_every_surface(governor: Governor) -> None:
    one, two = tool(governor, "one"), tool(governor, "two")
    surface = governor.surface(tools=[one])
    assert surface.names == {"one"}
    assert len(governor.catalog) == 2
    with agent_context(surface=surface):
        assert two.tool.invoke().is_error


@pytest.mark.covers("surface-loaded-are-visible")
def test_a_model_is_given_the_schemas_of_loaded_tools_alone(governor: Governor) -> None:
    held = [tool(governor, "one"), tool(governor, "two", defer=True)]
    surface = governor.surface()
    assert surface.record().loaded_tools == ["t.one"]
    assert [listed["name"] for listed in surface.mcp_tools()] == ["one"]
    del held


@pytest.mark.covers("surface-deferred-are-findable")
def test_a_deferred_tool_is_listed_and_found(governor: Governor) -> None:
    held = tool(governor, "two", defer=True)
    [ref] = governor.surface().record().to_json_object()["deferred_tools"]
    assert (ref["tool_id"], ref["reason"]) == ("t.two", "deferred_until_discovered")
    assert [match["tool_id"] for match in governor.search("select:two").matches] == ["t.two"]
    del held


@pytest.mark.covers("surface-hidden-does-not-run")
def test_what_a_surface_leaves_out_does_not_run(governor: Governor) -> None:
    held = tool(governor, feature_gates=["beta"])
    with agent_context(surface=governor.surface()):
        result = held.tool.invoke()
    assert (result.value, result.status) == (None, "failed")


@pytest.mark.covers("surface-large-catalog-is-searched")
def test_a_large_catalog_is_searched_rather_than_loaded(governor: Governor) -> None:
    held = [tool(governor, f"tool_{number}") for number in range(30)]
    surface = governor.surface(limit=5)
    assert len(surface.loaded) == 5
    assert len(surface.deferred) == 25
    assert surface.record().to_json_object()["selection_policy"]["search"] is True
    del held


@pytest.mark.covers("surface-same-id-while-the-same")
def test_a_surface_has_its_id_as_long_as_it_is_the_same(governor: Governor) -> None:
    held = tool(governor)
    first = governor.surface()
    more = tool(governor, "more")
    assert governor.surface().surface_id != first.surface_id
    del more
    gc.collect()
    again = governor.surface()
    assert again is not first
    assert again.surface_id == first.surface_id
    del held


# --- why not --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        pytest.param(
            {"starts_agent": "lead"},
            "recursive_tool_forbidden",
            marks=pytest.mark.covers("filter-recursive-agent"),
        ),
        pytest.param(
            {"requires_user_interaction": True},
            "feature_disabled",
            marks=pytest.mark.covers("filter-human-interaction"),
        ),
        pytest.param(
            {"tool_kind": "browser_action", "requires": ["browser_session"]},
            "setup_required",
            marks=pytest.mark.covers("filter-no-browser-session"),
        ),
        pytest.param(
            {"credentials": ["mail"]},
            "credential_missing",
            marks=pytest.mark.covers("filter-credential-missing"),
        ),
        pytest.param(
            {"model_requirements": ["vision"]},
            "model_unsupported",
            marks=pytest.mark.covers("filter-model-unsupported"),
        ),
        pytest.param(
            {"feature_gates": ["beta"]},
            "feature_disabled",
            marks=pytest.mark.covers("filter-feature-gate"),
        ),
    ],
)
def test_a_filter_records_its_reason(governor: Governor, facts: Any, reason: str) -> None:
    held = tool(governor, **facts)
    with agent_context(actor="agent:lead", interactive=False):
        assert left_out(governor.surface()) == {"t.act": reason}
    del held


def ruled(**settings: Any) -> Governor:
    return Governor(policy_data={"agenttool": {"settings": settings}})


@pytest.mark.covers("filter-write-by-mode")
def test_a_write_tool_is_left_out_where_the_mode_keeps_it_out() -> None:
    governor = Governor()
    held = [
        tool(governor, "read"),
        tool(governor, "write", read_only=False, feature_gates=["writes"]),
    ]
    surface = governor.surface(gates=lambda name: current_context().mode != "plan")
    assert surface.names == {"read", "write"}
    with agent_context(mode="plan"):
        assert left_out(surface.refresh()) == {"t.write": "feature_disabled"}
    governor.close()
    del held


@pytest.mark.covers("filter-shell-by-policy", "surface-blocked-by-policy")
def test_a_shell_tool_is_left_out_where_the_policy_forbids_it() -> None:
    governor = ruled(surface={"hidden_tools": ["t.shell"]})
    held = [tool(governor, "shell", tool_kind="shell_command"), tool(governor, "read")]
    surface = governor.surface()
    assert surface.names == {"read"}
    assert [found.reason.value for found in surface.blocked] == ["policy_blocked"]
    governor.close()
    del held


@pytest.mark.covers("filter-by-role")
def test_a_tool_is_excluded_where_the_role_may_not_use_it() -> None:
    governor = ruled(roles={"enforce": True})
    held = tool(governor, "wipe", risk_level="critical")
    with agent_context(actor="agent:a", roles=["reader"]):
        record = governor.surface().record().to_json_object()
    assert [entry["reason"] for entry in record["excluded_tools"]] == ["role_not_allowed"]
    governor.close()
    del held


@pytest.mark.covers("filter-unreadable-is-hidden")
def test_what_can_not_be_looked_at_is_not_shown(governor: Governor) -> None:
    def broken(name: str) -> bool:
        raise OSError(name)

    held = tool(governor, feature_gates=["beta"])
    assert governor.surface(gates=broken).names == set()
    del held


# --- when it is made anew -------------------------------------------------------------------------


def bundle(folder: Path, visible: str) -> None:
    (folder / "permission.rego").write_text(
        'package agenttool.permission\n\ndecision := {"behavior": "allow"}\n'
    )
    (folder / "surface.rego").write_text(
        f"package agenttool.surface\n\nvisible := {visible}\n\nreason := null\n"
    )


@pytest.mark.covers("surface-follows-the-policy")
def test_a_surface_follows_the_policy(tmp_path: Path) -> None:
    bundle(tmp_path, "true")
    source = BundleSource(tmp_path)
    governor = Governor(policy=EmbeddedEngine(source))
    held = tool(governor)
    surface = governor.surface()
    assert surface.names == {"act"}
    bundle(tmp_path, "false")
    assert source.reload().status == "activated"
    assert surface.refresh().names == set()
    governor.close()
    del held


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        pytest.param(
            {"credentials": ["x"]},
            "credentials",
            marks=pytest.mark.covers("surface-follows-credentials"),
        ),
        pytest.param(
            {"requires": ["x"]}, "setup", marks=pytest.mark.covers("surface-follows-setup")
        ),
        pytest.param(
            {"feature_gates": ["x"]}, "gates", marks=pytest.mark.covers("surface-follows-gates")
        ),
    ],
)
def test_a_surface_follows_what_is_there(governor: Governor, facts: Any, kind: str) -> None:
    held = tool(governor, **facts)
    there: set[str] = set()
    surface = governor.surface(**{kind: there.__contains__})
    assert surface.names == set()
    there.add("x")
    assert surface.refresh().names == {"act"}
    del held


CONTEXTS: dict[str, dict[str, Any]] = {
    "workspace": {"roots": ["/srv/elsewhere"]},
    "mode": {"mode": "plan"},
    "role": {"roles": ["admin"]},
}


@pytest.mark.parametrize(
    "what",
    [pytest.param(name, marks=pytest.mark.covers(f"surface-follows-{name}")) for name in CONTEXTS],
)
def test_a_surface_follows_the_context(governor: Governor, what: str) -> None:
    held = tool(governor)
    with agent_context(actor="agent:lead", session_id="s"):
        surface = governor.surface()
        with agent_context(**CONTEXTS[what]):
            assert surface.refresh() is not surface
        assert surface.refresh() is surface
    del held


@pytest.mark.covers("surface-follows-peer-agent")
def test_a_surface_follows_the_agent_that_runs(governor: Governor) -> None:
    held = tool(governor, starts_agent="helper")
    with agent_context(actor="agent:lead", session_id="s"):
        surface = governor.surface()
        assert surface.names == {"act"}
        with agent_context(actor="agent:helper"):
            assert surface.refresh().names == set()
    del held


@pytest.mark.covers("surface-follows-the-model")
def test_a_surface_of_another_model_is_another_one(governor: Governor) -> None:
    held = tool(governor, model_requirements=["vision"])
    assert governor.surface(model={"vision": False}).names == set()
    assert governor.surface(model={"vision": True}).names == {"act"}
    del held


@pytest.mark.covers("surface-follows-skills")
def test_a_surface_has_the_tools_of_a_skill_once_it_is_active(governor: Governor) -> None:
    held = [tool(governor, "always")]
    surface = governor.surface()
    held.append(tool(governor, "of_the_skill"))
    assert surface.names == {"always"}
    assert surface.refresh().names == {"always", "of_the_skill"}
    held.pop()
