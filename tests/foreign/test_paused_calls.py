"""A tool that is declared by a schema alone: its paused call goes on where it was asked."""

from __future__ import annotations

from agenttool_otel import ApprovalAnswer
from agenttool_otel.integrations.foreign import declare_foreign
from agenttool_otel.testing import StaticEngine, capture

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


def test_an_answered_call_goes_on_in_its_process() -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        governor = captured.governor
        tool = declare_foreign(
            "toy",
            "read",
            description="Read.",
            schema=SCHEMA,
            body=print,
            governor=governor,
            options={"ownership": "custom"},
        )
        tool.register()
        asked = tool.invoke({"path": "a"}).requires_action
        assert asked is not None
        approved = ApprovalAnswer(approved=True, answered_by="user:ada")
        governor.approvals.store.answer(asked["request_id"], approved)
        resumed = governor.resume(asked["invocation_id"]).requires_action
    assert resumed is not None
    assert resumed["type"] == "tool_result"
    assert resumed["arguments"] == {"path": "a"}
