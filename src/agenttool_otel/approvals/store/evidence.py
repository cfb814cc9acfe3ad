"""The approval store's evidence, under a key that the database does not hold (docs/approvals.md,
"Evidence").

- Each row carries a seal, a MAC over all its columns: a changed or swapped value is noticed when
  the row is read.
- The log is a chain of MACs; each entry names the row that it changed, with that row's new seal. It
  is written in the same transaction as what it records, so there is no state without its evidence
  and no evidence of what never happened.
- The head row carries the end of the log and, for each bucket of live rows (those from which a call
  may still come to run), a MAC over their seals; the head is sealed as a whole. So a row that was
  put back as it once was, with the seal that it once had, fits no more.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Connection, Select, Table, bindparam, literal, select, union_all

from agenttool_otel.approvals.store import schema
from agenttool_otel.approvals.store.sealing import MAC_BYTES, Sealer
from agenttool_otel.approvals.store.statements import Statement
from agenttool_otel.approvals.types import ChainReport, LogEntry
from agenttool_otel.errors import ApprovalStoreError
from agenttool_otel.names import ApprovalLogKind, ApprovalStatus, RequiredStatus
from agenttool_otel.values.canonical import json_text

GENESIS: Final = "0" * 64
"""``previous`` of the first entry."""

BUCKETS: Final = 64
"""Into so many parts the live rows are divided, so that a write reads only one of them."""

NO_LIVE_ROWS: Final = bytes(MAC_BYTES)
"""The MAC of a bucket without rows."""

_ROWS_PER_READ: Final = 1000

# --- rows -----------------------------------------------------------------------------------------


def key_of(table: Table, row: Mapping[str, Any]) -> str:
    """Return the primary key of a row."""
    (column,) = table.primary_key.columns
    return str(row[column.name])


def sealed_row(sealer: Sealer, table: Table, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a whole row, with its bucket and its seal."""
    row = {column.name: values.get(column.name) for column in table.columns}
    row["bucket"] = _bucket(table, row) if _is_live(table, row) else None
    row["seal"] = _seal(sealer, table, row)
    return row


def check_row(sealer: Sealer, table: Table, row: Any) -> None:
    """Refuse a row that is not as this store last wrote it, or as it once wrote it."""
    if not _is_intact(sealer, table, row):
        raise ApprovalStoreError("the stored row was changed, or sealed under another key")


def _is_intact(sealer: Sealer, table: Table, row: Any) -> bool:
    try:
        return sealer.equal(_seal(sealer, table, row._asdict()), row.seal)
    except (TypeError, ValueError):
        return False


def _seal(sealer: Sealer, table: Table, row: Mapping[str, Any]) -> str:
    values = [row[column.name] for column in table.columns if column.name != "seal"]
    return sealer.mac(table.name, values).hex()


def _is_live(table: Table, row: Mapping[str, Any]) -> bool:
    """Return whether a call may still come to run, or to be taken for lost, because of a row."""
    if table is schema.grants:
        return row["revoked_us"] is None
    if table is schema.required:
        return bool(row["status"] == RequiredStatus.WAITING)
    if row["status"] == ApprovalStatus.CONSUMED:
        return row["outcome"] is None
    return row["status"] in {ApprovalStatus.PENDING, ApprovalStatus.APPROVED}


def _bucket(table: Table, row: Mapping[str, Any]) -> int:
    name = f"{table.name}:{key_of(table, row)}"
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return digest[0] % BUCKETS


def _select_live_seals(table: Table) -> Select[Any]:
    columns = literal(table.name), *table.primary_key.columns, table.c.seal
    return select(*columns).where(table.c.bucket == bindparam("live"))


_LIVE_SEALS: Final = Statement(union_all(*map(_select_live_seals, schema.SEALED)))
_ADD_ENTRY: Final = Statement(schema.log.insert())
_LAST_ENTRY: Final = Statement(
    select(schema.log.c.seq, schema.log.c.hash).order_by(schema.log.c.seq.desc()).limit(1)
)


