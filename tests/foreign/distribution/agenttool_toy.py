"""The door of the framework toy, in a distribution of its own."""

from __future__ import annotations

from typing import Any

from toy import Message, ToyTool, with_text

from agenttool_otel.integrations.foreign import ForeignCall, declare_foreign


class ToyCall(ForeignCall):
    """One call of a toy tool."""

    def unwrap(self, value: Message) -> str:
        return value.text

    def put(self, value: Message, shown: Any) -> Message:
        return with_text(value, str(shown))

    def refusal(self) -> Message:
        return Message(self.result.summary, self.call.native_call_id or "", failed=True)


class GovernedToyTool(ToyTool):
    """A toy tool of which each call is governed."""

    handle: Any

    def call(self, arguments: dict[str, Any], call_id: str) -> Message:
        call = ToyCall(self.handle, arguments, call_id, attributes={"toy.version": "1"})
        return call.run(lambda read: ToyTool.call(self, read, call_id))

    def resume(self, ref: str) -> Message:
        call = ToyCall(self.handle, None).resume(ref)
        return call.run(lambda read: ToyTool.call(self, read, call.call.native_call_id))


def govern_toy(tool: ToyTool, governor: Any, options: Any) -> ToyTool:
    """Return a governed copy of a tool."""
    governed = GovernedToyTool(tool.name, tool.description, tool.schema, tool.function)
    governed.handle = declare_foreign(
        "toy",
        tool.name,
        description=tool.description,
        schema=tool.schema,
        body=tool.function,
        governor=governor,
        options=options,
    )
    governed.handle.register()
    return governed
