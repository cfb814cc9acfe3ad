"""The LangGraph task that a call runs in: what was last asked there, the answer that came back, and a new pause.

LangGraph hands a resume value to whichever ``interrupt()`` of the task comes first, and runs the node again from its
top. An approval must not be handed on like that: it belongs to one request. So a value is only taken when the interrupt
that the checkpoint shows for this very task is one of ours; then it is taken out of LangGraph's list, so that no
``interrupt()`` of a tool can see it, and cleared in the checkpoint, where it would otherwise serve again at the next
``invoke(None)``. Values that belong to a tool's own interrupts are left where they are.

LangGraph has no public name for these things. The keys below are the same in langgraph 1.0 to 1.2; where one is missing
nothing is taken and nothing can be waited for, which ends in a denial.
"""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.errors import GraphInterrupt
from langgraph.types import Interrupt, interrupt

from agenttool_otel.values.forks import new_condition, new_lock, new_rlock

APPROVAL_TYPE: Final = "tool_approval"
"""``type`` of the interrupt value, as LangChain's own per-call approval has it."""

SCRATCHPAD: Final = "__pregel_scratchpad"
_CHECKPOINTER: Final = "__pregel_checkpointer"
_TASK_ID: Final = "__pregel_task_id"
_RESUME_MAP: Final = "__pregel_resume_map"
_SEND: Final = "__pregel_send"
_RESUME: Final = "__resume__"
_INTERRUPT: Final = "__interrupt__"
_NULL_TASK: Final = "00000000-0000-0000-0000-000000000000"
_MAX_TASKS: Final = 1024
_POLL_SECONDS: Final = 0.005


class _ExecutionState:
    """What the calls of one execution of a task share."""

    __slots__ = ("active", "answer_taken", "changed", "count", "lock", "pad", "raised", "shown", "waiting")

    def __init__(self, pad: Any) -> None:
        self.pad = pad
        self.lock = new_rlock()
        self.changed = new_condition(self.lock)
        self.active: set[object] = set()
        self.waiting: Counter[object] = Counter()
        self.count: Counter[str] = Counter()
        self.answer_taken = False
        self.shown: Interrupt | None = None
        self.raised: tuple[Interrupt, ...] | None = None

    @property
    def all_waiting(self) -> bool:
        """Whether every call of this execution has ended or waits for an answer."""
        return all(self.waiting[token] > 0 for token in self.active)


_open_calls: contextvars.ContextVar[tuple[object, ...]] = contextvars.ContextVar("agenttool_graph_calls", default=())
_states: OrderedDict[int, _ExecutionState] = OrderedDict()
_states_lock = new_lock()


def _state_of(pad: Any) -> _ExecutionState:
    with _states_lock:
        state = _states.get(id(pad))
        if state is None or state.pad is not pad:
            state = _states[id(pad)] = _ExecutionState(pad)
            while len(_states) > _MAX_TASKS:
                _states.popitem(last=False)
        else:
            _states.move_to_end(id(pad))
        return state


