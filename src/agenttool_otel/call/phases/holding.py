"""What a decision obliges of the place where a body runs: it is held there, or it does not run.

Each way to run a body calls the target of an ``Execute`` step. So the target itself is what holds:
a driver that is added later calls it, and can't run the body in another way.
"""

from __future__ import annotations

import asyncio
import errno
import inspect
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import AsyncGeneratorType
from typing import Any, Final, NoReturn

from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.sandbox import (
    ON_LAYERS,
    ProcessSandbox,
    Sandbox,
    held_by_host,
    roots_of,
)
from agenttool_otel.call.target import Target
from agenttool_otel.context.sessions import SandboxRefusal, Session
from agenttool_otel.enforcement.own import own_profiles, profile_named
from agenttool_otel.errors import SandboxUnavailable
from agenttool_otel.names import (
    Behavior,
    DecisionSource,
    FailClosedCause,
    Ownership,
    PolicyMode,
    ReasonType,
    SandboxProfile,
    SandboxScope,
)
from agenttool_otel.policy.types import ExecutionInput, SandboxDuty, Verdict

_LAZY: Final = (AsyncGeneratorType, map, filter)
"""What calls functions when somebody looks at it."""


def scope_of(call: Invocation, target: Target) -> SandboxScope:
    """Return how much of a body can be held where it runs.

    Args:
        call: the call.
        target: what it runs.
    """
    if call.spec.ownership == Ownership.CUSTOM or call.spec.runs_elsewhere:
        return SandboxScope.NONE  # another program runs it
    if target.streams or target.collects:
        return SandboxScope.NONE  # each item is made in whichever thread asks for it
    if call.executor is not None and not isinstance(call.executor, ThreadPoolExecutor):
        return SandboxScope.NONE  # another process, or another machine
    if not target.is_async or target.in_thread:
        return SandboxScope.THREAD
    # the event loop's thread is everybody's, so only the programs that it starts can be held
    return SandboxScope.COMMAND if call.spec.runs_commands else SandboxScope.NONE


def execution_input(call: Invocation, target: Target, session: Session) -> ExecutionInput:
    """Return ``input.execution``: what this host has proven for this very body.

    Args:
        call: the call.
        target: what it runs.
        session: its session, which knows what a sandbox refused to the same call.
    """
    by_host = profiles_of_host(call)
    if by_host:
        return {"sandboxes": sorted(by_host), "scope": SandboxScope.COMMAND.value}
    known = {*SandboxProfile, *own_profiles()}
    if call.process is not None:
        held = _held_by_process(call.process, known, call)
        return {"sandboxes": held, "scope": SandboxScope.PROCESS.value, "refused": []}
    scope = scope_of(call, target)
    if scope is SandboxScope.NONE:
        return {"sandboxes": [], "scope": scope.value, "refused": []}
    proven = {str(name) for name in known if not _without(call, scope, name)}
    refusal = session.refusal_of(call.spec.tool_id, call.inputs.permission_input)
    call.refused_earlier = refusal.kinds if refusal is not None else ()
    return {
        "sandboxes": sorted(proven),
        "scope": scope.value,
        "refused": list(call.refused_earlier),
    }


def _held_by_process(process: ProcessSandbox, names: Iterable[str], call: Invocation) -> list[str]:
    """Return the profiles that a process is held by, which runs on from call to call."""
    if process.exposed(roots_of(call.context)):
        return []
    duties = filter(None, map(SandboxDuty.named, sorted(names)))
    return [duty.name for duty in duties if not process.weaker(duty)]


def profiles_of_host(call: Invocation) -> frozenset[str]:
    """Return the profiles by which whoever runs a custom tool holds its body, and that are proven here.

    Args:
        call: the call.
    """
    if call.spec.ownership != Ownership.CUSTOM:
        return frozenset()
    return frozenset(each.value for each in held_by_host() if _host_can_hold(call, each))


def _host_can_hold(call: Invocation, profile: SandboxProfile) -> bool:
    """Return whether a profile is proven here, by which whoever runs a body holds it."""
    if profile is not SandboxProfile.REHEARSE:
        from agenttool_otel.enforcement import available

        proof = available().get(profile)
        return proof is not None and proof.proven
    if not call.context.roots:
        return False
    from agenttool_otel.call.rehearsal import directory_of, layer_failure
    from agenttool_otel.enforcement.rehearsal import rehearsal_failure

    place = call.in_charge.layers
    if rehearsal_failure(directory_of(place)):
        return False
    return not layer_failure(place, roots_of(call.context))


