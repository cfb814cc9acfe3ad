"""What a tool has is made when it is first read, and is what it would have been at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal, Optional

import pytest

from agenttool_otel import Governor
from agenttool_otel.catalog import ToolSpec, signature
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.testing import StaticEngine


def texts(query: str, limit: int = 5, exact: bool = False, weight: float = 1) -> None: ...
def optional(a: str | None = None, b: Optional[int] = None, c: int = None) -> None: ...  # type: ignore[assignment]  # noqa: RUF013, UP045
def either(a: int | str, b: str | int = "x", c: Literal["low", "high"] = "low") -> None: ...
def alike(a: Literal[1], b: Literal[True], c: Literal[1, "a"] = 1) -> None: ...
def nested(a: list[str], b: dict[str, list[int]], c: list[Any], d: list, e: dict) -> None: ...  # type: ignore[type-arg]
def loose(a, b=None, *rest: int, c: Any = 1, **others: str) -> None: ...  # type: ignore[no-untyped-def]
def nothing() -> None: ...
def reserved(schema: str, json: int = 1, ünï: str = "ü") -> None: ...


PLAIN = (texts, optional, either, alike, nested, nothing, reserved)


def described(function: Callable[..., Any]) -> str:
    """The schema with its members in their order."""
    descriptions = {"query": "what to look for: words", "a": "the first"}
    return json.dumps(signature.read_parameters(function, descriptions=descriptions).schema)


@pytest.mark.parametrize("function", [*PLAIN, loose])
def test_a_plain_schema_is_the_one_of_pydantic(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = described(function)
    monkeypatch.setattr(signature, "plain_type", lambda annotation: None)
    assert ours == described(function)


@pytest.mark.parametrize("function", PLAIN)
def test_plain_types_need_no_model(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signature, "_schema", None)
    assert signature.read_parameters(function).schema["type"] == "object"


def test_types_that_are_equal_are_read_in_their_order() -> None:
    def first(a: int | str) -> None: ...
    def second(a: str | int) -> None: ...

    kinds = [
        [option["type"] for option in json.loads(described(each))["properties"]["a"]["anyOf"]]
        for each in (first, second)
    ]
    assert kinds == [["integer", "string"], ["string", "integer"]]


def test_no_two_tools_share_a_schema() -> None:
    schemas = [signature.read_parameters(nested).schema for _ in range(2)]
    schemas[0]["properties"]["a"]["items"]["type"] = "integer"
    assert schemas[1]["properties"]["a"]["items"] == {"type": "string"}


@pytest.mark.parametrize(
    "text", ["Look something up.", "Find it.", "Très simple", "Look up (all) of it - or none"]
)
def test_a_sentence_is_read_as_by_the_parser(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def tool() -> None: ...

    tool.__doc__ = text
    ours = signature.read_docstring(tool)
    monkeypatch.setattr(signature, "_is_a_sentence", lambda text: False)
    assert ours == signature.read_docstring(tool)


def is_made(spec: ToolSpec, name: str) -> bool:
    try:
        object.__getattribute__(spec, name)
    except AttributeError:
        return False
    return True


def governed(**facts: Any) -> ToolSpec:
    governor = Governor(policy=StaticEngine("allow"))
    spec: ToolSpec = governor.govern(texts, **facts).tool.spec
    return spec


@pytest.mark.parametrize("name", ["declaration", "interface", "execution", "permission", "digest"])
def test_records_are_made_when_they_are_read(name: str) -> None:
    spec = governed()
    assert not is_made(spec, name)
    assert getattr(spec, name) is getattr(spec, name)


def test_the_tools_of_a_governor_are_listed_without_records() -> None:
    governor = Governor(policy=StaticEngine("allow"))
    tool = governor.govern(texts, name="lookup").tool
    assert governor.catalog.resolve("lookup") is not None
    assert not is_made(tool.spec, "declaration")


def test_a_list_that_changes_later_is_no_fact() -> None:
    rows = [{"query": "x"}]
    spec = governed(examples=rows)
    rows[0]["query"] = "y"
    rows.append({"query": "z"})
    assert spec.declaration.input_contract.examples == [{"query": "x"}]


def test_a_record_that_was_changed_is_in_no_digest() -> None:
    spec, other = governed(), governed()
    spec.permission.access_kinds.append("payment")
    assert spec.digest == other.digest


def test_what_no_record_takes_is_refused_at_once() -> None:
    with pytest.raises(ConfigurationError):
        governed(output_facts={"content_types": 5})
