"""One execution of a LangGraph task, as its calls share it: which bodies run, what has ended, and
its pause.

LangGraph drops what still runs in a task when the task pauses, and runs the task again from its top
when it goes on. So a call that asks waits until no other body of its task runs, nor one of the
tasks around it, and no further body begins.
"""

from __future__ import annotations

import asyncio
import contextvars
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from langgraph.errors import GraphInterrupt
from langgraph.types import Interrupt

from agenttool_otel.values.forks import new_condition, new_rlock

if TYPE_CHECKING:
    from agenttool_otel.integrations.langgraph.checkpoints import Pause

_OWN: Final = "agenttool_executions"
_POLL_SECONDS: Final = 0.005

_changed = new_condition(new_rlock())
_outer_calls: contextvars.ContextVar[tuple[object, ...]] = contextvars.ContextVar(
    "agenttool_graph_calls", default=()
)
"""The calls whose bodies this code runs in, the outermost first."""


class Execution:
    """One execution of a task."""

    __slots__ = (
        "__weakref__",
        "_count",
        "_counter",
        "_running",
        "_waiting",
        "answer_taken",
        "finished",
        "namespace",
        "pause",
        "raised",
        "top_checkpoint",
    )

    def __init__(self, counter: Any, namespace: str, top_checkpoint: str | None) -> None:
        self.namespace = namespace
        # of the whole run: executions of one run have the same
        self.top_checkpoint = top_checkpoint
        self.pause: Pause | None = None  # that the run goes on from, once it was read
        self.answer_taken = False
        self.raised: tuple[Interrupt, ...] | None = None  # the question that it pauses for
        # what each ended call gives back, by invocation id
        self.finished: dict[str, Callable[[], Any]] = {}
        self._counter = counter
        self._count: Counter[str] = Counter()
        self._running: set[object] = set()
        self._waiting: Counter[object] = Counter()

    @classmethod
    def of(cls, pad: Any, namespace: str, top_checkpoint: str | None) -> Execution:
        """Return the execution that LangGraph's scratchpad belongs to.

        It is kept at the scratchpad's function, so that it goes when LangGraph forgets the task. A
        retry of a node has the same function and a counter of its own: it is another execution.
        """
        with _changed:
            here: list[Execution] = pad.get_null_resume.__dict__.setdefault(_OWN, [])
            for execution in here:
                if execution._counter is pad.interrupt_counter:
                    return execution
            execution = cls(pad.interrupt_counter, namespace, top_checkpoint)
            here.append(execution)
            _executions.add(execution)
            return execution

    def occurrence(self, key: str) -> int:
        """Count a call, and return how many like it this execution has made before."""
        with _changed:
            self._count[key] += 1
            return self._count[key] - 1

    def with_those_around(self) -> list[Execution]:
        """Return this execution and those of the tasks that it runs in."""
        inner = f"{self.namespace}|"
        with _changed:
            around = []
            for other in _executions:
                if other.top_checkpoint != self.top_checkpoint:
                    continue
                # tools:9f2c|agent:51d0 lies in tools:9f2c
                if inner.startswith(f"{other.namespace}|"):
                    around.append(other)
            return around

    # --- calls that run ---------------------------------------------------------------------------

    def begin(self, call: object) -> None:
        """Note that a call takes its approval or runs, until ``leave``; nothing begins once the
        task pauses.
        """
        with _changed:
            if call in self._running:
                return
            self.refuse_if_paused()
            self._running.add(call)

    def refuse_if_paused(self) -> None:
        """Pause a call that comes after the pause; it runs at the resume."""
        if self.raised is not None:
            raise GraphInterrupt(self.raised)

    def leave(self, call: object) -> None:
        """Note that a call has ended, and that its result is kept where it has to be."""
        with _changed:
            self._running.discard(call)
            del self._waiting[call]
            _changed.notify_all()

    @property
    def _all_wait(self) -> bool:
        return all(self._waiting[call] > 0 for call in self._running)

    # --- the pause --------------------------------------------------------------------------------

    def stop(self, call: object, ask: Callable[[], tuple[Interrupt, ...]]) -> tuple[Interrupt, ...]:
        """Pause for the question of a call, once no other call of this task, or of one around it,
        runs.

        Args:
            call: the call that pauses.
            ask: makes the interrupt; one execution pauses for one question, and those around it
              with it.

        Returns:
            What the execution pauses for.
        """
        with _changed:
            executions = self._begin_to_wait(call)
            while not all(execution._all_wait for execution in executions):
                _changed.wait()
            return self._stop(executions, ask)

    async def astop(
        self, call: object, ask: Callable[[], tuple[Interrupt, ...]]
    ) -> tuple[Interrupt, ...]:
        """The same without blocking the event loop."""
        with _changed:
            executions = self._begin_to_wait(call)
        while True:
            with _changed:
                if all(execution._all_wait for execution in executions):
                    return self._stop(executions, ask)
            await asyncio.sleep(_POLL_SECONDS)

    def _begin_to_wait(self, call: object) -> list[Execution]:
        """Note that a call waits, and the calls around it as well, and return the executions to
        wait for.
        """
        executions = self.with_those_around()
        # the call stands in a tool that stands in another one: none of these can end before it
        waiting = (*_outer_calls.get(), call)
        for execution in executions:
            execution._waiting.update(
                running for running in waiting if running in execution._running
            )
        _changed.notify_all()
        return executions

    def _stop(
        self, executions: list[Execution], ask: Callable[[], tuple[Interrupt, ...]]
    ) -> tuple[Interrupt, ...]:
        if self.raised is None:
            self.raised = ask()
        for execution in executions:
            if execution.raised is None:
                execution.raised = self.raised
        return self.raised

    def take_finished(self) -> dict[str, Callable[[], Any]]:
        """Return, once for each, the ended calls that the next execution needs."""
        executions: Iterable[Execution] = self.with_those_around()
        with _changed:
            taken: dict[str, Callable[[], Any]] = {}
            for execution in executions:
                if execution.raised is not None:
                    taken.update(execution.finished)
                    execution.finished = {}
            return taken


@contextmanager
def inside(call: object) -> Iterator[None]:
    """Run the body of a call, so that it is known to wait when a call that it makes does."""
    outer = _outer_calls.set((*_outer_calls.get(), call))
    try:
        yield
    finally:
        _outer_calls.reset(outer)


_executions: weakref.WeakSet[Execution] = weakref.WeakSet()
