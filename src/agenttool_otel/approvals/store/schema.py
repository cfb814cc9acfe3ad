"""Tables of the approval store.

Only ids, states and times are columns; whatever a call or a person said is sealed. Times are
integers, microseconds since 1970 in UTC, because SQLite has no time type and a text comparison of
times is a trap. ``seal`` is a MAC over a row's other columns, ``bucket`` the part of the live rows
that it belongs to (``evidence``).
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    func,
    inspect,
    select,
)

from agenttool_otel.errors import ApprovalStoreError
from agenttool_otel.values.tables import load_table

VERSION: Final = 5
"""The version of the tables that this package works with; it is in the head."""

# the table in which stores before that kept their version
_VERSIONS_BEFORE: Final = "agenttool_approval_schema"

metadata: Final = MetaData()

_KINDS: Final = {
    "Integer": Integer,
    "BigInteger": BigInteger,
    "LargeBinary": LargeBinary,
    "Text": Text,
}


def _table(name: str) -> Table:
    found = _TABLES[name]
    columns = [_column(column, *text.split()) for column, text in found["columns"].items()]
    indexes = found.get("indexes", {}).items()
    full = f"agenttool_approval_{name}"
    return Table(
        full,
        metadata,
        *columns,
        *(Index(f"{full}_{index}", *members) for index, members in indexes),
    )


def _column(name: str, kind: str, *marks: str) -> Column[Any]:
    return Column(
        name,
        String(int(kind)) if kind.isdecimal() else _KINDS[kind],
        primary_key="key" in marks,
        autoincrement=False,
        nullable="null" in marks,
        server_default="" if "empty" in marks else None,
    )


_TABLES: Final[dict[str, Any]] = load_table(__package__, "schema.toml")
head: Final = _table("head")
"""One row: the end of the log, the latest time seen, the key's id, the MACs of the live rows. Every
write locks it.
"""
requests: Final = _table("request")
"""``expiry_reported_us``: when somebody undertook to report the end of the call of a request that
expired.
"""
log: Final = _table("log")
grants: Final = _table("grant")
required: Final = _table("required")
"""Permitted calls of custom tools that wait for their result; request and claim where they had to
be approved.
"""
SEALED: Final = (requests, grants, required)
"""The tables whose rows carry a seal."""

CIPHERTEXTS: Final = {
    requests: {"sealed_request": "request", "sealed_call": "call", "sealed_answer": "answer"},
    grants: {"sealed_grant": "grant"},
    required: {"sealed_call": "required"},
}
"""The columns that are encrypted, and the purpose that each is bound to."""


def prepare(connection: Connection) -> None:
    """Make the tables where there are none, within the caller's exclusive transaction."""
    found = inspect(connection)
    if found.has_table(_VERSIONS_BEFORE):
        raise ApprovalStoreError(
            "the approval store was made by an earlier agenttool-otel, whose rows nothing protects against an edit of "
            "the database: end there what is pending, then start a new store"
        )
    if not found.has_table(head.name):
        metadata.create_all(connection)
        blank = {
            "version": VERSION,
            "hash": "0" * 64,
            "bucket_macs": b"",
            "clock_boot": "",
            "key_id": "",
            "seal": "",
        }
        connection.execute(head.insert().values(id=1, seq=0, clock_us=0, clock_ticks_us=0, **blank))
    version = connection.execute(select(head.c.version).where(head.c.id == 1)).scalar()
    if version != VERSION:
        raise ApprovalStoreError(
            f"the approval store has schema version {version}, this package knows {VERSION}: update agenttool-otel"
        )


def is_empty(connection: Connection) -> bool:
    """Tell whether nothing was ever stored."""
    return not any(
        connection.execute(select(func.count()).select_from(t)).scalar() for t in (log, *SEALED)
    )
