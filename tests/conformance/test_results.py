"""Requirements of "Result envelope", "Result persistence and rendering" and of references."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from recorded import last_of

from agenttool_otel.records import ToolResult
from agenttool_otel.results.content.blocks import Block
from agenttool_otel.results.persistence.keeper import ResultKeeper
from agenttool_otel.results.stores.local import LocalBackend
from agenttool_otel.results.stores.store import ResultStore
from agenttool_otel.testing import Capture, StaticEngine, capture, decision

SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
LARGE = "line\n" * 20_000


def keeper(folder: Path) -> ResultKeeper:
    return ResultKeeper(ResultStore(LocalBackend(folder, durable=False)))


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Capture]:
    with capture(policy=StaticEngine("allow"), results=keeper(tmp_path)) as captured:
        yield captured


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def persisted_ref(captured: Capture) -> dict[str, Any]:
    found: dict[str, Any] = last_of(captured, "tool_result_persistence")["persisted_ref"]
    return found


@pytest.mark.covers("error-result-has-its-class", "error-result-keeps-invocation-id")
@pytest.mark.parametrize(
    ("answer", "status", "error_class"),
    [("deny", "denied", "permission_denied"), ("allow", "failed", "execution_failed")],
)
def test_an_error_is_a_result_of_its_call(answer: str, status: str, error_class: str) -> None:
    def act() -> None:
        raise RuntimeError("no")

    with capture(policy=StaticEngine(answer)) as captured:
        result = captured.governor.govern(act).tool.invoke()
        assert (result.status, result.is_error) == (status, True)
        assert result.error is not None
        assert result.error.error_class == error_class
        assert result.invocation_id == last_of(captured, "tool_invocation")["invocation_id"]


# --- representations ------------------------------------------------------------------------------


@pytest.mark.covers("structured-content-is-machine-readable")
def test_a_structured_result_is_data(stored: Capture) -> None:
    result = stored.governor.govern(lambda: {"n": [1, 2]}, name="act").tool.invoke()
    assert result.structured_content == {"n": [1, 2]}


def kept_text(captured: Capture) -> str:
    store = captured.governor.results.store
    assert store is not None
    return b"".join(store.open(persisted_ref(captured)["uri"])).decode()


@pytest.mark.covers("persisted-payload-is-redacted", "persisted-ref-has-redaction-state")
def test_a_secret_in_a_large_result_is_not_stored(stored: Capture) -> None:
    stored.governor.govern(lambda: f"{LARGE}{SECRET}\n{LARGE}", name="act").tool.invoke()
    text = kept_text(stored)
    assert len(text) > len(LARGE)
    assert SECRET not in text
    assert persisted_ref(stored)["redaction_state"] == "redacted"


@pytest.mark.covers("tool-can-opt-out-of-persistence")
def test_a_tool_that_opts_out_has_nothing_stored(stored: Capture, tmp_path: Path) -> None:
    act = stored.governor.govern(lambda: LARGE, name="act", persistence="never_persist")
    act.tool.invoke()
    assert files_in(tmp_path) == []
    assert last_of(stored, "tool_result_persistence")["strategy"] == "never_persist"


@pytest.mark.covers("policy-can-forbid-persistence")
def test_a_policy_forbids_what_the_contract_allows(tmp_path: Path) -> None:
    policy = StaticEngine(decision("allow", obligations={"persistence": "never_persist"}))
    with capture(policy=policy, results=keeper(tmp_path)) as captured:
        captured.governor.govern(
            lambda: LARGE, name="act", persistence="preview_and_persist"
        ).tool.invoke()
        assert files_in(tmp_path) == []


@pytest.mark.covers("file-result-is-a-reference")
def test_a_file_is_a_reference_without_its_content(stored: Capture, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("marigold", encoding="utf-8")
    result = stored.governor.govern(lambda: file, name="act").tool.invoke()
    [block] = result.content
    assert (block["type"], block["path"], block["size_bytes"]) == ("file", str(file), 8)
    assert "marigold" not in str(result.to_json_object())


# --- references -----------------------------------------------------------------------------------


def deliver(captured: Capture) -> ToolResult:
    def act() -> list[Block]:
        return [
            Block.resource_link("https://example.com/shot.png", name="shot"),
            Block.artifact(
                "snapshot-1",
                uri="artifact://snapshot-1",
                media_type="image/png",
                digest="sha256:0",
                access="team",
                relation="screenshot of the page",
            ),
        ]

    return captured.governor.govern(act).tool.invoke()


@pytest.mark.covers("resource-and-artifact-together", "resource-link-is-a-resource-ref")
def test_a_result_has_resources_and_artifacts(stored: Capture) -> None:
    result = deliver(stored)
    assert [ref["uri"] for ref in result.resource_refs] == ["https://example.com/shot.png"]
    assert [ref["artifact_id"] for ref in result.artifact_refs] == ["snapshot-1"]


@pytest.mark.covers("artifact-is-an-artifact-ref")
def test_an_artifact_is_on_the_invocation(stored: Capture) -> None:
    deliver(stored)
    [reference] = last_of(stored, "tool_invocation")["artifact_refs"]
    assert reference["artifact_id"] == "snapshot-1"


@pytest.mark.covers("refs-keep-what-is-known")
def test_a_reference_keeps_what_is_known_of_it(stored: Capture) -> None:
    assert deliver(stored).artifact_refs == [
        {
            "artifact_id": "snapshot-1",
            "uri": "artifact://snapshot-1",
            "media_type": "image/png",
            "digest": "sha256:0",
            "access": "team",
            "relation": "screenshot of the page",
        }
    ]


LINK = {"type": "resource_link", "uri": "https://example.com/shot.png", "name": "shot"}
REPORT = {"type": "artifact_ref", "artifact_id": "report-1", "version": "2"}
WORDS = {"type": "text", "text": LARGE}


def references_of(result: ToolResult) -> tuple[list[str], list[str]]:
    """The links and the deliverables of a result, without what was stored."""
    links = [ref["uri"] for ref in result.resource_refs]
    found = [uri for uri in links if not uri.startswith("agent-runtime:")]
    return found, [ref["artifact_id"] for ref in result.artifact_refs]


@pytest.mark.covers("too-large-result-keeps-its-refs")
def test_a_result_that_is_too_large_keeps_its_references(stored: Capture) -> None:
    result = stored.governor.govern(lambda: [WORDS, LINK, REPORT], name="act").tool.invoke()
    assert result.persistence["strategy"] == "preview_and_persist"  # type: ignore[attr-defined]
    assert references_of(result) == (["https://example.com/shot.png"], ["report-1"])
    assert last_of(stored, "tool_result")["artifact_refs"] == [
        {"artifact_id": "report-1", "version": "2"}
    ]
    assert last_of(stored, "tool_invocation")["artifact_refs"][0]["artifact_id"] == "report-1"


@pytest.mark.parametrize(
    "strategy", ["preview_and_persist", "ref_only", "drop_with_reason", "never_persist"]
)
def test_references_outlive_every_strategy(stored: Capture, strategy: str) -> None:
    governed = stored.governor.govern(
        lambda: [WORDS, LINK, REPORT], name="act", persistence=strategy
    )
    links = (["https://example.com/shot.png"], ["report-1"])
    assert references_of(governed.tool.invoke()) == links


def test_a_result_that_no_store_takes_keeps_its_references() -> None:
    def broken() -> Any:
        raise OSError("no disk")

    with capture(policy=StaticEngine("allow"), results=ResultKeeper(broken)) as captured:
        result = captured.governor.govern(lambda: [WORDS, LINK, REPORT], name="act").tool.invoke()
    assert result.status == "too_large"
    assert references_of(result) == (["https://example.com/shot.png"], ["report-1"])


def test_a_stream_that_is_too_large_keeps_its_references(stored: Capture) -> None:
    def act() -> Iterator[dict[str, Any]]:
        yield from (WORDS, LINK, REPORT)

    governed = stored.governor.govern(act, max_inline_chars=500)
    assert references_of(governed.tool.invoke()) == (["https://example.com/shot.png"], ["report-1"])


def test_references_of_a_stored_result_are_redacted(stored: Capture) -> None:
    link = {**LINK, "uri": f"https://example.com/?t={SECRET}"}
    report = {**REPORT, "uri": f"artifact://{SECRET}"}
    governed = stored.governor.govern(lambda: [WORDS, link, report], name="act")
    assert SECRET not in str(governed.tool.invoke().to_json_object())
    assert SECRET not in str(stored.records)


def test_references_of_a_small_result_are_redacted_in_records(stored: Capture) -> None:
    report = {**REPORT, "uri": f"artifact://{SECRET}"}
    result = stored.governor.govern(lambda: [report], name="act").tool.invoke()
    assert result.artifact_refs[0]["uri"] == f"artifact://{SECRET}"
    assert "report-1" in str(stored.records)
    assert SECRET not in str(stored.records)


def test_a_reference_repeats_no_payload(stored: Capture) -> None:
    link = {**LINK, "description": "marigold" * 10_000, "digest": "sha256:0"}
    result = stored.governor.govern(lambda: [link], name="act", max_inline_chars=100).tool.invoke()
    assert result.resource_refs[1] == {
        "uri": "https://example.com/shot.png",
        "name": "shot",
        "digest": "sha256:0",
    }
