"""A function run by a thread that has restricted itself first."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from agenttool_otel.enforcement import privileges, processes, scratch
from agenttool_otel.enforcement.mechanism import Mechanism
from agenttool_otel.enforcement.own import masked_by
from agenttool_otel.enforcement.refusals import refusals_of
from agenttool_otel.enforcement.types import HeldResult
from agenttool_otel.errors import SandboxUnavailable


class Duty(NamedTuple):
    """What holds the current code, or has to hold its commands.

    Attributes:
        profile: the profile's name.
        masked: secrets beside those of the host.
    """

    profile: str
    masked: frozenset[Path] = frozenset()


_duty: Final[contextvars.ContextVar[Duty | None]] = contextvars.ContextVar(
    "agenttool_held_by", default=None
)


def held_duty() -> Duty | None:
    """Return what the current code is held by, or its commands must run under; ``None`` for nothing."""
    return _duty.get()


def held_profile() -> str | None:
    """Return the profile that the current code is held by, or that its commands must run under;
    ``None`` for none.
    """
    duty = _duty.get()
    return None if duty is None else duty.profile


@contextmanager
def oblige_commands(profile: str, masked: Sequence[Path] = ()) -> Iterator[None]:
    """Let each ``run_command`` of a coroutine run under a profile.

    A coroutine shares its thread with others, so it can't be confined itself.

    Args:
        profile: one of SandboxProfile.
        masked: files and directories that they must not read, beside the host's keys and
          credentials.
    """
    token = _duty.set(Duty(profile, frozenset(masked)))
    try:
        yield
    finally:
        _duty.reset(token)


@dataclass
class Held:
    """A thread that is confined.

    Attributes:
        profile: by which profile.
        masked: the masks beside the host's own.
        scratch: the directory that it may write.
        mechanism: what confined it.
        prepared: what the mechanism prepared.
        since: when it was confined, and had started nothing yet; ``None`` before that.
    """

    profile: str
    masked: frozenset[Path]
    scratch: str
    mechanism: Mechanism
    prepared: Any
    since: processes.Moment | None = None


class _Here(threading.local):
    held: Held | None = None


_here: Final = _Here()


def confined() -> Held | None:
    """Return how the current thread is confined; ``None`` if it is not.

    A context variable would not do: a context is carried to threads that are free.
    """
    return _here.held


@dataclass
class _Run:
    """One function in one thread."""

    held: Held
    context: contextvars.Context
    function: Callable[[], Any]
    result: HeldResult | None = None
    failure: BaseException | None = None
    swept: bool = True

    def __call__(self) -> None:
        held = self.held
        try:
            held.mechanism.confine(held.prepared, held.scratch)
            held.since = since = processes.now()
        except BaseException as error:
            # half confined is not confined: nothing runs in this thread
            self.failure = error
            return
        _here.held = held
        try:
            self.result = self.context.run(_outcome, held, self.function)
        finally:
            self.swept = held.mechanism.sweep(held.scratch, since)


def _outcome(held: Held, function: Callable[[], Any]) -> HeldResult:
    token = _duty.set(Duty(held.profile, held.masked))
    try:
        return HeldResult(value=function())
    except BaseException as error:
        # SystemExit and KeyboardInterrupt, too: the caller raises them where it stands
        return HeldResult(exception=error)
    finally:
        _duty.reset(token)


def hold_by(
    mechanism: Mechanism,
    profile: str,
    function: Callable[[], Any],
    masked: Sequence[Path] = (),
    *,
    abandoned: Callable[[], None] = lambda: None,
) -> HeldResult:
    """Run a function by a thread that a mechanism confines.

    Args:
        mechanism: what confines it.
        profile: the profile's name.
        function: what to run, without arguments.
        masked: secrets beside those of the host.
        abandoned: called when the waiting thread is interrupted; the function runs on.

    Raises:
        SandboxUnavailable: the thread could not be confined; the function has not run.
    """
    masks = frozenset(masked) | masked_by(profile)
    # asyncio.to_thread carries the profile's variable to a thread that is free: that one is held
    outer = confined()
    if outer is not None:
        return _within(outer, profile, function, masks)
    try:
        prepared = mechanism.prepare(masks)
        place = scratch.make()
    except SandboxUnavailable:
        raise
    except Exception as error:
        raise _unavailable(profile, error) from error
    held = Held(profile, masks, place, mechanism, prepared)
    run = _Run(held, contextvars.copy_context(), function)
    _wait_for(run, abandoned)
    if run.result is None:
        raise _unavailable(profile, run.failure) from run.failure
    return _with_violations(run.result, held)


def _with_violations(result: HeldResult, held: Held) -> HeldResult:
    if result.exception is None:
        return result
    found = refusals_of(result.exception, lambda path: held.mechanism.masks(held.prepared, path))
    return HeldResult(exception=result.exception, violations=found)


def _within(
    outer: Held, profile: str, function: Callable[[], Any], masks: frozenset[Path]
) -> HeldResult:
    """Run a function in a thread that is confined already: a thread can enter few domains."""
    if profile != outer.profile or not masks <= outer.masked:
        reason = f"the thread is held by {outer.profile}, with other masks"
        raise SandboxUnavailable(reason, profile=profile)
    return _with_violations(_outcome(outer, function), outer)


def _unavailable(profile: str, error: BaseException | None) -> SandboxUnavailable:
    return SandboxUnavailable(f"{type(error).__name__}: {error}", profile=profile)


def _wait_for(run: _Run, abandoned: Callable[[], None]) -> None:
    """Run in a thread, and clean up when the thread has ended, even if nobody waits any more."""
    hidden = privileges.hidden_memory()
    hidden.__enter__()
    thread = threading.Thread(target=run, name=f"agenttool {run.held.profile}", daemon=True)

    def finish() -> None:
        thread.join()
        hidden.__exit__(None, None, None)
        scratch.give_back(run.held.scratch)

    try:
        thread.start()
    except RuntimeError as error:
        hidden.__exit__(None, None, None)
        scratch.remove(run.held.scratch)
        raise _unavailable(run.held.profile, error) from error
    try:
        thread.join()
    except BaseException:  # Control-C in the main thread
        abandoned()
        threading.Thread(target=finish, daemon=True).start()
        raise
    finish()
