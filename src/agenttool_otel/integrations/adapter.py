"""The contract of an adapter: one call of a framework's tool, governed.

A framework needs one subclass of Adapter, and a place to make it: where the framework runs a tool's
body.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from agenttool_otel.call.drivers import arun, run
from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.scheduling.gate import take_place
from agenttool_otel.call.target import Target
from agenttool_otel.call.tool import GovernedTool
from agenttool_otel.context.context import current_context, current_mappings


class Adapter(ABC):
    """One call of a framework's tool: binds its arguments, runs it if it may run, and gives back
    what is expected.

    ``bind`` and ``rebind`` are those of a Target, and raise what theirs do.
    """

    def __init__(self, tool: GovernedTool, native_call_id: str | None) -> None:
        self.runtime = tool.governor
        self.call = Invocation(
            tool.spec, self.runtime.effective(current_context()), native_call_id=native_call_id
        )
        self.call.mappings = current_mappings()
        self.call.place = take_place()

    @abstractmethod
    def bind(self, call: Invocation) -> None:
        """Fill the call's arguments from what the framework gave."""

    @abstractmethod
    def rebind(self, call: Invocation, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Put changed arguments into the call."""

    @abstractmethod
    def deliver(self, response: str | None) -> Any:
        """Return the outcome as the framework wants it; ``response`` is a text that a person gave
        in its place.
        """

    def unwrap(self, value: Any) -> Any:
        """Return what a model sees of a return value."""
        return value

    def run(self, body: Callable[..., Any]) -> Any:
        """Decide the call, run the body if it may run, and deliver."""
        return self.deliver(self.perform(Target(body, self.bind, self.rebind, unwrap=self.unwrap)))

    async def arun(self, body: Callable[..., Any]) -> Any:
        """The same for a body that returns an awaitable."""
        target = Target(body, self.bind, self.rebind, is_async=True, unwrap=self.unwrap)
        return self.deliver(await self.aperform(target))

    def perform(self, target: Target) -> str | None:
        """Run the call; return the text that a person gave in place of its result."""
        run(self.call, self.runtime.pipeline.run(self.call, target))
        return None

    async def aperform(self, target: Target) -> str | None:
        """The same without blocking the event loop."""
        await arun(self.call, self.runtime.pipeline.run(self.call, target))
        return None
