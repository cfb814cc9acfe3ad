"""How a LangChain tool would read a model's arguments, found before it is called.

An agent's guard decides before LangChain has validated anything, while what runs is what LangChain's validation makes
of the arguments. So the guard reads them as the tool will, and decides on that.
"""

from __future__ import annotations

from typing import Any

from langchain_core.tools import BaseTool
from pydantic import BaseModel, create_model

from agenttool_otel.integrations.langchain_arguments import ReadDifferently, injected_names, json_object
from agenttool_otel.pipeline.inputs import differs
from agenttool_otel.records.values import snapshot

__all__ = ["Reader"]


class Reader:
    """Reads arguments as one tool does.

    Args:
        tool: the tool.
    """

    __slots__ = ("_injected", "_tool")

    def __init__(self, tool: BaseTool) -> None:
        self._injected = injected_names(tool)
        self._tool = tool
        schema = tool.args_schema
        if isinstance(schema, type) and issubclass(schema, BaseModel):
            missing: dict[str, Any] = dict.fromkeys(self._injected & schema.model_fields.keys(), (Any, None))
            if missing:  # a ToolNode adds them only when it runs the tool; every validator of the schema stays
                loose = create_model(schema.__name__, __base__=schema, **missing)
                self._tool = tool.model_copy(update={"args_schema": loose})

    def read(self, arguments: dict[str, Any], call_id: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what the tool would run with, as JSON data, and the arguments to give it so that it does.

        Args:
            arguments: a model's arguments; they stay as they are.
            call_id: id of its tool call.

        Raises:
            ValueError: the tool would refuse them, or reads them otherwise each time.
        """
        made = self._parsed(arguments, call_id)
        shown = json_object(made)
        if not differs(shown, json_object(self._parsed(arguments, call_id))):
            return shown, arguments
        if differs(shown, json_object(self._parsed(made, call_id))):
            raise ReadDifferently("the tool's validation makes something else of the same arguments each time")
        return shown, made

    def _parsed(self, arguments: dict[str, Any], call_id: str | None) -> dict[str, Any]:
        made: Any = self._tool._parse_input(snapshot(arguments), call_id)
        return {name: snapshot(value) for name, value in made.items() if name not in self._injected}
