"""How the test of doors calls the OpenAI Agents SDK: an agent with a scripted model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agents import Agent, FunctionTool, Runner, RunResult, RunState, set_tracing_disabled
from agents.testing import ScriptedModel
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from agenttool_otel.testing.doors import Body, DoorDriver

set_tracing_disabled(True)
STATES: dict[str, str] = {}
"""The states of interrupted runs by call id, as a program stores them."""


def tool_call(name: str, arguments: Mapping[str, Any], call_id: str) -> Any:
    return ResponseFunctionToolCall(
        type="function_call", name=name, arguments=json.dumps(dict(arguments)), call_id=call_id
    )


def done() -> Any:
    text = ResponseOutputText(type="output_text", text="done", annotations=[])
    return ResponseOutputMessage(
        id="msg_1", type="message", role="assistant", status="completed", content=[text]
    )


def agent_of(tools: list[Any], *calls: Any) -> Agent[Any]:
    steps = [list(calls), [done()]] if calls else [[done()]]
    return Agent("reader", model=ScriptedModel(steps), tools=tools)


def output_of(run: RunResult) -> Any:
    outputs = [item for item in run.new_items if item.type == "tool_call_output_item"]
    return outputs[-1].output


class AgentsDriver(DoorDriver):
    is_async = True

    def make(self, name: str, description: str, schema: Mapping[str, Any], body: Body) -> Any:
        async def invoke(context: Any, arguments: str) -> Any:
            return await body(json.loads(arguments))

        return FunctionTool(name, description, dict(schema), invoke)

    async def call(self, tool: Any, arguments: Mapping[str, Any], call_id: str) -> Any:
        agent = agent_of([tool], tool_call("look_up", arguments, call_id))
        run = await Runner.run(agent, "go")
        if run.interruptions:
            STATES[call_id] = run.to_state().to_string()
            return run
        return output_of(run)

    async def resume(self, tool: Any, ref: str) -> Any:
        store = tool._agenttool_handle.governor.approvals.store
        stored = store.stored_call(ref)
        call_id = stored.context["native_call_id"]
        if call_id not in STATES:
            # in another process, which has the state from a program's storage
            await self._interrupted(tool, stored)
        agent = agent_of([tool])
        state = await RunState.from_string(agent, STATES[call_id])
        # a program has nothing to go on with before there is an answer
        if stored.request.status != "pending":
            state.approve(state.get_interruptions()[0])
        run = await Runner.run(agent, state)
        return run if run.interruptions else output_of(run)

    async def _interrupted(self, tool: Any, stored: Any) -> None:
        plain = FunctionTool(
            tool.name, tool.description, tool.params_json_schema, _never, needs_approval=True
        )
        await self.call(plain, stored.original_arguments, stored.context["native_call_id"])

    def schema(self, tool: Any) -> Mapping[str, Any]:
        return tool.params_json_schema

    def is_refusal(self, given: Any) -> bool:
        return isinstance(given, RunResult) or str(given).startswith("look_up:")


async def _never(context: Any, arguments: str) -> str:
    raise AssertionError("not approved")
