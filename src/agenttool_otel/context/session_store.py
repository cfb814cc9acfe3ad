"""Where sessions are shared that several processes serve: in a database or in Redis.

Each change is one atomic step that gives back the counters after it, so a budget holds over all
processes; with it go the records for the other processes, in one order for all. The counters are
sealed and each change has an id (``session_totals``), so a change is added once whatever replies
are lost, and a store that forgot is noticed. Sessions unused for ``KEPT_SECONDS`` are forgotten.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from agenttool_otel.context.session_totals import (
    KEPT_SECONDS,
    Change,
    Changed,
    Sealed,
    Stored,
    changed,
    counters,
    seen_totals,
)
from agenttool_otel.errors import ConfigurationError, SessionStoreError
from agenttool_otel.values.known_file import connect_to, make_private_file, watch_database

KEPT_RECORDS: Final = 1_024
"""Of one session; a process that would need an older one marks its session as incomplete."""

_FORGET_ONE_IN: Final = 2_000
_WAIT_SECONDS: Final = 30
_MAX_STATES: Final = 10_000


class SessionStore(Protocol):
    """What processes share of sessions; a failure raises, and the call that needed it is denied."""

    key: bytes

    def add(self, session: str, change: Change, records: Sequence[bytes] = ()) -> dict[str, int]:
        """Add to counters of a session and to its records, all at once; return the counters as they
        are then.

        A change that the store has is not added again. The counter ``told`` counts the records,
        ``lost`` is 1 where the store forgot something of the session.
        """

    def records(self, session: str, since: int, until: int) -> list[bytes]:
        """Return the records after one number, up to another; fewer where some were forgotten."""

    def close(self) -> None:
        """Release connections."""


def open_store(url: Any, key: bytes) -> SessionStore:
    """Open a store: of Redis where its URL is text, else of SQLAlchemy's."""
    try:
        return _Redis(url, key) if isinstance(url, str) else _Database(url, key)
    except ModuleNotFoundError as error:
        extra = "redis" if error.name == "redis" else "postgres"
        raise ConfigurationError(
            f"shared sessions need: pip install 'agenttool-otel[{extra}]'"
        ) from None


def _counting_records(change: Change, records: Sequence[bytes]) -> Change:
    return Change({**change, "told": len(records)}, change.writer, change.number)


_READ: Final = """
return {redis.call('HGET', KEYS[1], 'totals') or '', redis.call('EXISTS', KEYS[1], KEYS[2])}
"""
_SWAP: Final = """
local found = redis.call('HGET', KEYS[1], 'totals') or ''
if found ~= ARGV[1] then return {found, redis.call('EXISTS', KEYS[1], KEYS[2])} end
redis.call('HSET', KEYS[1], 'totals', ARGV[2])
for i = 6, #ARGV do
  local at = ARGV[5] + i - 5
  redis.call('HSET', KEYS[2], at, ARGV[i])
  redis.call('HDEL', KEYS[2], at - ARGV[4])
end
for _, key in ipairs(KEYS) do redis.call('EXPIRE', key, ARGV[3]) end
return {}
"""


