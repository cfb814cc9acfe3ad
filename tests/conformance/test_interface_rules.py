"""What an interface promises: nothing is harmless because nobody said otherwise, what was derived is told,
a rule can match what the standard names, and the forms of a result stay apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agenttool_otel import agent_context
from agenttool_otel.records import ExternalMapping
from agenttool_otel.testing import Capture, StaticEngine, capture


@pytest.fixture
def captured() -> Iterator[Capture]:
    with capture(policy=StaticEngine("allow")) as made:
        yield made


def act(text: str = "a") -> Any:
    """Act."""
    return text


# --- fail-closed defaults -------------------------------------------------------------------------

SAFE = {
    "is_concurrency_safe": False,
    "is_read_only": False,
    "is_destructive": False,
    "is_open_world": True,
    "requires_user_interaction": False,
    "strict": True,
    "interrupt_behavior": "block",
    "classifier_input": "",
}
"""The table of the standard's fail-closed defaults."""


@pytest.mark.parametrize(
    "field",
    [pytest.param(name, marks=pytest.mark.covers(f"default-{name}")) for name in SAFE],
)
def test_what_nobody_stated_has_the_safe_default(captured: Capture, field: str) -> None:
    interface = captured.governor.govern(act).tool.spec.interface.to_json_object()
    assert interface[field] == SAFE[field]


@pytest.mark.covers("default-strict-binds")
def test_an_argument_that_the_schema_lacks_is_refused_by_default(captured: Capture) -> None:
    result = captured.governor.govern(act).tool.invoke(text="a", other="b")
    assert result.error is not None
    assert result.error.error_class == "schema_validation_failed"


@pytest.mark.parametrize("kind", ["web_search", "browser_action", "shell_command"])
@pytest.mark.covers("default-open-world-unless-scoped")
def test_an_open_world_tool_is_closed_only_where_it_says_so(captured: Capture, kind: str) -> None:
    govern = captured.governor.govern
    assert govern(act, tool_kind=kind).tool.spec.interface.is_open_world is True
    assert govern(act, tool_kind=kind, open_world=False).tool.spec.interface.is_open_world is False


@pytest.mark.covers("inferred-facts-told")
def test_an_interface_tells_which_facts_were_inferred(captured: Capture) -> None:
    facts = {"read_only", "destructive", "open_world", "concurrency_safe"}
    govern = captured.governor.govern
    assert facts <= set(govern(act).tool.spec.interface.inferred)
    stated = govern(act, read_only=True, open_world=False).tool.spec.interface.inferred
    assert facts & set(stated) == {"destructive", "concurrency_safe"}


@pytest.mark.covers("classifier-that-fails-is-no-clearance")
def test_a_safety_fact_that_can_not_be_worked_out_clears_nothing() -> None:
    engine = StaticEngine("allow")

    def broken(arguments: Any) -> bool:
        raise ValueError("broken")

    with capture(policy=engine) as captured:
        stated: Any = dict.fromkeys(
            ("read_only", "destructive", "open_world", "concurrency_safe"), broken
        )
        captured.governor.govern(act, **stated).tool.invoke(text="a")
    tool = engine.documents[0]["tool"]
    assert (tool["read_only"], tool["concurrency_safe"]) == (False, False)
    assert (tool["destructive"], tool["open_world"]) == (True, True)


# --- validation before permission -----------------------------------------------------------------


@pytest.mark.covers("schema-before-permission")
def test_arguments_that_miss_the_schema_are_never_decided() -> None:
    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        result = captured.governor.govern(act).tool.invoke(text=1)
    assert result.is_error
    assert engine.documents == []


@pytest.mark.covers("values-before-permission")
def test_values_that_a_check_refuses_are_never_decided() -> None:
    engine = StaticEngine("allow")

    def refuse(arguments: Any) -> None:
        raise ValueError("not this text")

    with capture(policy=engine) as captured:
        result = captured.governor.govern(act, validate=refuse).tool.invoke(text="a")
    assert result.is_error
    assert engine.documents == []


# --- permission matching --------------------------------------------------------------------------