def live_seals(connection: Connection, bucket: int) -> dict[str, str]:
    """Return the seals of a bucket's rows by table and key."""
    rows = _LIVE_SEALS.all(connection, live=bucket)
    return {f"{name}:{key}": str(seal) for name, key, seal in rows}


def bucket_mac(sealer: Sealer, bucket: int, seals: Mapping[str, str]) -> bytes:
    """Return the MAC over the seals of a bucket's rows."""
    if not seals:
        return NO_LIVE_ROWS
    return sealer.mac("bucket", [bucket, sorted(seals.items())])


def head_seal(sealer: Sealer, head: Mapping[str, Any]) -> str:
    """Return the MAC over the head row."""
    return _seal(sealer, schema.head, head)


def check_head(sealer: Sealer, head: Any) -> None:
    """Refuse a head that is not as this store wrote it."""
    if head is not None and head.key_id != sealer.key_id:
        raise ApprovalStoreError("the approval store was sealed with another key")
    if head is None or not _is_intact(sealer, schema.head, head):
        raise _changed_head()
    if len(head.bucket_macs) != BUCKETS * MAC_BYTES:
        raise _changed_head()


def _changed_head() -> ApprovalStoreError:
    return ApprovalStoreError(
        "the approval store was changed: its head is not as this program wrote it"
    )


# --- the log --------------------------------------------------------------------------------------


def append_entry(
    connection: Connection,
    sealer: Sealer,
    previous: tuple[int, str],
    at_us: int,
    kind: ApprovalLogKind,
    request_id: str,
    changed_row: str,
    data: dict[str, Any],
) -> tuple[int, str]:
    """Insert one entry after the previous one.

    Args:
        connection: of the transaction that makes the change.
        sealer: the store's key.
        previous: number and MAC of the last entry.
        at_us: the store's time, microseconds since 1970.
        kind: what happened.
        request_id: the request that it happened to; empty where it is about none.
        changed_row: table, key and new seal of the row that the change wrote; empty where it wrote
            none.
        data: further facts; those that are ``None`` are left out.

    Returns:
        number and MAC of the new entry.
    """
    facts = {key: value for key, value in data.items() if value is not None}
    if "args_digest" in facts:  # the log is not encrypted, and short arguments could be tried
        facts["args_digest"] = sealer.mac("args_digest", [facts["args_digest"]]).hex()
    last_number, last_mac = previous
    entry = LogEntry(
        seq=last_number + 1,
        previous=last_mac,
        hash="",
        at_us=at_us,
        kind=kind,
        request_id=request_id,
        data=facts,
        changed_row=changed_row,
    )
    facts_json = json_text(facts)
    mac = entry_mac(sealer, entry, facts_json)
    _ADD_ENTRY.run(
        connection,
        seq=entry.seq,
        previous=entry.previous,
        hash=mac,
        at_us=entry.at_us,
        kind=kind.value,
        request_id=entry.request_id,
        changed_row=entry.changed_row,
        data=facts_json,
    )
    return entry.seq, mac


def entry_mac(sealer: Sealer, entry: LogEntry, facts: str) -> str:
    """Return the MAC over all other fields of an entry, its facts as they are written."""
    # times in microseconds stay below 2^53 until the year 2255, so that RFC 8785 can write them
    values = [
        entry.seq,
        entry.previous,
        entry.at_us,
        entry.kind.value,
        entry.request_id,
        entry.changed_row,
        facts,
    ]
    return sealer.mac("log", values).hex()


def read_entries(connection: Connection, after: int = 0) -> Iterator[LogEntry]:
    """Yield the entries after a number, in order, without loading them all."""
    while True:
        query = (
            select(schema.log)
            .where(schema.log.c.seq > after)
            .order_by(schema.log.c.seq)
            .limit(_ROWS_PER_READ)
        )
        rows = connection.execute(query).all()
        for row in rows:
            yield _entry_of(row)
            after = row.seq
        if len(rows) < _ROWS_PER_READ:
            return


