"""A body reports what it is about to do, before it commits: the policy decides a second time."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any

from agenttool_otel.call.drivers import aperform
from agenttool_otel.call.reported_effects import EffectChange as EffectChange
from agenttool_otel.call.running.handle import CallHandle, running_body
from agenttool_otel.call.steps import Call
from agenttool_otel.errors import EffectsError


def report_effects(changes: Iterable[EffectChange]) -> None:
    """Report what the governed tool is about to do in whose body this is called, and return once it
    may do it.

    Call it once, with everything, and before anything is committed. Let what it raises through, so
    that your transaction rolls back. Where a person has to be asked and nobody answers in this
    process, the call pauses: when it goes on, the body runs again from its start. The answer holds for
    the very same report; for another one, the person is asked again.

    The tool is governed with ``reports_effects=True``: its call has not run until the report is allowed.

    Args:
        changes: what would change, at most 1,000 entries. An empty report is decided, too.

    Raises:
        EffectsDenied: the policy, or a person, denies it; the call ends as denied.
        EffectsPending: a person is asked; the call waits.
        EffectsError: the report can't be used, so that nothing can be decided; the call ends as
            denied. Or there is no call: this is not called in the body of a governed tool that runs
            here, but in a thread without its context, in another process, in a stream or in a body
            that has ended; or its tool is not governed with ``reports_effects=True``.
    """
    handle, steps = _begin(changes)
    result: Any = None
    error: BaseException | None = None
    while True:
        try:
            step = steps.send(result) if error is None else steps.throw(error)
        except StopIteration:
            break
        error = None
        try:
            result = step.function(*step.args, **step.kwargs)
        except BaseException as raised:
            error = raised
    _check_goes_on(handle)


async def areport_effects(changes: Iterable[EffectChange]) -> None:
    """The same for an asynchronous body: the event loop goes on meanwhile.

    Args:
        changes: as of ``report_effects``.

    Raises:
        EffectsDenied: as of ``report_effects``.
        EffectsPending: as of ``report_effects``.
        EffectsError: as of ``report_effects``.
    """
    handle, steps = _begin(changes)
    result: Any = None
    error: BaseException | None = None
    while True:
        try:
            step = steps.send(result) if error is None else steps.throw(error)
        except StopIteration:
            break
        error = None
        try:
            result = await aperform(step)
        except BaseException as raised:
            error = raised
    _check_goes_on(handle)


def _begin(changes: Iterable[EffectChange]) -> tuple[CallHandle, Generator[Call, Any, None]]:
    handle = running_body.get()
    # a handle in another process has none
    inside = getattr(handle, "inside", None)
    if handle is None or inside is None:
        raise EffectsError("effects are reported outside of the body of a governed call")
    reporting, call, target, session, begin = inside
    return handle, reporting.report(call, target, session, changes, begin)


def _check_goes_on(handle: CallHandle) -> None:
    if handle.inside is None:
        raise EffectsError("the call has ended while its effects were decided")
