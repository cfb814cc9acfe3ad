"""How much waits in a store, and what was answered there: read when metrics are collected.

Counted by a process, these would be wrong as soon as another one answers, or a request expires.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from sqlalchemy import Connection, bindparam, func, select

from agenttool_otel.approvals.store.database import Database
from agenttool_otel.approvals.store.rows import request_of
from agenttool_otel.approvals.store.schema import requests
from agenttool_otel.approvals.store.statements import Statement
from agenttool_otel.names import ApprovalStatus
from agenttool_otel.telemetry.stores import StoreLevels

_PENDING: Final = Statement(
    select(func.count(), func.min(requests.c.created_us)).where(
        requests.c.status == ApprovalStatus.PENDING.value,
        # what is due counts as expired, whether or not a process has looked
        requests.c.expires_us > bindparam("now"),
    )
)
_ANSWERED: Final = Statement(
    select(requests.c.tool_id, requests.c.status, func.count())
    .where(requests.c.answered_us.is_not(None))
    .group_by(requests.c.tool_id, requests.c.status)
)
_ANY_OF_TOOL: Final = Statement(
    select(requests).where(requests.c.tool_id == bindparam("tool")).limit(1)
)


class Levels:
    """Reads the levels of one store, and never writes to it."""

    def __init__(self, db: Database) -> None:
        self._db = db
        # a row has the tool's id; its name, by which metrics group, is sealed in the request
        self._names: dict[str, str] = {}

    def read(self) -> StoreLevels:
        """Return what waits and what was answered.

        Raises:
            ApprovalStoreError: the store can't be read.
        """
        answered: Counter[tuple[str, str]] = Counter()
        with self._db.read() as (connection, now_us):
            pending, oldest_us = _PENDING.first(connection, now=now_us)
            for tool_id, status, count in _ANSWERED.all(connection):
                answered[self._name_of(connection, tool_id), _answer_of(status).value] += count
        oldest = 0.0
        if oldest_us is not None:
            oldest = max(0.0, (now_us - oldest_us) / 1_000_000)
        kind = "memory" if self._db.memory else "lasting"
        return StoreLevels(kind, int(pending), oldest, answered)

    def _name_of(self, connection: Connection, tool_id: str) -> str:
        if tool_id not in self._names:
            row = _ANY_OF_TOOL.first(connection, tool=tool_id)
            self._names[tool_id] = request_of(self._db.sealer, row).tool_name
        return self._names[tool_id]


def _answer_of(status: str) -> ApprovalStatus:
    """Return what a person answered; an approval is consumed when it is used, or expires."""
    if status == ApprovalStatus.REJECTED.value:
        return ApprovalStatus.REJECTED
    return ApprovalStatus.APPROVED
