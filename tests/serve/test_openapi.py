"""The OpenAPI document and the page are what the decision point answers to."""

from __future__ import annotations

import re
from pathlib import Path

import openapi
from decision_points import Served

from agenttool_otel.context.context import AgentContext
from agenttool_otel.serve.caller import MAPPING
from agenttool_otel.serve.messages import CallContext, SubjectProperties
from agenttool_otel.serve.operations import OPERATIONS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "serve.md").read_text("utf-8")


def test_the_committed_document_is_fresh() -> None:
    assert openapi.TARGET.read_text("utf-8") == openapi.text()


def test_it_is_served(point: Served) -> None:
    assert point.ask("GET", "/openapi.json").json["paths"].keys() == {
        operation.path for operation in OPERATIONS
    }


def test_each_part_of_a_request_has_a_meaning() -> None:
    facts = {*SubjectProperties.model_fields, *CallContext.model_fields}
    assert facts <= AgentContext.__dataclass_fields__.keys()


def test_the_page_shows_each_part_of_a_request() -> None:
    shown = dict(re.findall(r"^\| `([a-z_.]+)` \| `?([^|`]+)`? \|", PAGE, re.MULTILINE))
    assert {name: meaning.strip() for name, meaning in shown.items() if "." in name} == MAPPING


def test_the_page_names_each_path() -> None:
    assert [operation.path for operation in OPERATIONS if operation.path not in PAGE] == []
