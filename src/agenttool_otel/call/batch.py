"""Several calls at once: each through its own pipeline, under one scheduler policy, results in the
order of the input.

Calls are taken up in input order, at most ``max_parallel`` at a time. A call is decided when it is
its turn, because an earlier one may have changed what the decision is about. Every call has a result,
also where it never ran.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from agenttool_otel.call.drivers import Steps, arun, run
from agenttool_otel.call.envelope import to_result
from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.running.handle import CancelState, current_call
from agenttool_otel.call.runtime import Runtime
from agenttool_otel.call.scheduler_facts import exclusive, settle_modifier
from agenttool_otel.call.scheduling.gate import Place, Turn
from agenttool_otel.call.tool import GovernedTool, unknown_tool
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.names import (
    AbortReason,
    InterruptBehavior,
    InvocationStatus,
    OrderingPolicy,
    SiblingFailurePolicy,
    YieldPolicy,
)
from agenttool_otel.records import ExternalMapping, SchedulerPolicy, ToolResult
from agenttool_otel.results.errors.control_flow import cancellation
from agenttool_otel.values.forks import cached_property, new_lock


@dataclass(frozen=True, slots=True)
class BatchCall:
    """One call of a batch.

    Attributes:
        tool: name, id or alias of a tool of the Governor; a governed function or its ``.tool``.
        arguments: JSON arguments.
        native_call_id: the model's or framework's id of the call.
        mappings: further native ids of the call.
        depends_on: places in the batch of earlier calls that have to end before this one begins.
    """

    tool: Any
    arguments: Mapping[str, Any]
    native_call_id: str | None = None
    depends_on: Sequence[int] = ()
    mappings: Sequence[ExternalMapping] = ()


class Batch:
    """One batch on its way."""

    def __init__(
        self,
        runtime: Runtime,
        calls: Iterable[BatchCall],
        policy: SchedulerPolicy | None,
        executor: Executor | None,
    ) -> None:
        self.policy = policy or SchedulerPolicy()
        if self.policy.max_parallel < 1:
            raise ConfigurationError("max_parallel has to be at least 1")
        self._runtime = runtime
        self._items = list(calls)
        self._tools = [self._tool(index, item) for index, item in enumerate(self._items)]
        around = current_call()
        # a body that waits for calls on its own executor may hold the last place there
        self._executor = (
            None
            if executor is not None and around is not None and around.runs_on(executor)
            else executor
        )
        if runtime.telemetry.events.sinks:
            shown = self.policy.model_dump(mode="json", exclude_none=True)
            runtime.telemetry.events.put(lambda: [("tool_scheduler_policy", shown)])
        self._turn = Turn(serial=self.policy.ordering_policy is OrderingPolicy.SERIAL)
        self._mutex = new_lock()
        self._taken = 0
        self._handed = 0
        self._calls: dict[int, Invocation] = {}
        self._results: dict[int, ToolResult] = {}
        self._failed: set[int] = set()
        self._stop: tuple[str, str] | None = None

    def _tool(self, index: int, item: BatchCall) -> GovernedTool:
        if any(not 0 <= earlier < index for earlier in item.depends_on):
            raise ConfigurationError(f"call {index} can only depend on calls before it")
        tool: Any = getattr(item.tool, "tool", item.tool)
        if isinstance(tool, str):
            tool = self._runtime.find(tool) or unknown_tool(tool, self._runtime)
        if not isinstance(tool, GovernedTool) or tool.governor is not self._runtime:
            raise ConfigurationError(f"call {index} is of no tool of this Governor")
        return tool

    # --- running ----------------------------------------------------------------------------------

    def stream(self) -> Generator[tuple[int, ToolResult], None, None]:
        """Run the calls in threads and give their results, with their places in the batch."""
        for tool in self._tools:
            if tool.is_async:
                raise TypeError(f"{tool.spec.name} is asynchronous: use abatch")
        done: SimpleQueue[int | BaseException] = SimpleQueue()
        workers = [
            threading.Thread(
                target=contextvars.copy_context().run, args=(self._work, done.put), daemon=True
            )
            for _ in range(self._width)
        ]
        for worker in workers:
            worker.start()
        try:
            for _ in self._items:
                yield from self._ready(done.get())
            self._complete()
        except BaseException as signal:
            self._interrupt(signal)
            raise
        finally:
            for worker in workers:
                worker.join()

    async def astream(self) -> AsyncGenerator[tuple[int, ToolResult], None]:
        """The same in tasks of this event loop; plain functions run in threads."""
        done: asyncio.Queue[int | BaseException] = asyncio.Queue()
        workers = [asyncio.create_task(self._awork(done.put_nowait)) for _ in range(self._width)]
        try:
            for _ in self._items:
                for ready in self._ready(await done.get()):
                    yield ready
            self._complete()
        except BaseException as signal:
            self._interrupt(signal)
            raise
        finally:
            await _ended(workers)
            if "_threads" in self.__dict__:
                self._threads.shutdown(wait=False)

    @property
    def _width(self) -> int:
        return min(self.policy.max_parallel, len(self._items))

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._width, "agenttool-batch")

    def _work(self, done: Callable[[int | BaseException], None]) -> None:
        try:
            while (place := self._take()) is not None:
                # what one body leaves in its context is not the next one's
                context = contextvars.copy_context()
                context.run(lambda at: run(*self._plan(at)), place)
                done(place.index)
        except BaseException as bug:
            done(bug)

    async def _awork(self, done: Callable[[int | BaseException], None]) -> None:
        try:
            while (place := self._take()) is not None:
                await asyncio.create_task(self._acall(place))
                done(place.index)
        except BaseException as bug:
            done(bug)
            raise

    async def _acall(self, place: Place) -> None:
        call, steps = self._plan(place)
        if call.executor is None and not self._tools[place.index].is_async:
            call.executor = self._threads
        await arun(call, steps)

    def _take(self) -> Place | None:
        """Take up the next call of the input."""
        with self._mutex:
            index = self._taken
            if index == len(self._items):
                return None
            self._taken += 1
            locks = frozenset(_locks(self.policy, self._tools[index].spec.name))
            after = tuple(self._items[index].depends_on)
            place = Place(self._turn, index, after, self, locks, self.policy.scheduler_policy_id)
            self._runtime.pipeline.gate.arrive(place)
            return place

    def _plan(self, place: Place) -> tuple[Invocation, Steps]:
        item, tool = self._items[place.index], self._tools[place.index]
        call = tool.plan(item.arguments)
        call.by_name = isinstance(item.tool, str)
        call.native_call_id = item.native_call_id or call.native_call_id
        call.mappings += item.mappings
        call.place = place
        target = tool.json_target()
        if not target.collects or isinstance(self._executor, ThreadPoolExecutor):
            call.executor = self._executor  # what gathers a stream's items can't travel
        self._calls[place.index] = call
        if self.policy.yield_policy is YieldPolicy.ALL_ORDERED:
            call.held_progress = []
        return call, self._runtime.pipeline.run(call, target)

    # --- what one call's end is to the others -----------------------------------------------------

    def stopped(self, place: Place, invocation_id: str) -> CancelState | None:
        """Return why a call is not to run any more; ``None`` where it may."""
        if self._stop is not None:
            return CancelState(invocation_id, self._stop[1], self._stop[0])
        dependent = self.policy.sibling_failure_policy is SiblingFailurePolicy.CANCEL_DEPENDENT
        if dependent and not self._failed.isdisjoint(place.after):
            return CancelState(
                invocation_id, "a call that it depends on failed", AbortReason.SIBLING_ERROR.value
            )
        return None

    def ended(self, place: Place) -> None:
        """Take a call's end into account, before another call goes on because of it."""
        call = self._calls[place.index]
        if call.modifier is not None:
            alone = self._turn.serial or exclusive(call)
            settle_modifier(call, self.policy.context_modifier_policy, alone=alone, complete=False)
        if call.outcome.status is InvocationStatus.SUCCEEDED:
            return
        self._failed.add(place.index)
        cancels = self.policy.sibling_failure_policy is SiblingFailurePolicy.CANCEL_SIBLINGS
        if (
            cancels
            and call.outcome.error is not None
            and call.outcome.status is not InvocationStatus.CANCELED
        ):
            self._stop_all(
                AbortReason.SIBLING_ERROR, "another call of the batch failed", lambda _: True
            )

    def _interrupt(self, signal: BaseException) -> None:
        """Begin no further call, and stop those that may be stopped; the others are waited for."""
        reason = cancellation(signal) or AbortReason.RUNTIME_SHUTDOWN
        self._stop_all(reason, "the batch was interrupted", self._may_be_stopped)

    def _may_be_stopped(self, call: Invocation) -> bool:
        interface = call.spec.interface
        stated = "interrupt_behavior" in interface.model_fields_set
        word = interface.interrupt_behavior if stated else self.policy.interrupt_behavior
        return word is InterruptBehavior.CANCEL

    def _stop_all(
        self, reason: AbortReason, message: str, stops: Callable[[Invocation], bool]
    ) -> None:
        with self._mutex:
            self._stop = self._stop or (reason.value, message)
            calls = list(self._calls.values())
        for call in calls:
            handle = call.handle
            if handle is not None and stops(call):
                handle.request(CancelState(call.id, message, reason.value))

    # --- results ----------------------------------------------------------------------------------

    def _ready(self, ended: int | BaseException) -> Iterator[tuple[int, ToolResult]]:
        """Take a call's end, and hand on the results whose turn it is."""
        if isinstance(ended, BaseException):
            raise ended
        call = self._calls[ended]
        self._results[ended] = to_result(call)
        if YieldPolicy.UNORDERED_STREAMING is self.policy.yield_policy or (
            self.policy.ordering_policy is OrderingPolicy.ALLOW_UNORDERED
        ):
            yield self._hand_on(ended)
            return
        while self._handed in self._results:
            self._handed += 1
            yield self._hand_on(self._handed - 1)

    def _hand_on(self, index: int) -> tuple[int, ToolResult]:
        call = self._calls[index]
        later, call.held_progress = call.held_progress, None
        for report in later or ():
            report()
        self._runtime.pipeline.yielded(call)
        return index, self._results[index]

    def _complete(self) -> None:
        """Apply what was deferred until the batch is complete, in input order."""
        for index, call in sorted(self._calls.items()):
            settle_modifier(call, self.policy.context_modifier_policy, alone=True)
            self._results[index].context_modifier = call.outcome.modified


def _locks(policy: SchedulerPolicy, tool: str) -> Iterator[str]:
    """Return the locks that a policy has a tool's calls hold: for all tools, or for those
    it names.
    """
    for lock in policy.resource_locks:
        name, tools = lock.get("name"), lock.get("tools")
        if isinstance(name, str) and (not isinstance(tools, list) or tool in tools):
            yield name


async def _ended(workers: Sequence[Awaitable[None]]) -> None:
    """Wait for the workers to end; who cancels a second time cancels them."""
    tasks = [asyncio.ensure_future(worker) for worker in workers]
    while not all(task.done() for task in tasks):
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
    for task in tasks:
        if not task.cancelled():
            task.exception()
