"""Governed LangChain tools: every way in is decided once, and a denial is LangChain's own idiom."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.retry import RunnableRetry
from langchain_core.tools import (
    BaseTool,
    InjectedToolCallId,
    StructuredTool,
    Tool,
    ToolException,
    tool,
)

from agenttool_otel import ApprovalAnswer, ApprovalRequired, ConfigurationError, ToolDenied
from agenttool_otel.names import ApprovalStatus
from agenttool_otel.testing import FixedApprover, StaticEngine, capture, decision


@tool
def shout(text: str, times: int = 1) -> str:
    """Say it loud."""
    return text.upper() * times


@tool
async def ashout(text: str) -> str:
    """Say it loud."""
    await asyncio.sleep(0)
    return text.upper()


@tool(response_format="content_and_artifact")
def both(text: str) -> tuple[str, dict[str, str]]:
    """Content and artifact."""
    return text, {"kept": text}


class Custom(BaseTool):
    name: str = "custom"
    description: str = "A tool of its own class."

    def _run(self, text: str) -> str:
        return text.upper()

    async def _arun(self, text: str) -> str:
        return text.upper() + "!"


def as_call(arguments: dict[str, Any], name: str = "shout") -> dict[str, Any]:
    return {"type": "tool_call", "name": name, "args": arguments, "id": "call-1"}


WAYS: dict[str, Callable[[BaseTool], Any]] = {
    "invoke": lambda t: t.invoke({"text": "a"}),
    "run": lambda t: t.run({"text": "a"}),
    "ainvoke": lambda t: asyncio.run(t.ainvoke({"text": "a"})),
    "batch": lambda t: t.batch([{"text": "a"}])[0],
    "abatch": lambda t: asyncio.run(t.abatch([{"text": "a"}]))[0],
    "stream": lambda t: next(iter(t.stream({"text": "a"}))),
    "pipe": lambda t: (RunnableLambda(lambda text: {"text": text}) | t).invoke("a"),
    "with_retry": lambda t: t.with_retry(stop_after_attempt=1).invoke({"text": "a"}),
    "with_config": lambda t: t.with_config(tags=["x"]).invoke({"text": "a"}),
    "model_copy": lambda t: t.model_copy().invoke({"text": "a"}),
    "deepcopy": lambda t: copy.deepcopy(t).invoke({"text": "a"}),
    "bind": lambda t: t.bind().invoke({"text": "a"}),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("made", [shout, Custom()], ids=["structured", "subclass"])
def test_every_way_in_is_decided_once_and_leaves_one_span(way: str, made: BaseTool) -> None:
    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        result = WAYS[way](captured.governor.govern(made))
        assert str(result).startswith("A")
        assert len(engine.documents) == 1
        assert captured.span.attributes["agenttool.permission.outcome"] == "executed"


@pytest.mark.parametrize("way", WAYS)
def test_every_way_in_is_denied(way: str) -> None:
    def body(text: str) -> str:
        """Never runs."""
        raise AssertionError("ran")

    with capture(policy=StaticEngine("deny")) as captured:
        with pytest.raises(ToolDenied) as denied:
            WAYS[way](captured.governor.govern(tool(body)))
        assert isinstance(denied.value, ToolException)
        assert captured.span.attributes["agenttool.permission.outcome"] == "not_executed"


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "func": lambda t: t(shout).func("a"),
    "func of Tool": lambda t: t(Tool(name="loud", func=str.upper, description="Shout.")).func("a"),
    "coroutine": lambda t: asyncio.run(t(ashout).coroutine("a")),
}


@pytest.mark.parametrize("way", FUNCTIONS)
def test_the_function_of_a_governed_tool_is_decided_too(way: str) -> None:
    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        assert FUNCTIONS[way](captured.governor.govern) == "A"
        assert len(engine.documents) == 1
        assert captured.span.attributes["agenttool.permission.outcome"] == "executed"
    with capture(policy=StaticEngine("deny")) as captured, pytest.raises(ToolDenied):
        FUNCTIONS[way](captured.governor.govern)


def test_the_function_of_a_governed_tool_can_be_replaced() -> None:
    with capture(policy=StaticEngine("deny")) as captured:
        governed = captured.governor.govern(shout)
        governed.func = lambda text: text  # type: ignore[attr-defined]
        with pytest.raises(ToolDenied):
            governed.invoke({"text": "a"})
        with pytest.raises(ToolDenied):
            governed.func("a")  # type: ignore[attr-defined]


def test_a_pickled_tool_comes_back_governed() -> None:
    made = Tool(name="loud", func=str.upper, description="Shout.")
    again = pickle.loads(pickle.dumps(govern_default(made)))
    assert type(again).agenttool.spec.name == "loud"
    assert again.name == "loud"


def test_a_tool_of_a_certain_governor_is_copied_but_not_pickled() -> None:
    with capture(policy=StaticEngine("deny")) as captured:
        governed = captured.governor.govern(Tool(name="loud", func=str.upper, description="Shout."))
        with pytest.raises(ConfigurationError, match="govern it again where it is loaded"):
            pickle.dumps(governed)
        for again in (copy.copy(governed), copy.deepcopy(governed), governed.model_copy()):
            with pytest.raises(ToolDenied):
                again.invoke("a")


def govern_default(made: BaseTool) -> BaseTool:
    from agenttool_otel import govern

    return govern(made)


def test_an_asynchronous_tool_is_governed_on_the_loop() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        governed = captured.governor.govern(ashout)
        assert asyncio.run(governed.ainvoke(as_call({"text": "a"}, "ashout"))).content == "A"
        assert captured.span.attributes["gen_ai.tool.call.id"] == "call-1"


def test_a_denied_call_is_an_error_tool_message_with_artifact() -> None:
    answers = {
        "shout": decision("deny", alternatives=[{"tool": "whisper", "arguments": {"text": "a"}}])
    }
    seen: list[Any] = []

    class Handler(BaseCallbackHandler):
        def on_tool_end(self, output: Any, **kwargs: Any) -> None:
            seen.append(output)

    with capture(policy=StaticEngine(answers)) as captured:
        message = captured.governor.govern(shout).invoke(
            as_call({"text": "a"}), {"callbacks": [Handler()]}
        )
        assert isinstance(message, ToolMessage)
        assert message.status == "error"
        assert message.tool_call_id == "call-1"
        assert "the test answers deny" in str(message.content)
        assert "whisper" in str(message.content)
        assert message.artifact["status"] == "denied"
        assert seen == [message]


def test_a_denied_content_and_artifact_tool_keeps_its_form() -> None:
    with capture(policy=StaticEngine("deny")) as captured:
        message = captured.governor.govern(both).invoke(as_call({"text": "a"}, "both"))
        assert message.status == "error"
    with capture(policy=StaticEngine("allow")) as captured:
        message = captured.governor.govern(both).invoke(as_call({"text": "a"}, "both"))
        assert (message.content, message.artifact) == ("a", {"kept": "a"})


def test_handle_tool_error_sees_a_denial_without_a_call_id() -> None:
    with capture(policy=StaticEngine("deny")) as captured:
        governed = captured.governor.govern(shout)
        governed.handle_tool_error = True
        assert "permission_denied" in governed.invoke({"text": "a"})


def test_arguments_that_langchain_refuses_leave_only_a_span() -> None:
    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        governed = captured.governor.govern(shout)
        with pytest.raises(ValueError, match="validation error"):
            governed.invoke({"words": "a"})
        assert engine.documents == []
        assert captured.span.attributes["error.type"] == "schema_validation_failed"
        captured.clear()
        governed.handle_validation_error = "try again"
        assert governed.invoke({"words": "a"}) == "try again"
        assert captured.span.attributes["agenttool.invocation.status"] == "schema_parse_failed"


def test_the_policy_sees_what_runs_the_record_what_was_said() -> None:
    @tool
    def act(text: str, times: int, call_id: Annotated[str, InjectedToolCallId]) -> str:
        """Act."""
        return f"{text} {times} {call_id}"

    engine = StaticEngine("allow")
    with capture(policy=engine, capture="SPAN_ONLY") as captured:
        governed = captured.governor.govern(act)
        assert governed.invoke(as_call({"text": "a", "times": "3"}, "act")).content == "a 3 call-1"
        assert engine.documents[0]["input"] == {"text": "a", "times": 3}


def test_the_tools_own_exception_stays_langchains_business() -> None:
    @tool
    def fails(text: str) -> str:
        """Fail."""
        raise ToolException("no luck")

    with capture(policy=StaticEngine("allow")) as captured:
        governed = captured.governor.govern(fails)
        with pytest.raises(ToolException, match="no luck"):
            governed.invoke({"text": "a"})
        governed.handle_tool_error = True
        message = governed.invoke(as_call({"text": "a"}, "fails"))
        assert (message.content, message.status) == ("no luck", "error")


def test_an_ask_is_answered_in_place_or_told_to_the_model() -> None:
    yes = FixedApprover(
        ApprovalAnswer(True, answered_by="user:bob", edited_input={"text": "edited", "times": 2})
    )
    with capture(policy=StaticEngine("ask"), approver=yes) as captured:
        content = captured.governor.govern(shout).invoke(as_call({"text": "a"})).content
        assert content.startswith(
            "EDITEDEDITED\n\nA person changed the arguments of this call: text is now"
        )
    with capture(policy=StaticEngine("ask")) as captured:
        message = captured.governor.govern(shout).invoke(as_call({"text": "a"}))
        assert message.status == "error"
        assert "waits for an approval" in str(message.content)
        assert captured.span.attributes["agenttool.permission.outcome"] == "pending"
        with pytest.raises(ApprovalRequired):
            captured.governor.govern(shout).invoke({"text": "a"})


def test_an_edit_that_breaks_the_schema_runs_nothing() -> None:
    wrong = FixedApprover(ApprovalAnswer(True, answered_by="user:bob", edited_input={"text": 7}))
    with capture(policy=StaticEngine("ask"), approver=wrong) as captured:
        message = captured.governor.govern(shout).invoke(as_call({"text": "a"}))
        assert message.status == "error"
        # the store refuses such an answer, so the question stays open
        assert captured.span.attributes["agenttool.permission.outcome"] == "pending"


def test_a_large_result_is_previewed_and_its_artifact_stays() -> None:
    @tool(response_format="content_and_artifact")
    def big(text: str) -> tuple[str, str]:
        """Give much."""
        return "word " * 10_000, "artifact"

    with capture(policy=StaticEngine("allow")) as captured:
        message = captured.governor.govern(big, max_inline_chars=500).invoke(
            as_call({"text": "a"}, "big")
        )
        assert len(message.content) < 3000
        assert message.artifact == "artifact"
        assert captured.span.attributes["agenttool.result.persistence"] == "preview_and_persist"


def test_a_governed_object_leaves_the_given_one_alone() -> None:
    with capture(policy=StaticEngine("deny")) as captured:
        captured.governor.govern(shout)
        assert shout.invoke({"text": "a"}) == "A"


@pytest.mark.parametrize("name", ["text", "input"])
def test_an_approved_call_of_a_dead_process_keeps_its_approval(name: str) -> None:
    def act(**given: str) -> str:
        raise AssertionError("ran")

    schema = {"type": "object", "properties": {name: {"type": "string"}}}
    made = StructuredTool(name="act", description="Act.", args_schema=schema, func=act)
    with capture(policy=StaticEngine("ask")) as captured:
        governor = captured.governor
        governed = governor.govern(made)
        with pytest.raises(ApprovalRequired) as asked:
            governed.invoke({name: "a"})
        store, request_id = governor.approvals.store, asked.value.request_id
        store.answer(request_id, ApprovalAnswer(True, answered_by="user:bob"))
        governor.pipeline.paused.take(asked.value.invocation_id)
        result = governor.resume(asked.value.invocation_id)
        assert result.is_error
        assert "process that asked" in result.error.message
        assert store.get(request_id).status is ApprovalStatus.APPROVED
        assert type(governed).agenttool.check({name: "a"}).behavior == "ask"


@pytest.mark.parametrize("is_async", [False, True])
def test_with_retry_on_an_ask_stores_one_request(is_async: bool) -> None:
    ran: list[str] = []

    @tool
    def act(text: str) -> str:
        """Act."""
        ran.append(text)
        return text

    with capture(policy=StaticEngine("ask")) as captured:
        store = captured.governor.approvals.store
        stubborn = captured.governor.govern(act).with_retry(
            stop_after_attempt=3, wait_exponential_jitter=False
        )

        def ask(text: str) -> str:
            with pytest.raises(ApprovalRequired) as caught:
                asyncio.run(stubborn.ainvoke({"text": text})) if is_async else stubborn.invoke(
                    {"text": text}
                )
            return caught.value.invocation_id

        first = ask("a")
        assert [request.invocation_id for request in store.list(ApprovalStatus.PENDING)] == [first]
        other, again = ask("b"), ask("a")
        assert len({first, other, again}) == len(store.list(ApprovalStatus.PENDING)) == 3
        store.answer(
            store.by_invocation(first).request_id,
            ApprovalAnswer(approved=True, answered_by="user:ada"),
        )
        result = (
            asyncio.run(captured.governor.aresume(first))
            if is_async
            else captured.governor.resume(first)
        )
        assert (result.status, ran) == ("succeeded", ["a"])


def test_a_retry_runs_what_was_approved_meanwhile() -> None:
    ran: list[str] = []

    @tool
    def act(text: str) -> str:
        """Act."""
        ran.append(text)
        return text

    with capture(policy=StaticEngine("ask")) as captured:
        store = captured.governor.approvals.store
        governed = captured.governor.govern(act)

        def answered(_: Any) -> Any:
            for request in store.list(ApprovalStatus.PENDING):
                store.answer(
                    request.request_id, ApprovalAnswer(approved=True, answered_by="user:ada")
                )
            return {"text": "a"}

        stubborn = RunnableRetry(
            bound=governed, max_attempt_number=3, wait_exponential_jitter=False
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(RunnableRetry, "_patch_config", _then(answered))
            assert stubborn.invoke({"text": "a"}) == "a"
        assert ran == ["a"]


def _then(act: Callable[[Any], Any]) -> Any:
    """LangChain's own step before each attempt, with something done before it."""
    original = RunnableRetry._patch_config
    return staticmethod(lambda *args: (act(None), original(*args))[1])
