"""Every record, however it is filled, validates against its JSON Schema of the standard and
survives a round trip.
"""

from __future__ import annotations

import json
import types
import typing
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from agenttool_otel import records
from agenttool_otel.errors import TAXONOMY
from agenttool_otel.names import ErrorClass

SCHEMAS = Path(__file__).parent.parent / "spec_schemas"
PAIRS = {
    records.ToolDeclaration: "tool-declaration",
    records.ToolInterface: "tool-interface",
    records.ToolSurface: "tool-surface",
    records.DeferredToolRef: "deferred-tool",
    records.ExecutionProfile: "execution-profile",
    records.HookRecord: "hook",
    records.InputMutation: "input-mutation",
    records.InvocationRecord: "invocation",
    records.PermissionDecision: "permission-decision",
    records.PermissionProfile: "permission-profile",
    records.ToolProgress: "progress",
    records.ResultPersistence: "result-persistence",
    records.ToolResult: "result",
    records.SchedulerPolicy: "scheduler-policy",
    records.ToolEvent: "event",
}
VALIDATORS = {
    cls: jsonschema_rs.validator_for(
        json.loads((SCHEMAS / f"agenttool-{name}.schema.json").read_text())
    )
    for cls, name in PAIRS.items()
}

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**53), 2**53),
        st.floats(allow_nan=False, allow_infinity=False),
        TEXT,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=6,
)


def values_for(annotation: Any) -> st.SearchStrategy[Any]:
    """Return values of a field's annotation, however the records spell it."""
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return values_for(args[0])
    if origin in (typing.Union, types.UnionType):
        return st.one_of([values_for(arg) for arg in args])
    if origin is list:
        return st.lists(values_for(args[0]), max_size=3)
    if origin is dict:
        return st.dictionaries(TEXT, values_for(args[1]), max_size=3)
    if origin is typing.Literal:
        return st.sampled_from(args)
    if annotation is Any:
        return JSON
    if isinstance(annotation, type):
        if issubclass(annotation, BaseModel):
            return instances_of(annotation)
        if issubclass(annotation, Enum):
            return st.sampled_from(list(annotation))
        simple = {
            str: TEXT,
            bool: st.booleans(),
            int: st.integers(0, 2**53),
            float: st.floats(0, 100),
            type(None): st.none(),
            datetime: st.datetimes(min_value=datetime(1970, 1, 1), timezones=st.just(UTC)),
        }
        if annotation in simple:
            return simple[annotation]
    raise AssertionError(f"no strategy for {annotation}")


def instances_of(cls: type[BaseModel]) -> st.SearchStrategy[BaseModel]:
    required = {n: values_for(f.annotation) for n, f in cls.model_fields.items() if f.is_required()}
    optional = {
        n: values_for(f.annotation) for n, f in cls.model_fields.items() if not f.is_required()
    }
    optional.pop("schema_version", None)

    def build(fields: dict[str, Any]) -> BaseModel:
        # null means "not set" in these records, and what is not set has its default
        return cls(
            **{name: item for name, item in fields.items() if item is not None or name in required}
        )

    return st.fixed_dictionaries(required, optional=optional).map(build)


def test_schemas_of_the_standard_and_records_match():
    assert {f"agenttool-{name}.schema.json" for name in PAIRS.values()} == {
        p.name for p in SCHEMAS.glob("*.json")
    }


@pytest.mark.parametrize("cls", PAIRS, ids=lambda cls: cls.__name__)
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(data=st.data())
def test_any_instance_is_valid_and_survives_a_round_trip(cls, data):
    record = data.draw(instances_of(cls))
    as_json = record.to_json_object()
    errors = [f"{e.instance_path}: {e}" for e in VALIDATORS[cls].iter_errors(as_json)]
    assert not errors
    text = json.dumps(as_json, allow_nan=False)
    again = cls.from_json_object(json.loads(text))
    assert again.to_json_object() == as_json


@pytest.mark.parametrize("cls", PAIRS, ids=lambda cls: cls.__name__)
@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(data=st.data(), extra=JSON.filter(lambda value: value is not None))
def test_unknown_fields_are_tolerated_and_kept(cls, data, extra):
    as_json = data.draw(instances_of(cls)).to_json_object()
    again = cls.from_json_object({**as_json, "x_from_the_future": extra}).to_json_object()
    # members that are null mean "not set" in these records and are left out, also inside an unknown
    # field
    assert "x_from_the_future" in again
    assert VALIDATORS[cls].is_valid(again)


@pytest.mark.parametrize("cls", PAIRS, ids=lambda cls: cls.__name__)
def test_the_schema_refuses_a_record_without_its_required_fields(cls):
    """The validators above can fail: an empty object is no record."""
    assert not VALIDATORS[cls].is_valid({})


@pytest.mark.parametrize("error_class", ErrorClass)
def test_every_error_class_makes_a_valid_error_in_a_valid_result(error_class):
    error = records.ToolError.of(error_class, "m")
    assert error.error_code == TAXONOMY[error_class].code
    result = records.ToolResult(invocation_id="inv", status="failed", is_error=True, error=error)
    assert VALIDATORS[records.ToolResult].is_valid(result.to_json_object())


def test_codes_are_unique_and_the_taxonomy_is_complete():
    assert len({spec.code for spec in TAXONOMY.values()}) == len(TAXONOMY) == len(ErrorClass)


def test_times_are_utc_with_z_and_naive_times_are_read_as_utc():
    result = records.ToolResult(
        invocation_id="i", status="succeeded", created_at="2026-05-08T02:00:00+02:00"
    )
    assert result.to_json_object()["created_at"] == "2026-05-08T00:00:00Z"
    naive = records.ToolResult(
        invocation_id="i", status="succeeded", created_at=datetime(2026, 5, 8)
    )
    assert naive.created_at.tzinfo is UTC


def test_the_native_value_is_never_serialised():
    secret = "can" + "ary"
    result = records.ToolResult(invocation_id="i", status="succeeded").with_value({"k": secret})
    assert result.value == {"k": secret}
    assert secret not in result.model_dump_json()
    assert secret not in json.dumps(result.to_json_object())


def test_ids_sort_by_time_and_never_repeat():
    made = [records.new_id("inv") for _ in range(5000)]
    assert len(set(made)) == len(made)
    assert all(name.startswith("inv_") and len(name) == 36 for name in made)
    stamps = [name[4:16] for name in made]
    assert stamps == sorted(stamps)
