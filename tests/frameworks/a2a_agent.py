"""A remote agent for tests: a server of A2A's own SDK, in this process and without a socket."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from functools import cache

import httpx
from a2a.client import Client, ClientConfig, ClientFactory
from a2a.helpers import new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette

# tasks of the SDK wait on in a server that is not used any more, and complain when it is collected
_SERVERS: list[httpx.ASGITransport] = []
URL = "https://words.example"
Work = Callable[[RequestContext, TaskUpdater], Awaitable[None]]


def card_of(name: str = "Word agent", *, streaming: bool = False, url: str = URL) -> AgentCard:
    skill = AgentSkill(id="look_up", name="Look up", description="Looks a word up.", tags=["words"])
    return AgentCard(
        name=name,
        description="Knows words.",
        version="1",
        supported_interfaces=[
            AgentInterface(protocol_binding="JSONRPC", protocol_version="1.0", url=url)
        ],
        capabilities=AgentCapabilities(streaming=streaming),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[skill],
    )


class Worker(AgentExecutor):
    """An agent that keeps a task of each message, and works on it by a function."""

    def __init__(self, work: Work) -> None:
        self._work = work

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        if context.current_task is None:
            assert context.message is not None
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
        await self._work(context, _updater(context, event_queue))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await _updater(context, event_queue).cancel()


class Answerer(AgentExecutor):
    """An agent that answers with a message, and keeps no tasks."""

    def __init__(self, answer: Callable[[RequestContext], Awaitable[str]]) -> None:
        self._answer = answer

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        await event_queue.enqueue_event(new_text_message(await self._answer(context)))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError


def _updater(context: RequestContext, event_queue: EventQueue) -> TaskUpdater:
    return TaskUpdater(event_queue, context.task_id or "", context.context_id or "")


def app_of(card: AgentCard, executor: AgentExecutor) -> Starlette:
    handler = DefaultRequestHandler(
        agent_executor=executor, task_store=InMemoryTaskStore(), agent_card=card
    )
    return Starlette(routes=create_jsonrpc_routes(handler, rpc_url="/"))


@cache
def _elsewhere() -> asyncio.AbstractEventLoop:
    """An event loop in a thread of its own, which does not end with those of the tests."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop


class Agents(httpx.AsyncBaseTransport):
    """Hands requests to an agent's server, as a network would; keeps what was sent."""

    def __init__(self, card: AgentCard, executor: AgentExecutor) -> None:
        self._server = httpx.ASGITransport(app_of(card, executor))
        _SERVERS.append(self._server)
        self.sent: list[httpx.Request] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.sent.append(request)
        answering = self._server.handle_async_request(request)
        # a request that is canceled here goes on there
        answer = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(answering, _elsewhere()))
        return await asyncio.shield(answer)


def client_of(card: AgentCard, transport: httpx.AsyncBaseTransport) -> Client:
    http = httpx.AsyncClient(transport=transport, timeout=60)
    return ClientFactory(ClientConfig(httpx_client=http)).create(card)


async def finish(updater: TaskUpdater, text: str) -> None:
    await updater.add_artifact([new_text_part(text)])
    await updater.complete()
