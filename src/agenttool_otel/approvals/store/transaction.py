"""One write of the approval store: rows, the entries about them and the head change together
or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import Connection, Table, bindparam

from agenttool_otel.approvals.store import evidence, schema
from agenttool_otel.approvals.store.clock import Mark
from agenttool_otel.approvals.store.sealing import MAC_BYTES, Sealer
from agenttool_otel.approvals.store.statements import Statement
from agenttool_otel.errors import (
    ApprovalClockAhead,
    ApprovalConflict,
    ApprovalError,
    ApprovalStoreError,
)
from agenttool_otel.names import ApprovalConflictReason, ApprovalLogKind

_INSERT: Final = {table: Statement(table.insert()) for table in schema.SEALED}
_UPDATE: Final = {
    table: Statement(  # compare and set
        table.update().where(
            *(key == bindparam("this_key") for key in table.primary_key.columns),
            table.c.seal == bindparam("this_seal"),
        )
    )
    for table in schema.SEALED
}
_UPDATE_HEAD: Final = Statement(schema.head.update().where(schema.head.c.id == 1))


class Refused(Exception):
    """Raised inside ``Database.write`` to commit what was logged so far and then raise
    ``error``.
    """

    def __init__(self, error: ApprovalError) -> None:
        super().__init__()
        self.error = error


class Transaction:
    """One open write transaction."""

    def __init__(self, connection: Connection, sealer: Sealer, head: Any, mark: Mark) -> None:
        self.connection = connection
        self.now_us = mark.us
        self._ahead_us = mark.ahead_us
        self._sealer = sealer
        self._head = head
        self._mark = mark
        self.end: tuple[int, str] = (head.seq, head.hash)  # number and MAC of the last entry
        # seals of the rows of each bucket that was read, by table and key
        self._live: dict[int, dict[str, str]] = {}

    def check_clock(self) -> None:
        """Refuse where this process's clock is far ahead: whether a time is over can't be decided here.

        Raises:
            ApprovalClockAhead: it is.
        """
        if self._ahead_us:
            ahead = timedelta(seconds=self._ahead_us // 1_000_000)
            raise ApprovalClockAhead(
                f"this process's clock is {ahead} ahead of the approval store", ahead=ahead
            )

    def log(
        self, kind: ApprovalLogKind, request_id: str, *, changed_row: str = "", **data: Any
    ) -> None:
        """Append an entry to the evidence log; it is committed or rolled back with
        everything else.
        """
        self.end = evidence.append_entry(
            self.connection,
            self._sealer,
            self.end,
            self.now_us,
            kind,
            request_id,
            changed_row,
            data,
        )

    def check(self, table: Table, row: Any) -> None:
        """Refuse a row that is not as it was last written: one that was edited, or put back as it
        once was.
        """
        evidence.check_row(self._sealer, table, row)
        if row.bucket is not None:
            self._seals_of(row.bucket)

    def insert(
        self,
        table: Table,
        values: Mapping[str, Any],
        kind: ApprovalLogKind,
        request_id: str,
        **facts: Any,
    ) -> None:
        """Add a row, with the entry about it."""
        row = evidence.sealed_row(self._sealer, table, values)
        self._set_live(table, row, row["bucket"])
        _INSERT[table].run(self.connection, **row)
        self.log(kind, request_id, changed_row=_changed(table, row), **facts)

    def update(
        self,
        table: Table,
        row: Any,
        changes: Mapping[str, Any],
        kind: ApprovalLogKind,
        request_id: str,
        **facts: Any,
    ) -> None:
        """Change a row that this transaction has read, with the entry about it."""
        self.check(table, row)
        new = evidence.sealed_row(self._sealer, table, {**row._asdict(), **changes})
        self._set_live(table, new, row.bucket if new["bucket"] is None else new["bucket"])
        key = evidence.key_of(table, new)
        updated = _UPDATE[table].run(self.connection, **new, this_key=key, this_seal=row.seal)
        if updated.rowcount != 1:
            raise ApprovalConflict(
                "the request changed meanwhile", reason=ApprovalConflictReason.ALREADY_ANSWERED
            )
        self.log(kind, request_id, changed_row=_changed(table, new), **facts)

    def _seals_of(self, bucket: int) -> dict[str, str]:
        """Return the seals of a bucket's rows, once they are known to be those that the head
        vouches for.
        """
        if bucket not in self._live:
            seals = evidence.live_seals(self.connection, bucket)
            start = bucket * MAC_BYTES
            vouched = bytes(self._head.bucket_macs)[start : start + MAC_BYTES]
            if not self._sealer.equal(evidence.bucket_mac(self._sealer, bucket, seals), vouched):
                raise ApprovalStoreError(
                    "the approval store was changed: its rows are not those that it last wrote"
                )
            self._live[bucket] = seals
        return self._live[bucket]

    def _set_live(self, table: Table, row: Mapping[str, Any], bucket: int | None) -> None:
        if bucket is None:
            return
        name = f"{table.name}:{evidence.key_of(table, row)}"
        if row["bucket"] is None:
            self._seals_of(bucket).pop(name, None)
        else:
            self._seals_of(bucket)[name] = row["seal"]

    def write_head(self) -> None:
        """Seal what this transaction did; one that left no entry did nothing."""
        if self.end[0] != self._head.seq:
            macs = bytearray(self._head.bucket_macs)
            for bucket, seals in self._live.items():
                start = bucket * MAC_BYTES
                macs[start : start + MAC_BYTES] = evidence.bucket_mac(self._sealer, bucket, seals)
            write_head(self.connection, self._sealer, self._head, self.end, self._mark, bytes(macs))


def write_head(
    connection: Connection,
    sealer: Sealer,
    head: Any,
    end: tuple[int, str],
    mark: Mark,
    bucket_macs: bytes,
) -> None:
    """Write the one head row."""
    values = {
        **head._asdict(),
        "seq": end[0],
        "hash": end[1],
        "clock_us": mark.us,
        "clock_ticks_us": mark.ticks_us,
        "clock_boot": mark.boot,
        "key_id": sealer.key_id,
        "bucket_macs": bucket_macs,
    }
    values["seal"] = evidence.head_seal(sealer, values)
    _UPDATE_HEAD.run(connection, **values)


def _changed(table: Table, row: Mapping[str, Any]) -> str:
    return f"{table.name}:{evidence.key_of(table, row)}:{row['seal']}"
