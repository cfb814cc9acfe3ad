"""Searching and loading: by name and by words, with slips, with providers that are not
there yet.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

from agenttool_otel import Governor, TelemetrySettings, agent_context
from agenttool_otel.catalog.search import Fts5Backend, TantivyBackend, ToolIndex, words_of
from agenttool_otel.records import ToolEvent

TOOLS = {
    "mail.send": "Send an electronic letter to somebody",
    "mail.read": "Read the letters in the inbox",
    "files.copy": "Copy a file to another folder",
    "maps.route": "Find the fastest way between two places",
    "weather.get": "Tell the temperature and rain of a city",
}


def governor_with(tools: dict[str, str] = TOOLS, **more: Any) -> Governor:
    governor = Governor(**more)
    for tool_id, description in tools.items():
        namespace, name = tool_id.split(".")
        governor.catalog.add(
            {
                "tool_id": tool_id,
                "name": f"{namespace}_{name}",
                "namespace": namespace,
                "description": description,
            },
            provider=f"mcp.{namespace}",
        )
    return governor


def found(governor: Governor, query: str, **more: Any) -> list[str]:
    return [match["tool_id"] for match in governor.search(query, **more).matches]


@pytest.mark.parametrize("backend", [TantivyBackend, Fts5Backend])
@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("sending letters", "mail.send"),
        ("copy files", "files.copy"),
        ("how warm is the city", "weather.get"),
        ("temprature", "weather.get"),
        ("fastets way", "maps.route"),
        ("mailRead", "mail.read"),
    ],
)
def test_words_find_the_tool(backend: Any, query: str, first: str) -> None:
    index = ToolIndex(backend())
    index.add((tool_id, f"{tool_id} {said}") for tool_id, said in TOOLS.items())
    assert index.search(query, 3)[0][0] == first


@pytest.mark.parametrize("backend", [TantivyBackend, Fts5Backend])
@pytest.mark.parametrize(
    "query", ["", "  ", '"(', "AND OR NOT", "a:b*^2", "\x00", "'; DROP TABLE tools", "é" * 5000]
)
def test_no_query_is_too_odd(backend: Any, query: str) -> None:
    index = ToolIndex(backend())
    index.add([("a", "and or not b")])
    assert len(index.search(query, 3)) <= 1


def test_names_of_all_styles_have_the_same_words() -> None:
    assert words_of("getUserById") == words_of("get_user_by_id") == words_of("Get-User.by ID")
    assert words_of("HTTPServer2") == ["http", "server", "2"]


def test_search_works_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tantivy", None)
    assert found(governor_with(), "letters to somebody")[0] == "mail.send"


def test_names_are_selected_exactly_and_misses_are_told() -> None:
    result = governor_with().search("select:mail_send, nothing,files.copy")
    assert [match["tool_id"] for match in result.matches] == ["mail.send", "files.copy"]
    assert result.missing_names == ["nothing"]
    assert result.query_type == "select"
    assert result.next_action == "load_schema_then_call"
    assert result.total_deferred_tools == 5
    ref = result.matches[0]["ref"]
    assert ref["source"] == "mcp.mail"
    assert ref["loading_state"] == "discoverable"
    assert ref["reason"] == "deferred_until_discovered"


def test_a_miss_says_what_to_do() -> None:
    governor = governor_with()
    assert governor.search("xylophone").next_action == "refine_query"
    governor.catalog.pending("mcp.music")
    result = governor.search("xylophone")
    assert (result.next_action, result.pending_providers, result.matches) == (
        "retry_later",
        ["mcp.music"],
        [],
    )


def test_a_provider_that_connects_can_be_loaded_from() -> None:
    governor = governor_with()
    governor.catalog.pending("mcp.mail")
    with agent_context(session_id="s"):
        match = governor.search("select:mail_send").matches[0]
        assert match["ref"]["loading_state"] == "pending_provider"
        assert match["ref"]["pending_provider_or_server"] == "mcp.mail"
        assert "mail_send" not in governor.load(["mail_send"]).names
        governor.catalog.failed("mcp.mail", "no answer")
        match = governor.search("select:mail_send").matches[0]
        assert (match["ref"]["loading_state"], match["ref"]["reason"]) == (
            "unavailable",
            "no answer",
        )
        governor.catalog.connected("mcp.mail")
        assert "mail_send" in governor.load(["mail_send"]).names


def test_what_a_policy_hides_is_not_found_nor_counted() -> None:
    governor = governor_with(
        policy_data={"agenttool": {"settings": {"surface": {"hidden_tools": ["mail.send"]}}}}
    )
    assert "mail.send" not in found(governor, "send an electronic letter to somebody")
    result = governor.search("select:mail_send")
    assert (result.matches, result.missing_names, result.total_deferred_tools) == (
        [],
        ["mail_send"],
        4,
    )


def test_a_deprecated_tool_comes_last() -> None:
    governor = Governor()
    for name, lifecycle in (("old", "deprecated"), ("new", "available")):
        said = "Send a fax" if name == "new" else "Send a fax quickly by fax machine fax"
        governor.catalog.add(
            {"tool_id": f"fax.{name}", "name": name, "description": said, "lifecycle": lifecycle}
        )
    assert found(governor, "send fax") == ["fax.new", "fax.old"]


def test_the_tool_finds_loads_and_leaves_events() -> None:
    events: list[ToolEvent] = []
    governor = governor_with(telemetry=TelemetrySettings(subscribers=(events.append,)))

    def mail_send(to: str) -> str:
        return f"sent to {to}"

    governor.catalog.add(
        mail_send,
        tool_id="own.mail_send",
        namespace="own",
        read_only=True,
        access_kinds=[],
        defer=True,
    )
    search = governor.tool_search_tool()
    assert governor.tool_search_tool() is search
    with agent_context(actor="agent:a", session_id="s"):
        surface = governor.surface()
        assert surface.names == {"tool_search"}
        with agent_context(surface=surface):
            early = governor.find("own.mail_send").invoke(to="Ada")
            answer = search.tool.invoke(query="select:own.mail_send").value
            late = governor.find("own.mail_send").invoke(to="Ada")
        with agent_context(session_id="another", surface=surface):
            elsewhere = governor.find("own.mail_send").invoke(to="Ada")
    assert early.error is not None
    assert early.error.error_class == "schema_not_loaded"
    assert answer["next_action"] == "call"
    assert answer["matches"][0]["ref"]["loading_state"] == "loaded"
    assert late.value == "sent to Ada"
    assert elsewhere.error is not None
    kinds = [event.event_type for event in events if event.event_type.startswith("tool.deferred")]
    assert kinds == ["tool.deferred.discovered", "tool.deferred.loaded"]


def test_a_deferred_lifecycle_is_called_once_it_is_loaded() -> None:
    governor = Governor()

    def say(text: str) -> str:
        return text

    say_it = governor.govern(
        say, namespace="a", lifecycle="deferred", read_only=True, access_kinds=[]
    )
    with agent_context(session_id="s"):
        refused = say_it.tool.invoke(text="a").error
        assert refused is not None
        assert refused.error_class == "schema_not_loaded"
        governor.load(["a.say"])
        assert say_it.tool.invoke(text="a").value == "a"


@pytest.mark.speed
def test_schemas_given_to_a_model_are_few() -> None:
    governor = Governor()
    everything = 0
    for number in range(1_700):
        schema = {
            "type": "object",
            "properties": {
                f"field_{n}": {"type": "string", "description": "what it is " * 8} for n in range(6)
            },
        }
        everything += len(str(schema))
        governor.catalog.add(
            {
                "tool_id": f"t.tool_{number}",
                "name": f"tool_{number}",
                "description": f"Does thing number {number}",
                "input_contract": {"model_input_schema": schema},
            }
        )
    search = governor.tool_search_tool()
    with agent_context(session_id="s"):
        search.tool.invoke(query="thing number 12")
        given = len(str(governor.surface().openai_tools()))
    assert given <= everything * 0.01
