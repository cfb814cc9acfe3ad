"""Where sessions are shared that several processes serve: in a database or in Redis.

Each change is one atomic addition that gives back the counters after it, so a budget holds over all processes; with it
goes what the other processes are told, in one order for all. Sessions unused for ``KEPT_SECONDS`` are forgotten.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from agenttool_otel.errors import ConfigurationError

KEPT_SECONDS: Final = 30 * 86_400
KEPT_RECORDS: Final = 1_024
"""Of one session; whoever comes later and would need an older one knows that something is missing."""

_FORGET_ONE_IN: Final = 2_000
_WAIT_SECONDS: Final = 30


class SessionStore(Protocol):
    """What processes share of sessions; a failure raises, and the call that needed it is denied."""

    key: bytes

    def add(self, session: str, changes: Mapping[str, int], told: Sequence[bytes] = ()) -> dict[str, int]:
        """Add to counters of a session and to what is told of it, all at once; return the counters as they are then.

        The counter ``told`` counts the records."""

    def told(self, session: str, since: int, until: int) -> list[bytes]:
        """Return the records after one number, up to another; fewer where some were forgotten."""

    def close(self) -> None:
        """Release connections."""


def open_store(url: Any, key: bytes) -> SessionStore:
    """Open a store: of Redis where its URL is text, else of SQLAlchemy's."""
    try:
        return _Redis(url, key) if isinstance(url, str) else _Database(url, key)
    except ModuleNotFoundError as error:
        extra = "redis" if error.name == "redis" else "postgres"
        raise ConfigurationError(f"shared sessions need: pip install 'agenttool-otel[{extra}]'") from None


_ADD: Final = """
local after, names = {}, tonumber(ARGV[3])
for i = 4, 3 + 2 * names, 2 do after[#after + 1] = redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1]) end
for i = 4 + 2 * names, #ARGV do
  local at = redis.call('HINCRBY', KEYS[1], 'told', 1)
  redis.call('HSET', KEYS[2], at, ARGV[i])
  redis.call('HDEL', KEYS[2], at - ARGV[2])
end
after[#after + 1] = redis.call('HINCRBY', KEYS[1], 'told', 0)
for _, key in ipairs(KEYS) do redis.call('EXPIRE', key, ARGV[1]) end
return after
"""


class _Redis:
    def __init__(self, url: str, key: bytes) -> None:
        import redis

        self.key = key
        self._client: Any = redis.Redis.from_url(url, socket_timeout=_WAIT_SECONDS)
        self._add: Any = self._client.register_script(_ADD)

    def add(self, session: str, changes: Mapping[str, int], told: Sequence[bytes] = ()) -> dict[str, int]:
        names = sorted(changes)
        pairs = [word for name in names for word in (name, changes[name])]
        after = self._add(_redis_keys(session), [KEPT_SECONDS, KEPT_RECORDS, len(names), *pairs, *told])
        return dict(zip([*names, "told"], map(int, after), strict=True))

    def told(self, session: str, since: int, until: int) -> list[bytes]:
        numbers = _numbers(since, until)
        found = self._client.hmget(_redis_keys(session)[1], numbers) if numbers else []
        return [record for record in found if record is not None]

    def close(self) -> None:
        self._client.close()


def _numbers(since: int, until: int) -> range:
    return range(max(since, until - KEPT_RECORDS) + 1, until + 1)


def _record(number: int) -> str:
    return f"record:{number}"


def _redis_keys(session: str) -> list[str]:
    return [f"agenttool:session:{{{session}}}", f"agenttool:session:{{{session}}}:told"]


_COUNT: Final = (
    "INSERT INTO agenttool_session (session, name, n, used_at) VALUES {rows} ON CONFLICT (session, name) DO UPDATE "
    "SET n = agenttool_session.n + excluded.n, used_at = excluded.used_at RETURNING name, n"
)
_FORGET: Final = "DELETE FROM agenttool_session WHERE session = :session AND name = :name"


class _Database:
    """Counters and records in a table beside those of the approval store."""

    def __init__(self, url: Any, key: bytes) -> None:
        import sqlalchemy as sa

        self.key = key
        self._sqlite = url.get_backend_name() == "sqlite"
        waits = {"timeout": _WAIT_SECONDS} if self._sqlite else {"connect_timeout": _WAIT_SECONDS}
        self._engine = sa.create_engine(url, connect_args=waits, pool_pre_ping=not self._sqlite)
        if self._sqlite:
            sa.event.listen(self._engine, "connect", _prepare_sqlite)
            sa.event.listen(self._engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
        columns = (
            sa.Column("session", sa.String(64), primary_key=True),
            sa.Column("name", sa.String(80), primary_key=True),
            sa.Column("n", sa.BigInteger, nullable=False),
            sa.Column("used_at", sa.BigInteger, nullable=False, index=True),
            sa.Column("record", sa.LargeBinary),
        )
        self._table = sa.Table("agenttool_session", sa.MetaData(), *columns)
        self._pid, self._ready = os.getpid(), False

    def add(self, session: str, changes: Mapping[str, int], told: Sequence[bytes] = ()) -> dict[str, int]:
        import sqlalchemy as sa

        self._prepare()
        now, table = int(time.time()), self._table
        # one order of the rows in every process, so that none waits for another that waits for it
        counted = enumerate(sorted({**changes, "told": len(told)}.items()))
        given: dict[str, Any] = {"session": session, "now": now}
        given |= {f"{at}{key}": value for at, pair in counted for key, value in zip("kn", pair, strict=True)}
        rows = ", ".join(f"(:session, :{at}k, :{at}n, :now)" for at in range(len(given) // 2 - 1))
        with self._engine.begin() as connection:
            after = {name: int(n) for name, n in connection.execute(sa.text(_COUNT.format(rows=rows)), given)}
            if told:  # whoever holds the row of the counter gives the numbers
                numbered = list(enumerate(told, after["told"] - len(told) + 1))
                row = {"session": session, "used_at": now}
                connection.execute(
                    table.insert(), [{**row, "name": _record(at), "n": at, "record": one} for at, one in numbered]
                )
                old = [{"session": session, "name": _record(at - KEPT_RECORDS)} for at, _ in numbered]
                connection.execute(sa.text(_FORGET), old)
        if random.randrange(_FORGET_ONE_IN) == 0:  # noqa: S311 - nothing secret about it
            with self._engine.begin() as connection:
                connection.execute(table.delete().where(table.c.used_at < now - KEPT_SECONDS))
        return after

    def told(self, session: str, since: int, until: int) -> list[bytes]:
        self._prepare()
        table, names = self._table.c, list(map(_record, _numbers(since, until)))
        asked = self._table.select().where(table.session == session, table.name.in_(names)).order_by(table.n)
        with self._engine.connect() as connection:
            return [bytes(row.record) for row in connection.execute(asked)]

    def _prepare(self) -> None:
        """Make the table, where another process does not make them first."""
        if self._pid != os.getpid():  # a child must not use its parent's connections, nor close them
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


def _prepare_sqlite(connection: Any, record: Any) -> None:
    connection.isolation_level = None  # the driver begins no transaction by itself
    for pragma in ("journal_mode = WAL", "synchronous = NORMAL"):
        connection.execute(f"PRAGMA {pragma}").close()
