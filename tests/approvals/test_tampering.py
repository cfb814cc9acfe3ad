"""Whoever edits the database without its key makes nothing run, and ``verify`` notices each edit.

A store with requests, grants and waiting calls in every state is copied, one or two of its values
are edited, flipped, swapped with another row's or put back as they once were, and then everything
that could run is tried.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from approval_helpers import ARGS, a_request, bindings, no, yes

from agenttool_otel.approvals.store.sealing import generate_key
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.approvals.types import ApprovalRequest, Claim, GrantQuery
from agenttool_otel.errors import AgentToolError, ApprovalError, ApprovalStoreError
from agenttool_otel.names import ApprovalStatus as Status

KEY = generate_key()
REQUESTS, LOG, HEAD = (
    "agenttool_approval_request",
    "agenttool_approval_log",
    "agenttool_approval_head",
)
GRANTS, REQUIRED = "agenttool_approval_grant", "agenttool_approval_required"
KEYS = {
    REQUESTS: "request_id",
    LOG: "seq",
    HEAD: "id",
    GRANTS: "grant_id",
    REQUIRED: "invocation_id",
}
STATES = [
    "pending",
    "approved",
    "consumed",
    "rejected",
    "expired",
    "canceled",
    "interrupted",
    "waiting",
    "completed",
]

Rows = dict[str, dict[Any, dict[str, Any]]]
"""The rows of a database by table and primary key."""


@dataclass(frozen=True)
class Edit:
    """One value that is set, or one row that is replaced (no column), removed (no row) or added."""

    what: str
    table: str
    key: Any
    column: str | None
    value: Any

    def apply(self, database: sqlite3.Connection) -> None:
        key = KEYS[self.table]
        if self.column is not None:
            database.execute(
                f"UPDATE {self.table} SET {self.column} = ? WHERE {key} = ?", (self.value, self.key)
            )
            return
        database.execute(f"DELETE FROM {self.table} WHERE {key} = ?", (self.key,))
        if self.value is not None:
            names, marks = ", ".join(self.value), ", ".join("?" * len(self.value))
            database.execute(
                f"INSERT INTO {self.table} ({names}) VALUES ({marks})", tuple(self.value.values())
            )


@dataclass
class World:
    """One store in which everything has happened once, with copies of its rows as they were on the
    way.
    """

    path: Path
    requests: dict[str, ApprovalRequest] = field(default_factory=dict)
    past: list[Rows] = field(default_factory=list)

    @property
    def rows(self) -> Rows:
        return self.past[-1]


def rows_of(path: Path) -> Rows:
    with sqlite3.connect(path) as database:
        database.row_factory = sqlite3.Row
        return {
            table: {row[key]: dict(row) for row in database.execute(f"SELECT * FROM {table}")}
            for table, key in KEYS.items()
        }


def open_store(path: Path) -> ApprovalStore:
    return ApprovalStore(path, key=KEY)


def ask(store: ApprovalStore, name: str, **values: Any) -> ApprovalRequest:
    arguments = {**ARGS, "path": name}
    return store.create(
        a_request(arguments, approver_roles=[], session_id=name, **values), arguments
    )


def wanted(name: str) -> GrantQuery:
    rules = frozenset({"agenttool.rules.approval.write"})
    tool = ("local.files/write_file", "sha256:tool-v1", "agent:support", "acme", name)
    return GrantQuery(*tool, {**ARGS, "path": name}, rules)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(tmp_path_factory.mktemp("tampering") / "approvals.db")
    store, requests, claims = open_store(world.path), world.requests, {}

    def step(*actions: Callable[[], Any]) -> None:
        for action in actions:
            action()
        world.past.append(rows_of(world.path))

    for name in (
        "used",
        "rejected",
        "pending",
        "approved",
        "running",
        "lost",
        "canceled",
        "external",
        "grants",
    ):
        suggested = [{"type": "grant"}] if name in {"grants", "lost"} else []
        requests[name] = ask(store, name, suggested_updates=suggested)
    step()
    for name in ("used", "approved", "running", "external"):
        store.answer(requests[name].request_id, yes())
    for name in ("grants", "lost"):
        store.answer(requests[name].request_id, yes(remember=0))
    step(lambda: store.answer(requests["rejected"].request_id, no()))
    step(lambda: store.cancel(requests["canceled"].request_id, "the user went on"))
    for name in ("used", "running", "external", "grants", "lost"):
        claims[name] = store.claim(requests[name].invocation_id, **bindings(requests[name]))
    step()
    for name in ("done", "waits", "external"):
        claim = claims.get(name)
        store.keep_required(
            f"inv_{name}", "ui/pick", {"n": name}, {}, declaration_digest="d", claim=claim
        )
    step()
    for name in ("used", "grants", "lost"):
        store.finish(claims[name], "succeeded")
    step(lambda: store.extend(claims["running"]))
    store.take_required("inv_done", "completed")
    (revoked,) = (one.grant_id for one in store.list_grants() if one.session_id == "lost")
    step(lambda: store.revoke(revoked))
    assert store.verify_chain().ok
    store.close()
    with sqlite3.connect(world.path) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return world


# --- the edits ------------------------------------------------------------------------------------


def flipped(value: Any, at: int) -> Any:
    if isinstance(value, bytes) and value:
        place = at % len(value)
        return value[:place] + bytes([value[place] ^ (1 << at % 8)]) + value[place + 1 :]
    if isinstance(value, str) and value:
        place = at % len(value)
        return value[:place] + chr(ord(value[place]) ^ 1) + value[place + 1 :]
    return value ^ (1 << at % 40) if isinstance(value, int) else 1


def edited(column: str, value: Any) -> list[Any]:
    if column == "status":
        return STATES
    if column == "outcome":
        return [None, "failed", "succeeded"]
    return {
        int: [0, 2**52, None],
        str: ["", f"{value} ", None],
        bytes: [b"", b"\x01" + b"0" * 40],
        type(None): [0, "x", b""],
    }[type(value)]


def single_edits(world: World) -> Iterator[Edit]:
    """Every column of every row of every table: edited, flipped, swapped and put back."""
    numbers = itertools.count(3, 7)
    for table, rows in world.rows.items():
        for (key, row), other in zip(
            rows.items(), [*list(rows.values())[1:], *rows.values()], strict=False
        ):
            for column, value in row.items():
                found = [("edited", new) for new in edited(column, value)]
                found.append(("flipped", flipped(value, next(numbers))))
                found.append(("swapped", other[column]))
                found += [
                    ("put back", old[table][key][column])
                    for old in world.past[:-1]
                    if key in old[table]
                ]
                seen: list[Any] = [value]
                for what, new in found:
                    if not any(new == one and type(new) is type(one) for one in seen):
                        seen.append(new)
                        yield Edit(what, table, key, column, new)


def row_edits(world: World) -> Iterator[Edit]:
    """Every row: removed, and put back as a whole as it once was."""
    for table, rows in world.rows.items():
        for key, row in rows.items():
            yield Edit("removed", table, key, None, None)
            older = [old[table][key] for old in world.past[:-1] if key in old[table]]
            for number, old in enumerate(older):
                if old != row and old not in older[:number]:
                    yield Edit("put back", table, key, None, old)


def pairs_of(world: World, count: int) -> list[tuple[Edit, ...]]:
    """Pairs of edits: of a used row all that put back two of its columns, and others by chance."""
    singles, whole = list(single_edits(world)), list(row_edits(world))
    used = world.requests["used"].request_id
    back = [one for one in singles if one.what == "put back" and one.key == used]
    pairs: list[tuple[Edit, ...]] = [
        pair for pair in itertools.combinations(back, 2) if pair[0].column != pair[1].column
    ]
    pairs += itertools.combinations([one for one in whole if one.what == "put back"], 2)
    chance = random.Random(12)
    chance.shuffle(pairs)
    pairs = pairs[: count // 2]
    while len(pairs) < count:
        one, two = chance.choice(singles), chance.choice([*singles, *whole])
        if (one.table, one.key, one.column) != (two.table, two.key, two.column):
            pairs.append((one, two))
    return pairs


# --- what is tried --------------------------------------------------------------------------------


def attempts(world: World, store: ApprovalStore) -> list[str]:
    """Try to run everything; gives what ran."""
    ran: list[str] = []

    def run(name: str, claim: Callable[[], Claim]) -> None:
        with suppress(AgentToolError):
            arguments = claim().arguments
            ran.append(f"{name} {arguments == {**ARGS, 'path': name}}")

    for name, request in world.requests.items():
        run(name, lambda request=request: store.claim(request.invocation_id, **bindings(request)))
        if name in {"used", "approved"}:
            run(name, lambda request=request: store.claim(request.request_id, **bindings(request)))
    for name in ("grants", "lost"):
        with suppress(AgentToolError):
            grant = store.find_grant(wanted(name))
            if grant is not None:
                store.use_grant(
                    grant.grant_id, wanted(name), invocation_id="inv_x", policy_revision="rev-1"
                )
                ran.append(f"granted {name}")
    for name in ("done", "waits", "external"):
        for _ in range(2):
            with suppress(AgentToolError):
                call = store.take_required(f"inv_{name}", "completed")
                ran.append(f"taken {name} {call.arguments == {'n': name}}")
    return ran


ALLOWED = {"approved True": 1, "granted grants": 1, "taken waits True": 1, "taken external True": 1}
"""What may run, and how often; nothing else may."""


def check(world: World, case: tuple[Edit, ...], path: Path, reopened: bool) -> None:
    shutil.copyfile(world.path, path)
    store: ApprovalStore | None = None if reopened else open_store(path)
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA synchronous = OFF")
    try:
        for edit in case:
            edit.apply(database)
    except sqlite3.IntegrityError:
        return  # the database itself refuses that
    finally:
        database.close()
        if store is not None and rows_of(path) == world.rows:
            store.close()
    if rows_of(path) == world.rows:
        return
    try:
        store = store or open_store(path)
    except ApprovalError:
        return  # noticed when the store is opened
    try:
        assert not store.verify_chain().ok, "not noticed"
        ran = attempts(world, store)
        assert {
            name: ran.count(name) for name in ran if ran.count(name) > ALLOWED.get(name, 0)
        } == {}
    finally:
        store.close()
        for file in path.parent.glob(f"{path.name}*"):
            file.unlink(missing_ok=True)  # SQLite removes its own at the last connection's end


def check_all(world: World, cases: list[tuple[Edit, ...]], tmp_path: Path) -> None:
    place = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else tmp_path
    failed = []
    for number, case in enumerate(cases):
        path = place / f"{tmp_path.name}-{os.getpid()}-{number}.db"
        try:
            check(world, case, path, reopened=bool(number % 2))
        except AssertionError as error:
            failed.append((str(error), [(edit.what, edit.table, edit.column) for edit in case]))
        finally:
            for file in place.glob(f"{path.name}*"):
                file.unlink(missing_ok=True)  # a connection that closes takes its own files along
    assert failed == []


def test_untouched_everything_runs_that_may_and_once(world: World, tmp_path: Path) -> None:
    shutil.copyfile(world.path, tmp_path / "copy.db")
    store = open_store(tmp_path / "copy.db")
    assert store.verify_chain().ok
    ran = attempts(world, store)
    assert {name: ran.count(name) for name in ran} == ALLOWED
    assert store.verify_chain().ok
    store.close()


def test_an_edit_of_any_column_runs_nothing_and_is_noticed(world: World, tmp_path: Path) -> None:
    """One edit of each column and of each kind; all of them in the slow test."""
    chance = random.Random(11)
    by_column: dict[tuple[str, str | None], list[Edit]] = {}
    for edit in itertools.chain(single_edits(world), row_edits(world)):
        by_column.setdefault((edit.table, edit.column), []).append(edit)
    cases: list[tuple[Edit, ...]] = [(chance.choice(edits),) for edits in by_column.values()]
    assert {case[0].what for case in cases} == {
        "edited",
        "flipped",
        "swapped",
        "put back",
        "removed",
    }
    assert len(cases) >= 60
    check_all(world, cases, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_edits_alone_and_in_pairs_run_nothing_and_are_noticed(world: World, tmp_path: Path) -> None:
    cases: list[tuple[Edit, ...]] = [
        (edit,) for edit in itertools.chain(single_edits(world), row_edits(world))
    ]
    cases += pairs_of(world, 1000)
    assert len(cases) >= 2000
    check_all(world, cases, tmp_path)


# --- the log cut, the head put back, the whole database put back ----------------------------------


PARTS = [
    tables
    for count in range(1, len(KEYS))
    for tables in itertools.combinations(KEYS, count)
    # these three together are an older copy of the database
    if not {REQUESTS, LOG, HEAD} <= set(tables)
]


def put_back(world: World, path: Path, moment: int, tables: tuple[str, ...]) -> None:
    with sqlite3.connect(path) as database:
        for table in tables:
            database.execute(f"DELETE FROM {table}")
            for key, row in world.past[moment][table].items():
                Edit("put back", table, key, None, row).apply(database)


@pytest.mark.parametrize("tables", PARTS, ids=" ".join)
def test_tables_put_back_without_the_others_run_nothing(
    world: World, tmp_path: Path, tables: tuple[str, ...]
) -> None:
    path = tmp_path / "copy.db"
    shutil.copyfile(world.path, path)
    put_back(world, path, 1, tables)
    store = open_store(path)
    assert not store.verify_chain().ok
    assert "used True" not in attempts(world, store)
    store.close()


def test_a_process_that_has_seen_more_refuses_an_older_copy(world: World, tmp_path: Path) -> None:
    path = tmp_path / "copy.db"
    shutil.copyfile(world.path, path)
    store = open_store(path)
    put_back(world, path, 1, tuple(KEYS))
    assert attempts(world, store) == []
    with pytest.raises(ApprovalStoreError, match="older copy"):
        store.list()
    store.close()


def test_an_older_copy_is_told_from_the_present_by_its_anchor(world: World, tmp_path: Path) -> None:
    path = tmp_path / "copy.db"
    shutil.copyfile(world.path, path)
    store = open_store(path)
    anchor = (store.verify_chain().entries, store.verify_chain().head)
    assert store.verify_chain(anchor=anchor).ok
    store.create(a_request(), ARGS)
    assert store.verify_chain(anchor=anchor).ok
    store.close()
    put_back(world, path, 1, tuple(KEYS))
    store = open_store(path)
    assert store.verify_chain().ok  # nothing in a whole older copy is wrong in itself
    assert "older copy" in str(store.verify_chain(anchor=anchor).problem)
    store.close()


def test_a_blanked_key_id_opens_nothing(world: World, tmp_path: Path) -> None:
    path = tmp_path / "copy.db"
    for value in ("", "0" * 16):
        shutil.copyfile(world.path, path)
        with sqlite3.connect(path) as database:
            database.execute(f"UPDATE {HEAD} SET key_id = ?", (value,))
        for key in (KEY, generate_key()):
            with pytest.raises(ApprovalStoreError, match=r"names the key|another key"):
                ApprovalStore(path, key=key)


def test_a_grant_that_was_revoked_stays_so(world: World, tmp_path: Path) -> None:
    path = tmp_path / "copy.db"
    shutil.copyfile(world.path, path)
    put_back(world, path, 4, (GRANTS,))
    store = open_store(path)
    grant = store.find_grant(wanted("lost"))
    assert grant is not None
    with pytest.raises(ApprovalStoreError, match="changed"):
        store.use_grant(grant.grant_id, wanted("lost"), invocation_id="inv_x", policy_revision="r")
    assert store.get(world.requests["used"].request_id).status is Status.CONSUMED
    store.close()
