"""Tables of the approval store and their versions.

Only ids, states and times are columns; whatever a call or a person said is sealed. Times are integers, microseconds
since 1970 in UTC, because SQLite has no time type and a text comparison of times is a trap.
"""

from __future__ import annotations

from collections.abc import Callable
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
    text,
)

from agenttool_otel.errors import ApprovalStoreError
from agenttool_otel.names import ApprovalStatus

__all__ = [
    "MIGRATIONS",
    "VERSION",
    "current_version",
    "grants",
    "head",
    "log",
    "migrate",
    "requests",
    "required",
    "versions",
]

metadata: Final = MetaData()

versions: Final = Table(
    "agenttool_approval_schema",
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("applied_us", BigInteger, nullable=False),
)

head: Final = Table(
    "agenttool_approval_head",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, nullable=False),
    Column("hash", String(64), nullable=False),
    Column("clock_us", BigInteger, nullable=False),
    Column("clock_ticks_us", BigInteger, nullable=False),
    Column("clock_boot", String(64), nullable=False),
    Column("key_id", String(16), nullable=False),
)
"""One row: the end of the log, the latest time seen, and which key sealed the rows. Every write locks it first."""

requests: Final = Table(
    "agenttool_approval_request",
    metadata,
    Column("request_id", String(200), primary_key=True),
    Column("invocation_id", String(200), nullable=False),
    Column("tool_id", String(400), nullable=False),
    Column("actor_id", String(400), nullable=False),
    Column("status", String(20), nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("expires_us", BigInteger, nullable=False),
    Column("answered_us", BigInteger),
    Column("sealed_request", LargeBinary, nullable=False),
    Column("sealed_call", LargeBinary, nullable=False),
    Column("sealed_answer", LargeBinary),
    Column("closed_reason", String(200)),
    Column("supersedes", String(200)),
    Column("claim_id", String(200)),
    Column("claim_owner", Text),
    Column("claimed_us", BigInteger),
    Column("lease_us", BigInteger),
    Column("outcome", String(40)),
    Column("finished_us", BigInteger),
    Column("told_us", BigInteger),
    Index("agenttool_approval_request_invocation", "invocation_id", "created_us"),
    Index("agenttool_approval_request_status", "status", "expires_us"),
    Index("agenttool_approval_request_actor", "actor_id", "created_us"),
)
"""``told_us``: when somebody took it upon himself to leave the end of the call of a request that expired."""

log: Final = Table(
    "agenttool_approval_log",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("previous", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
    Column("at_us", BigInteger, nullable=False),
    Column("kind", String(40), nullable=False),
    Column("request_id", String(200), nullable=False),
    Column("data", Text, nullable=False),
    Index("agenttool_approval_log_request", "request_id", "seq"),
)

grants: Final = Table(
    "agenttool_approval_grant",
    metadata,
    Column("grant_id", String(200), primary_key=True),
    Column("tool_id", String(400), nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("expires_us", BigInteger, nullable=False),
    Column("revoked_us", BigInteger),
    Column("sealed_grant", LargeBinary, nullable=False),
    Index("agenttool_approval_grant_tool", "tool_id", "expires_us"),
)

required: Final = Table(
    "agenttool_approval_required",
    metadata,
    Column("invocation_id", String(200), primary_key=True),
    Column("tool_id", String(400), nullable=False),
    Column("status", String(20), nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("ended_us", BigInteger),
    Column("request_id", String(200)),
    Column("claim_id", String(200)),
    Column("sealed_call", LargeBinary, nullable=False),
    Index("agenttool_approval_required_status", "status", "created_us"),
    Index("agenttool_approval_required_claim", "claim_id"),
)
"""Permitted calls of custom tools that wait for their result; request and claim where they had to be approved."""


def _version_1(connection: Connection) -> None:
    for table in (head, requests, log):
        table.create(connection)
    connection.execute(
        head.insert().values(id=1, seq=0, hash="0" * 64, clock_us=0, clock_ticks_us=0, clock_boot="", key_id="")
    )


def _version_2(connection: Connection) -> None:
    grants.create(connection)


def _version_3(connection: Connection) -> None:
    required.create(connection)


def _version_4(connection: Connection) -> None:
    column = requests.c.told_us
    known = {str(found["name"]) for found in inspect(connection).get_columns(requests.name)}
    if column.name not in known:  # a new store has it from its first version on
        connection.execute(text(f"ALTER TABLE {requests.name} ADD COLUMN {column.name} BIGINT"))
    # what expired before is past; nobody waits for its end any more
    connection.execute(
        requests.update().where(requests.c.status == ApprovalStatus.EXPIRED.value).values(told_us=requests.c.expires_us)
    )


MIGRATIONS: Final[tuple[Callable[[Connection], None], ...]] = (_version_1, _version_2, _version_3, _version_4)
"""Each brings the schema from version ``index`` to ``index + 1``; a released one is never changed."""

VERSION: Final = len(MIGRATIONS)
"""The schema version that this package works with."""


def current_version(connection: Connection) -> int:
    """Return the version of an existing schema, 0 when there is none."""
    if not inspect(connection).has_table(versions.name):
        return 0
    return connection.execute(select(func.max(versions.c.version))).scalar() or 0


def migrate(connection: Connection, now_us: int) -> None:
    """Bring the schema to ``VERSION`` within the caller's exclusive transaction.

    Args:
        connection: a connection in a transaction that nobody else can be in.
        now_us: the time to note, in microseconds since 1970.

    Raises:
        ApprovalStoreError: a newer version of this package made the store.
    """
    found = current_version(connection)
    if found > VERSION:
        raise ApprovalStoreError(
            f"the approval store has schema version {found}, this package knows {VERSION}: update agenttool-otel"
        )
    if found == 0:
        versions.create(connection, checkfirst=True)
    for number in range(found, VERSION):
        MIGRATIONS[number](connection)
        connection.execute(versions.insert().values(version=number + 1, applied_us=now_us))
