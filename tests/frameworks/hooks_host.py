"""A host of agent-hooks: runs tools between two emissions, as an agent's loop does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hooks import AgentContextBuilder, InterceptionBlocked, InterceptionEmitter

from agenttool_otel.integrations.agent_hooks import AgentToolInterceptor
from agenttool_otel.testing.doors import Body, DoorDriver


class HostTool:
    """A tool of the host, and the emitter that is asked about its calls."""

    def __init__(self, name: str, schema: Mapping[str, Any], body: Body) -> None:
        self.name, self.schema, self.body = name, dict(schema), body
        # a busy machine is no reason to deny
        self.emitter = InterceptionEmitter(timeout=None)
        self.builder = AgentContextBuilder(agent_id="kit", framework="kit", session_id="s-1")
        self.governor: Any = None
        self.door: Any = None

    async def call(self, arguments: Mapping[str, Any], call_id: str) -> Any:
        named = {"call_id": call_id, "name": self.name}
        before = self.builder.pre_tool_call(**named, args=dict(arguments))
        await self.emitter.emit(before)
        args = before["tool_call"]["args"]
        failed = None
        try:
            value = await self.body(args)
        except Exception as error:
            value, failed = str(error), error
        after = self.builder.post_tool_call(
            **named, args=args, value=value, is_error=failed is not None
        )
        await self.emitter.emit(after)
        if failed is not None:
            raise failed
        return after["tool_result"]["value"]


class HooksDriver(DoorDriver):
    is_async = True

    def make(self, name: str, description: str, schema: Mapping[str, Any], body: Body) -> Any:
        return HostTool(name, schema, body)

    def govern(self, governor: Any, tool: HostTool) -> HostTool:
        governed = HostTool(tool.name, tool.schema, tool.body)
        facts = {"*": {"read_only": True, "concurrency_safe": True}}
        door = AgentToolInterceptor(governor, tools={tool.name: tool.schema}, facts=facts)
        governed.emitter.register(door)
        governed.governor = governor
        return governed

    async def call(self, tool: HostTool, arguments: Mapping[str, Any], call_id: str) -> Any:
        try:
            return await tool.call(arguments, call_id)
        except InterceptionBlocked as blocked:
            return blocked

    async def resume(self, tool: HostTool, ref: str) -> Any:
        stored = tool.governor.approvals.store.stored_call(ref)
        call_id = stored.context["native_call_id"]
        return await self.call(tool, stored.original_arguments, call_id)

    def schema(self, tool: HostTool) -> Mapping[str, Any]:
        return tool.schema

    def is_refusal(self, given: Any) -> bool:
        return isinstance(given, InterceptionBlocked)
