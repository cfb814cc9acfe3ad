"""Tools that a door declares from a list, and calls that it makes of them."""

from __future__ import annotations

from typing import Any

import pytest

from agenttool_otel import (
    ApprovalAnswer,
    ApprovalConflict,
    ApprovalRejected,
    ApprovalRequired,
    ToolDenied,
    ToolInputInvalid,
    agent_context,
)
from agenttool_otel.integrations.foreign import ForeignCall, ForeignTool, foreign_tool
from agenttool_otel.testing import Capture, StaticEngine, capture, decision

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
LIST = {"type": "object", "properties": {"paths": {"type": "array", "items": {"type": "string"}}}}


def declared(captured: Capture, name: str = "read", **fields: Any) -> ForeignTool:
    schema = fields.pop("schema", SCHEMA)
    tool = foreign_tool(name, schema, source="toy", governor=captured.governor, **fields)
    tool.register()
    return tool


def body(arguments: dict[str, Any]) -> str:
    return f"content of {arguments['path']}"


def asked(tool: ForeignTool, call_id: str = "call_1") -> str:
    with pytest.raises(ApprovalRequired) as raised:
        ForeignCall(tool, {"path": "a"}, call_id).run(body)
    return raised.value.invocation_id


def test_a_server_is_a_part_of_the_namespace() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        assert declared(captured, server="my git").declaration.namespace == "toy.my_git"


def test_bad_facts_of_a_glob_refuse_their_tool_alone() -> None:
    facts: Any = {"read_*": {"path_args": ["path"]}}
    with capture(policy=StaticEngine("allow")) as captured:
        good = declared(captured, "read_file", facts=facts)
        bad = declared(captured, "read_files", facts=facts, schema=LIST)
        assert ForeignCall(good, {"path": "a"}).run(body) == "content of a"
        with pytest.raises(ToolDenied, match="path"):
            ForeignCall(bad, {"paths": ["a"]}).run(body)
        assert [span.name for span in captured.spans] == [
            "execute_tool read_file",
            "execute_tool read_files",
        ]


@pytest.mark.parametrize("facts", [{"read": 3}, {"read": {"no_such_fact": 1}}])
def test_facts_that_are_none_refuse_the_tool(facts: Any) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        tool = declared(captured, facts=facts)
        with pytest.raises(ToolDenied):
            ForeignCall(tool, {"path": "a"}).run(body)


def test_a_schema_that_is_none_refuses_the_tool() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        tool = declared(captured, schema={"type": "no such type"})
        with pytest.raises(ToolDenied):
            ForeignCall(tool, {}).run(body)


def test_a_refused_tool_is_not_visible() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        assert not declared(captured, facts={"read": {"no_such_fact": 1}}).visible()  # type: ignore[dict-item]


def test_a_tool_outside_of_the_surface_is_not_visible() -> None:
    with capture() as captured:
        here, other = declared(captured, "here"), declared(captured, "other")
        surface = captured.governor.surface(tools=["here"])
        with agent_context(session_id="s", surface=surface):
            assert (here.visible(), other.visible()) == (True, False)


def test_json_text_of_a_model_is_read() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        call = ForeignCall(declared(captured), '{"path": "a"}', "call_1")
        assert call.run(body) == "content of a"


@pytest.mark.parametrize("text", ['{"path": ', "[]", '{"path": NaN}', "[" * 100_000])
def test_text_that_is_no_json_object_leaves_a_span(text: str) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        with pytest.raises(ToolInputInvalid):
            ForeignCall(declared(captured), text, "call_1").run(body)
        assert captured.span.attributes["gen_ai.tool.call.id"] == "call_1"


def test_the_error_of_bad_json_quotes_nothing_of_it() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        with pytest.raises(ToolInputInvalid) as raised:
            ForeignCall(declared(captured), '{"path": "hunter-two" x').run(body)
        assert "hunter" not in str(raised.value)


