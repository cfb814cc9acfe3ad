"""Requirements of "Fail-safe guidance" and "Version compatibility"."""

from __future__ import annotations

from typing import Any

import pytest
from recorded import last_of

from agenttool_otel import (
    ApprovalAnswer,
    BatchCall,
    CancelState,
    Governor,
    agent_context,
    current_call,
)
from agenttool_otel.errors import PersistenceError
from agenttool_otel.records import ToolProgress, ToolResult
from agenttool_otel.results.persistence.keeper import ResultKeeper
from agenttool_otel.testing import FixedApprover, StaticEngine, capture, decision

READ = {
    "schema_version": "0.2.0",
    "result_id": "r",
    "invocation_id": "i",
    "status": "denied",
    "created_at": "2026-05-08T00:00:00Z",
}


class Unreadable:
    """What nobody can look into."""

    __slots__ = ()


def no_store() -> Any:
    raise PersistenceError("no such bucket")


@pytest.mark.covers("lost-payload-keeps-its-reason")
def test_a_payload_that_could_not_be_kept_has_its_reason() -> None:
    with capture(policy=StaticEngine("allow"), results=ResultKeeper(no_store)) as captured:
        act = captured.governor.govern(lambda: "line\n" * 20_000, name="act")
        result = act.tool.invoke()
        assert last_of(captured, "tool_result_persistence")["reason"] == "store_failed"
        assert result.error is not None
        assert (result.status, result.error.error_class) == ("too_large", "result_too_large")


@pytest.mark.covers("withheld-result-keeps-redaction-reason")
def test_a_withheld_result_keeps_what_went_wrong() -> None:
    policy = StaticEngine(decision("allow", obligations={"redact_result": ["/a"]}))
    with capture(policy=policy) as captured:
        captured.governor.govern(lambda: Unreadable(), name="act").tool.invoke()
        record = last_of(captured, "tool_result")
        assert (record["status"], record["redaction_state"]) == ("redacted", "failed")
        assert record["error"]["error_class"] == "result_redacted"


@pytest.mark.covers("redacted-result-states-so", "redacted-place-is-kept")
def test_a_redacted_result_keeps_the_place_and_no_value() -> None:
    policy = StaticEngine(decision("allow", obligations={"redact_result": ["/pin"]}))
    with capture(policy=policy) as captured:
        captured.governor.govern(lambda: {"pin": "marigold"}, name="act")()
        [event] = [each for each in captured.events if each.event_type == "tool.result.redacted"]
        assert (event.data or {})["agenttool.redaction.pointers"] == ["/pin"]
        assert last_of(captured, "tool_result")["redaction_state"] == "redacted"
        assert "marigold" not in str(captured.records)


@pytest.mark.covers("stopped-call-keeps-its-policies")
def test_a_discarded_call_keeps_its_policies() -> None:
    def act() -> None:
        call = current_call()
        assert call is not None
        call.request(CancelState(call.invocation_id, "another answers", "fallback"))
        call.raise_if_canceled()

    with capture(policy=StaticEngine("allow")) as captured:
        captured.governor.govern(act).tool.invoke()
        record = last_of(captured, "tool_result")
        assert (record["status"], record["policy_refs"]) == ("discarded", ["policy:static@test-1"])


@pytest.mark.covers("refused-call-keeps-its-evidence")
def test_a_rejected_call_keeps_its_evidence() -> None:
    approver = FixedApprover(ApprovalAnswer(approved=False, answered_by="user:ada"))
    with capture(policy=StaticEngine("ask"), approver=approver) as captured:
        captured.governor.govern(lambda: 1, name="act").tool.invoke()
        [reference] = last_of(captured, "tool_invocation")["evidence_refs"]
        assert reference.startswith("approval_log:")


# --- versions -------------------------------------------------------------------------------------


@pytest.mark.covers("records-have-the-schema-version")
def test_every_record_has_the_version_of_the_standard() -> None:
    with capture(policy=StaticEngine("allow")) as captured, agent_context(session_id="s"):
        act = captured.governor.govern(lambda: "line\n" * 20_000, name="act")
        captured.governor.surface()
        captured.governor.batch([BatchCall(act, {})])
        versions = {line["object"]: line["record"]["schema_version"] for line in captured.records}
    assert {"tool_invocation", "tool_result", "tool_surface"} <= versions.keys()
    assert set(versions.values()) == {"0.2.0"}


@pytest.mark.covers("unknown-fields-are-tolerated", "unknown-fields-are-kept")
def test_a_record_of_a_later_version_is_read_and_given_back() -> None:
    later = {**READ, "verdict_of_the_future": {"sure": True}}
    assert ToolResult.from_json_object(later).to_json_object() == later


@pytest.mark.covers("read-records-stay-as-they-were")
def test_a_record_is_given_back_as_it_was_read() -> None:
    assert ToolResult.from_json_object(READ).to_json_object() == READ


@pytest.mark.covers("foreign-words-are-kept")
def test_a_foreign_word_is_read_and_given_back() -> None:
    record = {
        "schema_version": "0.2.0",
        "progress_id": "p",
        "invocation_id": "i",
        "sequence": 0,
        "status": "warming_up",
        "timestamp": "2026-05-08T00:00:00Z",
    }
    assert ToolProgress.from_json_object(record).to_json_object() == record


@pytest.mark.covers("tool-id-is-stable")
def test_a_tool_keeps_its_id_when_its_text_changes() -> None:
    def first(text: str) -> None:
        """Do it."""

    def second(text: str, also: int = 0) -> None:
        """Do it, and something else, too."""

    ids = {
        Governor(policy=StaticEngine("allow")).govern(function, name="act").tool.spec.tool_id
        for function in (first, second)
    }
    assert len(ids) == 1