class _Redis:
    """Totals and records in two hashes of a session; the totals are replaced where they are as they
    were read.
    """

    def __init__(self, url: str, key: bytes) -> None:
        import redis

        self.key = key
        self._seen = seen_totals(url)
        self._client: Any = redis.Redis.from_url(url, socket_timeout=_WAIT_SECONDS)
        self._read: Any = self._client.register_script(_READ)
        self._swap: Any = self._client.register_script(_SWAP)
        # the totals as they were last time, which saves reading them
        self._states: dict[str, bytes] = {}

    def add(self, session: str, change: Change, records: Sequence[bytes] = ()) -> dict[str, int]:
        sealed = Sealed(self.key, session)
        seen = self._seen.get(session)
        change = _counting_records(change, records)
        keys = _redis_keys(session)
        ends = time.monotonic() + _WAIT_SECONDS
        known = self._states.get(session)
        found: list[Any] = self._read(keys) if known is None else [known, 1]
        while time.monotonic() < ends:
            value = bytes(found[0])
            remains = bool(found[1])
            done = changed(sealed, Stored(value or None, remains), change, seen)
            state = value
            found = []
            if done.written:
                state = sealed.seal(done.totals)
                numbered = _records(done, records)
                # gives back what is there where the totals are not as they were read
                found = self._swap(keys, [value, state, KEPT_SECONDS, KEPT_RECORDS, *numbered])
            if not found:
                self._keep(session, state)
                self._seen.note(session, done.totals)
                return counters(done.totals, change)
            pause = random.random() / 1_000  # noqa: S311 - so that two processes do not go on in step
            time.sleep(pause)
        raise SessionStoreError("too many processes change the session at once")

    def _keep(self, session: str, state: bytes) -> None:
        self._states.pop(session, None)
        self._states[session] = state
        if len(self._states) > _MAX_STATES:
            self._states.pop(next(iter(self._states)), None)

    def records(self, session: str, since: int, until: int) -> list[bytes]:
        numbers = _numbers(since, until)
        found = self._client.hmget(_redis_keys(session)[1], numbers) if numbers else []
        return [record for record in found if record is not None]

    def close(self) -> None:
        self._client.close()


def _records(done: Changed, records: Sequence[bytes]) -> list[Any]:
    """Return the number of the last record before, and the records that are new."""
    new = records if done.added else ()
    return [done.totals.counts.get("told", 0) - len(new), *new]


def _numbers(since: int, until: int) -> range:
    return range(max(since, until - KEPT_RECORDS) + 1, until + 1)


def _record(number: int) -> str:
    return f"record:{number}"


def _redis_keys(session: str) -> list[str]:
    return [f"agenttool:session:{{{session}}}", f"agenttool:session:{{{session}}}:told"]


_LOCK: Final = (
    "INSERT INTO agenttool_session (session, name, n, used_at) VALUES (:session, 'totals', 0, {now}) "
    "ON CONFLICT (session, name) DO UPDATE SET used_at = excluded.used_at RETURNING n, record"
)
_OTHERS: Final = (
    "SELECT 1 FROM agenttool_session WHERE session = :session AND name <> 'totals' LIMIT 1"
)
_WRITE: Final = "UPDATE agenttool_session SET n = :n, record = :record WHERE session = :session AND name = 'totals'"
_ADD_RECORD: Final = (
    "INSERT INTO agenttool_session (session, name, n, used_at, record) VALUES (:session, :name, :n, {now}, :record) "
    "ON CONFLICT (session, name) DO UPDATE SET n = excluded.n, used_at = excluded.used_at, record = excluded.record"
)
_FORGET: Final = "DELETE FROM agenttool_session WHERE session = :session AND name = :name"
_FORGET_OLD: Final = "DELETE FROM agenttool_session WHERE used_at < {now} - :kept"
_NOW: Final = {
    "sqlite": "CAST(strftime('%s', 'now') AS INTEGER)",
    # no process dates for the others
    "postgresql": "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS BIGINT)",
}


