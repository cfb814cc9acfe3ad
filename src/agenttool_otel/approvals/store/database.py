"""Connections and transactions of the approval store: bounded waits, durable commits, safe across
fork.

Every write takes the one ``head`` row first (on SQLite the whole database, with ``BEGIN
IMMEDIATE``), so writes are serial in both databases, the log has no gaps, and what a transaction
reads can't change before it commits.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from sqlalchemy import (
    Connection,
    Engine,
    bindparam,
    create_engine,
    event,
    literal_column,
    make_url,
    select,
    text,
)
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import QueuePool, StaticPool

from agenttool_otel.approvals.store import evidence, schema
from agenttool_otel.approvals.store.clock import Mark, StoreClock
from agenttool_otel.approvals.store.sealing import Sealer
from agenttool_otel.approvals.store.statements import Statement
from agenttool_otel.approvals.store.transaction import Refused, Transaction, write_head
from agenttool_otel.errors import ApprovalStoreError, ConfigurationError
from agenttool_otel.names import ApprovalLogKind
from agenttool_otel.values.forks import around_fork, new_lock
from agenttool_otel.values.known_file import (
    FileReplaced,
    connect_to,
    make_private_file,
    watch_database,
)

_CREATION_LOCK: Final = 0x61677470  # any fixed number: "agtp"
KEPT_IN_MEMORY: Final = 10_000
"""How many log entries a store in memory keeps; what was closed before them goes with them."""

_FORGET_EVERY: Final = 1000  # entries
_HEAD_QUERY: Final = select(schema.head).where(schema.head.c.id == 1)
_HEAD: Final = Statement(_HEAD_QUERY)
_LOCKED_HEAD: Final = Statement(_HEAD_QUERY.with_for_update())
# the server's clock is the same for all who use it
_SERVER_CLOCK: Final[Any] = literal_column(
    "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)"
)
_TIMED_QUERY: Final = select(schema.head, _SERVER_CLOCK.label("server_us")).where(
    schema.head.c.id == 1
)
_TIMED_HEAD: Final = Statement(_TIMED_QUERY)
_LOCKED_TIMED_HEAD: Final = Statement(_TIMED_QUERY.with_for_update(of=schema.head))
_MAC_OF: Final = Statement(select(schema.log.c.hash).where(schema.log.c.seq == bindparam("this")))
_OPEN: weakref.WeakSet[Database] = weakref.WeakSet()
# a child keeps its parent's connections alive so that it never closes them
_INHERITED: list[Engine] = []


def parse_url(url: str | Path) -> URL:
    """Return the database URL of a store."""
    if isinstance(url, Path) or "://" not in url:
        return URL.create("sqlite", database=str(Path(url).expanduser().absolute()))
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise ConfigurationError("the approvals store URL can't be read") from None
    if parsed.drivername in {"postgresql", "postgres"}:
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() not in {"sqlite", "postgresql"}:
        raise ConfigurationError(
            f"approvals are stored in SQLite or PostgreSQL, not in {parsed.drivername}"
        )
    return parsed


def missing_file(url: str | Path) -> str | None:
    """Return the file of a SQLite store if it is not there; to open the store would make it."""
    parsed = parse_url(url)
    name = parsed.database or ""
    # file:/srv/a.db?mode=ro is SQLite's own URI, which names no path that could be looked up
    if parsed.get_backend_name() != "sqlite" or name.startswith("file:"):
        return None
    if name and name != ":memory:" and Path(name).exists():
        return None
    return name


class Database:
    """One approval database."""

    def __init__(self, url: URL, clock: StoreClock, timeout: float) -> None:
        self.url = url
        self.sqlite = url.get_backend_name() == "sqlite"
        self.memory = self.sqlite and url.database in {None, "", ":memory:"}
        self._clock = clock
        self._timeout = max(0.05, timeout)
        # SQLite: one connection for the process, one operation at a time. It has a single writer
        # anyway, and it lets the connection be closed before a fork, which is the only safe way to
        # have SQLite on both sides of one.
        self._gate = new_lock() if self.sqlite else None
        self._forking = False
        self._pid = os.getpid()
        # number and MAC of the last entry that this process has seen
        self._seen = (0, evidence.GENESIS)
        self.sealer: Sealer  # set by ``bind``; nothing is read before
        self._engine = self._new_engine()
        if self.sqlite and not self.memory:
            self._make_file()
        _OPEN.add(self)
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    # --- connections ------------------------------------------------------------------------------

    def _new_engine(self) -> Engine:
        try:
            return self._sqlite_engine() if self.sqlite else self._postgres_engine()
        except (SQLAlchemyError, NoSuchModuleError) as error:
            raise ConfigurationError(
                f"the approvals store can't be opened: {type(error).__name__}"
            ) from None
        except ModuleNotFoundError:
            raise ConfigurationError(
                "PostgreSQL needs: pip install 'agenttool-otel[postgres]'"
            ) from None

    def _sqlite_engine(self) -> Engine:
        options: dict[str, Any] = {
            "poolclass": StaticPool,
            "connect_args": {"check_same_thread": False},
        }
        if not self.memory:
            options = {
                "poolclass": QueuePool,
                "pool_size": 1,
                "max_overflow": 0,
                "pool_timeout": self._timeout,
            }
            options["creator"] = partial(connect_to, Path(str(self.url.database)), self._timeout)
        engine = create_engine(self.url, paramstyle="named", hide_parameters=True, **options)
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        if not self.memory:
            watch_database(engine)
        return engine

    def _make_file(self) -> None:
        """Make the file of a new store; only when it is opened, for later none is where one was."""
        try:
            make_private_file(Path(str(self.url.database)))
        except OSError as error:
            raise ApprovalStoreError(
                f"the approval store can't be opened: {error.strerror}"
            ) from None

    def _postgres_engine(self) -> Engine:
        milliseconds = int(self._timeout * 1000)
        options = (
            f"-c lock_timeout={milliseconds} -c statement_timeout={4 * milliseconds} "
            f"-c idle_in_transaction_session_timeout={8 * milliseconds} -c synchronous_commit=on"
        )
        return create_engine(
            self.url,
            pool_size=4,
            max_overflow=4,
            pool_timeout=self._timeout,
            pool_pre_ping=True,
            isolation_level="READ COMMITTED",
            connect_args={
                "connect_timeout": max(2, int(self._timeout)),
                "options": options,
                "application_name": "agenttool-approvals",
            },
            hide_parameters=True,
        )

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Connection]:
        if self._gate is not None and not self._gate.acquire(timeout=2 * self._timeout):
            raise ApprovalStoreError("the approval store is busy in this process")
        try:
            if self._pid != os.getpid():
                self._after_fork_in_child()
            try:
                with self._engine.connect() as connection:
                    yield connection
            except FileReplaced as error:
                raise ApprovalStoreError(f"the approval store can't be used: {error}") from None
            except (SQLAlchemyError, self._engine.dialect.loaded_dbapi.Error, OSError) as error:
                raise ApprovalStoreError(f"the approval store failed: {_short(error)}") from None
        finally:
            if self._gate is not None:
                self._gate.release()

    @contextlib.contextmanager
    def write(self) -> Iterator[Transaction]:
        """Open the one write transaction; commit at the end, roll back on any exception but
        ``Refused``.
        """
        refused: Refused | None = None
        with self._transaction() as connection:
            head = self._checked_head(connection, lock=True)
            mark = self._now(head)
            # strictly later than every write before, so that times order rows whatever the clock
            # does
            mark = mark._replace(us=max(mark.us, head.clock_us + 1))
            transaction = Transaction(connection, self.sealer, head, mark)
            try:
                yield transaction
            except Refused as error:
                refused = error
            transaction.write_head()
            if self.memory and transaction.end[0] // _FORGET_EVERY != head.seq // _FORGET_EVERY:
                _forget(connection, transaction.end[0] - KEPT_IN_MEMORY)
        self._seen = max(self._seen, transaction.end)
        if refused is not None:
            raise refused.error

    @contextlib.contextmanager
    def read(self) -> Iterator[tuple[Connection, int]]:
        """Open one consistent read; gives the connection and the store's time in microseconds since
        1970.
        """
        with self.snapshot() as connection:
            head = self._checked_head(connection)
            yield connection, self._now(head).us

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Open one consistent read of whatever the database holds, also where it was edited."""
        with self._connection() as connection:
            if not self.sqlite:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with self._connection() as connection:
            connection = connection.execution_options(agenttool_write=True)
            with connection.begin():
                yield connection

    def _checked_head(self, connection: Connection, *, lock: bool = False) -> Any:
        """Return the head, unless it was edited, or is older than what this process has seen."""
        # before the snapshot: what another thread commits meanwhile need not be in it
        seen = self._seen
        head = self._head(connection, lock=lock)
        evidence.check_head(self.sealer, head)
        end = (head.seq, head.hash)
        known = end if head.seq == seen[0] else None
        if lock:
            if evidence.last_entry(connection) != end:
                raise ApprovalStoreError(
                    "the approval store was changed: its log does not end where its head points to"
                )
            if head.seq > seen[0] > 0:
                entry = _MAC_OF.first(connection, this=seen[0])
                known = (seen[0], "" if entry is None else entry.hash)
        if head.seq < seen[0] or (known is not None and known != seen):
            raise ApprovalStoreError(
                "the approval store is an older copy than the one that this process has seen"
            )
        return head

    def _head(self, connection: Connection, *, lock: bool) -> Any:
        plain, locked = (_HEAD, _LOCKED_HEAD) if self.sqlite else (_TIMED_HEAD, _LOCKED_TIMED_HEAD)
        return (locked if lock else plain).first(connection)

    def _now(self, head: Any) -> Mark:
        return self._clock.advance(_mark(head), getattr(head, "server_us", None))

    def accept_clock(self) -> int:
        """Believe this process's wall clock, however far it is ahead of the store; give by how many
        microseconds.
        """
        with self._transaction() as connection:
            head = self._checked_head(connection, lock=True)
            mark = self._clock.accept(_mark(head)) if self.sqlite else self._now(head)
            transaction = Transaction(connection, self.sealer, head, mark)
            ahead: int = mark.us - head.clock_us
            transaction.log(ApprovalLogKind.CLOCK_ACCEPTED, "", ahead_us=ahead)
            transaction.write_head()
        self._seen = max(self._seen, transaction.end)
        return ahead

    # --- key --------------------------------------------------------------------------------------

    def key_id(self) -> str:
        """Return which key sealed this store, an empty text for a new one."""
        with self._connection() as connection, connection.begin():
            return str(
                connection.execute(
                    select(schema.head.c.key_id).where(schema.head.c.id == 1)
                ).scalar_one()
            )

    def bind(self, sealer: Sealer) -> None:
        """Use a key; a new store is sealed with it."""
        self.sealer = sealer
        if not self.key_id():
            with self._transaction() as connection:
                head = self._head(connection, lock=True)
                if not head.key_id:  # no other process was faster
                    if head.seq or not schema.is_empty(connection):
                        raise ApprovalStoreError(
                            "the approval store was changed: nothing names the key that sealed it"
                        )
                    none_live = evidence.NO_LIVE_ROWS * evidence.BUCKETS
                    mark = self._now(head)
                    write_head(connection, sealer, head, (0, evidence.GENESIS), mark, none_live)
        with self.read() as (connection, _):
            self._seen = evidence.last_entry(connection)

    def rotate(self, new: Sealer) -> None:
        """Seal everything with another key, unless anything was edited."""
        with self._transaction() as connection:
            head = self._checked_head(connection, lock=True)
            mark = self._now(head)
            end, macs = evidence.reseal(connection, self.sealer, new, mark.us)
            write_head(connection, new, head, end, mark, macs)
        self.sealer, self._seen = new, end

    def _prepare(self) -> None:
        with self._transaction() as connection:
            if not self.sqlite:
                connection.execute(
                    text("SELECT pg_advisory_xact_lock(:key)"), {"key": _CREATION_LOCK}
                )
            schema.prepare(connection)

    # --- fork and end -----------------------------------------------------------------------------

    def _before_fork(self) -> None:
        if self._gate is not None and self._gate.acquire(timeout=2 * self._timeout):
            self._forking = True
            if not self.memory:
                self._engine.dispose()

    def _after_fork_in_parent(self) -> None:
        if self._gate is not None and self._forking:
            self._forking = False
            self._gate.release()

    def _after_fork_in_child(self) -> None:
        if self._pid == os.getpid():
            return
        if self.memory:
            raise ApprovalStoreError(
                "an in-memory approval store can't be shared with a forked process"
            )
        _INHERITED.append(self._engine)
        self._pid = os.getpid()
        self._engine = self._new_engine()

    def close(self) -> None:
        """Close every connection; the next operation opens one again.

        An operation of another thread is waited for, as those of metrics are: SQLite crashes where a
        connection is closed under it. One that takes too long keeps its connection.
        """
        if self._pid != os.getpid():
            return
        if self._gate is None:
            self._engine.dispose()
        elif self._gate.acquire(timeout=2 * self._timeout):
            try:
                self._engine.dispose()
            finally:
                self._gate.release()


