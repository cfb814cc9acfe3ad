"""Remote agents as governed tools, against a server of A2A's own SDK."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from a2a.client import ClientCallInterceptor, ClientConfig, ClientFactory
from a2a.helpers import new_data_part, new_text_part, new_url_part
from a2a.server.agent_execution import RequestContext
from a2a.server.tasks import TaskUpdater
from a2a.types import TaskState
from a2a_agent import URL, Agents, Work, Worker, app_of, card_of, client_of, finish
from a2a_driver import A2aDriver

from agenttool_otel import ConfigurationError
from agenttool_otel.integrations.a2a import a2a_tool
from agenttool_otel.names import Attr, GenAI
from agenttool_otel.testing import Capture, StaticEngine, capture
from agenttool_otel.testing.doors import DOOR_CHECKS


class Remote:
    """A remote agent, and the tool that calls it."""

    def __init__(self, captured: Capture, work: Work, **options: Any) -> None:
        card = card_of(streaming=options.pop("streaming", False))
        self.agents = Agents(card, Worker(work))
        client = client_of(card, self.agents)
        self.tool = a2a_tool(card, client, governor=captured.governor, poll_seconds=0, **options)

    def ask(self, **arguments: Any) -> Any:
        return asyncio.run(self.tool.ainvoke({"message": "tree?", **arguments}))


async def look_up(context: RequestContext, updater: TaskUpdater) -> None:
    await finish(updater, f"found {context.get_user_input()}")


@pytest.mark.parametrize("check", DOOR_CHECKS, ids=lambda check: check.__name__)
def test_the_door_passes(check: Any) -> None:
    check(A2aDriver())


@pytest.mark.parametrize("streaming", [False, True])
def test_a_task_that_is_completed_gives_its_artifacts(streaming: bool) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        result = Remote(captured, look_up, streaming=streaming).ask()
    assert result.value["text"] == "found tree?"
    assert result.value["state"] == "completed"


@pytest.mark.parametrize("behavior", ["deny", "ask"])
def test_nothing_is_sent_before_the_decision(behavior: str) -> None:
    with capture(policy=StaticEngine(behavior)) as captured:
        remote = Remote(captured, look_up)
        assert remote.ask().status != "succeeded"
    assert remote.agents.sent == []


def test_an_agent_that_asks_for_more_gets_another_message() -> None:
    async def work(context: RequestContext, updater: TaskUpdater) -> None:
        if context.get_user_input() == "tree?":
            await updater.requires_input(updater.new_agent_message([new_text_part("which?")]))
        else:
            await finish(updater, f"found {context.get_user_input()}")

    async def talk(tool: Any) -> tuple[Any, Any]:
        first = await tool.ainvoke({"message": "tree?"})
        more = {"message": "an oak", "task_id": first.value["task_id"]}
        return first.value, (await tool.ainvoke(more)).value

    with capture(policy=StaticEngine("allow")) as captured:
        first, second = asyncio.run(talk(Remote(captured, work).tool))
    assert (first["state"], first["text"]) == ("input_required", "which?")
    assert second["state"] == "completed"
    assert "found an oak" in second["text"]


@pytest.mark.parametrize("state", ["FAILED", "REJECTED"])
def test_a_task_without_a_result_fails_the_call(state: str) -> None:
    async def work(context: RequestContext, updater: TaskUpdater) -> None:
        message = updater.new_agent_message([new_text_part("no such word")])
        await updater.update_status(TaskState.Value(f"TASK_STATE_{state}"), message)

    with capture(policy=StaticEngine("allow")) as captured:
        result = Remote(captured, work).ask()
        attributes: Any = captured.span.attributes
        assert attributes[GenAI.ERROR_TYPE]
    assert result.status == "failed"
    assert "no such word" in result.summary


def test_credentials_are_not_the_models_to_give() -> None:
    async def work(context: RequestContext, updater: TaskUpdater) -> None:
        await updater.requires_auth(updater.new_agent_message([new_text_part("log in")]))

    with capture(policy=StaticEngine("allow")) as captured:
        result = Remote(captured, work).ask()
    assert result.status == "failed"
    assert result.error.recoverability == "setup_needed"


def test_data_and_files_of_an_answer_are_named() -> None:
    async def work(context: RequestContext, updater: TaskUpdater) -> None:
        file = new_url_part("https://files.example/a.png", media_type="image/png", filename="a.png")
        await updater.add_artifact([new_data_part({"words": 3}), file])
        await updater.complete()

    with capture(policy=StaticEngine("allow")) as captured:
        value = Remote(captured, work).ask().value
    assert value["data"] == [{"words": 3}]
    assert value["files"] == [
        {"name": "a.png", "media_type": "image/png", "url": "https://files.example/a.png"}
    ]


def test_a_tool_is_described_by_the_agents_card() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        spec = Remote(captured, look_up).tool.spec
    assert spec.name == "Word_agent"
    assert spec.declaration.namespace == "a2a"
    assert "Look up: Looks a word up." in spec.declaration.description
    mapping: Any = spec.declaration.external_mappings[-1]
    assert (mapping.agent_card_url, mapping.agent_skill_id) == (URL, "look_up")


def test_a_remote_agent_is_not_read_only_by_itself() -> None:
    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        Remote(captured, look_up).ask()
        Remote(captured, look_up, facts={"read_only": True}, name="reader").ask()
    assert [document["tool"]["read_only"] for document in engine.documents] == [False, True]


def test_the_task_is_in_the_records() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        result = Remote(captured, look_up).ask()
    tasks = [mapping.task_id for mapping in result.external_mappings if mapping.source == "a2a"]
    assert result.value["task_id"] in tasks


def test_a_repeated_message_has_the_same_id() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        remote = Remote(captured, look_up)
        remote.ask()
        attributes: Any = captured.span.attributes
    (sent,) = remote.agents.sent
    assert (
        json.loads(sent.content)["params"]["message"]["messageId"] == attributes[Attr.INVOCATION_ID]
    )


def test_the_agent_gets_the_trace_and_no_baggage() -> None:
    from opentelemetry import baggage, context

    with capture(policy=StaticEngine("allow")) as captured:
        remote = Remote(captured, look_up)
        token = context.attach(baggage.set_baggage("tenant", "acme"))
        try:
            remote.ask()
        finally:
            context.detach(token)
        trace_id = f"{captured.span.context.trace_id:032x}"
    (sent,) = remote.agents.sent
    assert trace_id in sent.headers["traceparent"]
    assert "baggage" not in sent.headers


def test_a_card_without_a_name_is_refused() -> None:
    card = card_of("")
    client = client_of(card, Agents(card, Worker(look_up)))
    with (
        capture(policy=StaticEngine("allow")) as captured,
        pytest.raises(ConfigurationError, match="no name"),
    ):
        a2a_tool(card, client, governor=captured.governor)


# --- over a socket ------------------------------------------------------------------------------------


@contextmanager
def served(work: Work) -> Iterator[Any]:
    """Serve an agent over loopback by uvicorn, and yield its card."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        card = card_of(streaming=True, url=f"http://127.0.0.1:{listening.getsockname()[1]}")
        config = uvicorn.Config(app_of(card, Worker(work)), log_level="error")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield card
        finally:
            server.should_exit = True
            thread.join()


