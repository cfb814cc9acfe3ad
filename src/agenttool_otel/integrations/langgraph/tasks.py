"""The LangGraph task that a call runs in: the answer that came back for it, and a new pause.

LangGraph hands a resume value to whichever ``interrupt()`` of the run comes first, and runs the
node again from its top. An approval must not be handed on like that: it belongs to one request. So
a value is only taken when the question that it answers was asked by this very task; then it is
taken out of LangGraph's list, so that no ``interrupt()`` of a tool can see it, and cleared in the
checkpoint, where it would otherwise serve again at the next ``invoke(None)``. What belongs to
another task, or to a tool's own interrupts, is left where it is.

LangGraph has no public name for these things. The keys below are the same in langgraph 1.0 to 1.2;
where one is missing nothing is taken and nothing can be waited for, which ends in a denial.
"""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any, Final

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.errors import GraphInterrupt
from langgraph.types import Interrupt, interrupt

from agenttool_otel.integrations.langgraph.checkpoints import (
    NULL_TASK,
    RESUME,
    Pause,
    Writes,
    is_approval,
)
from agenttool_otel.integrations.langgraph.executions import Execution

SCRATCHPAD: Final = "__pregel_scratchpad"
_CHECKPOINTER: Final = "__pregel_checkpointer"
_TASK_ID: Final = "__pregel_task_id"
_RESUME_MAP: Final = "__pregel_resume_map"
_RESUMING: Final = "__pregel_resuming"
_SEND: Final = "__pregel_send"
_NEEDED_KEYS: Final = (
    "thread_id",
    "checkpoint_ns",
    _SEND,
    _TASK_ID,
)
_NEEDED_PARTS: Final = (
    "interrupt_counter",
    "get_null_resume",
    "resume",
)


