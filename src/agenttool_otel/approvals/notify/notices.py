"""Which notices are due: of a request, for a target, at a time."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from agenttool_otel.approvals.notify.targets import Target
from agenttool_otel.approvals.types import ApprovalRequest
from agenttool_otel.names import ApprovalStatus

MAX_REMINDERS: Final = 10
"""How often a target is reminded of one request."""


class NoticeKind(StrEnum):
    """What a notice is about."""

    ASKED = "asked"
    """A question waits."""
    REMINDER = "reminder"
    """It waits still."""
    ESCALATED = "escalated"
    """Those who were asked first have not answered."""
    EXPIRING = "expiring"
    """Its time is nearly over."""
    ANSWERED = "answered"
    """It was approved or rejected."""
    EXPIRED = "expired"
    """Nobody answered in time."""
    WITHDRAWN = "withdrawn"
    """It was canceled, or its run was interrupted."""


_ENDS: Final = {
    ApprovalStatus.APPROVED: NoticeKind.ANSWERED,
    ApprovalStatus.CONSUMED: NoticeKind.ANSWERED,
    ApprovalStatus.REJECTED: NoticeKind.ANSWERED,
    ApprovalStatus.EXPIRED: NoticeKind.EXPIRED,
    ApprovalStatus.CANCELED: NoticeKind.WITHDRAWN,
    ApprovalStatus.INTERRUPTED: NoticeKind.WITHDRAWN,
}


class Notice(NamedTuple):
    """One notice."""

    kind: NoticeKind  # what it is about
    request: ApprovalRequest  # the request
    mark: str  # names it among those of its request and target: ``reminder-2``


def concerns(request: ApprovalRequest, target: Target) -> bool:
    """Return whether a target gets notices of a request.

    Args:
        request: the request.
        target: the target.
    """
    if target.risks and request.profile.get("risk_level") not in target.risks:
        return False
    may_answer = {*request.approver_roles, *request.required_roles}
    return not target.roles or not may_answer or bool(may_answer & set(target.roles))


def due(
    request: ApprovalRequest, target: Target, sent: Collection[str], now: datetime
) -> Notice | None:
    """Return the notice of an open request that a target is to get now, if one.

    Of several reminders that are due, for example after a pause, the last one alone is sent.

    Args:
        request: a request that waits.
        target: a target that it concerns.
        sent: the marks of what the target got of it.
        now: the store's time.
    """
    waited = now - request.created_at
    if waited < target.after:
        return None
    first = NoticeKind.ESCALATED if target.after else NoticeKind.ASKED
    if first.value not in sent:
        return Notice(first, request, first.value)
    if request.expires_at is not None and target.expiring:
        is_near = request.expires_at - now <= target.expiring
        if is_near and NoticeKind.EXPIRING.value not in sent:
            return Notice(NoticeKind.EXPIRING, request, NoticeKind.EXPIRING.value)
    number = _reminders_due(waited - target.after, target.remind)
    mark = f"{NoticeKind.REMINDER.value}-{number}"
    if not number or mark in sent:
        return None
    return Notice(NoticeKind.REMINDER, request, mark)


def _reminders_due(waited: timedelta, every: timedelta) -> int:
    return min(waited // every, MAX_REMINDERS) if every else 0


def end_of(request: ApprovalRequest) -> Notice:
    """Return the notice of how a request ended.

    Args:
        request: a request that waits no longer.
    """
    kind = _ENDS[request.status]
    return Notice(kind, request, kind.value)
