"""A tool that runs with what was decided alone: what an agent's guard hands on to the middleware
behind it.
"""

from __future__ import annotations

from typing import Any

import wrapt
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool

from agenttool_otel.call.running.once import DecidedCall, decided
from agenttool_otel.call.tool import GovernedTool
from agenttool_otel.integrations.langchain.arguments import injected_names
from agenttool_otel.values.canonical import digest


class DecidedTool(wrapt.ObjectProxy):  # type: ignore[type-arg]
    """A tool object, and the arguments that it may be invoked with.

    Args:
        tool: the tool.
        arguments: what it may be invoked with.
        reading: what the tool makes of them, which was decided.
        inside: the governed functions that are its body.
    """

    def __init__(
        self,
        tool: BaseTool,
        arguments: dict[str, Any],
        reading: dict[str, Any],
        inside: tuple[GovernedTool, ...],
    ) -> None:
        super().__init__(tool)
        self._self_reading, self._self_inside = reading, inside
        self._self_injected = injected_names(tool)
        self._self_decided = self._self_digest(arguments)

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        """Run the tool if the call is the decided one."""
        if (refusal := self._self_refusal(input)) is not None:
            return refusal
        with decided(self._self_call()):
            return self.__wrapped__.invoke(input, config, **kwargs)

    async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        """The same without blocking the event loop."""
        if (refusal := self._self_refusal(input)) is not None:
            return refusal
        with decided(self._self_call()):
            return await self.__wrapped__.ainvoke(input, config, **kwargs)

    def _self_call(self) -> DecidedCall:
        """Return what no guard behind this one decides again."""
        return DecidedCall(
            (self.__wrapped__, *self._self_inside), self._self_reading, self._self_injected
        )

    def _self_digest(self, arguments: Any) -> str:
        if not isinstance(arguments, dict):
            return ""
        return digest(
            {name: value for name, value in arguments.items() if name not in self._self_injected}
        )

    def _self_refusal(self, call: Any) -> ToolMessage | None:
        """Return the answer to a call that was changed after its decision."""
        is_call = isinstance(call, dict) and call.get("type") == "tool_call"
        if self._self_digest(call["args"] if is_call else call) == self._self_decided:
            return None
        return ToolMessage(
            content=f"{self.__wrapped__.name} did not run: its arguments were changed after they were decided",
            name=self.__wrapped__.name,
            tool_call_id=str(call.get("id") or "") if is_call else "",
            status="error",
        )
