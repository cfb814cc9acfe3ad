"""What ``trace --why`` tells of a real call: the tool's own time, and which argument and place a
decision is about.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from agenttool_otel import ApprovalAnswer, ToolDenied, agent_context
from agenttool_otel.cli.spans import SpanView
from agenttool_otel.cli.story import why
from agenttool_otel.names import Attr
from agenttool_otel.testing import Capture, FixedApprover, StaticEngine, capture


class SlowEngine(StaticEngine):
    def evaluate(self, entry_point: str, document: Any, *, timeout: float) -> Any:
        time.sleep(0.2)
        return super().evaluate(entry_point, document, timeout=timeout)


def story_of(captured: Capture) -> str:
    return why(SpanView.from_sdk(captured.span))


def test_the_tools_time_is_told_apart_from_the_decisions() -> None:
    with capture(policy=SlowEngine("allow")) as captured:
        captured.governor.govern(lambda: time.sleep(0.05), name="act", read_only=False)()
        ran = captured.span.attributes[Attr.INVOCATION_RUN_SECONDS]
        assert 0.05 <= ran < 0.2
        whole = SpanView.from_sdk(captured.span).seconds
        assert whole is not None
        assert whole >= 0.25
        story = story_of(captured)
    assert re.search(r"The tool ran for \d+\.\d ms, ending with status succeeded\.", story)
    assert re.search(
        r"The whole call took \d+\.\d ms: \d+\.\d ms for the decision, \d+\.\d ms for the tool\.",
        story,
    )


def test_the_time_for_an_answer_is_told_too() -> None:
    class Slow(FixedApprover):
        def ask(self, request: Any) -> Any:
            time.sleep(0.1)
            return super().ask(request)

    yes = Slow(ApprovalAnswer(True, answered_by="user:ada"))
    with capture(policy=StaticEngine("ask"), approver=yes) as captured:
        captured.governor.govern(lambda: None, name="act")()
        assert captured.span.attributes[Attr.INVOCATION_RUN_SECONDS] < 0.1
        story = story_of(captured)
    assert re.search(
        r"The whole call took .*: .* for the decision, .* for the answer, .* for the tool\.", story
    )


def test_the_wait_before_a_resume_is_no_part_of_its_time(tmp_path: Path) -> None:
    with capture(policy=StaticEngine("ask"), approvals=f"sqlite:///{tmp_path}/a.db") as captured:
        tool = captured.governor.govern(lambda: None, name="act").tool
        paused = tool.invoke()
        store = captured.governor.approvals.store
        [request] = store.list()
        store.answer(request.request_id, ApprovalAnswer(True, answered_by="user:ada"))
        captured.governor.resume(paused.invocation_id)
        story = why(SpanView.from_sdk(captured.spans[-1]))
    assert "for the answer" not in story
    assert "The whole call took" in story


def test_a_call_that_did_not_run_has_no_time_of_the_tool() -> None:
    with capture(policy=StaticEngine("deny")) as captured:
        with pytest.raises(ToolDenied):
            captured.governor.govern(lambda: None, name="act")()
        assert Attr.INVOCATION_RUN_SECONDS not in captured.span.attributes


def denied(content: str, path: Path, root: Path, **facts: Any) -> Any:
    """The span of a call that the stock policy denies for its path."""
    with capture(capture=content) as captured:

        def read_file(path: str) -> str:
            return path

        call = captured.governor.govern(
            read_file, path_args=["path"], read_only=True, open_world=False, **facts
        )
        with agent_context(actor="agent:x", roots=[root], cwd=root), pytest.raises(ToolDenied):
            call(str(path))
        return captured.span


@pytest.mark.parametrize("content", ["NO_CONTENT", "SPAN_ONLY", "EVENT_ONLY"])
def test_a_denial_names_its_argument_and_with_content_its_place(
    tmp_path: Path, content: str
) -> None:
    root, key = tmp_path / "root", tmp_path / ".ssh" / "id_rsa"
    root.mkdir()
    key.parent.mkdir()
    key.write_text("x")
    span = denied(content, key, root)
    assert span.attributes[Attr.PERMISSION_BLOCKED_ARGUMENT] == "/path"
    story = why(SpanView.from_sdk(span))
    if content == "SPAN_ONLY":
        assert span.attributes[Attr.PERMISSION_BLOCKED_PATH] == str(key)
        assert f"It is about the argument /path, which names {key}." in story
    else:
        assert Attr.PERMISSION_BLOCKED_PATH not in span.attributes
        assert "It is about the argument /path." in story
        assert "id_rsa" not in story


def test_a_redacted_argument_shows_no_place(tmp_path: Path) -> None:
    root, key = tmp_path / "root", tmp_path / ".ssh" / "id_rsa"
    root.mkdir()
    span = denied("SPAN_ONLY", key, root, sensitive_fields=["path"])
    assert span.attributes[Attr.PERMISSION_BLOCKED_ARGUMENT] == "/path"
    assert Attr.PERMISSION_BLOCKED_PATH not in span.attributes
    assert "id_rsa" not in str(dict(span.attributes))
