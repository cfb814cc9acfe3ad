"""What another hand wrote loads and comes back equal: the standard's examples, and words that it
leaves open.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from agenttool_otel import records

EXAMPLES = Path(__file__).parents[1] / "spec_examples"
SCHEMAS = Path(__file__).parents[1] / "spec_schemas"
KINDS = {
    "tool-declaration": records.ToolDeclaration,
    "tool-surface": records.ToolSurface,
    "deferred-tool": records.DeferredToolRef,
    "scheduler-policy": records.SchedulerPolicy,
    "invocation": records.InvocationRecord,
    "permission-decision": records.PermissionDecision,
    "result": records.ToolResult,
    "result-persistence": records.ResultPersistence,
}


def examples() -> list[tuple[str, str, dict[str, Any]]]:
    """Return every JSON object of the standard's example pages that one of its schemas takes."""
    found = []
    for page in sorted(EXAMPLES.glob("*.md")):
        for block in re.findall(r"```json\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            data = json.loads(block)
            for item in data if isinstance(data, list) else [data]:
                for name in KINDS:
                    schema = json.loads(
                        (SCHEMAS / f"agenttool-{name}.schema.json").read_text(encoding="utf-8")
                    )
                    if jsonschema_rs.is_valid(schema, item):
                        found.append((page.stem, name, item))
    return found


def test_the_standards_examples_are_there() -> None:
    assert len(examples()) >= 7


@pytest.mark.parametrize(("page", "name", "item"), examples())
def test_an_example_of_the_standard_comes_back_equal(
    page: str, name: str, item: dict[str, Any]
) -> None:
    assert KINDS[name].from_json_object(item).to_json_object() == item


BASE: dict[str, dict[str, Any]] = {
    "invocation": {"invocation_id": "i", "tool_id": "t", "status": "planned", "created_at": "2026-05-08T00:00:00Z"},
    "result": {"result_id": "r", "invocation_id": "i", "status": "denied", "created_at": "2026-05-08T00:00:00Z"},
    "result-persistence": {
        "decision_id": "p", "invocation_id": "i", "strategy": "inline", "created_at": "2026-05-08T00:00:00Z",
    },
    "tool-surface": {"surface_id": "s", "scope": "session"},
    "progress": {
        "progress_id": "p", "invocation_id": "i", "sequence": 0, "status": "running",
        "timestamp": "2026-05-08T00:00:00Z",
    },
    "tool-declaration": {
        "tool_id": "t", "namespace": "n", "name": "t", "description": "d", "lifecycle": "available",
        "tool_kind": "function",
    },
    "execution-profile": {"execution_profile_id": "e", "execution_kind": "remote"},
    "tool-interface": {"interface_id": "i", "tool_id": "t"},
}  # fmt: skip
FURTHER = {
    "progress": records.ToolProgress,
    "execution-profile": records.ExecutionProfile,
    "tool-interface": records.ToolInterface,
}


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("invocation", {"status": "vendor_state"}),
        ("invocation", {"status_transitions": [{"to": "planned", "vendor": 1}]}),
        ("result", {"status": "vendor_state"}),
        ("result", {"redaction_state": "masked"}),
        ("result", {"error": {"vendor_code": 7}}),
        ("result", {"error": {"error_class": "vendor_error"}}),
        ("result-persistence", {"redaction_state": "masked"}),
        ("progress", {"status": "warming_up"}),
        ("tool-surface", {"scope": "galaxy"}),
        ("tool-declaration", {"external_mappings": [{"server_id": "s"}]}),
        ("execution-profile", {"external_mappings": [{"server_id": "s"}]}),
        ("tool-interface", {"external_mappings": [{"server_id": "s"}]}),
    ],
)
def test_what_a_schema_leaves_open_is_read_and_given_back(
    name: str, changes: dict[str, Any]
) -> None:
    item = {"schema_version": "0.2.0", **BASE[name], **changes}
    schema = json.loads((SCHEMAS / f"agenttool-{name}.schema.json").read_text(encoding="utf-8"))
    assert jsonschema_rs.is_valid(schema, item)
    record = {**KINDS, **FURTHER}[name].from_json_object(item)
    assert record.to_json_object() == item


def test_a_changed_record_that_was_read_shows_the_change() -> None:
    record = records.ToolResult.from_json_object({"schema_version": "0.2.0", **BASE["result"]})
    record.summary = "said later"
    assert record.to_json_object()["summary"] == "said later"