def reach(path: str = "", url: str = "", command: str = "") -> None:
    """Reach something."""


def put_before_the_policy(**arguments: Any) -> Any:
    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        tool = captured.governor.govern(
            reach,
            path_args=["path"],
            url_args=["url"],
            command_args=["command"],
            external_mappings=[{"source": "openapi", "operation_id": "reachIt"}],
        ).tool
        with agent_context(resources={"order": {"state": "paid"}}):
            tool.invoke(**arguments)
    return engine.documents[0]


@pytest.mark.covers("match-by-name")
def test_a_rule_can_match_the_tools_name() -> None:
    assert put_before_the_policy()["tool"]["name"] == "reach"


@pytest.mark.covers("match-by-path")
def test_a_rule_can_match_a_path() -> None:
    [path] = put_before_the_policy(path="/etc/../etc/passwd")["facts"]["paths"]
    assert path["resolved"] == "/etc/passwd"


@pytest.mark.covers("match-by-url")
def test_a_rule_can_match_a_url() -> None:
    [url] = put_before_the_policy(url="https://Example.org/a")["facts"]["urls"]
    assert url["host"] == "example.org"


@pytest.mark.covers("match-by-command")
def test_a_rule_can_match_a_command() -> None:
    [command] = put_before_the_policy(command="ls -l")["facts"]["shell"]
    assert command["commands"][0]["argv"] == ["ls", "-l"]


@pytest.mark.covers("match-by-resource")
def test_a_rule_can_match_a_resource() -> None:
    assert put_before_the_policy()["resources"] == {"order": {"state": "paid"}}


@pytest.mark.covers("match-by-native-id")
def test_a_rule_can_match_a_native_operation() -> None:
    [mapping] = put_before_the_policy()["tool"]["external_mappings"]
    assert mapping["operation_id"] == "reachIt"


# --- schemas --------------------------------------------------------------------------------------

WITH_TOKEN = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "token": {"type": "string"}},
    "required": ["text", "token"],
}


@pytest.mark.covers("internal-not-in-model-schema")
def test_no_model_facing_schema_has_an_internal_field(captured: Capture) -> None:
    governor = captured.governor
    tool = governor.govern(
        lambda text, token="": text,
        name="t",
        model_input_schema=WITH_TOKEN,
        internal_only_fields=["token"],
    )
    spec = tool.tool.spec
    for schema in (
        spec.interface.model_input_schema,
        spec.declaration.input_contract.model_input_schema,
    ):
        assert "token" not in repr(schema)


@pytest.mark.covers("internal-marked-in-runtime-schema")
def test_a_runtime_schema_marks_internal_fields(captured: Capture) -> None:
    spec = captured.governor.govern(act, internal_only_fields=["text"]).tool.spec
    assert spec.interface.runtime_input_schema is not None
    assert spec.interface.runtime_input_schema["properties"]["text"] == {
        "visibility": "internal",
        "mutation_source": "hook",
    }


# --- rendering boundary ---------------------------------------------------------------------------


@pytest.mark.covers("rendering-wrapper-is-no-output")
def test_the_wrapper_of_a_large_result_is_not_its_output(captured: Capture) -> None:
    tool = captured.governor.govern(lambda: "line\n" * 20_000, name="large").tool
    result = tool.invoke()
    assert "too large" in result.model_facing_content[0]["text"]
    assert result.value == "line\n" * 20_000


@pytest.mark.covers("rendering-native-ids-apart")
def test_native_ids_stand_beside_the_result_not_in_it(captured: Capture) -> None:
    mapping = ExternalMapping(source="mcp", tool_name="act")  # type: ignore[call-arg]
    with agent_context():
        tool = captured.governor.govern(act).tool
        [result] = captured.governor.batch([call_of(tool, mapping)])
    assert result.model_facing_content == [{"type": "text", "text": "a"}]
    assert result.to_json_object()["external_mappings"] == [{"source": "mcp", "tool_name": "act"}]


def call_of(tool: Any, mapping: ExternalMapping) -> Any:
    from agenttool_otel import BatchCall

    return BatchCall(tool, {"text": "a"}, mappings=[mapping])