class _Database:
    """Totals and records in a table beside those of the approval store."""

    def __init__(self, url: Any, key: bytes) -> None:
        import sqlalchemy as sa

        self.key = key
        self._seen = seen_totals(url.render_as_string(hide_password=False))
        self._sqlite = url.get_backend_name() == "sqlite"
        if self._sqlite and url.database in {None, "", ":memory:"}:
            raise ConfigurationError(
                "sessions in memory can't be shared: state a file, or no sessions_url"
            )
        self._engine = self._sqlite_engine(url) if self._sqlite else _postgres_engine(url)
        now = _NOW[url.get_backend_name()]
        self._lock = sa.text(_LOCK.format(now=now))
        self._add_record = sa.text(_ADD_RECORD.format(now=now))
        self._forget = sa.text(_FORGET_OLD.format(now=now))
        columns = (
            sa.Column("session", sa.String(64), primary_key=True),
            sa.Column("name", sa.String(80), primary_key=True),
            sa.Column("n", sa.BigInteger, nullable=False),
            sa.Column("used_at", sa.BigInteger, nullable=False, index=True),
            sa.Column("record", sa.LargeBinary),
        )
        self._table = sa.Table("agenttool_session", sa.MetaData(), *columns)
        self._pid = os.getpid()
        self._ready = False

    def _sqlite_engine(self, url: Any) -> Any:
        import sqlalchemy as sa

        path = Path(url.database)
        make_private_file(path)
        engine = sa.create_engine(url, creator=partial(connect_to, path, _WAIT_SECONDS))
        sa.event.listen(engine, "connect", _prepare_sqlite)
        sa.event.listen(engine, "begin", _begin_immediate)
        watch_database(engine)
        return engine

    def add(self, session: str, change: Change, records: Sequence[bytes] = ()) -> dict[str, int]:
        import sqlalchemy as sa

        self._prepare()
        sealed = Sealed(self.key, session)
        seen = self._seen.get(session)
        change = _counting_records(change, records)
        row = {"session": session}
        with self._engine.begin() as connection:
            stored = self._stored(connection, row)
            done = changed(sealed, stored, change, seen)
            if done.written:
                new = {**row, "n": done.totals.number, "record": sealed.seal(done.totals)}
                connection.execute(sa.text(_WRITE), new)
            before, *new_records = _records(done, records)
            if new_records:
                self._write_records(connection, row, new_records, before + 1)
        self._seen.note(session, done.totals)
        if random.randrange(_FORGET_ONE_IN) == 0:  # noqa: S311 - nothing secret about it
            with self._engine.begin() as connection:
                connection.execute(self._forget, {"kept": KEPT_SECONDS})
        return counters(done.totals, change)

    def _stored(self, connection: Any, row: dict[str, Any]) -> Stored:
        """Lock the row of the totals, for as long as the transaction lasts, and read it."""
        import sqlalchemy as sa

        number, value = connection.execute(self._lock, row).one()
        if value is not None:
            return Stored(bytes(value))
        if number > 0:
            return Stored(None, remains=True)  # written before, and its record is gone
        others = connection.execute(sa.text(_OTHERS), row).first()
        return Stored(None, remains=others is not None)

    def _write_records(
        self,
        connection: Any,
        row: dict[str, Any],
        records: Sequence[bytes],
        first: int,
    ) -> None:
        """Write records, and forget those that are too old; the lock on the totals' row keeps the
        numbers in order.
        """
        import sqlalchemy as sa

        added: list[dict[str, Any]] = []
        forgotten: list[dict[str, Any]] = []
        for number, record in enumerate(records, first):
            added.append({**row, "name": _record(number), "n": number, "record": record})
            forgotten.append({**row, "name": _record(number - KEPT_RECORDS)})
        connection.execute(self._add_record, added)
        connection.execute(sa.text(_FORGET), forgotten)

    def records(self, session: str, since: int, until: int) -> list[bytes]:
        self._prepare()
        table = self._table.c
        names = list(map(_record, _numbers(since, until)))
        query = self._table.select().where(table.session == session, table.name.in_(names))
        with self._engine.connect() as connection:
            rows = connection.execute(query.order_by(table.n))
            return [bytes(row.record) for row in rows]

    def _prepare(self) -> None:
        """Make the table, where another process does not make them first."""
        # a child must not use its parent's connections, nor close them
        if self._pid != os.getpid():
            self._engine.dispose(close=False)
            self._pid = os.getpid()
        if self._ready:
            return
        import sqlalchemy as sa

        try:
            self._table.create(self._engine, checkfirst=True)
        except sa.exc.SQLAlchemyError:
            if not sa.inspect(self._engine).has_table(self._table.name):
                raise
        self._ready = True

    def close(self) -> None:
        self._engine.dispose()


def _postgres_engine(url: Any) -> Any:
    import sqlalchemy as sa

    return sa.create_engine(
        url, connect_args={"connect_timeout": _WAIT_SECONDS}, pool_pre_ping=True
    )


def _begin_immediate(connection: Any) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _prepare_sqlite(connection: Any, record: Any) -> None:
    for pragma in ("journal_mode = WAL", "synchronous = NORMAL"):
        connection.execute(f"PRAGMA {pragma}").close()
