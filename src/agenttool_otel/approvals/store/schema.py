"""Tables of the approval store.

Only ids, states and times are columns; whatever came from a call or a person is sealed. Times are
integers, microseconds since 1970 in UTC, because SQLite has no time type and a text comparison of
times is a trap. ``seal`` is a MAC over a row's other columns, ``bucket`` the part of the live rows
that it belongs to (``evidence``).
"""

from __future__ import annotations

from typing import Final

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

VERSION: Final = 5
"""The version of the tables that this package works with; it is in the head."""

# the table in which stores before that kept their version
_VERSIONS_BEFORE: Final = "agenttool_approval_schema"

metadata: Final = MetaData()

head: Final = Table(
    "agenttool_approval_head",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("version", Integer, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("hash", String(64), nullable=False),
    Column("clock_us", BigInteger, nullable=False),
    Column("clock_ticks_us", BigInteger, nullable=False),
    Column("clock_boot", String(64), nullable=False),
    Column("key_id", String(16), nullable=False),
    Column("bucket_macs", LargeBinary, nullable=False),
    Column("seal", String(64), nullable=False),
)
"""One row: the end of the log, the latest time seen, the key's id, the MACs of the live rows. Every
write locks it.
"""

requests: Final = Table(
    "agenttool_approval_request",
    metadata,
    Column("request_id", String(200), primary_key=True, autoincrement=False),
    Column("invocation_id", String(200), nullable=False),
    Column("tool_id", String(400), nullable=False),
    Column("actor_id", String(400), nullable=False),
    Column("session_id", String(400), nullable=True),
    Column("status", String(20), nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("expires_us", BigInteger, nullable=False),
    Column("answered_us", BigInteger, nullable=True),
    Column("sealed_request", LargeBinary, nullable=False),
    Column("sealed_call", LargeBinary, nullable=False),
    Column("sealed_answer", LargeBinary, nullable=True),
    Column("closed_reason", String(200), nullable=True),
    Column("supersedes", String(200), nullable=True),
    Column("claim_id", String(200), nullable=True),
    Column("claim_owner", Text, nullable=True),
    Column("claimed_us", BigInteger, nullable=True),
    Column("lease_us", BigInteger, nullable=True),
    Column("outcome", String(40), nullable=True),
    Column("finished_us", BigInteger, nullable=True),
    Column("expiry_reported_us", BigInteger, nullable=True),
    Column("bucket", Integer, nullable=True),
    Column("seal", String(64), nullable=False),
    Index("agenttool_approval_request_invocation", "invocation_id", "created_us"),
    Index("agenttool_approval_request_status", "status", "expires_us"),
    Index("agenttool_approval_request_actor", "actor_id", "created_us"),
    Index("agenttool_approval_request_session", "session_id", "status"),
    Index("agenttool_approval_request_bucket", "bucket"),
)
"""``expiry_reported_us``: when a process undertook to report the end of the call of a request that
expired.
"""

log: Final = Table(
    "agenttool_approval_log",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("previous", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Column("kind", String(40), nullable=False),
    Column("request_id", String(200), nullable=False),
    Column("changed_row", Text, nullable=False, server_default=""),
    Column("data", Text, nullable=False),
    Index("agenttool_approval_log_request", "request_id", "seq"),
)

grants: Final = Table(
    "agenttool_approval_grant",
    metadata,
    Column("grant_id", String(200), primary_key=True, autoincrement=False),
    Column("tool_id", String(400), nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("expires_us", BigInteger, nullable=False),
    Column("revoked_us", BigInteger, nullable=True),
    Column("sealed_grant", LargeBinary, nullable=False),
    Column("bucket", Integer, nullable=True),
    Column("seal", String(64), nullable=False),
    Index("agenttool_approval_grant_tool", "tool_id", "expires_us"),
    Index("agenttool_approval_grant_bucket", "bucket"),
)

required: Final = Table(
    "agenttool_approval_required",
    metadata,
    Column("invocation_id", String(200), primary_key=True, autoincrement=False),
    Column("tool_id", String(400), nullable=False),
    Column("status", String(20), nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("ended_us", BigInteger, nullable=True),
    Column("request_id", String(200), nullable=True),
    Column("claim_id", String(200), nullable=True),
    Column("sealed_call", LargeBinary, nullable=False),
    Column("bucket", Integer, nullable=True),
    Column("seal", String(64), nullable=False),
    Index("agenttool_approval_required_status", "status", "created_us"),
    Index("agenttool_approval_required_claim", "claim_id"),
    Index("agenttool_approval_required_bucket", "bucket"),
)
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
        connection.execute(
            head.insert().values(
                id=1,
                version=VERSION,
                seq=0,
                hash="0" * 64,
                clock_us=0,
                clock_ticks_us=0,
                clock_boot="",
                key_id="",
                bucket_macs=b"",
                seal="",
            )
        )
    version = connection.execute(select(head.c.version).where(head.c.id == 1)).scalar()
    if version != VERSION:
        raise ApprovalStoreError(
            f"the approval store has schema version {version}, this package supports {VERSION}: update agenttool-otel"
        )


def is_empty(connection: Connection) -> bool:
    """Return whether nothing was ever stored."""
    return not any(_count(connection, table) for table in (log, *SEALED))


def _count(connection: Connection, table: Table) -> int:
    return connection.execute(select(func.count()).select_from(table)).scalar() or 0
