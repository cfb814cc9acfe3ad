"""Words of the decision point: what clients of ``agenttool serve`` read and send."""

from __future__ import annotations

from enum import StrEnum


class RemoteState(StrEnum):
    """States of a call whose body runs in a client of the decision point."""

    PERMITTED = "permitted"
    """It may run once, with the arguments of this very answer; the client hands in its result."""
    WAITING = "waiting"
    """A person is asked; it may not run."""
    REFUSED = "refused"
    """It may not run: denied, rejected, expired or not understood."""
    COMPLETED = "completed"
    """Its result, or its error, was handed in."""
    CANCELED = "canceled"
    """It ended without a result."""


class RehearsalState(StrEnum):
    """States of a command that a coding agent runs on a layer."""

    RUN = "run"
    """It may run on a layer, once; nothing of it happens before its changes are decided."""
    COMMITTED = "committed"
    """Its changes have happened."""
    WAITING = "waiting"
    """A person is asked about its changes; they are kept on the layer, and have not happened."""
    REFUSED = "refused"
    """Its changes were not permitted, or could not be committed."""


class EvaluationsSemantic(StrEnum):
    """How far a batch of AuthZEN evaluations is worked through (AuthZEN 1.0, section 7)."""

    EXECUTE_ALL = "execute_all"
    """Every evaluation has an answer."""
    DENY_ON_FIRST_DENY = "deny_on_first_deny"
    """The first denial is the last answer."""
    PERMIT_ON_FIRST_PERMIT = "permit_on_first_permit"
    """The first permission is the last answer."""


class ProblemType(StrEnum):
    """Kinds of refused requests (RFC 9457, ``type``); none of them lets a call run."""

    BAD_REQUEST = "urn:agenttool:problem:bad-request"
    """The request is not as its schema asks for."""
    UNAUTHORIZED = "urn:agenttool:problem:unauthorized"
    """There is no token, or another one."""
    FOREIGN_ORIGIN = "urn:agenttool:problem:foreign-origin"
    """The request came from a browser's page, or by another host name."""
    NOT_FOUND = "urn:agenttool:problem:not-found"
    """There is no such path, or no such call."""
    CONFLICT = "urn:agenttool:problem:conflict"
    """The call id was used for another call, or the call has ended."""
    TOO_LARGE = "urn:agenttool:problem:too-large"
    """The body is larger than a body may be, or has no stated length."""
    UNSUPPORTED = "urn:agenttool:problem:unsupported"
    """The body is not JSON, or the method is not one of this path."""
    BUSY = "urn:agenttool:problem:busy"
    """As many requests, sessions or calls as there may be are there already."""
    FAILED = "urn:agenttool:problem:failed"
    """The decision point failed."""


class HookPart(StrEnum):
    """What the hook of a coding agent does at an event."""

    DECIDE = "decide"
    """A call is about to run: it is decided."""
    PERMIT = "permit"
    """The agent is about to ask a person: a call that is not permitted is denied before."""
    COMPLETE = "complete"
    """A call has ended: its result is recorded."""
    END = "end"
    """The agent's session has ended: what waits in it is canceled."""
