"""Typed outcomes; the standard's error taxonomy stands in ``records/taxonomy.py`` and is handed on
from here.

A governed outcome is a type, never a string to compare: ``ToolDenied`` (a ``PermissionError``),
``ApprovalRequired`` (a pause, not a failure), ``ToolInputInvalid`` and so on. Each carries the
``ToolResult`` that the standard asks for, so that a program which catches it has as much as one
that called ``.tool.invoke``. A tool's own exception is never one of these: it is re-raised as it
was.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from agenttool_otel.names import ApprovalConflictReason, ErrorClass, FailClosedCause
from agenttool_otel.records.permission_decision import PermissionDecision
from agenttool_otel.records.result import ToolResult
from agenttool_otel.records.taxonomy import TAXONOMY as TAXONOMY
from agenttool_otel.records.taxonomy import ErrorSpec as ErrorSpec
from agenttool_otel.values.forks import cached_property


class AgentToolError(Exception):
    """Base of every exception that this package raises."""


class ConfigurationError(AgentToolError, ValueError):
    """A setting, declaration or governed object can't be used as given."""


class UnsupportedEventLoop(ConfigurationError):
    """An asynchronous call was awaited where no asyncio loop runs, under trio for example; nothing
    ran.
    """


class GovernedOutcome(AgentToolError):
    """A call that ended without running, as an exception for callers of the plain function.

    Attributes:
        result: the terminal (or, for a pause, pending) tool_result record; made when first read, of
          what was then.
        decision: the permission decision behind it, if the call got that far; likewise.
        error_class: the standard's error class; ``None`` for a pause, which is no error.
        invocation_id: the invocation's id.
    """

    def __init__(
        self,
        message: str,
        *,
        error_class: ErrorClass | None = None,
        invocation_id: str = "",
        records: Callable[[], tuple[ToolResult | None, PermissionDecision | None]] = lambda: (
            None,
            None,
        ),
    ) -> None:
        super().__init__(message)
        self._records = records
        self.error_class = error_class
        self.invocation_id = invocation_id

    @cached_property
    def result(self) -> ToolResult | None:
        return self._records()[0]

    @cached_property
    def decision(self) -> PermissionDecision | None:
        return self._records()[1]

    def __reduce__(self) -> tuple[Any, ...]:
        state = {**self.__dict__, "result": self.result, "decision": self.decision}
        del state["_records"]
        return (_rebuild_outcome, (type(self), str(self), state))


def _rebuild_outcome(
    cls: type[GovernedOutcome], message: str, state: dict[str, Any]
) -> GovernedOutcome:
    outcome = cls(message)
    outcome.__dict__.update(state)
    return outcome


class ToolDenied(GovernedOutcome, PermissionError):
    """The call must not run: policy, a rule, a hook or the failure to get a decision refused it."""


class ApprovalRejected(ToolDenied):
    """A person or coordinator was asked and refused."""


class ToolBlocked(ToolDenied):
    """The tool is blocked, excluded or not loaded on the current surface."""


class ApprovalRequired(GovernedOutcome):
    """The call waits for an answer; ``resume(invocation_id)`` continues the same invocation.

    Attributes:
        request_id: id of the stored approval request, empty when there is no store.
    """

    def __init__(self, message: str, *, request_id: str = "", **kwargs: Any) -> None:
        super().__init__(message, **kwargs)
        self.request_id = request_id


class ResultRequired(GovernedOutcome):
    """A custom tool was permitted and runs elsewhere; ``Governor.complete(invocation_id, result)``
    ends its call.

    Attributes:
        arguments: the JSON arguments it was permitted with.
    """

    def __init__(
        self, message: str, *, arguments: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(message, **kwargs)
        self.arguments = arguments or {}


class ToolInputInvalid(GovernedOutcome, TypeError, ValueError):
    """The arguments don't fit the tool's schema or signature; both ``except TypeError`` and
    ``ValueError`` see it.
    """


class ToolTimeout(GovernedOutcome, TimeoutError):
    """The execution profile's ``timeout_ms`` passed."""


class ToolUnavailable(GovernedOutcome):
    """What the call needs was not to be had, such as its lock: it did not run, and may be sent
    again later.
    """


class ToolCanceled(GovernedOutcome):
    """The call was canceled, and not its caller's task."""


class SandboxUnavailable(AgentToolError):
    """A profile is not proven on this host, or could not be entered; the function or command has
    not run.

    Attributes:
        profile: the profile's name.
        reason: what is missing.
    """

    def __init__(self, reason: str, *, profile: str = "") -> None:
        super().__init__(f"the profile {profile or 'asked for'} is not available: {reason}")
        self.profile = profile
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild_unavailable, (self.reason, self.profile))


