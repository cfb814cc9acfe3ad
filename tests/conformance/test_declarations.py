"""What a declaration promises: an identity that stays, the words that models are given, hints that are
no facts, and states in which a tool can, or can't, be called.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from agenttool_otel import Governor, agent_context
from agenttool_otel.testing import StaticEngine


@pytest.fixture
def governor() -> Iterator[Governor]:
    with closing(Governor(policy=StaticEngine("allow"))) as made:
        yield made


def say(text: str, loud: bool = False) -> str:
    """Say a text."""
    return text


def declared(governor: Governor, **options: Any) -> Any:
    return governor.govern(say, **{"namespace": "a", **options}).tool.declaration


# --- identity -------------------------------------------------------------------------------------


@pytest.mark.covers("declaration-refs-lead-to-its-tool")
def test_references_of_a_declaration_are_the_ids_of_its_records(governor: Governor) -> None:
    tool = governor.govern(say, namespace="a").tool
    declaration = tool.declaration
    assert declaration.interface_ref == tool.spec.interface.interface_id
    assert declaration.execution_profile_ref == tool.spec.execution.execution_profile_id
    assert declaration.permission_profile_ref == tool.spec.permission.permission_profile_id


@pytest.mark.covers("declaration-native-ids-kept")
def test_a_renamed_tool_keeps_its_native_ids(governor: Governor) -> None:
    native = {"source": "mcp", "server_id": "github", "tool_name": "search_issues"}
    declaration = declared(governor, name="find_issues", external_mappings=[native])
    assert declaration.to_json_object()["external_mappings"] == [native]


@pytest.mark.covers("declaration-input-contract")
def test_a_tool_with_arguments_has_a_contract_with_their_schema(governor: Governor) -> None:
    schema = declared(governor).input_contract.model_input_schema
    assert schema["properties"].keys() == {"text", "loud"}
    assert schema["required"] == ["text"]


# --- what others make of it -----------------------------------------------------------------------


@pytest.mark.covers("declaration-name-is-called", "declaration-description-for-models")
def test_a_model_is_given_name_and_description() -> None:
    governor = Governor()
    tool = governor.govern(
        say, namespace="a", name="tell", title="Tell", description="Use it to tell; not to ask."
    )
    surface = governor.surface(tools=[tool])
    [function] = [entry["function"] for entry in surface.openai_tools()]
    [message] = surface.anthropic_tools()
    [listed] = surface.mcp_tools()
    for given in (function, message, listed):
        assert (given["name"], given["description"]) == ("tell", "Use it to tell; not to ask.")
    governor.close()


@pytest.mark.covers("declaration-annotations-untrusted")
def test_annotations_make_no_tool_harmless() -> None:
    engine = StaticEngine("allow")
    hints = {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": False}
    with closing(Governor(policy=engine)) as governor:
        tool = governor.govern(say, annotations=hints).tool
        tool.invoke(text="a")
    assert tool.declaration.annotations == hints
    assert (tool.spec.interface.is_read_only, tool.spec.interface.is_open_world) == (False, True)
    assert engine.documents[0]["tool"]["read_only"] is False
    assert engine.documents[0]["tool"]["open_world"] is True


@pytest.mark.covers("declaration-custom-is-no-default")
def test_a_tool_of_no_stated_kind_is_not_custom(governor: Governor) -> None:
    own = [*governor.permission_tools(), governor.read_result_tool(), governor.tool_search_tool()]
    kinds = {declared(governor).tool_kind, *(tool.tool.declaration.tool_kind for tool in own)}
    assert "function" in kinds
    assert "custom" not in kinds


# --- lifecycle ------------------------------------------------------------------------------------


def in_state(governor: Governor, state: str) -> Any:
    return governor.govern(say, namespace="a", lifecycle=state)


@pytest.mark.covers("lifecycle-available")
def test_an_available_tool_is_selected_and_called() -> None:
    with closing(Governor()) as governor:
        tool = governor.govern(
            say, namespace="a", read_only=True, access_kinds=[], open_world=False
        )
        with agent_context(surface=governor.surface()):
            assert governor.surface().names == {"say"}
            assert tool.tool.invoke(text="a").value == "a"


@pytest.mark.parametrize(
    ("state", "error"),
    [
        pytest.param("draft", "blocked_tool", marks=pytest.mark.covers("lifecycle-draft")),
        pytest.param("disabled", "blocked_tool", marks=pytest.mark.covers("lifecycle-disabled")),
        pytest.param("retired", "blocked_tool", marks=pytest.mark.covers("lifecycle-retired")),
        pytest.param(
            "requires_setup",
            "setup_required",
            marks=pytest.mark.covers("lifecycle-requires-setup", "validate-setup-required"),
        ),
    ],
)
def test_a_tool_in_another_state_is_not_called(governor: Governor, state: str, error: str) -> None:
    result = in_state(governor, state).tool.invoke(text="a")
    assert result.error is not None
    assert result.error.error_class == error
    assert result.value is None


@pytest.mark.covers("lifecycle-deferred-is-found")
def test_a_deferred_tool_is_found_and_not_given_to_models() -> None:
    with closing(Governor()) as governor:
        tool = in_state(governor, "deferred")
        assert governor.surface().names == set()
        [match] = governor.search("select:say").matches
        assert match["tool_id"] == "a.say"
        del tool


@pytest.mark.covers("lifecycle-deferred-waits")
def test_a_deferred_tool_is_called_only_once_it_is_loaded(governor: Governor) -> None:
    tool = in_state(governor, "deferred")
    refused = tool.tool.invoke(text="a")
    assert refused.error is not None
    assert refused.error.error_class == "schema_not_loaded"


@pytest.mark.covers("lifecycle-deprecated-is-not-selected")
def test_a_deprecated_tool_is_not_among_those_a_model_is_given() -> None:
    with closing(Governor()) as governor:
        old, new = in_state(governor, "deprecated"), governor.govern(lambda text: text, name="new")
        assert governor.surface().names == {"new"}
        del old, new


@pytest.mark.covers("lifecycle-deprecated-still-runs")
def test_a_deprecated_tool_still_runs(governor: Governor) -> None:
    assert in_state(governor, "deprecated").tool.invoke(text="a").value == "a"