def _without(call: Invocation, scope: SandboxScope, profile: str) -> str:
    """Return why a profile can't hold a body here; empty where it can."""
    known = profile_named(profile)
    if known is None:
        return "it is not known here"
    if known.limits_commands and not call.spec.runs_commands:
        return "only commands have limits, and the tool is not governed with runs_commands=True"
    if known.base in ON_LAYERS:
        return _without_layer(call, scope, known.masked)
    from agenttool_otel.enforcement import available  # its proofs take a while, once in a process

    proof = available().get(profile)
    if proof is None:
        return "it is not known here"
    return "" if proof.proven else proof.reason or "it is not proven"


def _without_layer(call: Invocation, scope: SandboxScope, masked: tuple[Path, ...]) -> str:
    """Return why the commands of a body can't write on a layer; empty where they can."""
    if not call.spec.runs_commands:
        return "only commands can write on a layer, and the tool is not governed with runs_commands=True"
    if not call.context.roots:
        return "the context states no roots"
    from agenttool_otel.call.rehearsal import directory_of
    from agenttool_otel.enforcement import available
    from agenttool_otel.enforcement.rehearsal import rehearsal_failure

    read = available()[SandboxProfile.READ]
    if scope is SandboxScope.THREAD and not read.proven:
        return read.reason
    return rehearsal_failure(directory_of(call.in_charge.layers), masked)


def oblige(call: Invocation, target: Target, verdict: Verdict) -> Verdict:
    """Prepare what holds the body, and return the verdict: a denial where nothing can.

    What an earlier decision of the call obliged holds on: a person approved a call that is held.

    Args:
        call: the call.
        target: what it runs.
        verdict: its newest decision, not yet in force.
    """
    duty = duty_of(call, verdict)
    call.sandbox = call.decision.host_duty = call.decision.process_duty = None
    if duty is None or verdict.mode is PolicyMode.SHADOW or verdict.behavior is Behavior.DENY:
        return verdict
    verdict = replace(verdict, sandbox=duty)
    if duty.unordered:
        names = " and ".join(duty.unordered)
        return _denied(verdict, f"none of the sandboxes {names} is the strictest")
    if duty.name in profiles_of_host(call):
        call.decision.host_duty = duty
        return verdict
    if call.process is not None:
        if why := call.process.failure(duty, roots_of(call.context)):
            return _denied(verdict, f"the sandbox {duty.name} can't be had here: {why}")
        call.decision.process_duty = duty
        return verdict
    scope = scope_of(call, target)
    if scope is SandboxScope.NONE:
        return _denied(verdict, f"the sandbox {duty.name} can't hold {_kind(call, target)}")
    why = _without(call, scope, duty.name)
    if why:
        return _denied(verdict, f"the sandbox {duty.name} can't be had here: {why}")
    call.sandbox = _sandbox(call, duty, scope)
    return verdict


def _sandbox(call: Invocation, duty: SandboxDuty, scope: SandboxScope) -> Sandbox:
    roots = roots_of(call.context)
    if duty.profile in ON_LAYERS:
        from agenttool_otel.call.rehearsal import RehearsedBody

        sandbox = Sandbox(duty, scope, "bubblewrap", roots)
        sandbox.rehearsal = RehearsedBody(call.in_charge.layers, roots, duty.name)
        return sandbox
    from agenttool_otel.enforcement import available

    return Sandbox(duty, scope, str(available()[duty.name].mechanism), roots)


def duty_of(call: Invocation, verdict: Verdict | None = None) -> SandboxDuty | None:
    """Return the strictest of what the decisions of a call oblige.

    Args:
        call: the call.
        verdict: its newest decision, not yet in force.
    """
    duty = verdict.sandbox if verdict is not None else None
    for earlier in call.decision.decisions:
        other = earlier.verdict.sandbox
        if other is not None:
            duty = other.joined(duty)
    return duty


def _denied(verdict: Verdict, message: str) -> Verdict:
    return replace(
        verdict,
        behavior=Behavior.DENY,
        source=DecisionSource.ERROR,
        reason_type=ReasonType.POLICY,
        message=message,
        updated_input=None,
        suggested_updates=(),
        fail_closed=FailClosedCause.SANDBOX_UNAVAILABLE,
    )


def _kind(call: Invocation, target: Target) -> str:
    if call.spec.ownership == Ownership.CUSTOM or call.spec.runs_elsewhere:
        return "a tool that runs elsewhere"
    if target.streams or target.collects:
        return "a generator"
    if call.executor is not None and not isinstance(call.executor, ThreadPoolExecutor):
        return "an executor that is no pool of threads"
    return "a coroutine, unless its tool is governed with runs_commands=True"


