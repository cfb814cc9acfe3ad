"""A call by name comes from a model: what keeps a tool off a surface refuses it, with or without a
surface in force, in the class that names what to do about it.
"""

from __future__ import annotations

from typing import Any

import pytest

from agenttool_otel import BatchCall, agent_context
from agenttool_otel.testing import StaticEngine, capture
from function_engine import FunctionEngine

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"defer": True}, "schema_not_loaded"),
    ({"requires": ["mail server"]}, "setup_required"),
    ({"credentials": ["mail"]}, "credential_missing"),
    ({"feature_gates": ["beta"]}, "blocked_tool"),
    ({"lifecycle": "requires_setup"}, "setup_required"),
    ({"lifecycle": "retired"}, "blocked_tool"),
    ({"model_requirements": ["vision"]}, "capability_gap"),
    ({"requires_user_interaction": True}, "blocked_tool"),
]

HARMLESS: dict[str, Any] = {
    "read_only": True,
    "risk_level": "low",
    "access_kinds": [],
    "write_effects": ["none"],
}


def never() -> str:
    raise AssertionError("the body of a refused call ran")


@pytest.mark.parametrize(("stated", "error_class"), REFUSED, ids=repr)
def test_a_batch_refuses_the_name_of_an_unavailable_tool(
    stated: dict[str, Any], error_class: str
) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        tool = captured.governor.govern(never, **stated)
        with agent_context(session_id="s", interactive=False):
            (result,) = captured.governor.batch([BatchCall(tool.tool.spec.name, {})])
    assert result.error is not None
    assert result.error.error_class == error_class


@pytest.mark.parametrize(("stated", "error_class"), REFUSED, ids=repr)
def test_a_surface_in_force_refuses_in_the_same_class(
    stated: dict[str, Any], error_class: str
) -> None:
    with capture(policy=FunctionEngine(lambda document: True)) as captured:
        governor = captured.governor
        tool = governor.govern(never, **stated).tool
        with (
            agent_context(session_id="s", interactive=False),
            agent_context(surface=governor.surface()),
        ):
            result = tool.invoke()
    assert result.error is not None
    assert result.error.error_class == error_class


def test_a_tool_that_starts_an_agent_is_not_for_that_agent() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        governor = captured.governor

        def delegate() -> str:
            with agent_context(agent_name="researcher"):
                (result,) = governor.batch([BatchCall("delegate", {})])
            assert result.error is not None
            return str(result.error.error_class)

        tool = governor.govern(delegate, starts_agent="researcher")
        assert tool() == "blocked_tool"


def test_a_loaded_tool_is_called_by_its_name() -> None:
    with capture() as captured:
        governor = captured.governor
        tool = governor.govern(lambda: "here", name="find", defer=True, **HARMLESS)
        with agent_context(session_id="s"):
            governor.load([tool.tool.spec.name])
            (result,) = governor.batch([BatchCall("find", {})])
    assert result.status == "succeeded"


def test_the_callers_own_python_call_needs_no_surface() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        tool = captured.governor.govern(lambda: "here", name="find", defer=True)
        assert tool() == "here"