def _forget(connection: Connection, seq: int) -> None:
    """Drop the entries up to a number, and what was closed before the last of them."""
    at_us = connection.execute(select(schema.log.c.at_us).where(schema.log.c.seq == seq)).scalar()
    if at_us is not None:
        connection.execute(schema.log.delete().where(schema.log.c.seq <= seq))
        for table in schema.SEALED:
            connection.execute(
                table.delete().where(table.c.bucket.is_(None), table.c.created_us < at_us)
            )


def _mark(row: Any) -> Mark:
    return Mark(row.clock_us, row.clock_ticks_us, row.clock_boot)


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    # transactions are begun by _begin_sqlite, not guessed by the driver
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "trusted_schema=OFF"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    write = connection.get_execution_options().get("agenttool_write", False)
    connection.connection.cursor().execute("BEGIN IMMEDIATE" if write else "BEGIN")


def _short(error: BaseException) -> str:
    cause = getattr(error, "orig", None) or error
    return f"{type(cause).__name__}: {(str(cause).splitlines() or [''])[0][:200]}"


def _each(method: str) -> None:
    for database in list(_OPEN):
        with contextlib.suppress(Exception):
            getattr(database, method)()


def _child() -> None:
    for database in list(_OPEN):
        database._forking = False
        with contextlib.suppress(Exception):
            database._after_fork_in_child()


around_fork(
    before=lambda: _each("_before_fork"),
    after_in_parent=lambda: _each("_after_fork_in_parent"),
    after_in_child=_child,
)
