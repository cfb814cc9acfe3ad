"""A framework in one file: a toy with tools that take a dictionary, governed through the contract of
``integrations/foreign.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from agenttool_otel import ToolDenied, ToolInputInvalid, agent_context
from agenttool_otel.call.tool import GovernedTool
from agenttool_otel.catalog import GovernOptions
from agenttool_otel.govern import governed as governing
from agenttool_otel.govern.governor import Governor
from agenttool_otel.integrations.foreign import ForeignCall, JsonCall, declare_foreign, foreign_tool
from agenttool_otel.names import Attr
from agenttool_otel.testing import Capture, StaticEngine, capture, decision

SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}


@dataclass
class ToyTool:
    """The framework's own class: a name, a schema and a function of one dictionary."""

    name: str
    description: str
    schema: dict[str, Any]
    function: Callable[[dict[str, Any]], Any]

    def call(self, arguments: Mapping[str, Any], call_id: str | None = None) -> Any:
        """Run the tool, as the framework's agent does."""
        return self.function(dict(arguments))


# --- the file that governs it ---------------------------------------------------------------------


@dataclass
class GovernedToyTool(ToyTool):
    """A tool of which each call is governed."""

    handle: GovernedTool | None = field(default=None)

    def call(self, arguments: Mapping[str, Any], call_id: str | None = None) -> Any:
        """Decide a call, and run it if it may run."""
        assert self.handle is not None
        return JsonCall(self.handle, arguments, call_id).run(self.function)


def govern_toy(tool: ToyTool, governor: Governor | None, options: GovernOptions) -> ToyTool:
    """Return a governed copy of a tool; ``govern(tool)`` calls this."""
    handle = declare_foreign(
        "toy",
        tool.name,
        description=tool.description,
        schema=tool.schema,
        body=tool.function,
        governor=governor,
        options=options,
    )
    handle.register()
    return GovernedToyTool(tool.name, tool.description, tool.schema, tool.function, handle)


# --- its tests ------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def door(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line that a newcomer adds in ``govern/governed.py``."""
    line = (f"{__name__}.ToyTool", f"{__name__}:govern_toy")
    monkeypatch.setattr(governing, "OBJECT_DOORS", (*governing.OBJECT_DOORS, line))


def governed(captured: Capture, ran: list[Any]) -> ToyTool:
    def read(arguments: dict[str, Any]) -> str:
        ran.append(dict(arguments))
        return f"content of {arguments['path']}"

    tool = ToyTool("read", "Read a file.", SCHEMA, read)
    return captured.governor.govern(tool, read_only=True)  # type: ignore[no-any-return, call-overload]


def test_an_allowed_call_runs_in_one_span() -> None:
    ran: list[Any] = []
    with capture(policy=StaticEngine("allow")) as captured:
        assert governed(captured, ran).call({"path": "a"}, "call-1") == "content of a"
        assert captured.span.name == "execute_tool read"
        assert captured.span.attributes["gen_ai.tool.call.id"] == "call-1"
    assert ran == [{"path": "a"}]


def test_a_denied_call_does_not_run() -> None:
    ran: list[Any] = []
    with capture(policy=StaticEngine("deny")) as captured:
        tool = governed(captured, ran)
        with pytest.raises(ToolDenied):
            tool.call({"path": "a"})
    assert ran == []


def test_arguments_that_do_not_fit_the_schema_are_refused() -> None:
    ran: list[Any] = []
    with capture(policy=StaticEngine("allow")) as captured:
        tool = governed(captured, ran)
        with pytest.raises(ToolInputInvalid):
            tool.call({"path": 3})
    assert ran == []


def test_the_body_gets_what_the_policy_changed() -> None:
    ran: list[Any] = []
    edited = decision("allow", updated_input={"path": "b"})
    with capture(policy=StaticEngine({"read": edited})) as captured:
        governed(captured, ran).call({"path": "a"})
    assert ran == [{"path": "b"}]


def test_an_error_of_the_body_is_the_callers() -> None:
    def fail(arguments: dict[str, Any]) -> None:
        raise OSError("no disk")

    with capture(policy=StaticEngine("allow")) as captured:
        tool: Any = captured.governor.govern(ToyTool("fail", "Fail.", SCHEMA, fail))
        with pytest.raises(OSError, match="no disk"):
            tool.call({"path": "a"})


class BlindCall(ForeignCall):
    """A call of a door that can't read what a body returns."""

    def unwrap(self, value: Any) -> Any:
        raise ValueError("not of the framework")


@pytest.mark.parametrize(
    ("obliged", "given"), [(False, "a note"), (True, "[result withheld: an obligation")]
)
def test_a_result_that_a_door_cannot_read(obliged: bool, given: str) -> None:
    facts = {"read": {"read_only": True, "redaction_required": obliged}}
    with capture() as captured, agent_context(session_id="s"):
        tool = foreign_tool("read", {}, source="toy", facts=facts, governor=captured.governor)
        for _ in range(4):
            call = BlindCall(tool, {})
            assert call.run(lambda arguments: "a note").startswith(given)
    statuses = {(span.attributes or {})[Attr.INVOCATION_STATUS] for span in captured.spans}
    assert statuses == {"succeeded"}