def _rebuild_unavailable(reason: str, profile: str) -> SandboxUnavailable:
    return SandboxUnavailable(reason, profile=profile)


class EffectsError(AgentToolError):
    """What a body reports of its effects can't be decided, so that it must not go on.

    A tool lets it through: its transaction rolls back, and the call ends with a typed outcome.
    """


class EffectsDenied(EffectsError):
    """The policy, or a person, denies what the body is about to do; let it through."""


class EffectsPending(EffectsError):
    """A person is asked about what the body is about to do, and it runs again later; let it through."""


class UnknownTool(GovernedOutcome, LookupError):
    """No tool of that name or alias is on the surface."""


class InstanceMissing(AgentToolError, TypeError):
    """A method was to run without its instance, so that each argument would stand for the one
    before it; nothing ran.

    Call it through the instance (``files.copy.tool.invoke(...)``), and resume its paused calls in
    the process that asked, while that remembers the instance. An approval stays unused.
    """


class ToolFailed(AgentToolError):
    """What the program that ran a custom tool reports of its failure."""


class InvocationNotFound(AgentToolError, LookupError):
    """No call of that id waits, in this process or in its approval store."""


class PayloadInvalid(AgentToolError, ValueError):
    """What a coding agent sent to its hook is not what its dialect describes."""


class InvocationConflict(AgentToolError):
    """The call has ended already: it was completed or interrupted."""


class ResultInvalid(AgentToolError, ValueError):
    """A result from outside does not fit the tool's output schema; the call waits on."""


class ToolChanged(AgentToolError):
    """Another process permitted the call of a tool that is declared otherwise here; the
    call waits on.
    """


class PolicyError(AgentToolError):
    """Base of policy failures; each becomes a deny.

    Attributes:
        cause: the word for it in telemetry, see FailClosedCause.
    """

    cause: FailClosedCause = FailClosedCause.ENGINE_ERROR

    def __init__(self, message: str, *, cause: FailClosedCause | None = None) -> None:
        super().__init__(message)
        if cause is not None:
            self.cause = cause


class PolicyLoadError(PolicyError, ConfigurationError):
    """A bundle can't be loaded: missing, empty, syntax error, bad signature, undefined
    entry point.
    """

    cause = FailClosedCause.BUNDLE_MISSING


class PolicyUnsupported(PolicyLoadError):
    """A policy uses what the engine lacks; the message names the builtin, file and line."""


class PolicyEvaluationError(PolicyError):
    """An evaluation ended in an error or panic, or its answer is not a decision."""


class PolicyTimeout(PolicyError):
    """A decision took longer than its deadline."""

    cause = FailClosedCause.TIMEOUT


class PolicyUnavailable(PolicyError):
    """The engine can't be reached, or its circuit breaker is open."""

    cause = FailClosedCause.UNAVAILABLE


class ApprovalError(AgentToolError):
    """Base of failures to store, answer or claim an approval; none of them lets a call run."""


class ApprovalNotFound(ApprovalError, LookupError):
    """No such approval request."""


class ApprovalConflict(ApprovalError):
    """The request is already answered or consumed, or does not fit what it is used for.

    Attributes:
        reason: which binding or rule did not fit.
    """

    def __init__(self, message: str, *, reason: ApprovalConflictReason | None = None) -> None:
        super().__init__(message)
        self.reason = reason


class ApprovalExpired(ApprovalError):
    """The request's time is over."""


class ApprovalStoreError(ApprovalError):
    """The store can't be read or written: locked, full, corrupt, unreachable, or sealed with
    another key.
    """


class ApprovalClockAhead(ApprovalStoreError):
    """This process's clock is far ahead of the approval store's time, so no answer is taken and
    nothing runs here.

    Attributes:
        ahead: how far.
    """

    def __init__(self, message: str, *, ahead: timedelta = timedelta(0)) -> None:
        super().__init__(message)
        self.ahead = ahead


class SessionStoreError(AgentToolError):
    """Where sessions are shared can't be reached or used; the call that had to be counted there
    does not run.
    """


class PersistenceError(AgentToolError):
    """A payload store failed; the tool's result is delivered all the same, bounded."""