def test_a_rejection_without_a_new_call_ends_the_call() -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        tool = declared(captured)
        ref = asked(tool)
        result = tool.answer(ref, ApprovalAnswer(approved=False, answered_by="user:a"))
        assert result is not None
        assert result.error is not None
        assert result.error.error_class == "approval_rejected"
        last = captured.spans[-1].attributes or {}
        assert last["gen_ai.tool.call.id"] == "call_1"


def test_an_approval_of_the_framework_lets_the_call_resume() -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        tool = declared(captured)
        ref = asked(tool)
        assert tool.answer(ref, ApprovalAnswer(approved=True, answered_by="user:a")) is None
        assert ForeignCall(tool, None).resume(ref).run(body) == "content of a"


def test_a_resume_with_other_arguments_does_not_run() -> None:
    ran: list[Any] = []
    with capture(policy=StaticEngine("ask")) as captured:
        tool = declared(captured)
        ref = asked(tool)
        tool.answer(ref, ApprovalAnswer(approved=True, answered_by="user:a"))
        with pytest.raises((ToolDenied, ApprovalRequired)):
            ForeignCall(tool, {"path": "b"}).resume(ref).run(ran.append)
    assert ran == []


def test_a_resume_of_another_tools_call_is_refused() -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        ref = asked(declared(captured))
        with pytest.raises(ApprovalConflict, match="no call of other"):
            ForeignCall(declared(captured, "other"), None).resume(ref)


def test_a_rejected_call_is_refused_at_the_resume() -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        tool = declared(captured)
        ref = asked(tool)
        store = captured.governor.approvals.store
        request = store.stored_call(ref).request
        store.answer(request.request_id, ApprovalAnswer(approved=False, answered_by="user:a"))
        with pytest.raises(ApprovalRejected):
            ForeignCall(tool, None).resume(ref).run(body)


def test_a_tool_with_a_body_is_called_with_one_object() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        assert declared(captured, body=body).invoke(path="a").value == "content of a"


def test_a_call_of_invoke_goes_on_with_its_own_arguments() -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        tool = declared(captured, body=body)
        ref = tool.invoke(path="a").invocation_id
        tool.answer(ref, ApprovalAnswer(approved=True, answered_by="user:a"))
        assert captured.governor.resume(ref).value == "content of a"


def test_without_a_body_only_the_framework_runs_a_tool() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        result = declared(captured).invoke(path="a")
        assert result.error is not None
        assert "only where its framework calls it" in result.error.message


def test_a_policys_change_reaches_the_body() -> None:
    edited = decision("allow", updated_input={"path": "b"})
    with capture(policy=StaticEngine({"read": edited})) as captured:
        assert ForeignCall(declared(captured), {"path": "a"}).run(body) == "content of b"


def test_attributes_of_a_door_are_redacted_and_take_no_own_name() -> None:
    secret = "ghp_" + "Zt4mLx7Vw2Rk9Py3Nd6Hf1Jb5Gc0Sa8Ue7Qq"
    attributes = {
        "toy.note": f"key {secret}",
        "toy.retries": 2,
        "agenttool.tool.id": "other",
        "toy.object": object(),
    }
    with capture(policy=StaticEngine("deny")) as captured:
        tool = declared(captured)
        with pytest.raises(ToolDenied):
            ForeignCall(tool, {"path": "a"}, attributes=attributes).run(body)
        found = captured.span.attributes
    assert secret not in str(found["toy.note"])
    assert found["toy.retries"] == 2
    assert found["agenttool.tool.id"] == tool.spec.tool_id
    assert "toy.object" not in found


async def test_an_asynchronous_body_is_awaited() -> None:
    async def read(arguments: dict[str, Any]) -> str:
        return body(arguments)

    with capture(policy=StaticEngine("allow")) as captured:
        tool = declared(captured, is_async=True)
        assert await ForeignCall(tool, {"path": "a"}).arun(read) == "content of a"
