"""Summaries of the requests of a view, for lists that are filtered and searched.

Each row is opened once: what a request says never changes, and whatever else changes gives its row
another seal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from sqlalchemy import Connection, func, select

from agenttool_otel.approvals.selecting import VIEW_STATES, Summary, View, summary_of
from agenttool_otel.approvals.store.requests import Requests
from agenttool_otel.approvals.store.schema import requests
from agenttool_otel.approvals.types import ApprovalRequest
from agenttool_otel.values.forks import new_lock

MAX_HISTORY: Final = 2_000
"""How many of the newest requests that were answered or ended can be listed and searched."""

_READ_AT_ONCE: Final = 200


class Overview:
    """Reads lists of requests, and remembers what it opened for them."""

    def __init__(self, store_requests: Requests) -> None:
        self._requests = store_requests
        self._lock = new_lock()
        self._known: dict[View, dict[str, tuple[str, Summary]]] = {view: {} for view in View}

    def summaries(self, view: View) -> list[Summary]:
        """Return the requests of a view, what expires first or was answered last in front.

        Args:
            view: which states.

        Raises:
            ApprovalStoreError: the store can't be read.
        """
        self._requests.expire_if_any_due()
        with self._lock, self._requests.db.read() as (connection, now_us):
            known = self._known[view]
            rows = connection.execute(_seals_query(view)).all()
            # its seal is another one as soon as anything of it changed
            fresh = [
                row.request_id
                for row in rows
                if row.request_id not in known or known[row.request_id][0] != row.seal
            ]
            for row in _rows_of(connection, fresh):
                request = self._requests.shown(row, now_us)
                known[row.request_id] = (
                    row.seal,
                    summary_of(request, row.created_us, row.expires_us),
                )
            current = {
                row.request_id: known[row.request_id] for row in rows if row.request_id in known
            }
            self._known[view] = current
            return [summary for _, summary in current.values()]

    def listed(self, ids: Sequence[str]) -> list[ApprovalRequest]:
        """Return requests by their ids, in that order; what is not there any more is left out.

        Args:
            ids: the ids.

        Raises:
            ApprovalStoreError: the store can't be read.
        """
        with self._requests.db.read() as (connection, now_us):
            rows = {row.request_id: row for row in _rows_of(connection, ids)}
        return [self._requests.shown(rows[each], now_us) for each in ids if each in rows]


def _rows_of(connection: Connection, ids: Sequence[str]) -> Iterator[Any]:
    for start in range(0, len(ids), _READ_AT_ONCE):
        some = ids[start : start + _READ_AT_ONCE]
        yield from connection.execute(select(requests).where(requests.c.request_id.in_(some)))


def _seals_query(view: View) -> Any:
    states = [state.value for state in VIEW_STATES[view]]
    query = select(requests.c.request_id, requests.c.seal).where(requests.c.status.in_(states))
    if view is not View.HISTORY:
        return query.order_by(requests.c.expires_us, requests.c.created_us)
    last = func.coalesce(requests.c.answered_us, requests.c.created_us)
    return query.order_by(last.desc()).limit(MAX_HISTORY)
