"""A store under another key: every ciphertext, row, entry and the head, within one transaction."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import Connection, select

from agenttool_otel.approvals.store import evidence, schema
from agenttool_otel.approvals.store.sealing import Sealer
from agenttool_otel.errors import ApprovalStoreError
from agenttool_otel.names import ApprovalLogKind


def reseal(connection: Connection, old: Sealer, new: Sealer, at_us: int) -> tuple[tuple[int, str], bytes]:
    """Seal a whole store anew; gives the end of its log and the MACs of its buckets."""
    report = evidence.verify(connection, old)
    if not report.ok:
        raise ApprovalStoreError(f"the approval store was changed, and keeps its key: {report.problem}")
    seals, live = _reseal_rows(connection, old, new)
    end = _reseal_log(connection, new, seals)
    facts = {"key": new.key_id, "previous_key": old.key_id, "previous_head": report.head}
    end = evidence.append_entry(connection, new, end, at_us, ApprovalLogKind.KEY_ROTATED, "", "", facts)
    macs = (evidence.bucket_mac(new, bucket, live.get(bucket, {})) for bucket in range(evidence.BUCKETS))
    return end, b"".join(macs)


def _reseal_rows(connection: Connection, old: Sealer, new: Sealer) -> tuple[dict[str, str], dict[int, dict[str, str]]]:
    """Seal each row anew; gives the new seal of each old one, and the new seals of the live rows by bucket."""
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
            sealed = evidence.sealed_row(new, table, values)
            connection.execute(table.update().where(column == key).values(sealed))
            seals[row.seal] = sealed["seal"]
            if row.bucket is not None:
                live.setdefault(row.bucket, {})[f"{table.name}:{key}"] = sealed["seal"]
    return seals, live


def _reseal_log(connection: Connection, new: Sealer, seals: dict[str, str]) -> tuple[int, str]:
    """Chain the entries anew; each goes on to tell of the same row."""
    end = (0, evidence.GENESIS)
    for entry in evidence.read_entries(connection):
        name, _, seal = entry.changed_row.rpartition(":")
        changed_row = f"{name}:{seals[seal]}" if seal in seals else entry.changed_row
        entry = replace(entry, previous=end[1], changed_row=changed_row)
        end = (entry.seq, evidence.entry_mac(new, entry))
        columns = {"previous": entry.previous, "hash": end[1], "changed_row": changed_row}
        connection.execute(schema.log.update().where(schema.log.c.seq == entry.seq).values(columns))
    return end
