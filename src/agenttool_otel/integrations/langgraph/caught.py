"""A pause that something caught on its way to LangGraph: the task pauses all the same.

A pause is an exception. ``ToolNode(...).with_fallbacks(...)``, ``except Exception`` in a tool and a
handler that turns errors into messages all catch it, and the question would be lost. So the end of
each task is watched: where a question of ours was raised in it, and the task ends in anything but a
pause, what it returned is dropped and the pause is raised again. LangGraph runs the task anew with
the answer, as after any pause.

LangGraph has no public name for the end of a task. The two functions below run each task in
langgraph 1.0 to 1.2; where they are missing, a pause that is caught stays caught, which a warning
says.
"""

from __future__ import annotations

import contextvars
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import wrapt
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.types import Interrupt

from agenttool_otel.integrations.langgraph.checkpoints import APPROVAL_TYPE

_RUNNER: Final = "langgraph.pregel._runner"
_RESUME: Final = "__resume__"
_logger = logging.getLogger("agenttool_otel.langgraph")


class _Task:
    """One execution of a task, with the questions of ours that were raised in it."""

    __slots__ = ("outer", "raised")

    def __init__(self, outer: _Task | None) -> None:
        self.outer = outer
        self.raised: tuple[Interrupt, ...] | None = None


_task: contextvars.ContextVar[_Task | None] = contextvars.ContextVar(
    "agenttool_graph_task", default=None
)


def note_pause(signal: BaseException | None) -> None:
    """Note that the task in progress has to pause, where a call ended with a question of ours.

    Args:
        signal: what the call raises; a tool's own interrupt is left to the code that catches it.
    """
    task = _task.get()
    if task is None or task.raised is not None:
        return
    if not isinstance(signal, GraphInterrupt) or not signal.args:
        return
    interrupts = tuple(signal.args[0])
    if any(_is_question(interrupt) for interrupt in interrupts):
        task.raised = interrupts


def _is_question(interrupt: Interrupt) -> bool:
    value = interrupt.value
    return isinstance(value, dict) and value.get("type") == APPROVAL_TYPE


@contextmanager
def _watched(executable: Any) -> Iterator[None]:
    task = _Task(_task.get())
    token = _task.set(task)
    try:
        yield
    except GraphBubbleUp as signal:
        if isinstance(signal, GraphInterrupt) and task.raised is not None:
            # a graph inside of a graph: the pause continues in the task that called it
            _note_outside(task)
        raise
    except Exception as error:
        if task.raised is None:
            raise
        _drop(executable)
        _note_outside(task)
        raise GraphInterrupt(task.raised) from error
    else:
        if task.raised is not None:
            _drop(executable)
            _note_outside(task)
            raise GraphInterrupt(task.raised)
    finally:
        _task.reset(token)


def _note_outside(task: _Task) -> None:
    if task.outer is not None and task.outer.raised is None:
        task.outer.raised = task.raised


def _drop(executable: Any) -> None:
    """Drop the writes of a task after its pause was caught, except answers that it got."""
    writes = executable.writes
    # [("messages", [...]), ("__resume__", [...])]
    kept = [write for write in writes if write[0] == _RESUME]
    writes.clear()
    writes.extend(kept)


def _run(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
    with _watched(args[0]):
        return wrapped(*args, **kwargs)


async def _arun(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
    with _watched(args[0]):
        return await wrapped(*args, **kwargs)


def watch_tasks(runner: Any) -> None:
    """Watch the ends of LangGraph's tasks.

    Args:
        runner: the module that runs them.
    """
    for name, wrapper in (("run_with_retry", _run), ("arun_with_retry", _arun)):
        original = getattr(runner, name, None)
        if original is None:
            _logger.warning(
                "this LangGraph has no %s: a pause that a fallback or handler catches is lost", name
            )
            continue
        setattr(runner, name, wrapt.FunctionWrapper(original, wrapper))