class GraphTask:
    """One execution of a task, seen from inside it."""

    __slots__ = (
        "_config",
        "_pad",
        "configurable",
        "execution",
        "namespace",
        "saver",
        "thread_id",
    )

    def __init__(self, config: RunnableConfig) -> None:
        conf = config["configurable"]
        self._config = config
        self.configurable = conf  # in which the host may name who answers
        self._pad = conf[SCRATCHPAD]
        self.saver = conf[_CHECKPOINTER]
        self.thread_id = str(conf["thread_id"])
        self.namespace = str(conf["checkpoint_ns"])
        self.execution = Execution.of(self._pad, self.namespace, self._top_checkpoint)

    @classmethod
    def current(cls) -> GraphTask | None:
        """Return the task in progress, or ``None`` where a pause could not be resumed."""
        config = var_child_runnable_config.get()
        if config is None:
            return None
        conf = config.get("configurable") or {}
        # compile(checkpointer=True) of a graph inside, without one around it
        if not conf.get(_CHECKPOINTER) or conf[_CHECKPOINTER] is True:
            return None
        if any(key not in conf for key in _NEEDED_KEYS):
            return None
        if not _is_known_scratchpad(conf.get(SCRATCHPAD)):
            return None
        return cls(config)

    # --- the checkpoint at the top of the run -----------------------------------------------------

    @property
    def _top_checkpoint(self) -> str | None:
        checkpoints = self.configurable.get("checkpoint_map") or {}
        checkpoint: str | None = checkpoints.get("")
        return checkpoint

    @property
    def _place(self) -> RunnableConfig:
        checkpoint = self._top_checkpoint
        if checkpoint is None:
            raise LookupError("no checkpoint of this run is known")
        place = {
            "thread_id": self.configurable["thread_id"],
            "checkpoint_ns": "",
            "checkpoint_id": checkpoint,
        }
        return {"configurable": place}

    @property
    def is_resumed(self) -> bool:
        """Whether the run goes on from a pause, so that the checkpoint may hold something for this
        task.
        """
        if self.configurable.get(_RESUMING) or self.configurable.get(_RESUME_MAP):
            return True
        return self._pad.get_null_resume(False) is not None

    def read_interrupt(self) -> None:
        """Read from the checkpoint what the run goes on from, once in each execution."""
        if self.execution.pause is not None:
            return
        checkpoint = self.saver.get_tuple(self._place)
        if checkpoint is not None:
            self.execution.pause = Pause.read(checkpoint.pending_writes)

    async def aread_interrupt(self) -> None:
        """The same without blocking the event loop."""
        if self.execution.pause is not None:
            return
        checkpoint = await self.saver.aget_tuple(self._place)
        if checkpoint is not None:
            self.execution.pause = Pause.read(checkpoint.pending_writes)

    # --- the answer -------------------------------------------------------------------------------

    def answered_question(self) -> Interrupt | None:
        """Return the approval that this very task asked for and that the resume answers."""
        pause = self.execution.pause
        if pause is None or self.execution.answer_taken:
            return None
        by_id = self.configurable.get(_RESUME_MAP) or {}
        # invoke(None): the run goes on, and nothing is answered
        if not by_id and self._pad.get_null_resume(False) is None:
            return None
        answered = [question for question in pause.answered(by_id) if is_approval(question)]
        if not answered:
            return None
        own = self._question_ids()
        for question in answered:
            if question.id in own:
                return question
        return None

    def clear_resume_value(self) -> None:
        """Clear the resume value in the checkpoint: it is older than any question to come."""
        pause = self.execution.pause
        if pause is not None and pause.has_value:
            self.saver.put_writes(self._place, [(RESUME, None)], NULL_TASK)
            pause.has_value = False

    async def aclear_resume_value(self) -> None:
        """The same without blocking the event loop."""
        pause = self.execution.pause
        if pause is not None and pause.has_value:
            await self.saver.aput_writes(self._place, [(RESUME, None)], NULL_TASK)
            pause.has_value = False

    def take_resume_value(self, question: Interrupt) -> Any:
        """Take the resume value that answers a question of this task."""
        self.execution.answer_taken = True
        by_id = self.configurable.get(_RESUME_MAP) or {}
        if question.id not in by_id:
            return self._pad.get_null_resume(True)
        # LangGraph has put the answer into the task's list already
        if self._pad.resume and self._pad.resume[-1] is by_id[question.id]:
            self._pad.resume.pop()
        return by_id[question.id]

    def _question_ids(self) -> set[str]:
        """Return the ids that questions of this task have: one for each number of answers that it
        got before.
        """
        answers = self._pad.resume
        ids = set()
        for count in range(len(answers) + 1):
            question = self._ask("", answers[:count])[0]
            ids.add(question.id)
        return ids

    # --- results that are kept for the next execution ---------------------------------------------

    def keep(self, writes: Writes, task_id: str) -> None:
        """Store the result of a call with the checkpoint that the run goes on from."""
        loop = getattr(self.saver, "loop", None)
        if loop is not None and loop is _running_loop():
            raise RuntimeError(
                "an asynchronous checkpointer can't be waited for in its own event loop"
            )
        self.saver.put_writes(self._place, writes, task_id)

    async def akeep(self, writes: Writes, task_id: str) -> None:
        """The same without blocking the event loop."""
        await self.saver.aput_writes(self._place, writes, task_id)

    # --- the pause --------------------------------------------------------------------------------

    def ask(self, value: dict[str, Any]) -> tuple[Interrupt, ...]:
        """Make the interrupt that pauses this task."""
        pad = self._pad
        if self._is_asked_by_tool():
            answer = pad.get_null_resume(True)
            # it answers a tool's own interrupt, and has to be there for it later
            if answer is not None:
                pad.resume.append(answer)
        if pad.resume:
            self.configurable[_SEND]([(RESUME, list(pad.resume))])
        return self._ask(value, pad.resume)

    def _is_asked_by_tool(self) -> bool:
        """Whether the question that waits is one of this task, and no approval."""
        if self.execution.pause is None:
            return False
        of_tools = [q for q in self.execution.pause.questions if not is_approval(q)]
        if not of_tools:
            return False
        own = self._question_ids()
        return any(question.id in own for question in of_tools)

    def _ask(self, value: Any, answers: list[Any]) -> tuple[Interrupt, ...]:
        """Let LangGraph make the interrupt of a task that has got some answers and gets no further
        one.
        """
        at_end = dataclasses.replace(
            self._pad,
            interrupt_counter=lambda: len(answers),
            get_null_resume=lambda consume=False: None,
            resume=list(answers),
        )
        configurable = {**self.configurable, SCRATCHPAD: at_end}
        config = {**self._config, "configurable": configurable}
        token = var_child_runnable_config.set(config)  # type: ignore[arg-type]
        try:
            interrupt(value)
        except GraphInterrupt as pause:
            return tuple(pause.args[0])
        finally:
            var_child_runnable_config.reset(token)
        raise RuntimeError("LangGraph answered a question that was not asked")


def _is_known_scratchpad(pad: Any) -> bool:
    """Whether LangGraph's scratchpad has the parts that are used here."""
    if pad is None:
        return False
    if not all(hasattr(pad, name) for name in _NEEDED_PARTS):
        return False
    # Execution.of keeps the executions there
    return hasattr(pad.get_null_resume, "__dict__")


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