class GraphTask:
    """One execution of a task, seen from inside it."""

    __slots__ = ("_config", "_pad", "_saver", "configurable", "namespace", "state", "thread_id")

    def __init__(self, config: RunnableConfig) -> None:
        conf = config["configurable"]
        self._config = config
        self.configurable = conf  # in which the host may say who answers
        self._pad = conf[SCRATCHPAD]
        self._saver = conf[_CHECKPOINTER]
        self.thread_id = str(conf["thread_id"])
        self.namespace = str(conf["checkpoint_ns"])
        self.state = _state_of(self._pad)

    @classmethod
    def current(cls) -> GraphTask | None:
        """Return the task in progress, or ``None`` where a pause could not be resumed."""
        config = var_child_runnable_config.get()
        conf = (config or {}).get("configurable") or {}
        pad = conf.get(SCRATCHPAD)
        if config is None or pad is None or not conf.get(_CHECKPOINTER) or conf[_CHECKPOINTER] is True:
            return None
        needed = ("thread_id", "checkpoint_ns", _SEND, _TASK_ID)
        fields = ("interrupt_counter", "get_null_resume", "resume")
        if any(key not in conf for key in needed) or not all(hasattr(pad, name) for name in fields):
            return None
        return cls(config)

    def occurrence(self, key: str) -> int:
        """Count a call, and return how many like it this execution has made before."""
        with self.state.lock:
            self.state.count[key] += 1
            return self.state.count[key] - 1

    # --- the calls of one execution ----------------------------------------------------------------------------------

    @contextmanager
    def in_progress(self) -> Iterator[None]:
        """Count a call as being in progress."""
        state, token = self.state, object()
        with state.lock:
            if state.raised is not None:
                raise GraphInterrupt(state.raised)
            state.active.add(token)
        opened = _open_calls.set((*_open_calls.get(), token))
        try:
            yield
        finally:
            _open_calls.reset(opened)
            with state.lock:
                state.active.discard(token)
                del state.waiting[token]
                state.changed.notify_all()

    def wait(self) -> None:
        """Wait until no other call of this execution runs: LangGraph drops what still runs at the first pause."""
        state = self.state
        with state.changed:
            # whoever called this call waits too
            state.waiting.update(token for token in _open_calls.get() if token in state.active)
            state.changed.notify_all()
            while not state.all_waiting:
                state.changed.wait()

    async def await_others(self) -> None:
        """The same without blocking the event loop."""
        state = self.state
        with state.lock:
            state.waiting.update(token for token in _open_calls.get() if token in state.active)
            state.changed.notify_all()
        while True:
            with state.lock:
                if state.all_waiting:
                    return
            await asyncio.sleep(_POLL_SECONDS)

    # --- the answer --------------------------------------------------------------------------------------------------

    @property
    def answered(self) -> bool:
        """Whether a resume value may be waiting for this task."""
        return bool(self.configurable.get(_RESUME_MAP)) or self._pad.get_null_resume(False) is not None

    def read_interrupt(self) -> None:
        """Read from the checkpoint what this task last asked."""
        self._note_interrupt(self._saver.get_tuple(self._checkpoint_config(self._parent_namespace())))

    async def aread_interrupt(self) -> None:
        """The same without blocking the event loop."""
        self._note_interrupt(await self._saver.aget_tuple(self._checkpoint_config(self._parent_namespace())))

    def clear_resume_value(self) -> None:
        """Clear the resume value in the checkpoint, if it is stored there and is ours."""
        if self._stored_value():
            self._saver.put_writes(self._checkpoint_config(""), [(_RESUME, None)], _NULL_TASK)

    async def aclear_resume_value(self) -> None:
        """The same without blocking the event loop."""
        if self._stored_value():
            await self._saver.aput_writes(self._checkpoint_config(""), [(_RESUME, None)], _NULL_TASK)

    def take_resume_value(self) -> tuple[dict[str, Any], Any] | None:
        """Take the resume value that answers the last interrupt of this task, if that one is ours."""
        shown = self.state.shown
        if not _is_ours(shown) or shown is None:
            return None
        by_id = self.configurable.get(_RESUME_MAP) or {}
        if shown.id in by_id:
            if self._pad.resume and self._pad.resume[-1] is by_id[shown.id]:
                self._pad.resume.pop()
            return shown.value, by_id[shown.id]
        value = self._pad.get_null_resume(True)
        return None if value is None else (shown.value, value)

    def _stored_value(self) -> bool:
        shown = self.state.shown
        if not _is_ours(shown) or shown is None or shown.id in (self.configurable.get(_RESUME_MAP) or {}):
            return False
        return self._pad.get_null_resume(False) is not None

    def _note_interrupt(self, found: Any) -> None:
        task_id = self.configurable[_TASK_ID]
        for write in (found.pending_writes or ()) if found is not None else ():
            if write[0] == task_id and write[1] == _INTERRUPT:
                interrupts = write[2] if isinstance(write[2], (tuple, list)) else (write[2],)
                self.state.shown = interrupts[0] if interrupts else None

    def _parent_namespace(self) -> str:
        return self.namespace.rpartition("|")[0]

    def _checkpoint_config(self, namespace: str) -> RunnableConfig:
        checkpoint = (self.configurable.get("checkpoint_map") or {}).get(namespace)
        if checkpoint is None:
            raise LookupError("no checkpoint of this task is known")
        place = {"thread_id": self.configurable["thread_id"], "checkpoint_ns": namespace, "checkpoint_id": checkpoint}
        return {"configurable": place}

    # --- the pause ---------------------------------------------------------------------------------------------------

    def pause(self, value: dict[str, Any]) -> GraphInterrupt:
        """Make the exception that pauses this task; one execution pauses for one question at a time."""
        with self.state.lock:
            if self.state.raised is None:
                self.state.raised = self._raise(value)
            # whichever exception LangGraph sees first when several calls of a task ask, it shows this question
            return GraphInterrupt(self.state.raised)

    def _raise(self, value: dict[str, Any]) -> tuple[Interrupt, ...]:
        pad = self._pad
        if self.state.shown is not None and not _is_ours(self.state.shown):
            theirs = pad.get_null_resume(True)
            if theirs is not None:
                pad.resume.append(theirs)  # it answers a tool's own interrupt, and has to be there for it later
        if pad.resume:
            self.configurable[_SEND]([(_RESUME, list(pad.resume))])
        place = len(pad.resume)
        at_end = dataclasses.replace(
            pad, interrupt_counter=lambda: place, get_null_resume=lambda consume=False: None, resume=list(pad.resume)
        )
        config = {**self._config, "configurable": {**self.configurable, SCRATCHPAD: at_end}}
        token = var_child_runnable_config.set(config)  # type: ignore[arg-type]
        try:
            interrupt(value)
        except GraphInterrupt as pause:
            return tuple(pause.args[0])
        finally:
            var_child_runnable_config.reset(token)
        raise RuntimeError("LangGraph answered a question that nobody has been asked")


def _is_ours(shown: Interrupt | None) -> bool:
    value = getattr(shown, "value", None)
    return isinstance(value, dict) and value.get("type") == APPROVAL_TYPE and isinstance(value.get("request_id"), str)
