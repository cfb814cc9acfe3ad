"""Bodies on an executor of the caller: threads, processes, or a cluster behind
``concurrent.futures.Executor``.

The decision stays here. What travels to another process is the tool's plain function by its name,
its arguments, the facts of the caller's context and the trace context; what comes back is the
value, or the exception.
"""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import inspect
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

from opentelemetry import context as otel_context

from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.running.far import FarHandle, far_handle
from agenttool_otel.call.running.handle import running_body
from agenttool_otel.call.steps import Execute
from agenttool_otel.context.context import current_context, run_in_context
from agenttool_otel.errors import ToolFailed
from agenttool_otel.values.inspection import short_name


def takes(executor: Executor, step: Execute) -> bool:
    """Return whether a body runs there: a coroutine function needs no thread, and stays in
    its own loop.
    """
    return not (step.is_async and isinstance(executor, ThreadPoolExecutor))


def submit(call: Invocation, executor: Executor, step: Execute) -> Future[Any]:
    """Start a body there, with the context of the call."""
    if isinstance(executor, ThreadPoolExecutor):
        return executor.submit(
            contextvars.copy_context().run, step.target, *step.args, **step.kwargs
        )
    from opentelemetry import propagate  # it looks for every propagator that is installed

    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    profile, far = call.spec.execution, None
    if (
        call.handle is not None
        and (profile.supports_progress or profile.supports_cancel)
        and _is_near(executor)
    ):
        far = far_handle(call.handle)
    named = _named(step.target)
    future = executor.submit(
        run_in_context, current_context(), _run, named, step.args, step.kwargs, carrier, far
    )
    if far is not None:
        future.add_done_callback(far.end)
    return future


def _is_near(executor: Executor) -> bool:
    """Return whether a pipe reaches the executor's workers."""
    from concurrent.futures import ProcessPoolExecutor

    return isinstance(executor, ProcessPoolExecutor)


def _named(function: Callable[..., Any]) -> Callable[..., Any] | tuple[str, str]:
    """Return a function so that it can be pickled: under its name, there is the governed one."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not module or not name or "<" in name or inspect.ismethod(function):
        return function
    return module, name


def _run(
    function: Callable[..., Any] | tuple[str, str],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    carrier: dict[str, str],
    far: FarHandle | None,
) -> Any:
    """Run a body in the other process."""
    from opentelemetry import propagate

    found: Any = function
    if isinstance(function, tuple):
        found = importlib.import_module(function[0])
        for part in function[1].split("."):
            found = getattr(found, part)
        found = getattr(getattr(found, "tool", None), "function", found)
    token, inside = otel_context.attach(propagate.extract(carrier)), running_body.set(far)
    try:
        value = found(*args, **kwargs)
        return asyncio.run(_awaited(value)) if inspect.isawaitable(value) else value
    except BaseException as error:
        raise _portable(error) from None
    finally:
        if far is not None:
            far.flush()
        running_body.reset(inside)
        otel_context.detach(token)


async def _awaited(value: Any) -> Any:
    return await value


def _portable(error: BaseException) -> BaseException:
    """Return an exception that arrives; one that can't be pickled is replaced by its type."""
    import pickle

    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - it was made right here
    except Exception:
        return ToolFailed(short_name(error))
    return error
