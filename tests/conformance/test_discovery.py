"""Requirements of "Deferred loading and tool search"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from recorded import event_names, records_of

from agenttool_otel import Governor, agent_context
from agenttool_otel.conformance.own import ScenarioPolicy
from agenttool_otel.records import DeferredToolRef, ToolSearchResult
from agenttool_otel.testing import Capture, capture


@pytest.fixture
def captured() -> Iterator[Capture]:
    with (
        capture(policy=ScenarioPolicy("allow")) as made,
        agent_context(actor="agent:a", session_id="s"),
    ):
        yield made


def catalog(governor: Governor) -> None:
    """Declare four tools, each with a word of its own in another place."""
    tools = {
        "a": {"namespace": "harbor", "name": "lantern"},
        "b": {"description": "Finds a walnut"},
        "c": {"search_hint": "copper kettle prices"},
        "d": {},
    }
    for tool_id, stated in tools.items():
        plain = {
            "schema_version": "0.2.0",
            "tool_id": tool_id,
            "namespace": "plain",
            "name": f"tool_{tool_id}",
            "description": "A tool",
            "lifecycle": "available",
            "tool_kind": "mcp_tool",
        }
        governor.catalog.add({**plain, **stated}, provider="mcp.x")


@pytest.mark.parametrize(
    "given",
    [
        {"tool_id": "docs.find", "name": "find"},
        DeferredToolRef(tool_id="docs.find", name="find", namespace="docs"),
    ],
    ids=["name alone", "reference"],
)
def test_a_reference_is_recorded_as_one(captured: Capture, given: Any) -> None:
    captured.governor.catalog.add(given)
    [reference] = records_of(captured, "deferred_tool_ref")
    assert (reference["tool_id"], reference["loading_state"]) == ("docs.find", "deferred")
    assert records_of(captured, "tool_declaration") == []


def test_a_declaration_of_others_is_recorded_as_one(captured: Capture) -> None:
    catalog(captured.governor)
    declared = [each["tool_id"] for each in records_of(captured, "tool_declaration")]
    assert declared == ["a", "b", "c", "d"]
    assert records_of(captured, "deferred_tool_ref") == []


def search(captured: Capture, query: str) -> ToolSearchResult:
    catalog(captured.governor)
    return captured.governor.search(query)


def ids(result: ToolSearchResult) -> list[str]:
    return [match["tool_id"] for match in result.matches]


@pytest.mark.parametrize(
    ("word", "found"),
    [
        pytest.param(
            "lantern", "a", marks=pytest.mark.covers("search-finds-words-of-the-name"), id="name"
        ),
        pytest.param(
            "harbor",
            "a",
            marks=pytest.mark.covers("search-finds-words-of-the-namespace"),
            id="namespace",
        ),
        pytest.param(
            "walnut",
            "b",
            marks=pytest.mark.covers("search-finds-words-of-the-description"),
            id="description",
        ),
        pytest.param(
            "kettle", "c", marks=pytest.mark.covers("search-finds-words-of-the-hint"), id="hint"
        ),
    ],
)
def test_a_search_by_words_looks_at_every_text(word: str, found: str, captured: Capture) -> None:
    assert ids(search(captured, word)) == [found]


@pytest.mark.covers("search-selects-by-exact-name", "search-result-query-type")
def test_a_tool_is_selected_by_its_exact_name(captured: Capture) -> None:
    result = search(captured, "select:lantern")
    assert (ids(result), result.query_type) == (["a"], "select")


@pytest.mark.covers("search-selects-one-by-name")
def test_a_selection_gives_nothing_that_only_resembles_it(captured: Capture) -> None:
    assert ids(search(captured, "select:tool_b")) == ["b"]


@pytest.mark.covers("search-result-query", "search-result-total-deferred-tools")
def test_a_search_result_keeps_query_and_count(captured: Capture) -> None:
    result = search(captured, "  Walnut ")
    assert (result.query, result.query_type) == ("  Walnut ", "keyword")
    assert result.total_deferred_tools == 4


@pytest.mark.covers("search-result-missing-names")
def test_selected_names_that_there_are_not_are_missing(captured: Capture) -> None:
    assert search(captured, "select:lantern,nothing").missing_names == ["nothing"]


@pytest.mark.covers("search-result-next-action")
def test_what_was_found_is_to_be_loaded_and_then_called(captured: Capture) -> None:
    assert search(captured, "select:lantern").next_action == "load_schema_then_call"


@pytest.mark.covers("search-miss-is-machine-readable")
def test_a_miss_is_a_result(captured: Capture) -> None:
    result = search(captured, "xylophone").to_json_object()
    assert (result["matches"], result["next_action"]) == ([], "refine_query")


@pytest.mark.covers("search-reports-pending-providers")
def test_a_search_names_who_is_still_connecting(captured: Capture) -> None:
    captured.governor.catalog.pending("mcp.y")
    assert search(captured, "xylophone").pending_providers == ["mcp.y"]


@pytest.mark.parametrize(
    ("state", "word"),
    [
        pytest.param(
            "pending",
            "pending_provider",
            marks=pytest.mark.covers("pending-provider-is-not-loaded"),
        ),
        pytest.param(
            "failed", "unavailable", marks=pytest.mark.covers("unavailable-tool-is-not-loaded")
        ),
    ],
)
def test_what_its_provider_can_not_give_is_not_loaded(
    state: str, word: str, captured: Capture
) -> None:
    catalog(captured.governor)
    if state == "pending":
        captured.governor.catalog.pending("mcp.x")
    else:
        captured.governor.catalog.failed("mcp.x", "no answer")
    [match] = captured.governor.search("select:lantern").matches
    assert match["ref"]["loading_state"] == word
    assert captured.governor.load(["lantern"]).names == frozenset()


# --- calls ----------------------------------------------------------------------------------------


@pytest.mark.covers("deferred-schema-not-put-before-model", "deferred-tool-is-discoverable")
def test_a_deferred_tool_is_listed_without_its_schema(captured: Capture) -> None:
    catalog(captured.governor)
    surface = captured.governor.surface()
    assert surface.openai_tools() == []
    refs = surface.record().deferred_tools
    assert [ref["loading_state"] for ref in refs] == ["discoverable"] * 4


@pytest.mark.covers("loaded-tool-can-be-called", "discovery-is-an-event")
def test_a_deferred_tool_is_called_once_it_is_loaded(captured: Capture) -> None:
    act = captured.governor.govern(lambda: 1, name="act", defer=True)
    captured.governor.search("select:act")
    surface = captured.governor.load(["act"])
    with agent_context(surface=surface):
        assert act.tool.invoke().value == 1
    found = [name for name in event_names(captured) if name.startswith("tool.deferred")]
    assert found == ["tool.deferred.discovered", "tool.deferred.loaded"]
