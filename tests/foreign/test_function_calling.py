"""The tool calls of OpenAI's and Anthropic's responses: read, run as one batch, answered in order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from agenttool_otel import ApprovalAnswer, ConfigurationError
from agenttool_otel.integrations.function_calling import aanswer_calls, answer_calls, read_calls
from agenttool_otel.testing import Capture, StaticEngine, capture, decision


def chat(*calls: tuple[str, str, str]) -> dict[str, Any]:
    items = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in calls
    ]
    return {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": items}}]}


def responses(*calls: tuple[str, str, str]) -> dict[str, Any]:
    items: list[dict[str, Any]] = [{"type": "reasoning", "id": "rs_1"}]
    for call_id, name, arguments in calls:
        items.append(
            {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}
        )
    return {"output": items}


def anthropic(*calls: tuple[str, str, Any]) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": "I look."},
        {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}},
    ]
    for call_id, name, arguments in calls:
        blocks.append({"type": "tool_use", "id": call_id, "name": name, "input": arguments})
    return {"role": "assistant", "content": blocks}


def objects(value: Any) -> Any:
    """What an SDK gives: objects with attributes."""
    if isinstance(value, dict):
        return SimpleNamespace(**{name: objects(member) for name, member in value.items()})
    return [objects(item) for item in value] if isinstance(value, list) else value


KEPT: list[Any] = []
"""The governed functions of a test: a Governor knows a tool only while its program holds it."""


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    KEPT.clear()


def add(captured: Capture, function: Any, name: str) -> None:
    KEPT.append(
        captured.governor.govern(function, name=name, read_only=True, concurrency_safe=True)
    )


def with_tool(captured: Capture) -> list[str]:
    ran: list[str] = []

    def look_up(word: str) -> str:
        ran.append(word)
        return f"found {word}"

    add(captured, look_up, "look_up")
    return ran


TREE = ("call_1", "look_up", '{"word": "tree"}')
BUSH = ("call_2", "look_up", '{"word": "bush"}')


def test_a_chat_completion_gets_tool_messages() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        with_tool(captured)
        assert answer_calls(captured.governor, chat(TREE, BUSH)).messages == [
            {"role": "tool", "tool_call_id": "call_1", "content": "found tree"},
            {"role": "tool", "tool_call_id": "call_2", "content": "found bush"},
        ]


def test_a_response_gets_output_items() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        with_tool(captured)
        assert answer_calls(captured.governor, responses(TREE)).messages == [
            {"type": "function_call_output", "call_id": "call_1", "output": "found tree"}
        ]


def test_a_message_of_anthropic_gets_one_user_message() -> None:
    calls = (("toolu_1", "look_up", {"word": "tree"}), ("toolu_2", "no_tool", {}))
    with capture(policy=StaticEngine("allow")) as captured:
        with_tool(captured)
        (message,) = answer_calls(captured.governor, anthropic(*calls)).messages
    assert message["role"] == "user"
    found, unknown = message["content"]
    assert found == {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": "found tree",
        "is_error": False,
    }
    assert unknown["is_error"]
    assert "unknown_tool" in unknown["content"]


@pytest.mark.parametrize(
    "response",
    [chat(TREE), responses(TREE), anthropic(("call_1", "look_up", {"word": "tree"}))],
    ids=["chat", "responses", "anthropic"],
)
def test_objects_of_an_sdk_are_read_as_dictionaries(response: dict[str, Any]) -> None:
    (plain,) = read_calls(response)
    (read,) = read_calls(objects(response))
    assert (read.call_id, read.name, read.form) == (plain.call_id, plain.name, plain.form)


def test_the_messages_and_items_themselves_are_read() -> None:
    assert read_calls(chat(TREE)["choices"][0]["message"]) == read_calls(chat(TREE))
    assert read_calls(responses(TREE)["output"]) == read_calls(responses(TREE))


def test_an_answer_without_calls_has_none() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        final = {"role": "assistant", "content": "That is all."}
        assert answer_calls(captured.governor, final).messages == []


def test_what_is_no_response_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="is no response"):
        read_calls(object())


@pytest.mark.parametrize("arguments", ['{"word": ', "[1]", "null", '{"word": Infinity}'])
def test_bad_json_leaves_a_span_and_a_typed_result(arguments: str) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        ran = with_tool(captured)
        answered = answer_calls(captured.governor, chat(("call_1", "look_up", arguments)))
        attributes = captured.span.attributes
    (result,) = answered.results
    assert result.error is not None
    assert attributes["gen_ai.tool.call.id"] == "call_1"
    assert attributes["error.type"] == result.error.error_class == "schema_validation_failed"
    assert "no JSON" in answered.messages[0]["content"]
    assert ran == []


def test_bad_json_keeps_its_place_among_the_calls() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        ran = with_tool(captured)
        bad = ("call_0", "look_up", "{")
        answered = answer_calls(captured.governor, chat(bad, TREE, BUSH))
    assert [message["tool_call_id"] for message in answered.messages] == [
        "call_0",
        "call_1",
        "call_2",
    ]
    assert sorted(ran) == ["bush", "tree"]


def test_bad_json_for_an_unknown_tool_is_refused() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        (result,) = answer_calls(captured.governor, chat(("call_1", "no_tool", "{"))).results
        assert captured.span.name == "execute_tool no_tool"
    assert result.is_error


def test_free_text_of_a_custom_tool_is_answered_in_its_form() -> None:
    item = {"type": "custom_tool_call", "call_id": "call_1", "name": "look_up", "input": "tree"}
    with capture(policy=StaticEngine("allow")) as captured:
        ran = with_tool(captured)
        (message,) = answer_calls(captured.governor, {"output": [item]}).messages
    assert message["type"] == "custom_tool_call_output"
    assert ran == []


def test_no_arguments_are_an_empty_object() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        add(captured, lambda: "noon", "now")
        answered = answer_calls(captured.governor, chat(("call_1", "now", "")))
    assert answered.messages[0]["content"] == "noon"


def test_calls_of_one_response_run_together() -> None:
    both = threading.Barrier(2, timeout=60)

    def meet(word: str) -> str:
        both.wait()
        return word

    with capture(policy=StaticEngine("allow")) as captured:
        add(captured, meet, "look_up")
        answered = answer_calls(captured.governor, chat(TREE, BUSH))
    assert [result.value for result in answered.results] == ["tree", "bush"]


def test_a_denied_call_is_answered_with_the_reason() -> None:
    with capture(policy=StaticEngine("deny")) as captured:
        ran = with_tool(captured)
        (message,) = answer_calls(captured.governor, chat(TREE)).messages
    assert "the test answers deny" in message["content"]
    assert ran == []


def test_a_call_that_waits_goes_on_after_its_answer() -> None:
    policy = StaticEngine("ask")
    with capture(policy=policy) as captured:
        ran = with_tool(captured)
        answered = answer_calls(captured.governor, chat(TREE, BUSH))
        assert len(answered.waiting) == 2
        store = captured.governor.approvals.store
        first = store.stored_call(answered.waiting[0].invocation_id).request
        store.answer(first.request_id, ApprovalAnswer(approved=True, answered_by="user:a"))
        resumed = answered.resume(captured.governor)
        assert len(resumed.waiting) == 1
        assert resumed.messages[0] == {
            "role": "tool",
            "tool_call_id": "call_1",
            "content": "found tree",
        }
    assert ran == ["tree"]


def test_an_obliged_redaction_is_in_the_answer() -> None:
    policy = StaticEngine(decision("allow", obligations={"redact_result": ["*"]}))
    with capture(policy=policy) as captured:
        with_tool(captured)
        (message,) = answer_calls(captured.governor, chat(TREE)).messages
    assert "tree" not in message["content"]


def test_structured_results_are_json_text() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        add(captured, lambda: {"pages": 3}, "count")
        answered = answer_calls(captured.governor, chat(("call_1", "count", "{}")))
    assert answered.messages[0]["content"] == '{"pages":3}'


async def test_asynchronous_tools_run_in_the_loop() -> None:
    async def look_up(word: str) -> str:
        await asyncio.sleep(0)
        return f"found {word}"

    with capture(policy=StaticEngine("allow")) as captured:
        add(captured, look_up, "look_up")
        answered = await aanswer_calls(captured.governor, chat(TREE, BUSH))
    assert [result.value for result in answered.results] == ["found tree", "found bush"]
