"""What reaches a LangChain tool is what was decided: whatever its arguments are called, and however
they are read.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import pytest
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId, StructuredTool, tool
from pydantic import BaseModel, StringConstraints

from agenttool_otel import ApprovalAnswer, Governor, TelemetrySettings
from agenttool_otel.errors import GovernedOutcome
from agenttool_otel.hooks import HookContext, Hooks, UpdatedInput
from agenttool_otel.telemetry.sinks import CallbackSink
from agenttool_otel.testing import FixedApprover, StaticEngine, capture

Lower = Annotated[str, StringConstraints(to_lower=True)]


def as_call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_call", "name": name, "args": arguments, "id": "call-1"}


class Configured(BaseTool):
    name: str = "configured"
    description: str = "Takes an argument that is called like LangChain's own."

    def _run(self, config: str) -> str:
        return config


class CalledBack(BaseTool):
    name: str = "called_back"
    description: str = "Takes an argument that is called like LangChain's own."

    def _run(self, callbacks: str) -> str:
        return callbacks


class Settings(BaseModel):
    config: dict[str, str]


class Explicit(BaseTool):
    name: str = "explicit"
    description: str = "States its arguments."
    args_schema: Any = Settings

    def _run(self, config: dict[str, str]) -> str:
        return str(config)


@pytest.mark.parametrize(
    ("made", "arguments"),
    [
        (Configured(), {"config": "/etc/shadow"}),
        (CalledBack(), {"callbacks": "/etc/shadow"}),
        (Explicit(), {"config": {"target": "/etc/shadow"}}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_argument_named_like_langchains_own_is_shown(
    made: BaseTool, arguments: dict[str, Any]
) -> None:
    engine = StaticEngine("deny")
    with capture(policy=engine) as captured:
        assert (
            captured.governor.govern(made).invoke(as_call(made.name, arguments)).status == "error"
        )
        assert engine.documents[0]["input"] == arguments


def test_langchains_own_objects_are_never_shown() -> None:
    class Runs(BaseTool):
        name: str = "runs"
        description: str = "Takes what LangChain gives."

        def _run(self, text: str, settings: RunnableConfig, run_manager: Any = None) -> str:
            assert run_manager is not None
            return text + str(settings["tags"])

    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        assert captured.governor.govern(Runs()).invoke({"text": "a"}, {"tags": ["t"]}) == "a['t']"
        assert engine.documents[0]["input"] == {"text": "a"}


SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [
        {"path": ["a"]},
        {},
        {"path": "a", "callbacks": "s"},
        {"path": "a", "config": "s"},
        {"path": "a", "other": "s"},
    ],
    ids=str,
)
def test_arguments_outside_a_schema_reach_no_policy_nor_tool(
    arguments: dict[str, Any], is_async: bool
) -> None:
    ran: list[Any] = []

    async def call_tool(**given: Any) -> str:
        ran.append(given)
        return "ok"

    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        made = StructuredTool(
            name="remote",
            description="Call.",
            args_schema={**SCHEMA, "additionalProperties": False},
            coroutine=call_tool,
            func=lambda **given: ran.append(given),
        )
        governed = captured.governor.govern(made)
        call = as_call("remote", arguments)
        message = asyncio.run(governed.ainvoke(call)) if is_async else governed.invoke(call)
        assert message.status == "error"
        assert (ran, engine.documents) == ([], [])
        assert captured.span.attributes["error.type"] == "schema_validation_failed"


def test_an_argument_that_a_schema_leaves_open_is_decided() -> None:
    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        made = StructuredTool(
            name="remote", description="Call.", args_schema=SCHEMA, func=lambda **given: str(given)
        )
        arguments = {"path": "a", "callbacks": "b"}
        assert captured.governor.govern(made).invoke(arguments) == str(arguments)
        assert engine.documents[0]["input"] == arguments


def test_a_tool_called_by_anothers_body_is_a_call_of_its_own() -> None:
    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        inner = captured.governor.govern(Configured())

        @tool
        def outer(text: str) -> str:
            """Call another."""
            return str(inner._run(config=text + "!"))

        governed = captured.governor.govern(outer)
        assert governed.invoke(as_call("outer", {"text": "a"})).content == "a!"
        told = [
            (document["input"], document["invocation"]["native_call_id"])
            for document in engine.documents
        ]
        assert told == [({"text": "a"}, "call-1"), ({"config": "a!"}, None)]


def test_a_positional_argument_is_named_as_the_function_names_it() -> None:
    class Order(BaseModel):
        second: str
        first: str

    def act(first: str, second: str = "b") -> str:
        """Act."""
        return first + second

    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        governed = captured.governor.govern(StructuredTool.from_function(act, args_schema=Order))
        assert governed._run("a", config={}) == "ab"
        assert engine.documents[0]["input"]["first"] == "a"
        with pytest.raises(GovernedOutcome):
            governed._run("a", "b", "c", config={})
        assert len(engine.documents) == 1


@tool
def shell(command: Lower, where: str = "/") -> str:
    """Run."""
    return f"{command} {where}"


def test_a_hooks_input_is_decided_as_langchain_reads_it() -> None:
    hooks, engine = Hooks(), StaticEngine("allow")
    hooks.add(lambda ctx: UpdatedInput({"command": "RM -RF"}), "pre_tool_use")
    with capture(policy=engine, hooks=hooks) as captured:
        assert (
            captured.governor.govern(shell).invoke({"command": "ls", "where": "/tmp"}) == "rm -rf /"
        )
        assert engine.documents[-1]["input"] == {"command": "rm -rf", "where": "/"}


def test_what_langchain_reads_is_a_change_with_its_author() -> None:
    hooks, lines = Hooks(), list[dict[str, Any]]()
    hooks.add(lambda ctx: UpdatedInput({"command": "RM"}), "pre_tool_use", hook_id="h", timeout=60)
    telemetry = TelemetrySettings(sinks=(sink := CallbackSink(lines.append),))
    governor = Governor(policy=StaticEngine("allow"), hooks=hooks, telemetry=telemetry)
    assert governor.govern(shell).invoke({"command": "ls"}) == "rm /"
    assert sink.flush(20)
    changes = [line["record"] for line in lines if line["object"] == "input_mutation"]
    assert [(change["source_type"], change["source_ref"]) for change in changes] == [
        ("hook", "h"),
        ("adapter", "langchain"),
    ]
    assert changes[0]["to_input_ref"] == changes[1]["from_input_ref"]


@pytest.mark.parametrize(
    ("edit", "ran"),
    [
        ({"command": "rm", "where": "/tmp"}, "rm /tmp"),
        ({"command": "RM", "where": "/tmp"}, None),  # it would run in small letters
        ({"command": "rm"}, None),  # it would run in a place that nobody approved
    ],
)
def test_an_edit_runs_as_it_was_approved_or_not_at_all(
    edit: dict[str, Any], ran: str | None
) -> None:
    approver = FixedApprover(ApprovalAnswer(True, answered_by="user:bob", edited_input=edit))
    engine = StaticEngine("ask")
    with capture(policy=engine, approver=approver) as captured:
        message = captured.governor.govern(shell).invoke(as_call("shell", {"command": "ls"}))
        assert (
            message.content.partition("\n\n")[0] if message.status == "success" else None
        ) == ran
        assert ran is not None or captured.span.attributes["error.type"] == "input_mutation_failed"


def test_an_edit_leaves_what_was_injected() -> None:
    @tool
    def act(
        text: Lower,
        user: Annotated[str, InjectedToolArg],
        call_id: Annotated[str, InjectedToolCallId],
    ) -> str:
        """Act."""
        return f"{text} {user} {call_id}"

    approver = FixedApprover(
        ApprovalAnswer(True, answered_by="user:bob", edited_input={"text": "b"})
    )
    engine = StaticEngine("ask")
    with capture(policy=engine, approver=approver) as captured:
        governed = captured.governor.govern(act)
        content = governed.invoke(as_call("act", {"text": "a", "user": "u"})).content
        assert content.startswith(
            'b u call-1\n\nA person changed the arguments of this call: text is now "b".'
        )
        assert [document["input"] for document in engine.documents] == [
            {"text": "a"},
            {"text": "b"},
        ]


def test_what_a_change_removed_stays_away_in_the_next_change() -> None:
    hooks, engine = Hooks(), StaticEngine("allow")
    changes = {"x": "a", "a": "b"}

    @hooks.on("pre_tool_use")
    def change(ctx: HookContext) -> UpdatedInput | None:
        path = changes.get(ctx.arguments["path"])
        return None if path is None else UpdatedInput({"path": path})

    @hooks.on("permission_decision")
    def change_again(ctx: HookContext) -> UpdatedInput | None:
        return change(ctx)

    made = StructuredTool(
        name="remote", description="Call.", args_schema=SCHEMA, func=lambda **given: str(given)
    )
    with capture(policy=engine, hooks=hooks) as captured:
        assert (
            captured.governor.govern(made).invoke({"path": "x", "secret": "s"}) == "{'path': 'b'}"
        )


def test_a_list_that_its_owner_changes_later_runs_as_decided() -> None:
    given: list[str] = ["safe"]

    class Changes:
        def ask(self, request: Any) -> ApprovalAnswer:
            given.append("evil")
            return ApprovalAnswer(True, answered_by="user:bob")

    @tool
    def act(names: list[str]) -> str:
        """Act."""
        return str(names)

    with capture(policy=StaticEngine("ask"), approver=Changes()) as captured:
        assert captured.governor.govern(act).invoke({"names": given}) == "['safe']"
