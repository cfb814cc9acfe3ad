"""How the test of doors calls Pydantic AI: an agent with a scripted model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, Tool
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import FunctionToolset

from agenttool_otel.testing.doors import Body, DoorDriver


def scripted(*calls: ToolCallPart) -> FunctionModel:
    """A model that makes some calls, and then ends."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse(parts=list(calls))
        return ModelResponse(parts=[TextPart("done")])

    return FunctionModel(answer)


def agent_of(toolset: Any, *calls: ToolCallPart) -> Agent[Any, Any]:
    return Agent(
        scripted(*calls),
        toolsets=[toolset],
        output_type=[str, DeferredToolRequests],
        retries=1,
    )


def returned(messages: list[ModelMessage]) -> ToolReturnPart:
    parts = [part for message in messages for part in message.parts]
    return [part for part in parts if isinstance(part, ToolReturnPart)][-1]


def asked_history(part: ToolCallPart) -> list[ModelMessage]:
    """The history of a run that ended with a question, as a program keeps it."""
    return [ModelRequest(parts=[UserPromptPart("go")]), ModelResponse(parts=[part])]


class PydanticDriver(DoorDriver):
    is_async = True

    def make(self, name: str, description: str, schema: Mapping[str, Any], body: Body) -> Any:
        async def function(**arguments: Any) -> Any:
            return await body(arguments)

        tool = Tool.from_schema(function, name, description, dict(schema))
        return FunctionToolset([tool])

    async def call(self, tool: Any, arguments: Mapping[str, Any], call_id: str) -> Any:
        part = ToolCallPart("look_up", dict(arguments), tool_call_id=call_id)
        run = await agent_of(tool, part).run("go")
        if isinstance(run.output, DeferredToolRequests):
            return run.output
        return returned(run.all_messages())

    async def resume(self, tool: Any, ref: str) -> Any:
        stored = tool.governor.approvals.store.stored_call(ref)
        # a program has nothing to go on with before there is an answer
        if stored.request.status == "pending":
            return DeferredToolRequests()
        call_id = stored.context["native_call_id"]
        part = ToolCallPart("look_up", stored.original_arguments, tool_call_id=call_id)
        run = await agent_of(tool).run(
            message_history=asked_history(part),
            deferred_tool_results=DeferredToolResults(
                approvals={call_id: True}, metadata={call_id: {"invocation_id": ref}}
            ),
        )
        if isinstance(run.output, DeferredToolRequests):
            return run.output
        return returned(run.all_messages())

    def schema(self, tool: Any) -> Mapping[str, Any]:
        shown: list[AgentInfo] = []

        def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            shown.append(info)
            return ModelResponse(parts=[TextPart("done")])

        Agent(FunctionModel(answer), toolsets=[tool]).run_sync("go")
        return shown[0].function_tools[0].parameters_json_schema

    def text(self, given: Any) -> str:
        content = given.content
        return content if isinstance(content, str) else json.dumps(content)

    def is_refusal(self, given: Any) -> bool:
        return isinstance(given, DeferredToolRequests) or given.outcome != "success"