class Named(ClientCallInterceptor):
    """Sees that the agent has named the task."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    async def before(self, args: Any) -> None:
        """Let the request go."""

    async def after(self, args: Any) -> None:
        self.event.set()


def test_a_canceled_call_cancels_the_agents_task() -> None:
    ended = threading.Event()

    async def work(context: RequestContext, updater: TaskUpdater) -> None:
        await updater.start_work()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.set()
            raise

    async def use(captured: Capture, card: Any) -> Any:
        async with httpx.AsyncClient(timeout=60) as http:
            named = Named()
            client = ClientFactory(ClientConfig(httpx_client=http)).create(card, [named])
            tool = a2a_tool(card, client, governor=captured.governor)
            call = asyncio.ensure_future(tool.ainvoke({"message": "tree?"}))
            await named.event.wait()
            call.cancel()
            await asyncio.wait([call])

    with served(work) as card, capture(policy=StaticEngine("allow")) as captured:
        asyncio.run(use(captured, card))
        attributes: Any = captured.span.attributes
        assert attributes[Attr.INVOCATION_STATUS] == "canceled"
        assert ended.wait(10)


def test_the_pages_example_runs() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "doors.md").read_text("utf-8")
    section = page.split("## A2A")[1].split("\n## ")[0]
    (block,) = re.findall(r"```py\n(.*?)```", section, re.DOTALL)

    async def work(context: RequestContext, updater: TaskUpdater) -> None:
        await finish(updater, f"{context.get_user_input()}: a plant")

    with served(work) as card:
        exec(block, {"card": card})
