"""Lists that stand beside what they list are equal to it: what is added to the one is missed in the
other.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

import agenttool_otel
from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.recording import finished
from agenttool_otel.catalog import ToolSource, declare
from agenttool_otel.context.context import AgentContext
from agenttool_otel.names import InvocationStatus
from agenttool_otel.records import HookRecord, InputMutation, PermissionDecision
from agenttool_otel.records.base import Record
from agenttool_otel.redaction import detectors, text

NEEDS_AN_EXTRA = {"AgentToolMiddleware"}
"""Public names that are not in the star: importing them needs LangChain."""


def imports_of(nodes: list[ast.stmt]) -> dict[str, str]:
    found = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return {
        alias.name: str(node.module).removeprefix("agenttool_otel.")
        for node in found
        for alias in node.names
    }


def test_public_names_are_the_same_in_all_three_lists() -> None:
    tree = ast.parse(Path(str(agenttool_otel.__file__)).read_text("utf-8"))
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    assert imports_of(checked.body) == agenttool_otel._MODULES
    assert set(agenttool_otel.__all__) == agenttool_otel._MODULES.keys() - NEEDS_AN_EXTRA


@pytest.mark.parametrize("name", [one.name for one in pkgutil.iter_modules(detectors.__path__)])
def test_every_detector_is_asked(name: str) -> None:
    module = importlib.import_module(f"{detectors.__name__}.{name}")
    finders = {
        found
        for found, value in vars(module).items()
        if found.startswith("find_")
        and inspect.isfunction(value)
        and value.__module__ == module.__name__
    }
    # the entry point of the module's detector, or a part that a detector calls
    entry = getattr(module, "DETECTOR", None)
    asked = {entry.find.__name__} if entry is not None else set()
    for folder in detectors.__path__:
        for path in Path(folder).glob("*.py"):
            asked |= set(re.findall(r"(?<!def )\b(find_\w+)\(", path.read_text("utf-8")))
    # it looks into what the others find, so the text's reader gives it their finder
    asked |= set(re.findall(r"partial\((find_\w+)", inspect.getsource(text)))
    assert finders <= asked


@pytest.mark.parametrize(
    ("named", "record"),
    [
        (finished.DECISION_WITHOUT_CONTENT, PermissionDecision),
        (finished.MUTATION_WITHOUT_CONTENT, InputMutation),
        (finished.HOOK_WITHOUT_CONTENT, HookRecord),
    ],
)
def test_what_sinks_get_of_a_record_are_fields_of_it(
    named: frozenset[str], record: type[Record]
) -> None:
    assert named - record.model_fields.keys() <= {"failure"}  # a hook's failure is an extra field


def test_a_record_of_a_call_is_frozen_and_holds_no_result() -> None:
    spec = declare({}, ToolSource(name="t", namespace="x", description="t", schema={}))
    call = Invocation(spec, AgentContext())
    call.value = call.delivered = object()
    record = call.as_record()
    call.outcome.transitions.append((InvocationStatus.YIELDED, 1))
    assert not hasattr(record, "value")
    assert record.outcome.transitions == []
    assert record.outcome.result_id == call.outcome.result_id
    with pytest.raises(FrozenInstanceError):
        record.outcome.status = InvocationStatus.FAILED


def test_a_second_part_leaves_the_first_as_it_is() -> None:
    spec = declare({}, ToolSource(name="t", namespace="x", description="t", schema={}))
    first = Invocation(spec, AgentContext())
    first_result = first.outcome.result_id
    second = first.second_part()
    second.enter(InvocationStatus.RUNNING)
    second.inputs.edit_note = "changed"
    second.decision.approval_status = "approved"
    assert second.id == first.id
    assert second.outcome.result_id == first_result
    assert first.outcome.transitions == []
    assert first.inputs.edit_note is None
    assert first.decision.approval_status is None
