"""The approval store's evidence: append-only rows, each with the hash of the one before (design section 6).

A row is written in the same transaction as what it records, so there is no state without its evidence and no evidence
of what never happened. The chain shows that rows were changed, dropped or put in; it can't show that someone who owns
the database rewrote all of it: anchor the head elsewhere for that (docs/approvals.md).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any, Final

import rfc8785
from sqlalchemy import Connection, select

from agenttool_otel.approvals import schema
from agenttool_otel.approvals.types import ChainReport, LogEntry
from agenttool_otel.names import ApprovalLogKind

__all__ = ["GENESIS", "append_entry", "key_id", "position", "read_entries", "verify"]

GENESIS: Final = "0" * 64
"""``previous`` of the first entry."""

_PAGE: Final = 1000


def append_entry(
    connection: Connection,
    seq: int,
    previous: str,
    at_us: int,
    kind: ApprovalLogKind,
    request_id: str,
    data: dict[str, Any],
) -> str:
    """Insert one entry and return its hash.

    Args:
        connection: the transaction's connection.
        seq: number of the entry.
        previous: hash of the entry before.
        at_us: the store's time, in microseconds since 1970.
        kind: what happened.
        request_id: to which request.
        data: JSON facts without content.
    """
    facts = {key: value for key, value in data.items() if value is not None}
    digest = _hash(seq, previous, at_us, kind.value, request_id, facts)
    connection.execute(
        schema.log.insert().values(
            seq=seq,
            previous=previous,
            hash=digest,
            at_us=at_us,
            kind=kind.value,
            request_id=request_id,
            data=rfc8785.dumps(facts).decode("utf-8"),
        )
    )
    return digest


def read_entries(connection: Connection, after: int = 0) -> Iterator[LogEntry]:
    """Yield the entries after a number, in order, without loading them all."""
    while True:
        query = select(schema.log).where(schema.log.c.seq > after).order_by(schema.log.c.seq).limit(_PAGE)
        rows = connection.execute(query).all()
        for row in rows:
            kind = ApprovalLogKind(row.kind)
            yield LogEntry(row.seq, row.previous, row.hash, row.at_us, kind, row.request_id, json.loads(row.data))
            after = row.seq
        if len(rows) < _PAGE:
            return


def verify(connection: Connection) -> ChainReport:
    """Check every entry against the one before, and the last against the recorded head."""
    recorded = connection.execute(select(schema.head.c.seq, schema.head.c.hash).where(schema.head.c.id == 1)).one()
    count, previous = 0, GENESIS
    entries = read_entries(connection)
    while True:
        expected = count + 1
        try:
            entry = next(entries, None)
        except (ValueError, RecursionError):
            return ChainReport(False, count, previous, expected, "unreadable entry")
        if entry is None:
            break
        problem = None
        if entry.seq != expected:
            problem = "an entry is missing"
        elif entry.previous != previous:
            problem = "does not follow from the entry before"
        elif entry.hash != _entry_hash(entry):
            problem = "was changed"
        if problem is not None:
            return ChainReport(False, count, previous, expected, problem)
        count, previous = count + 1, entry.hash
    if (recorded.seq, recorded.hash) != (count, previous):
        return ChainReport(False, count, previous, count + 1, "the last entries are missing")
    return ChainReport(True, count, previous)


def _entry_hash(entry: LogEntry) -> str | None:
    try:
        return _hash(entry.seq, entry.previous, entry.at_us, entry.kind.value, entry.request_id, entry.data)
    except (rfc8785.CanonicalizationError, RecursionError):
        return None


def _hash(seq: int, previous: str, at_us: int, kind: str, request_id: str, data: dict[str, Any]) -> str:
    # times in microseconds stay below 2^53 until the year 2255, so that RFC 8785 can write them
    document: Any = {
        "seq": seq,
        "previous": previous,
        "at_us": at_us,
        "kind": kind,
        "request": request_id,
        "data": data,
    }
    return hashlib.sha256(rfc8785.dumps(document)).hexdigest()


def position(connection: Connection) -> int:
    """Return the number of the last entry."""
    return int(connection.execute(select(schema.head.c.seq).where(schema.head.c.id == 1)).scalar_one())


def key_id(connection: Connection) -> str:
    """Return which key sealed the store's rows, an empty string for a new store."""
    return str(connection.execute(select(schema.head.c.key_id).where(schema.head.c.id == 1)).scalar_one())
