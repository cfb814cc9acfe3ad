"""Connections and transactions of the approval store: bounded waits, durable commits, safe across fork.

Every write takes the one ``head`` row first (on SQLite the whole database, with ``BEGIN IMMEDIATE``), so writes are
serial in both databases, the log has no gaps, and what a transaction reads can't change before it commits.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, create_engine, event, make_url, select, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import QueuePool, StaticPool

from agenttool_otel.approvals import schema
from agenttool_otel.approvals.clock import Mark, StoreClock
from agenttool_otel.approvals.evidence_log import append_entry
from agenttool_otel.errors import ApprovalError, ApprovalStoreError, ConfigurationError
from agenttool_otel.names import ApprovalLogKind

__all__ = ["Database", "Refused", "Transaction", "parse_url"]

_MIGRATION_LOCK: Final = 0x61677470  # any fixed number: "agtp"
_OPEN: weakref.WeakSet[Database] = weakref.WeakSet()
_INHERITED: list[Engine] = []  # a child keeps its parent's connections alive so that it never closes them


class Refused(Exception):
    """Raised inside ``Database.write`` to commit what was logged so far and then raise ``error``."""

    def __init__(self, error: ApprovalError) -> None:
        super().__init__()
        self.error = error


class Transaction:
    """One open write transaction.

    Attributes:
        connection: its connection.
        now_us: the store's time, fixed for the whole transaction.
    """

    def __init__(self, connection: Connection, row: Any, mark: Mark) -> None:
        self.connection = connection
        self.now_us = mark.us
        self._mark = mark
        self._seq: int = row.seq
        self._hash: str = row.hash
        self.key_id: str = row.key_id

    def log(self, kind: ApprovalLogKind, request_id: str, **data: Any) -> None:
        """Append an entry to the evidence log; it is committed or rolled back with everything else."""
        self._seq += 1
        self._hash = append_entry(self.connection, self._seq, self._hash, self.now_us, kind, request_id, data)

    def _close(self) -> None:
        self.connection.execute(
            schema.head.update()
            .where(schema.head.c.id == 1)
            .values(
                seq=self._seq,
                hash=self._hash,
                clock_us=self._mark.us,
                clock_ticks_us=self._mark.ticks_us,
                clock_boot=self._mark.boot,
                key_id=self.key_id,
            )
        )


def parse_url(url: str | Path) -> URL:
    """Return the database URL of a store.

    Args:
        url: a path, or ``sqlite:///...``, ``postgresql://...`` (read as ``postgresql+psycopg``).

    Raises:
        ConfigurationError: it names another database, or is no URL; the message does not show it.
    """
    if isinstance(url, Path) or "://" not in url:
        return URL.create("sqlite", database=str(Path(url).expanduser().absolute()))
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise ConfigurationError("the approvals store URL can't be read") from None
    if parsed.drivername in {"postgresql", "postgres"}:
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() not in {"sqlite", "postgresql"}:
        raise ConfigurationError(f"approvals are stored in SQLite or PostgreSQL, not in {parsed.drivername}")
    return parsed


class Database:
    """One approval database.

    Args:
        url: where it is.
        clock: the store's clock.
        timeout: seconds that one operation waits for a lock or a connection.
    """

    def __init__(self, url: URL, clock: StoreClock, timeout: float) -> None:
        self.url = url
        self.sqlite = url.get_backend_name() == "sqlite"
        self.memory = self.sqlite and url.database in {None, "", ":memory:"}
        self._clock = clock
        self._timeout = max(0.05, timeout)
        # SQLite: one connection for the process, one operation at a time. It has a single writer anyway, and it lets
        # the connection be closed before a fork, which is the only safe way to have SQLite on both sides of one.
        self._gate = threading.Lock() if self.sqlite else None
        self._forking = False
        self._pid = os.getpid()
        self._engine = self._new_engine()
        _OPEN.add(self)
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    # --- connections ------------------------------------------------------------------------------------------------

    def _new_engine(self) -> Engine:
        try:
            return self._sqlite_engine() if self.sqlite else self._postgres_engine()
        except (SQLAlchemyError, NoSuchModuleError) as error:
            raise ConfigurationError(f"the approvals store can't be opened: {type(error).__name__}") from None
        except ModuleNotFoundError:
            raise ConfigurationError("PostgreSQL needs: pip install 'agenttool-otel[postgres]'") from None

    def _sqlite_engine(self) -> Engine:
        if not self.memory:
            path = Path(str(self.url.database))
            try:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            except OSError as error:
                raise ApprovalStoreError(f"the approval store can't be opened: {error.strerror}") from None
        engine = create_engine(
            self.url,
            poolclass=StaticPool if self.memory else QueuePool,
            connect_args={"timeout": self._timeout, "check_same_thread": False},
            hide_parameters=True,
            **({} if self.memory else {"pool_size": 1, "max_overflow": 0, "pool_timeout": self._timeout}),
        )
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine

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
            except (SQLAlchemyError, sqlite3.Error, OSError) as error:
                raise ApprovalStoreError(f"the approval store failed: {_short(error)}") from None
        finally:
            if self._gate is not None:
                self._gate.release()

    @contextlib.contextmanager
    def write(self) -> Iterator[Transaction]:
        """Open the one write transaction; commit at the end, roll back on any exception but ``Refused``.

        Raises:
            ApprovalStoreError: the database failed; nothing was changed, or it is not known (a lost connection).
        """
        with self._connection() as connection:
            connection = connection.execution_options(agenttool_write=True)
            refused: Refused | None = None
            with connection.begin():
                row = connection.execute(select(schema.head).where(schema.head.c.id == 1).with_for_update()).one()
                mark = self._clock.advance(_mark(row))
                # strictly later than every write before, so that times order rows whatever the clock does
                mark = replace(mark, us=max(mark.us, row.clock_us + 1))
                transaction = Transaction(connection, row, mark)
                try:
                    yield transaction
                except Refused as error:
                    refused = error
                transaction._close()
        if refused is not None:
            raise refused.error

    @contextlib.contextmanager
    def read(self) -> Iterator[tuple[Connection, int]]:
        """Open one consistent read; gives the connection and the store's time in microseconds since 1970.

        Raises:
            ApprovalStoreError: the database failed.
        """
        with self._connection() as connection:
            if not self.sqlite:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection, self._read_clock(connection)

    def _read_clock(self, connection: Connection) -> int:
        row = connection.execute(select(schema.head).where(schema.head.c.id == 1)).one()
        return self._clock.advance(_mark(row)).us

    def _prepare(self) -> None:
        with self._connection() as connection:
            connection = connection.execution_options(agenttool_write=True)
            with connection.begin():
                if not self.sqlite:
                    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
                schema.migrate(connection, self._clock.advance(Mark(0, 0, "")).us)

    # --- fork and end -----------------------------------------------------------------------------------------------

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
            raise ApprovalStoreError("an in-memory approval store can't be shared with a forked process")
        _INHERITED.append(self._engine)
        self._pid = os.getpid()
        self._engine = self._new_engine()

    def close(self) -> None:
        """Close every connection; the next operation opens one again."""
        if self._pid == os.getpid():
            self._engine.dispose()


def _mark(row: Any) -> Mark:
    return Mark(row.clock_us, row.clock_ticks_us, row.clock_boot)


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # transactions are begun by _begin_sqlite, not guessed by the driver
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "trusted_schema=OFF"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    write = connection.get_execution_options().get("agenttool_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _short(error: BaseException) -> str:
    cause = getattr(error, "orig", None) or error
    return f"{type(cause).__name__}: {(str(cause).splitlines() or [''])[0][:200]}"


def _each(method: str) -> None:
    for database in list(_OPEN):
        with contextlib.suppress(Exception):
            getattr(database, method)()


def _child() -> None:
    for database in list(_OPEN):
        if database._gate is not None:
            database._gate, database._forking = threading.Lock(), False
        with contextlib.suppress(Exception):
            database._after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _each("_before_fork"),
        after_in_parent=lambda: _each("_after_fork_in_parent"),
        after_in_child=_child,
    )
