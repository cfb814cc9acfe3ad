"""The catalog: what is in it, what its names mean, and that a document goes through it
unchanged.
"""

from __future__ import annotations

import gc
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenttool_otel import ConfigurationError, Governor, TelemetrySettings, ToolDeclaration
from agenttool_otel.catalog import Catalog
from agenttool_otel.records import DeferredToolRef, ToolEvent


def declaration(tool_id: str, **more: Any) -> dict[str, Any]:
    namespace, _, name = tool_id.rpartition(".")
    return {
        "schema_version": "0.2.0",
        "tool_id": tool_id,
        "namespace": namespace,
        "name": name,
        **more,
    }


@pytest.mark.slow
def test_a_governed_tool_is_in_the_catalog_while_it_lives() -> None:
    governor = Governor()
    before = len(governor.catalog)
    tool = governor.govern(lambda text: text, namespace="a", name="say")
    assert governor.catalog.resolve("a.say") is not None
    assert len(governor.catalog) == before + 1
    del tool
    gc.collect()
    assert governor.catalog.resolve("a.say") is None


@pytest.mark.slow
def test_an_added_tool_is_kept_and_governed() -> None:
    governor = Governor()

    def say(text: str) -> str:
        return text

    governor.catalog.add(say, namespace="a", read_only=True, access_kinds=[], defer=True)
    gc.collect()
    entry = governor.catalog.resolve("say")
    assert entry is not None
    assert entry.is_deferred
    assert entry.governed is not None
    assert governor.find("a.say").spec.policy_tool["read_only"] is True


def test_a_second_tool_of_one_id_is_refused_by_name() -> None:
    catalog = Catalog()
    catalog.add(declaration("a.say"))
    with pytest.raises(ConfigurationError, match=r"'a\.say' already"):
        catalog.add(declaration("a.say"))


def test_an_alias_that_is_anothers_name_is_refused() -> None:
    catalog = Catalog()
    catalog.add(declaration("a.say"))
    with pytest.raises(ConfigurationError, match=r"alias 'say' of 'b\.tell'"):
        catalog.add(declaration("b.tell", aliases=["say"]))
    catalog.add(declaration("b.tell", aliases=["speak"]))
    with pytest.raises(ConfigurationError, match=r"name 'speak' of 'c\.speak'"):
        catalog.add(declaration("c.speak"))


@pytest.mark.slow
@pytest.mark.covers("declaration-namespace-parts")
def test_a_bare_name_of_two_namespaces_belongs_to_neither() -> None:
    governor = Governor()
    governor.catalog.add(declaration("a.say"))
    governor.catalog.add(declaration("b.say"))
    assert governor.catalog.resolve("say") is None
    assert governor.catalog.resolve("b.say") is not None
    first = governor.govern(lambda text: text, namespace="c", name="tell")
    second = governor.govern(lambda text: text, namespace="d", name="tell")
    assert governor.find("tell") is None
    assert governor.find("d.tell") is second.tool
    del second
    gc.collect()
    assert governor.find("tell") is first.tool


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,6}\.[a-z]{1,6}", fullmatch=True),
        st.dictionaries(
            st.text(min_size=1, max_size=8), st.integers(-(2**60), 2**60) | st.text() | st.none()
        ),
        max_size=6,
    ),
    st.text(),
)
def test_export_import_export_is_byte_equal(tools: dict[str, dict[str, Any]], note: str) -> None:
    document = {
        "schema_version": "0.9.9",
        "x-note": note,
        "tools": [{**extra, **declaration(tool_id)} for tool_id, extra in tools.items()],
    }
    text = json.dumps(document)
    assert json.dumps(Catalog.from_json(json.loads(text)).to_json()) == text


def test_a_governors_catalog_goes_into_another_ones() -> None:
    one, other = Governor(), Governor()
    one.held = one.govern(lambda text: text, namespace="a", name="say", aliases=["speak"])  # type: ignore[attr-defined]
    exported = one.catalog.to_json()
    other.catalog.add_json(exported)
    assert other.catalog.to_json() == exported
    entry = other.catalog.resolve("speak")
    assert entry is not None
    read = ToolDeclaration.from_json_object(entry.document())
    assert read.to_json_object() == one.held.tool.declaration.to_json_object()  # type: ignore[attr-defined]


def test_a_loader_makes_a_declared_tool_run() -> None:
    governor = Governor()
    made: list[str] = []

    def loader(tool_id: str) -> Any:
        made.append(tool_id)

        def add(a: int, b: int) -> int:
            return a + b

        return add

    governor.catalog.add(
        DeferredToolRef(tool_id="m.add", name="add", namespace="m"),
        loader=loader,
        read_only=True,
        access_kinds=[],
    )
    assert made == []
    tool: Any = governor.catalog.load("m.add")
    assert tool.invoke(a=1, b=2).value == 3
    assert governor.catalog.load("m.add") is tool
    assert made == ["m.add"]


def test_a_loader_that_makes_another_tool_is_refused() -> None:
    governor = Governor()

    def other(a: int) -> int:
        return a

    governor.catalog.add(declaration("m.add"), loader=lambda tool_id: other)
    with pytest.raises(ConfigurationError, match="made another tool"):
        governor.catalog.load("m.add")


def test_a_servers_word_makes_no_tool_harmless() -> None:
    governor = Governor()
    said = {"is_read_only": True, "always_load": True}
    governor.catalog.add(
        declaration("m.wipe", tool_interface=said, read_only=True, risk_level="low")
    )
    entry = governor.catalog.resolve("m.wipe")
    assert entry is not None
    tool, profile = entry.policy_parts()
    assert tool["read_only"] is False
    assert profile["risk_level"] == "medium"
    assert entry.is_deferred


def test_each_tool_is_declared_once_as_an_event() -> None:
    events: list[ToolEvent] = []
    governor = Governor(telemetry=TelemetrySettings(subscribers=(events.append,)))
    held = governor.govern(lambda text: text, namespace="a", name="say")
    governor.catalog.add(declaration("b.tell"))
    governor.catalog.add(held)
    list(governor.catalog)
    declared = [event.tool_id for event in events if event.event_type == "tool.declared"]
    assert sorted(name for name in declared if name) == ["a.say", "b.tell"]


@pytest.mark.parametrize(
    "wrong", [{}, {"tool_id": "a"}, {"tool_id": 1, "name": "a"}, {"tool_id": "a", "name": None}]
)
def test_what_is_no_declaration_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        Catalog().add(wrong)