def _entry_of(row: Any) -> LogEntry:
    with suppress(ValueError, TypeError, RecursionError):
        data = json.loads(row.data)
        entry = LogEntry(
            seq=row.seq,
            previous=row.previous,
            hash=row.hash,
            at_us=row.at_us,
            kind=ApprovalLogKind(row.kind),
            request_id=row.request_id,
            data=data,
            changed_row=row.changed_row,
        )
        # {"a":1,"a":2} or other spaces: not the text that this store writes
        if json_text(data) == row.data:
            return entry
    raise ApprovalStoreError(f"entry {row.seq} of the evidence log can't be read")


def last_entry(connection: Connection) -> tuple[int, str]:
    """Return number and MAC of the last entry."""
    row = _LAST_ENTRY.first(connection)
    return (0, GENESIS) if row is None else (row.seq, row.hash)


def _mac_of_entry(connection: Connection, seq: int) -> str:
    found = connection.execute(select(schema.log.c.hash).where(schema.log.c.seq == seq)).scalar()
    return GENESIS if found is None and seq == 0 else str(found)


# --- verifying ------------------------------------------------------------------------------------


def verify(
    connection: Connection,
    sealer: Sealer,
    anchor: tuple[int, str] | None = None,
    *,
    from_start: bool = True,
) -> ChainReport:
    """Check every entry against the one before, the head against the last, and every row against
    its last entry.

    A store in memory drops what is old; there the log need not be ``from_start``.
    """
    try:
        (head,) = connection.execute(select(schema.head)).all()
        check_head(sealer, head)
    except (ValueError, ApprovalStoreError):
        return ChainReport(False, 0, GENESIS, None, "the head is not as this program wrote it")
    seals: dict[str, str] = {}  # by table and key: the row's seal according to the log
    before = (0, GENESIS) if from_start else _before_oldest(connection)
    report = _verify_log(connection, sealer, seals, before)
    if not report.ok:
        return report
    if (head.seq, head.hash) != (report.entries, report.head):
        return report._replace(
            ok=False,
            broken_at=report.entries + 1,
            problem="the last entries are missing",
        )
    problem = None
    if before[0] == 0:  # a log without its start does not name all rows
        problem = _verify_rows(connection, sealer, seals, bytes(head.bucket_macs))
    if anchor is not None and _mac_of_entry(connection, anchor[0]) != anchor[1]:
        problem = "the anchor is not in the log: the database is an older copy, or another one"
    if problem is None:
        return report
    return report._replace(ok=False, problem=problem)


def _before_oldest(connection: Connection) -> tuple[int, str]:
    """Return number and MAC of the entry before the oldest that is still there."""
    columns = schema.log.c.seq, schema.log.c.previous
    oldest = connection.execute(select(*columns).order_by(schema.log.c.seq)).first()
    if oldest is None:
        return 0, GENESIS
    return oldest.seq - 1, oldest.previous


def _verify_log(
    connection: Connection,
    sealer: Sealer,
    seals: dict[str, str],
    before: tuple[int, str],
) -> ChainReport:
    count, previous = before
    entries = read_entries(connection)
    while True:
        expected = count + 1
        try:
            entry = next(entries, None)
            if entry is None:
                return ChainReport(True, count, previous)
            problem = _problem(sealer, entry, expected, previous)
        except (ApprovalStoreError, TypeError, ValueError):
            problem = "unreadable entry"
            entry = None
        if entry is None or problem is not None:
            return ChainReport(False, count, previous, expected, problem)
        count = expected
        previous = entry.hash
        if entry.changed_row:
            row, _, seal = entry.changed_row.rpartition(":")
            seals[row] = seal


