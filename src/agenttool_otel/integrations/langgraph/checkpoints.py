"""The pause of a LangGraph run, in the checkpoint at its top: questions, the answer, kept results.

``Command(resume=value)`` without an interrupt id is for the one question that waits at the top of
the run. LangGraph stores the value there and hands it to whichever ``interrupt()`` of the run comes
first, at any depth, and again at the next ``invoke(None)``. Questions of tasks inside reach the
top, each with an id made of its own task's namespace.

Results of calls that ended beside a call that asks are stored there, too, each under an id of its
own. LangGraph leaves writes alone that belong to no task of its own.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any, Final

from langchain_core.tools import ToolException
from langgraph.types import Interrupt

APPROVAL_TYPE: Final = "tool_approval"
"""``type`` of the interrupt value, as LangChain's own per-call approval has it."""

RESUME: Final = "__resume__"
NULL_TASK: Final = "00000000-0000-0000-0000-000000000000"
_INTERRUPT: Final = "__interrupt__"
_NO_OUTPUT: Final = frozenset(
    {
        _INTERRUPT,
        RESUME,
        "__error__",
        "__error_source_node__",
    }
)
"""Channels that a task writes to without having ended."""

_KEPT: Final = "agenttool_result"
_KEPT_IDS: Final = uuid.UUID("6a1c9d1e-0d55-5b0f-9a8e-0b7c9a4d7c11")

Writes = list[tuple[str, Any]]


@dataclass(slots=True)
class Pause:
    """The pause that a run goes on from."""

    questions: list[Interrupt] = field(default_factory=list)  # those that wait for an answer
    has_value: bool = False  # whether a resume value without an id is stored
    # by invocation id, as ``result_writes`` made them
    results: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, writes: Any) -> Pause:
        """Read the pending writes of a checkpoint: triples of task id, channel and value."""
        pause = cls()
        finished = set()
        for task, channel, _ in writes or ():
            if channel not in _NO_OUTPUT:
                finished.add(task)
        for task, channel, value in writes or ():
            if channel == _KEPT and isinstance(value, dict):
                invocation_id = str(value.get("invocation_id"))
                pause.results[invocation_id] = value
            elif channel == RESUME and task == NULL_TASK and value is not None:
                pause.has_value = True
            elif channel == _INTERRUPT and task not in finished:
                pause._add_questions(value)
        return pause

    def _add_questions(self, value: Any) -> None:
        questions = value if isinstance(value, (tuple, list)) else (value,)
        known = {question.id for question in self.questions}
        for question in questions:
            # a @task and the entrypoint around it store the same question, each for itself and once
            # more for those inside
            if question.id not in known:
                known.add(question.id)
                self.questions.append(question)

    def answered(self, by_id: dict[str, Any]) -> list[Interrupt]:
        """Return the questions that the resume answers.

        Args:
            by_id: the answers by interrupt id; empty where a value without an id came, which is for
              the only question.
        """
        if by_id:
            return [question for question in self.questions if question.id in by_id]
        # with two questions LangGraph itself demands answers by id
        if len(self.questions) != 1:
            return []
        return self.questions


def is_approval(question: Interrupt) -> bool:
    """Whether a question has the form of one of ours; the approval store has whose it is."""
    value = question.value
    if not isinstance(value, dict) or value.get("type") != APPROVAL_TYPE:
        return False
    # LangChain's own approval has the same type, and no request
    return isinstance(value.get("request_id"), str)


def result_writes(invocation_id: str, value: Any) -> tuple[Writes, str]:
    """Return the write that keeps the result of a call, and the task id to store it under.

    Args:
        invocation_id: the call.
        value: what it returned, or the exception that it raised.
    """
    kept: dict[str, Any] = {"invocation_id": invocation_id}
    if isinstance(value, Exception):
        kept["error"] = f"{type(value).__name__}: {value}"
    elif isinstance(value, tuple):
        # (content, artifact): a serializer makes a list of a tuple
        kept["items"] = list(value)
    else:
        kept["value"] = value
    task_id = uuid.uuid5(_KEPT_IDS, invocation_id)
    return [(_KEPT, kept)], str(task_id)


def kept_result(kept: dict[str, Any]) -> Any:
    """Return what ``result_writes`` was given; an exception comes back as a ToolException."""
    if "error" in kept:
        return ToolException(kept["error"])
    if "items" in kept:
        return tuple(kept["items"])
    return kept.get("value")
