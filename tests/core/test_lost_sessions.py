"""A store that forgot what a session used up gives nothing back: its budgets count as used up, its
history as cut.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agenttool_otel.approvals.store.database import parse_url
from agenttool_otel.context import session_totals
from agenttool_otel.context.context import AgentContext
from agenttool_otel.context.session_store import SessionStore, open_store
from agenttool_otel.context.session_totals import LOST, USED_UP, Change, SeenTotals, Totals
from agenttool_otel.context.sessions import SessionBook
from agenttool_otel.context.shared_session import SharedSessionBook

KEY = b"k" * 32
CONTEXT = AgentContext(actor="agent:a", session_id="s")
KINDS = [
    "sqlite",
    "redis",
    pytest.param("postgres", marks=(pytest.mark.slow, pytest.mark.postgres)),
]


class World:
    """A store of sessions, and what can be done to it from outside."""

    def __init__(self, kind: str, url: str) -> None:
        self.kind, self.url = kind, url
        self.stores: list[SessionStore] = []

    def book(self) -> SessionBook:
        self.stores.append(
            open_store(self.url if self.kind == "redis" else parse_url(self.url), KEY)
        )
        return SharedSessionBook(self.stores[-1])

    def redis(self) -> Any:
        import redis

        return redis.Redis.from_url(self.url)

    def sql(self, *statements: str) -> list[Any]:
        found: list[Any] = []
        if self.kind == "sqlite":
            connection: Any = sqlite3.connect(self.url.removeprefix("sqlite:///"))
        else:
            import psycopg

            connection = psycopg.connect(self.url.replace("postgresql+psycopg", "postgresql"))
        with connection:
            for statement in statements:
                cursor = connection.execute(statement)
                found = cursor.fetchall() if cursor.description else []
        connection.close()
        return found

    def empty(self) -> None:
        if self.kind == "redis":
            self.redis().flushall()
        else:
            self.sql("DELETE FROM agenttool_session")

    def zero(self) -> None:
        if self.kind == "redis":
            client = self.redis()
            for key in client.keys("agenttool:session:*}"):
                for field in client.hkeys(key):
                    client.hset(key, field, 0)
        else:
            self.sql(
                "UPDATE agenttool_session SET n = 0, record = NULL WHERE name NOT LIKE 'record:%'"
            )

    def lose_totals(self) -> None:
        if self.kind == "redis":
            client = self.redis()
            client.delete(*client.keys("agenttool:session:*}"))
        else:
            self.sql("DELETE FROM agenttool_session WHERE name NOT LIKE 'record:%'")

    def put_old_copy_back(self, spend: Callable[[], object]) -> None:
        if self.kind == "redis":
            client = self.redis()
            dumps = {key: client.dump(key) for key in client.keys("*")}
            spend()
            client.flushall()
            for key, dump in dumps.items():
                client.restore(key, 0, dump)
            return
        self.sql(
            "DROP TABLE IF EXISTS kept", "CREATE TABLE kept AS SELECT * FROM agenttool_session"
        )
        spend()
        self.sql(
            "DELETE FROM agenttool_session", "INSERT INTO agenttool_session SELECT * FROM kept"
        )


@pytest.fixture(params=KINDS)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    found = World(request.param, request.getfixturevalue(f"{request.param}_url"))
    yield found
    for store in found.stores:
        store.close()


def spent(book: SessionBook, times: int) -> dict[str, int]:
    seen: dict[str, int] = {}
    for number in range(times):
        seen = book.of(CONTEXT).admit("t", f"c{number}")
        book.of(CONTEXT).settle(f"c{number}", None)
    return seen


def is_used_up(book: SessionBook) -> bool:
    session = book.of(CONTEXT)
    counters = session.admit("t", "last")
    _, complete = session.past_calls({}, without=None)
    return set(counters.values()) == {USED_UP} and not complete


@pytest.mark.parametrize("loss", ["empty", "zero", "lose_totals"])
def test_a_session_that_a_store_forgot_is_used_up(world: World, loss: str) -> None:
    book = world.book()
    assert spent(book, 3)["calls"] == 2
    getattr(world, loss)()
    assert is_used_up(book)
    assert is_used_up(book)


def test_an_old_copy_that_is_put_back_is_used_up(world: World) -> None:
    book, other = world.book(), world.book()
    spent(book, 3)
    world.put_old_copy_back(lambda: spent(book, 5))
    assert is_used_up(other)  # of the same process, which has seen more
    assert is_used_up(book)


def test_a_loss_that_one_process_noticed_all_know(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = world.book()
    spent(book, 3)
    world.empty()
    assert is_used_up(book)
    monkeypatch.setattr(session_totals, "_STORES", {})  # as another process begins
    assert is_used_up(world.book())


def test_a_session_begun_anew_by_another_process_is_lost(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = world.book()
    spent(book, 3)
    world.empty()
    with monkeypatch.context() as patch:
        patch.setattr(session_totals, "_STORES", {})
        other = world.book()
    assert spent(other, 9)["calls"] == 8
    assert is_used_up(book)
    assert is_used_up(other)


def test_other_sessions_go_on_after_a_loss(world: World) -> None:
    book = world.book()
    spent(book, 3)
    world.empty()
    fresh = AgentContext(actor="agent:a", session_id="fresh")
    assert [book.of(fresh).admit("t", str(number))["calls"] for number in range(3)] == [0, 1, 2]


def test_replies_that_are_lost_count_once(world: World) -> None:
    book = world.book()
    store: Any = book._store
    real = store.add
    lose = False

    def add(*given: Any) -> Any:
        after = real(*given)
        if lose:
            raise ConnectionError
        return after

    store.add = add
    spent(book, 2)
    session = book.of(CONTEXT)
    for number in range(6):
        lose = number % 2 == 0
        try:
            session.admit("t", f"x{number}")
        except Exception:
            continue
        session.give_back("t")
        session.count("asks")
        session.settle(f"x{number}", None)
    lose = False
    seen = session.admit("t", "end")
    assert (seen["calls"], seen["asks"]) == (2, 3)
    assert real(session._name, Change({"open": 0}, "somebody", 1), [])["open"] == 1  # this call


def test_a_store_that_fails_is_named_and_may_be_asked_again(sqlite_url: str) -> None:
    from agenttool_otel import Governor, agent_context

    governor = Governor(sessions_url=sqlite_url)
    store: Any = governor.sessions._store
    real = store.add

    @governor.govern(read_only=True, access_kinds=["file_read"])
    def look() -> str:
        return "x"

    def fail(*given: Any) -> Any:
        raise ConnectionError

    with agent_context(actor="agent:a", session_id="s"):
        store.add = fail
        result = look.tool.invoke({})
        assert result.error is not None
        assert "the session's counters can't be reached" in result.error.message
        assert (str(result.error.error_class), str(result.error.recoverability)) == (
            "policy_blocked",
            "retry_later",
        )
        store.add = real
        assert look() == "x"
    governor.close()


@pytest.mark.parametrize("change", ["removed", "replaced", "overwritten"])
def test_a_sessions_file_that_was_changed_is_refused(tmp_path: Path, change: str) -> None:
    from agenttool_otel.errors import SessionStoreError

    path = tmp_path / "s.db"
    book = SharedSessionBook(open_store(parse_url(path), KEY))
    spent(book, 3)
    if change == "overwritten":
        with path.open("r+b") as file:
            file.write(b"x" * 20_000)
    else:
        path.unlink()
        for end in ("-wal", "-shm"):
            path.with_name(f"s.db{end}").unlink(missing_ok=True)
    if change == "replaced":
        path.touch()
    with pytest.raises(SessionStoreError):
        book.of(CONTEXT).admit("t", "x")
    assert path.exists() is (change != "removed")
    book.close()


def test_changes_of_a_writer_forgotten_meanwhile_only_count_up() -> None:
    sealed = session_totals.Sealed(KEY, "s")
    writers = {str(number): 1 for number in range(256)}
    stored = session_totals.Stored(sealed.seal(Totals("e", 300, {"calls": 5}, writers)))
    done = session_totals.changed(sealed, stored, Change({"calls": -1, "asks": 1}, "me", 7), None)
    assert done.totals.counts == {"calls": 5, "asks": 1}
    assert len(done.totals.writers) == 256


def test_a_session_unused_for_as_long_as_it_is_kept_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = SeenTotals()
    seen.note("s", Totals("e", 3, {}, {}))
    assert seen.get("s") is not None
    monkeypatch.setattr(session_totals, "KEPT_SECONDS", -1)
    assert seen.get("s") is None


def test_totals_under_another_key_are_no_totals() -> None:
    totals = Totals("e", 3, {LOST: 0}, {})
    assert (
        session_totals.Sealed(b"x" * 32, "s").open(session_totals.Sealed(KEY, "s").seal(totals))
        is None
    )
    assert (
        session_totals.Sealed(KEY, "other").open(session_totals.Sealed(KEY, "s").seal(totals))
        is None
    )
    assert (
        session_totals.Sealed(KEY, "s").open(session_totals.Sealed(KEY, "s").seal(totals)) == totals
    )