def _problem(sealer: Sealer, entry: LogEntry, expected: int, previous: str) -> str | None:
    if entry.seq != expected:
        return "an entry is missing"
    if entry.previous != previous:
        return "does not follow from the entry before"
    mac = entry_mac(sealer, entry, json_text(entry.data))
    if not sealer.equal(mac, entry.hash):
        return "was changed"
    return None


def _verify_rows(
    connection: Connection,
    sealer: Sealer,
    seals: dict[str, str],
    bucket_macs: bytes,
) -> str | None:
    live: dict[int, dict[str, str]] = {}
    for table in schema.SEALED:
        query = select(table).execution_options(yield_per=_ROWS_PER_READ)
        for row in connection.execute(query):
            name = f"{table.name}:{key_of(table, row._asdict())}"
            if not _is_intact(sealer, table, row):
                return f"a row was changed: {name}"
            if seals.pop(name, None) != row.seal:
                return f"a row is not as the log has it: {name}"
            if row.bucket is not None:
                live.setdefault(row.bucket, {})[name] = row.seal
    if seals:
        return f"a row is missing: {next(iter(seals))}"
    if not sealer.equal(_all_macs(sealer, live), bucket_macs):
        return "the rows are not those of the head"
    return None


def _all_macs(sealer: Sealer, live: Mapping[int, Mapping[str, str]]) -> bytes:
    macs = [bucket_mac(sealer, bucket, live.get(bucket, {})) for bucket in range(BUCKETS)]
    return b"".join(macs)


# --- another key ----------------------------------------------------------------------------------


def reseal(
    connection: Connection, old: Sealer, new: Sealer, at_us: int
) -> tuple[tuple[int, str], bytes]:
    """Seal a whole store anew; gives the end of its log and the MACs of its buckets."""
    report = verify(connection, old)
    if not report.ok:
        raise ApprovalStoreError(
            f"the approval store was changed, and keeps its key: {report.problem}"
        )
    seals, live = _reseal_rows(connection, old, new)
    end = _reseal_log(connection, new, seals)
    facts = {"key": new.key_id, "previous_key": old.key_id, "previous_head": report.head}
    end = append_entry(connection, new, end, at_us, ApprovalLogKind.KEY_ROTATED, "", "", facts)
    return end, _all_macs(new, live)


def _reseal_rows(
    connection: Connection, old: Sealer, new: Sealer
) -> tuple[dict[str, str], dict[int, dict[str, str]]]:
    """Seal each row anew; gives the new seal of each old one, and the new seals of the live rows by
    bucket.
    """
    seals: dict[str, str] = {}
    live: dict[int, dict[str, str]] = {}
    for table in schema.SEALED:
        (column,) = table.primary_key.columns
        for key in connection.execute(select(column)).scalars().all():
            row = connection.execute(select(table).where(column == key)).one()
            values = row._asdict()
            for name, purpose in schema.CIPHERTEXTS[table].items():
                if values[name]:
                    plain = old.open(values[name], purpose=purpose, row=key)
                    values[name] = new.seal(plain, purpose=purpose, row=key)
            sealed = sealed_row(new, table, values)
            connection.execute(table.update().where(column == key).values(sealed))
            seals[row.seal] = sealed["seal"]
            if row.bucket is not None:
                live.setdefault(row.bucket, {})[f"{table.name}:{key}"] = sealed["seal"]
    return seals, live


def _reseal_log(connection: Connection, new: Sealer, seals: dict[str, str]) -> tuple[int, str]:
    """Chain the entries anew; each stays about the same row."""
    end = (0, GENESIS)
    for entry in read_entries(connection):
        name, _, seal = entry.changed_row.rpartition(":")
        changed_row = f"{name}:{seals[seal]}" if seal in seals else entry.changed_row
        entry = replace(entry, previous=end[1], changed_row=changed_row)
        end = (entry.seq, entry_mac(new, entry, json_text(entry.data)))
        columns = {"previous": entry.previous, "hash": end[1], "changed_row": changed_row}
        connection.execute(schema.log.update().where(schema.log.c.seq == entry.seq).values(columns))
    return end
