"""Whom a program names as its approver: an object with ``ask`` or ``aask``, or a plain function."""

from __future__ import annotations

from typing import Any

from agenttool_otel.approvals.approvers import Callback, CallbackApprover
from agenttool_otel.approvals.types import Approver, AsyncApprover
from agenttool_otel.errors import ConfigurationError

__all__ = ["Callback", "taken"]


def taken(approver: Any) -> Approver | AsyncApprover | None:
    """Take whoever a program names as its approver; a function is asked through ``CallbackApprover``.

    Args:
        approver: an approver, a function of the request, or nobody.

    Raises:
        ConfigurationError: it is neither, so that nobody would ever be asked.
    """
    if isinstance(approver, type):
        raise ConfigurationError(f"approver is the class {approver.__name__}: write {approver.__name__}(...)")
    if approver is None or isinstance(approver, (Approver, AsyncApprover)):
        return approver
    if callable(approver):
        return CallbackApprover(approver)
    raise ConfigurationError(
        f"approver has to be an approver or a function of the request, not {type(approver).__name__}"
    )
