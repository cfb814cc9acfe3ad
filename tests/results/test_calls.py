"""Results of real calls: the envelope, the standard's examples field by field, errors, retries,
read_result.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import jsonschema_rs
import pytest

from agenttool_otel import ToolDenied, agent_context
from agenttool_otel.names import ErrorClass
from agenttool_otel.records import ToolError
from agenttool_otel.results.persistence.keeper import ResultKeeper
from agenttool_otel.results.stores.local import LocalBackend
from agenttool_otel.results.stores.store import ResultStore
from agenttool_otel.testing import Capture, StaticEngine, capture, decision

SCHEMAS = Path(__file__).parent.parent / "spec_schemas"


def valid(kind: str, record: dict[str, Any]) -> None:
    schema = json.loads((SCHEMAS / f"agenttool-{kind}.schema.json").read_text())
    jsonschema_rs.validator_for(schema).validate(record)


def keeper(folder: Path, **options: Any) -> ResultKeeper:
    return ResultKeeper(ResultStore(LocalBackend(folder, durable=False)), **options)


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Capture]:
    with capture(policy=StaticEngine("allow"), results=keeper(tmp_path / "results")) as captured:
        yield captured


def grep_big(pattern: str) -> str:
    """Find a pattern."""
    line = f"/workspace/src/module.py:17: {pattern} = compute({pattern})\n"
    return line * (481_204 // len(line)) + "x" * (481_204 % len(line))


# --- the standard's examples ----------------------------------------------------------------------


@pytest.mark.covers(
    "persisted-payload-is-whole",
    "preview-names-the-reference",
    "persisted-ref-has-its-digest",
    "native-output-is-preserved",
    "persistence-decision-names-its-result",
)
def test_the_large_result_example_of_the_standard_field_by_field(stored: Capture) -> None:
    result = stored.governor.govern(grep_big).tool.invoke(pattern="value")
    kept: Any = result.persistence  # type: ignore[attr-defined]
    valid("result-persistence", kept)
    valid("result", result.to_json_object())
    assert kept["schema_version"] == "0.2.0"
    assert kept["invocation_id"] == result.invocation_id
    assert kept["result_id"] == result.result_id
    assert kept["strategy"] == "preview_and_persist"
    assert kept["threshold"] == {"max_inline_chars": 50_000}
    assert kept["original_size_bytes"] == 481_204
    assert 1_500 < kept["preview_size_bytes"] <= 2_048
    reference = kept["persisted_ref"]
    assert reference["uri"] == f"agent-runtime://session/tool-results/{result.invocation_id}.txt"
    assert reference["media_type"] == "text/plain"
    assert reference["digest"].startswith("hmac-sha256:")
    assert kept["reason"] == "result_exceeded_inline_limit"
    assert result.schema_version == "0.2.0"
    assert result.status == "succeeded"
    block = result.model_facing_content[0]
    assert block["type"] == "text"
    text = block["text"]
    assert text.startswith("Output too large")
    assert "Full output saved to" in text
    assert "Preview:" in text
    assert len(text.encode()) == kept["preview_size_bytes"]
    assert result.persistence_refs == [kept["decision_id"]]
    assert result.resource_refs == [reference]
    assert [item["type"] for item in result.content] == ["text", "persisted_output_ref"]
    assert result.value == grep_big("value")
    stored_bytes = b"".join(stored.governor.results.store.open(reference["uri"]))  # type: ignore[union-attr]
    assert stored_bytes.decode() == grep_big("value")
    attributes = stored.span.attributes
    assert attributes["agenttool.result.persistence"] == "preview_and_persist"
    assert attributes["agenttool.result.size_bytes"] == 481_204
    event = next(event for event in stored.span.events if event.name == "tool.result.persisted")
    assert event.attributes["agenttool.result.ref"] == reference["uri"]
    assert event.attributes["agenttool.result.digest"] == reference["digest"]


def test_the_standards_denied_with_retry_example_by_field() -> None:
    reason = {
        "type": "rule",
        "rule_ref": "rule_deny_secrets_dir",
        "message": "Writes under .secrets are denied by project policy.",
    }
    path = "/workspace/.secrets/token.txt"
    engine = StaticEngine({"behavior": "deny", "reason": reason, "blocked_path": path})
    with capture(policy=engine) as captured:

        @captured.governor.govern(access_kinds=["file_write"])
        def write_secret(path: str, text: str) -> None:
            raise AssertionError("ran")

        with agent_context(mode="default"), pytest.raises(ToolDenied) as denied:
            write_secret(path, "x")
        decided, result = denied.value.decision, denied.value.result
        assert decided is not None
        assert result is not None
        valid("permission-decision", decided.to_json_object())
        valid("result", result.to_json_object())
        assert decided.behavior == "deny"
        assert decided.invocation_id == result.invocation_id
        assert decided.reason is not None
        assert decided.reason.type == "rule"
        assert decided.reason.rule_ref == "rule_deny_secrets_dir"
        assert decided.reason.message == reason["message"]
        assert decided.blocked_path == path
        assert decided.decided_at is not None
        assert result.status == "denied"
        assert result.is_error is True
        assert result.error is not None
        assert result.error.error_class == "permission_denied"
        assert result.error.recoverability == "change_arguments_or_policy"
        assert result.error.retry_after is None
        assert result.policy_refs == ["policy:static@test-1"]
        assert result.created_at >= decided.decided_at


# --- the envelope ---------------------------------------------------------------------------------


def test_a_result_that_says_it_failed_is_a_failure_everywhere(stored: Capture) -> None:
    def remote() -> dict[str, Any]:
        return {"content": [{"type": "text", "text": "no such page"}], "isError": True}

    governed = stored.governor.govern(remote)
    result = governed.tool.invoke()
    assert (result.is_error, result.status) == (True, "failed")
    assert result.error is not None
    assert result.error.error_class == "execution_failed"
    assert stored.span.attributes["error.type"] == "execution_failed"
    assert stored.span.attributes["agenttool.error.native_type"] == "mcp:isError"
    assert governed() == remote(), "the caller of the function gets what it returned"


def test_no_part_of_a_call_tells_a_made_up_class_name(stored: Capture) -> None:
    secret = "hunter2-kestrel"

    def fails() -> None:
        raise type(secret, (ValueError,), {})("no")

    result = stored.governor.govern(fails).tool.invoke()
    assert secret not in json.dumps(result.to_json_object())
    assert stored.span.attributes["agenttool.error.native_type"] == "builtins.ValueError"
    assert secret not in stored.span.to_json() + str(stored.events)


@pytest.mark.parametrize("code", [0, 2])
def test_an_exit_code_decides_whether_a_process_failed(stored: Capture, code: int) -> None:
    def shell() -> CompletedProcess[str]:
        return CompletedProcess(["ls"], code, "out", "")

    result = stored.governor.govern(shell).tool.invoke()
    assert result.is_error is bool(code)


@dataclass
class Weather:
    degrees: int


def test_output_that_misses_its_schema_is_told_and_delivered(stored: Capture) -> None:
    def weather(town: str) -> Weather:
        return Weather(degrees="warm" if town == "Rome" else 20)  # type: ignore[arg-type]

    governed = stored.governor.govern(weather)
    assert governed("Rome") == Weather("warm")  # type: ignore[arg-type]
    result = governed.tool.invoke(town="Rome")
    assert result.status == "failed"
    assert result.is_error is True
    assert stored.spans[-1].attributes["error.type"] == "result_mapping_failed"
    assert result.value == Weather("warm")  # type: ignore[arg-type]
    assert result.error is not None
    assert result.error.error_class == "result_mapping_failed"
    assert result.schema_errors == ["/degrees must be integer"]  # type: ignore[attr-defined]
    assert "warm" not in result.error.message
    valid("result", result.to_json_object())
    fine = governed.tool.invoke(town="Oslo")
    assert fine.error is None


def test_resource_links_and_artifacts_of_a_result_are_passed_on(stored: Capture) -> None:
    def report() -> list[dict[str, Any]]:
        return [
            {"type": "resource_link", "uri": "https://example.com/a.pdf", "name": "a"},
            {"type": "text", "text": "done"},
        ]

    result = stored.governor.govern(report).tool.invoke()
    assert [ref["uri"] for ref in result.resource_refs] == ["https://example.com/a.pdf"]


@pytest.mark.covers("large-structure-is-not-embedded")
def test_a_preview_takes_the_place_of_structured_content_too(tmp_path: Path) -> None:
    def rows() -> list[dict[str, int]]:
        return [{"n": n} for n in range(1000)]

    with capture(
        policy=StaticEngine("allow"), results=keeper(tmp_path, max_inline_chars=500)
    ) as captured:
        result = captured.governor.govern(rows).tool.invoke()
        assert result.structured_content is None
        assert len(json.dumps(result.to_json_object())) < 12_000
        assert result.value == rows()


# --- errors and retries ---------------------------------------------------------------------------


class QuotaSpent(Exception):
    pass


def test_users_map_their_errors_at_first_and_later(tmp_path: Path) -> None:
    def spent(error: BaseException) -> ToolError:
        return ToolError.of(ErrorClass.RATE_LIMITED, f"quota: {error}", retry_after=30.0)

    with capture(policy=StaticEngine("allow"), errors={QuotaSpent: spent}) as captured:

        @captured.governor.govern
        def call(kind: str) -> None:
            raise QuotaSpent("spent") if kind == "quota" else KeyError(kind)

        result = call.tool.invoke(kind="quota")
        assert result.error.error_class == "rate_limited"
        assert result.error.retry_after == 30.0
        captured.governor.errors.register("builtins.KeyError", ErrorClass.DEPENDENCY_UNAVAILABLE)
        assert call.tool.invoke(kind="other").error.error_class == "dependency_unavailable"
        with pytest.raises(QuotaSpent):
            call("quota")


def test_each_retry_is_seen_in_the_trace_with_its_reason() -> None:
    tries: list[int] = []

    def flaky() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError("no route")
        return "there"

    with capture(policy=StaticEngine("allow")) as captured:
        retry = {"max_attempts": 3, "initial_delay_ms": 1, "retry_on": ["dependency_unavailable"]}
        assert captured.governor.govern(flaky, retry=retry)() == "there"
        events = [
            event for event in captured.span.events if event.name == "tool.invocation.retried"
        ]
        assert [event.attributes["agenttool.attempt.number"] for event in events] == [1, 2]
        assert {event.attributes["error.type"] for event in events} == {"dependency_unavailable"}
        assert all(event.attributes["agenttool.attempt.delay_s"] >= 0 for event in events)
        assert captured.span.attributes["agenttool.invocation.attempts"] == 3
        assert captured.span.attributes["agenttool.result.status"] == "succeeded"


# --- read_result ----------------------------------------------------------------------------------


@pytest.mark.covers("persisted-payload-is-session-scoped")
def test_read_result_pages_through_ones_own_large_results(tmp_path: Path) -> None:
    with capture(results=keeper(tmp_path)) as captured:  # the stock policy

        @captured.governor.govern(read_only=True, open_world=False)
        def big(word: str) -> str:
            return "\n".join(f"{number}: {word}" for number in range(20_000))

        read = captured.governor.read_result_tool()
        assert captured.governor.read_result_tool() is read
        with agent_context(actor="agent:a", tenant="acme", session_id="s-1"):
            result = big.tool.invoke(word="owl")
            reference = result.persistence["persisted_ref"]["uri"]
            pages, offset = "", 0
            while offset is not None:
                page = read(reference, offset=offset, limit=30_000)
                pages += page["text"]
                offset = page["next_offset"]
            assert pages == big("owl")
        for other in (
            {"tenant": "acme", "session_id": "s-2"},
            {"tenant": "evil", "session_id": "s-1"},
            {},
        ):
            with agent_context(actor="agent:a", **other):
                assert read(reference)["status"] == "not_found"
        spans = [
            span for span in captured.spans if span.attributes["gen_ai.tool.name"] == "read_result"
        ]
        assert {span.attributes["agenttool.permission.behavior"] for span in spans} == {"allow"}
        assert {span.attributes["agenttool.result.persistence"] for span in spans} <= {
            "inline",
            "never_persist",
        }


@pytest.mark.covers("result-reader-is-not-persisted")
def test_read_result_never_persists_its_own_page(tmp_path: Path) -> None:
    answer = decision("allow", obligations={"max_inline_chars": 10})
    with capture(policy=StaticEngine(answer), results=keeper(tmp_path)) as captured:
        first = captured.governor.govern(grep_big).tool.invoke(pattern="v")
        before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
        uri = first.persistence["persisted_ref"]["uri"]  # type: ignore[attr-defined]
        captured.governor.read_result_tool().tool.invoke(reference=uri)  # type: ignore[attr-defined]
        assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == before


def test_read_result_is_denied_like_any_other_tool() -> None:
    with capture(policy=StaticEngine("deny")) as captured, pytest.raises(ToolDenied):
        captured.governor.read_result_tool()("agent-runtime://session/tool-results/x.txt")
