"""What sessions have used, where several processes serve one: counters in a database or in Redis.

Each change is one atomic addition that gives back the counters after it, so a budget holds over all processes. Only
numbers are kept, by digests of the session and of the tool; sessions unused for ``KEPT_SECONDS`` are forgotten.
"""

from __future__ import annotations

import hashlib
import os
import random
import time
from collections.abc import Mapping
from typing import Any, Final, Protocol

from agenttool_otel.errors import ConfigurationError

KEPT_SECONDS: Final = 30 * 86_400
_FORGET_ONE_IN: Final = 2_000
_WAIT_SECONDS: Final = 30


class SessionCounts(Protocol):
    """Counts of sessions that processes share; a failure raises, and the call that needed it is denied."""

    def add(self, session: str, changes: Mapping[str, int]) -> dict[str, int]:
        """Add to counters of a session, all at once, and return them as they are then."""

    def close(self) -> None:
        """Release connections."""


def open_counts(url: str) -> SessionCounts | None:
    """Open the counts that a URL names; none where it is empty."""
    if not url:
        return None
    try:
        return _Redis(url) if url.startswith(("redis:", "rediss:", "unix:")) else _Database(url)
    except ModuleNotFoundError as error:
        extra = "redis" if error.name == "redis" else "postgres"
        raise ConfigurationError(f"shared sessions need: pip install 'agenttool-otel[{extra}]'") from None


def session_digest(key: tuple[str, ...]) -> str:
    """Return under which name a session is counted."""
    text = "\0".join(f"{len(part)}:{part}" for part in key)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=24, person=b"session").hexdigest()


class _Redis:
    def __init__(self, url: str) -> None:
        import redis

        self._client: Any = redis.Redis.from_url(url, socket_timeout=_WAIT_SECONDS)

    def add(self, session: str, changes: Mapping[str, int]) -> dict[str, int]:
        key, names = f"agenttool:session:{session}", sorted(changes)
        with self._client.pipeline(transaction=True) as steps:
            for name in names:
                steps.hincrby(key, name, changes[name])
            steps.expire(key, KEPT_SECONDS)
            after = steps.execute()
        return dict(zip(names, map(int, after), strict=False))

    def close(self) -> None:
        self._client.close()


class _Database:
    """Counters in a table beside those of the approval store."""

    def __init__(self, url: str) -> None:
        import sqlalchemy as sa

        parsed = sa.make_url(url if "://" in url else f"sqlite:///{os.path.abspath(url)}")
        if parsed.drivername in {"postgresql", "postgres"}:
            parsed = parsed.set(drivername="postgresql+psycopg")
        self._sqlite = parsed.get_backend_name() == "sqlite"
        if not self._sqlite and parsed.get_backend_name() != "postgresql":
            raise ConfigurationError(f"sessions are counted in SQLite, PostgreSQL or Redis, not in {parsed.drivername}")
        waits = {"timeout": _WAIT_SECONDS} if self._sqlite else {"connect_timeout": _WAIT_SECONDS}
        self._engine = sa.create_engine(parsed, connect_args=waits, pool_pre_ping=not self._sqlite)
        if self._sqlite:
            sa.event.listen(self._engine, "connect", _prepare_sqlite)
            sa.event.listen(self._engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
        columns = (
            sa.Column("session", sa.String(64), primary_key=True),
            sa.Column("name", sa.String(80), primary_key=True),
            sa.Column("n", sa.BigInteger, nullable=False),
            sa.Column("used_at", sa.BigInteger, nullable=False, index=True),
        )
        self._table = sa.Table("agenttool_session_count", sa.MetaData(), *columns)
        self._pid, self._ready = os.getpid(), False

    def add(self, session: str, changes: Mapping[str, int]) -> dict[str, int]:
        from sqlalchemy.dialects import postgresql, sqlite

        if self._pid != os.getpid():  # a child must not use its parent's connections, nor close them
            self._engine.dispose(close=False)
            self._pid = os.getpid()
        if not self._ready:
            self._prepare()
        now, table = int(time.time()), self._table
        # one order of the rows in every process, so that none waits for another that waits for it
        rows = [{"session": session, "name": name, "n": changes[name], "used_at": now} for name in sorted(changes)]
        insert: Any = sqlite.insert if self._sqlite else postgresql.insert
        adding = insert(table).values(rows)
        adding = adding.on_conflict_do_update(
            index_elements=[table.c.session, table.c.name],
            set_={"n": table.c.n + adding.excluded.n, "used_at": adding.excluded.used_at},
        ).returning(table.c.name, table.c.n)
        with self._engine.begin() as connection:
            after = {name: int(n) for name, n in connection.execute(adding)}
        if random.randrange(_FORGET_ONE_IN) == 0:  # noqa: S311 - nothing secret about it
            with self._engine.begin() as connection:
                connection.execute(table.delete().where(table.c.used_at < now - KEPT_SECONDS))
        return after

    def _prepare(self) -> None:
        """Make the table; another process may be about to make it too."""
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
