"""The input's schema: generated, committed, and understood by OPA's type checker."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import policy_input
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opa_program import find_opa, require_opa
from policy_inputs import documents, make_document

from agenttool_otel.errors import PolicyEvaluationError
from agenttool_otel.policy.bundles.input_schema import (
    input_schema,
    validate_input,
    write_input_schema,
)
from agenttool_otel.policy.types import PolicyInput

REPOSITORY = Path(__file__).resolve().parents[2]


def test_the_committed_schema_is_the_generated_one(tmp_path: Path) -> None:
    write_input_schema(tmp_path / "input.json")
    committed = REPOSITORY / "policies" / "schemas" / "input.json"
    assert committed.read_text("utf-8") == (tmp_path / "input.json").read_text("utf-8")
    assert json.loads(committed.read_text("utf-8")) == policy_input.described()
    assert (REPOSITORY / "docs" / "policy-input.md").read_text("utf-8") == policy_input.page(), (
        "run make docs"
    )


def test_every_member_is_described_and_nothing_else_is_added() -> None:
    told: list[str] = []

    def bare(node: Any, *, members: bool = False) -> Any:
        if isinstance(node, list):
            return [bare(item) for item in node]
        if not isinstance(node, dict):
            return node
        if members:
            told.extend(member.get("description", "") for member in node.values())
        return {
            key: bare(value, members=key == "properties" and not members)
            for key, value in node.items()
            if members or key != "description"
        }

    assert bare(input_schema()) == bare(policy_input.schema_of(PolicyInput)) | {
        name: input_schema()[name] for name in ("$schema", "$id")
    }
    told.clear()
    bare(policy_input.described())
    assert len(told) > 100
    assert all(told)


@settings(max_examples=50, deadline=None)
@given(documents())
def test_every_document_of_the_contract_fits(document: Any) -> None:
    validate_input(document)


@settings(max_examples=100, deadline=None)
@given(documents(), st.data())
def test_no_member_may_be_missing_or_of_another_type(document: Any, data: st.DataObject) -> None:
    top = data.draw(
        st.sampled_from(["tool", "permission_profile", "actor", "session", "invocation"])
    )
    key = data.draw(st.sampled_from(sorted(document[top])))
    wrong = data.draw(st.sampled_from(["missing", 1.5, b"x", [[]], [None], object()]))
    if wrong == "missing" and key in get_type_hints(PolicyInput)[top].__optional_keys__:
        return  # who delegated, of a call that was delegated
    if wrong == "missing":
        del document[top][key]
    else:
        document[top][key] = wrong
    with pytest.raises(PolicyEvaluationError):
        validate_input(document)


def test_the_message_names_the_rule_and_quotes_no_document() -> None:
    document = make_document({"session.labels": {"hunter2": 3}})
    with pytest.raises(PolicyEvaluationError) as caught:
        validate_input(document)
    assert "session/properties/labels" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_type_without_a_schema_is_an_error() -> None:
    with pytest.raises(TypeError):
        policy_input.schema_of(set[str])


@pytest.mark.opa
@pytest.mark.parametrize(
    ("rule", "good"),
    [
        ("input.tool.read_only", True),
        ("input.approval == null", True),
        ('input.approval.status == "approved"', True),
        ("input.input.anything.at.all == 1", True),
        ('input.session.labels.x == "y"', True),
        ("input.tool.readonly", False),
        ('input.tool.read_only == "yes"', False),
        ('input.session.counters.calls == "1"', False),
    ],
)
def test_opa_checks_rules_against_it(tmp_path: Path, rule: str, good: bool) -> None:
    schemas = tmp_path / "schemas"
    write_input_schema(schemas / "input.json")
    (tmp_path / "p.rego").write_text(f"package p\n\nr if {rule}\n")
    done = subprocess.run(
        [require_opa(), "check", "--strict", "--schema", str(schemas / "input.json"), str(tmp_path / "p.rego")],
        capture_output=True, check=False,
    )  # fmt: skip
    assert (done.returncode == 0) is good


def test_the_schema_is_draft_7_and_inlined() -> None:
    schema = input_schema()
    assert schema["$schema"].endswith("draft-07/schema#")
    assert "$ref" not in json.dumps(schema)


@pytest.mark.opa
@pytest.mark.slow
def test_the_builtin_table_is_not_stale() -> None:
    if find_opa() is None:
        require_opa()
    done = subprocess.run(
        [sys.executable, "tools/builtin_table.py", "--check", "--opa", require_opa()],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_word_outside_of_a_closed_list_is_the_rules_to_judge() -> None:
    document = make_document()
    document["permission_profile"]["risk_level"] = "odd"
    validate_input(document)


def test_the_categories_of_commands_are_those_with_an_answer() -> None:
    shell = input_schema()["properties"]["facts"]["properties"]["shell"]["items"]
    command = shell["properties"]["commands"]["items"]
    defaults = REPOSITORY / "policies/agenttool/defaults/shell/data.json"
    categories = json.loads(defaults.read_text("utf-8"))["categories"]
    assert command["properties"]["category"]["enum"] == list(categories)
