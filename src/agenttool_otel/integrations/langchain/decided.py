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
        # wrapt keeps attributes that begin with _self_ on the proxy, and all others on the tool
        self._self_reading = reading
        self._self_inside = inside
        self._self_injected = injected_names(tool)
        self._self_decided = self._self_digest(arguments)

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        """Run the tool if the call is the decided one."""
        refusal = self._self_refusal(input)
        if refusal is not None:
            return refusal
        with decided(self._self_call()):
            return self.__wrapped__.invoke(input, config, **kwargs)

    async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        """The same without blocking the event loop."""
        refusal = self._self_refusal(input)
        if refusal is not None:
            return refusal
        with decided(self._self_call()):
            return await self.__wrapped__.ainvoke(input, config, **kwargs)

    def _self_call(self) -> DecidedCall:
        """The call as it was decided, which no guard behind this one decides again."""
        tools = (self.__wrapped__, *self._self_inside)
        return DecidedCall(tools, self._self_reading, self._self_injected)

    def _self_digest(self, arguments: Any) -> str:
        if not isinstance(arguments, dict):
            return ""
        # a ToolNode adds the injected ones between the decision and the call
        chosen = dict(arguments)
        for name in self._self_injected:
            chosen.pop(name, None)
        return digest(chosen)

    def _self_refusal(self, call: Any) -> ToolMessage | None:
        """Return the answer to a call that was changed after its decision."""
        arguments = call
        call_id = ""
        # {"type": "tool_call", "name": "search", "args": {...}, "id": "call_1"}
        if isinstance(call, dict) and call.get("type") == "tool_call":
            arguments = call["args"]
            call_id = str(call.get("id") or "")
        if self._self_digest(arguments) == self._self_decided:
            return None
        name = self.__wrapped__.name
        return ToolMessage(
            content=f"{name} did not run: its arguments were changed after they were decided",
            name=name,
            tool_call_id=call_id,
            status="error",
        )