class HeldFunction:
    """A plain body that runs inside a sandbox, from whichever thread it is called.

    Args:
        function: the body.
        sandbox: what holds it; what was refused is added there.
    """

    __slots__ = ("_function", "_sandbox")

    def __init__(self, function: Callable[..., Any], sandbox: Sandbox) -> None:
        self._function = function
        self._sandbox = sandbox

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from agenttool_otel.enforcement import hold
        from agenttool_otel.enforcement.noted import noting
        from agenttool_otel.enforcement.rehearsing import commands_on

        sandbox = self._sandbox
        try:
            with commands_on(sandbox.commands), noting(sandbox.suspected):
                result = hold(
                    sandbox.held_by, self._function, args, kwargs, masked=sandbox.masked()
                )
        except SandboxUnavailable as error:
            sandbox.unavailable = error
            raise
        sandbox.entered = True
        # words in the output of a command prove nothing
        sandbox.violations += [each for each in result.violations if not each.suspected]
        if result.exception is not None:
            raise result.exception
        return _finished(sandbox, result.value)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a body that is held can't travel to another process")


class HeldCoroutine:
    """An asynchronous body of which the programs are held that it starts by ``arun_command``.

    Args:
        function: the body, whose call gives an awaitable.
        sandbox: what holds the programs; what was refused is added there.
    """

    __slots__ = ("_function", "_sandbox")

    def __init__(self, function: Callable[..., Any], sandbox: Sandbox) -> None:
        self._function = function
        self._sandbox = sandbox

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from agenttool_otel.enforcement import oblige_commands
        from agenttool_otel.enforcement.noted import noting
        from agenttool_otel.enforcement.rehearsing import commands_on

        sandbox = self._sandbox
        try:
            masked = await asyncio.to_thread(sandbox.masked) if sandbox.roots else ()
        except SandboxUnavailable as error:
            sandbox.unavailable = error
            raise
        profile = sandbox.duty.name
        with (
            commands_on(sandbox.commands),
            oblige_commands(profile, masked),
            noting(sandbox.suspected),
        ):
            sandbox.entered = True
            value = await self._function(*args, **kwargs)
        return _finished(sandbox, value)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a body that is held can't travel to another process")


def held(function: Callable[..., Any], sandbox: Sandbox) -> Callable[..., Any]:
    """Return a body as one that runs inside a sandbox only.

    Args:
        function: the body: a plain function, or with the scope ``command`` one that gives an
          awaitable.
        sandbox: what holds it.
    """
    is_plain = sandbox.scope is SandboxScope.THREAD
    inside = HeldFunction(function, sandbox) if is_plain else HeldCoroutine(function, sandbox)
    if sandbox.rehearsal is None:
        return inside
    from agenttool_otel.call.phases.rehearsing import RehearsedCoroutine, RehearsedFunction

    rehearsed = RehearsedFunction if is_plain else RehearsedCoroutine
    return rehearsed(inside, sandbox, sandbox.rehearsal)


def _finished(sandbox: Sandbox, value: Any) -> Any:
    """Return a value, unless it is one of which a part of the body would still run, in the caller's own thread.

    ``def read(path): return _aread(path)`` returns a coroutine that has not begun.
    """
    if inspect.iscoroutine(value) or inspect.isgenerator(value):
        value.close()
    elif not (inspect.isawaitable(value) or isinstance(value, _LAZY)):
        return value
    sandbox.unfinished = True
    raise TypeError(
        f"the body returned a {type(value).__name__}, which would run outside of its sandbox"
    )


def refusal(sandbox: Sandbox) -> str:
    """Return what a sandbox refused, as a sentence that is not yet redacted.

    Args:
        sandbox: what held the body and refused something.
    """
    if not sandbox.violations:
        return "the body returned what would run outside of its sandbox"
    first = sandbox.violations[0]
    name = errno.errorcode.get(first.errno, "")
    what = " ".join(part for part in (first.kind, first.target, name) if part)
    more = len(sandbox.violations) - 1
    others = f", and {more} more" if more else ""
    return f"the sandbox {sandbox.duty.name} refused: {what}{others}"


def remember_refusals(call: Invocation, session: Session) -> None:
    """Let the policy know of what a sandbox refused, when the same call is made again.

    Args:
        call: the call, whose body was held.
        session: its session.
    """
    if call.sandbox is None:
        return
    kinds = {str(violation.kind) for violation in call.sandbox.violations}
    # a rehearsal's connections are counted; "Permission denied" of a test run is often one of its own
    if call.sandbox.duty.profile is SandboxProfile.READ:
        kinds |= call.sandbox.suspected
    remember_refused(call, session, kinds)


def remember_refused(call: Invocation, session: Session, kinds: set[str]) -> None:
    """Let the policy know that something was refused, when the same call is made again.

    Args:
        call: the call that was held.
        session: its session.
        kinds: what was refused; more time, memory and processes are nothing that a person is asked
            about.
    """
    found = tuple(sorted(kinds - {_LIMIT}))
    if found:
        refusal = SandboxRefusal(found, call.span.get_span_context())
        with suppress(Exception):  # what has no digest is held again
            session.remember_refusal(call.spec.tool_id, call.inputs.permission_input, refusal)


_LIMIT: Final = "limit"
