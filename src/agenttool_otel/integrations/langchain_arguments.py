"""The arguments of a LangChain tool's call: which of them the model chose, and how LangChain's validation reads them.

The policy decides on what will run: on everything that reaches the tool except LangChain's own objects (told by what
they are, never by a name, which a model may choose as well) and what the tool's author marked as injected.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.callbacks.manager import BaseRunManager
from langchain_core.tools import BaseTool, StructuredTool, Tool
from langchain_core.utils.pydantic import get_fields

from agenttool_otel.catalog import ToolSpec
from agenttool_otel.invocation import Invocation
from agenttool_otel.names import MutationSource
from agenttool_otel.pipeline.inputs import differs, is_partial
from agenttool_otel.records import InputMutation
from agenttool_otel.records.values import changed_pointers, digest, snapshot, to_json_value

__all__ = ["Arguments", "Entry", "ReadDifferently", "injected_names", "json_object", "take_reading"]


class ReadDifferently(ValueError):
    """LangChain would make something else of approved arguments than what was approved."""


@dataclass(slots=True)
class Entry:
    """What ``run`` knows and ``_run`` does not.

    Attributes:
        tool: the tool object that was called.
        call_id: id of the model's tool call.
        raw: the input before LangChain's validation.
        config: the RunnableConfig of the call.
        reached: whether ``_run`` was.
    """

    tool: BaseTool
    call_id: str | None
    raw: Any
    config: Any
    reached: bool = False


def injected_names(tool: BaseTool) -> frozenset[str]:
    """Return the arguments that no model gives: those that the tool's author marked as injected.

    Args:
        tool: the tool.
    """
    names = tool._injected_args_keys
    schema = tool.args_schema
    if isinstance(schema, type):
        shown: Any = tool.tool_call_schema
        names = names | (get_fields(schema).keys() - get_fields(shown).keys())
    return names


def json_object(values: dict[str, Any]) -> dict[str, Any]:
    """Return arguments as JSON data.

    Args:
        values: arguments by name.

    Raises:
        ValueError: they can't be shown whole, so nothing can be decided on them.
    """
    shown = to_json_value(values)
    if not isinstance(shown, dict):
        raise ValueError("arguments are not an object")
    return shown


def take_reading(call: Invocation, given: dict[str, Any], reading: dict[str, Any]) -> None:
    """Let the next decision be about what LangChain reads in changed arguments, which is what would run.

    Args:
        call: the call, whose permission input was just replaced.
        given: the changed arguments.
        reading: what LangChain makes of them.

    Raises:
        ReadDifferently: a person has approved the arguments as they were given.
        ValueError: the reading can't be shown whole.
    """
    if is_partial(reading):
        raise ValueError("the arguments are too large or too deep to be decided")
    if not differs(given, reading):
        return
    if call.resumed or call.approval is not None:
        raise ReadDifferently
    call.mutations.append(
        InputMutation(
            invocation_id=call.id,
            source_type=MutationSource.ADAPTER,
            source_ref="langchain",
            from_input_ref=digest(given),
            to_input_ref=digest(reading),
            changed_fields=changed_pointers(given, reading),
            reason="what LangChain's validation makes of the changed input",
        )
    )
    call.permission_input = reading


class Arguments:
    """Binds the arguments of one call of a tool's ``_run`` or ``_arun``.

    Args:
        spec: the tool's declaration.
        tool: the tool object.
        body: its ``_run`` or ``_arun``, bound.
        args: what it gets by position.
        kwargs: what it gets by name.
        entry: what the outer method knows of the call; ``None`` for a direct call.
    """

    __slots__ = ("_args", "_body", "_hidden", "_injected", "_kwargs", "_raw", "_spec", "_tool")

    def __init__(
        self,
        spec: ToolSpec,
        tool: BaseTool,
        body: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        entry: Entry | None,
    ) -> None:
        self._spec, self._tool, self._body = spec, tool, body
        self._args, self._kwargs = args, kwargs
        # a tool whose ``_arun`` calls its ``_run`` gives it what it likes, not what the model sent
        self._raw = entry.raw if entry is not None and not entry.reached else None
        self._injected = injected_names(tool)
        self._hidden = {
            name for name, value in kwargs.items() if name in self._injected or self._is_plumbing(name, value, entry)
        }

    def _is_plumbing(self, name: str, value: Any, entry: Entry | None) -> bool:
        """Tell LangChain's own object from an argument of the same name."""
        if isinstance(value, (BaseRunManager, BaseCallbackManager)):
            return True
        if entry is None or value is not entry.config:
            return False
        return value is not None or not (isinstance(self._raw, dict) and name in self._raw)

    def bind(self, call: Invocation) -> None:
        """Take what the model sent and what LangChain made of it; what runs is a copy of that.

        Args:
            call: the call.

        Raises:
            ValueError: an argument can't be named.
        """
        by_name = {name: snapshot(value) for name, value in self._kwargs.items() if name not in self._hidden}
        by_position = tuple(snapshot(value) for value in self._args)
        names = self._names()
        if len(names) < len(by_position) or not by_name.keys().isdisjoint(names[: len(by_position)]):
            raise ValueError("positional arguments that have no name")
        call.call_args = by_position
        call.bound = call.call_kwargs = {**self._kwargs, **by_name}
        read = json_object({**by_name, **dict(zip(names, by_position, strict=False))})
        sent = read
        if isinstance(self._raw, dict):
            sent = json_object({name: value for name, value in self._raw.items() if name not in self._injected})
        call.model_input = sent
        if isinstance(self._tool.args_schema, dict):
            # LangChain does not look into a JSON schema: the pipeline refuses what does not fit
            for shown in (sent, read):
                if not self._spec.check.is_valid(shown):
                    call.model_input = shown
                    return
        call.observable_input = read
        call.validated = True  # LangChain has just done it, with injection and coercion that a schema can't express

    def rebind(self, call: Invocation, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Put changed arguments into the call as LangChain reads them, and decide on that reading.

        Args:
            call: the call.
            before: permission input before the change.
            after: permission input after it.

        Raises:
            ValueError: LangChain refuses them, or reads them differently although they were approved as they are.
        """
        kept = {name: value for name, value in self._kwargs.items() if name in self._hidden}
        injected = {name: value for name, value in kept.items() if name in self._injected}
        parsed: dict[str, Any] = dict(after)
        if not isinstance(self._raw, str):  # LangChain checks a text and hands it on as it is
            made = self._tool._parse_input({**injected, **snapshot(after)}, call.native_call_id)
            parsed = {name: value for name, value in dict(made).items() if name not in self._injected}  # type: ignore[arg-type]
        shown = json_object(parsed)
        for name in self._spec.declaration.input_contract.internal_only_fields:
            shown.pop(name, None)
        if self._args:
            call.call_args = self._positional(parsed)
            parsed = {}
        call.bound = call.call_kwargs = {**parsed, **kept}
        take_reading(call, after, shown)

    def _positional(self, parsed: dict[str, Any]) -> tuple[Any, ...]:
        names = self._names()[: len(self._args)]
        if parsed.keys() != set(names):
            raise ValueError("this tool takes its arguments by position, each of them")
        return tuple(parsed[name] for name in names)

    def _names(self) -> list[str]:
        """Return the names of positional arguments: those of the function that gets them, else the schema's."""
        properties = list(self._spec.check.schema.get("properties", {}))
        if not self._args or isinstance(self._tool, Tool):
            return properties
        function: Any = self._body
        if isinstance(self._tool, StructuredTool):
            function = self._tool.coroutine if inspect.iscoroutinefunction(self._body) else self._tool.func
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            return properties
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return [parameter.name for parameter in parameters if parameter.kind in kinds] or properties
