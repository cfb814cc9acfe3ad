"""The arguments of a LangChain tool's call: which of them the model chose, and how LangChain's
validation reads them.

What runs is what LangChain's validation makes of the arguments, so that is what the policy decides
on. An agent's guard decides before LangChain has validated anything: it reads the arguments as the
tool will.
"""

from __future__ import annotations

from typing import Any

from langchain_core.tools import BaseTool
from langchain_core.utils.pydantic import get_fields
from pydantic import BaseModel, create_model

from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.phases.inputs import differs, is_partial
from agenttool_otel.names import MutationSource
from agenttool_otel.records import InputMutation
from agenttool_otel.values.canonical import keyed_digest
from agenttool_otel.values.pointers import changed_pointers
from agenttool_otel.values.policy_value import to_policy_value
from agenttool_otel.values.snapshot import snapshot


class ReadDifferently(ValueError):
    """LangChain would make something else of approved arguments than what was approved."""


def injected_names(tool: BaseTool) -> frozenset[str]:
    """Return the arguments that no model gives: those that the tool's author marked as injected."""
    return tool._injected_args_keys | injected_by_schema(tool)


def injected_by_schema(tool: BaseTool) -> frozenset[str]:
    """Return those of them that the tool's schema marks."""
    schema = tool.args_schema
    if not isinstance(schema, type):
        return frozenset()
    # state: Annotated[dict, InjectedState] is in the schema, and not in what the model is shown
    shown: Any = tool.tool_call_schema
    return frozenset(get_fields(schema).keys() - get_fields(shown).keys())


def json_object(values: dict[str, Any]) -> dict[str, Any]:
    """Return arguments as JSON data."""
    shown = to_policy_value(values)
    if not isinstance(shown, dict):
        raise ValueError("arguments are not an object")
    return shown


def use_reading(call: Invocation, given: dict[str, Any], reading: dict[str, Any]) -> None:
    """Let the next decision be about changed arguments as LangChain reads them, which is what runs.

    Args:
        call: the call.
        given: the arguments as they were changed.
        reading: the same after LangChain's validation.

    Raises:
        ValueError: they are too large to be decided.
        ReadDifferently: a person approved them, and they mean another thing to LangChain.
    """
    if is_partial(reading):
        raise ValueError("the arguments are too large or too deep to be decided")
    if not differs(given, reading):
        return
    if call.resumed or call.decision.approval is not None:
        raise ReadDifferently
    call.inputs.mutations.append(
        InputMutation(
            invocation_id=call.id,
            source_type=MutationSource.ADAPTER,
            source_ref="langchain",
            from_input_ref=keyed_digest(given),
            to_input_ref=keyed_digest(reading),
            changed_fields=changed_pointers(given, reading),
            reason="what LangChain's validation makes of the changed input",
        )
    )
    call.inputs.permission_input = reading


class Reader:
    """Reads arguments as one tool does."""

    __slots__ = ("_injected", "_tool")

    def __init__(self, tool: BaseTool) -> None:
        self._injected = injected_names(tool)
        self._tool = tool
        schema = tool.args_schema
        if isinstance(schema, type) and issubclass(schema, BaseModel):
            missing: dict[str, Any] = dict.fromkeys(
                self._injected & schema.model_fields.keys(), (Any, None)
            )
            # a ToolNode adds them only when it runs the tool; every validator of the schema stays
            if missing:
                loose = create_model(schema.__name__, __base__=schema, **missing)
                self._tool = tool.model_copy(update={"args_schema": loose})

    def read(
        self, arguments: dict[str, Any], call_id: str | None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what the tool would run with, as JSON data, and the arguments to give it so that
        it does.
        """
        made = self._parsed(arguments, call_id)
        shown = json_object(made)
        again = json_object(self._parsed(arguments, call_id))
        if not differs(shown, again):
            return shown, arguments
        # default_factory=datetime.now gives another value at each validation: what it gave once is
        # what the tool is given
        again = json_object(self._parsed(made, call_id))
        if differs(shown, again):
            raise ReadDifferently(
                "the tool's validation makes something else of the same arguments each time"
            )
        return shown, made

    def _parsed(self, arguments: dict[str, Any], call_id: str | None) -> dict[str, Any]:
        made: Any = self._tool._parse_input(snapshot(arguments), call_id)
        parsed = {}
        for name, value in made.items():
            if name not in self._injected:
                parsed[name] = snapshot(value)
        return parsed
