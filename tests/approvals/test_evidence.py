"""The store's evidence, its secrets, its key, its migrations and its grants."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from approval_helpers import ARGS, FakeClock, a_request, bindings, no, yes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agenttool_otel.approvals.grants import grant_covers
from agenttool_otel.approvals.identity import args_digest
from agenttool_otel.approvals.store import schema
from agenttool_otel.approvals.store.sealing import Sealer, generate_key, parse_key
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.approvals.types import Grant, GrantQuery
from agenttool_otel.errors import (
    ApprovalConflict,
    ApprovalError,
    ApprovalStoreError,
    ConfigurationError,
)
from agenttool_otel.names import ApprovalLogKind as Kind
from agenttool_otel.names import ApprovalStatus as Status


def full_walk(store: ApprovalStore) -> None:
    request = store.create(a_request(), ARGS)
    store.answer(request.request_id, yes())
    store.finish(store.claim(request.invocation_id, **bindings(request)), "succeeded")


def test_every_step_leaves_its_entry_in_order(store: ApprovalStore) -> None:
    full_walk(store)
    entries = store.log_entries()
    assert [entry.kind for entry in entries] == [
        Kind.CREATED,
        Kind.ANSWERED,
        Kind.CLAIMED,
        Kind.FINISHED,
    ]
    assert [entry.seq for entry in entries] == [1, 2, 3, 4]
    report = store.verify_chain()
    assert (report.ok, report.entries, report.head) == (True, 4, entries[-1].hash)


TAMPERING: list[tuple[str, Callable[[Any], Any], int]] = [
    (
        "a changed fact",
        lambda log: log.update().where(log.c.seq == 2).values(data='{"status":"rejected"}'),
        2,
    ),
    ("a changed time", lambda log: log.update().where(log.c.seq == 3).values(at_us=1), 3),
    (
        "a changed request",
        lambda log: log.update().where(log.c.seq == 3).values(request_id="appr_x"),
        3,
    ),
    ("a removed entry", lambda log: log.delete().where(log.c.seq == 2), 2),
    ("a removed end", lambda log: log.delete().where(log.c.seq == 4), 4),
    ("no JSON", lambda log: log.update().where(log.c.seq == 1).values(data="{"), 1),
    (
        "a number that has no canonical form",
        lambda log: log.update().where(log.c.seq == 1).values(data="[NaN]"),
        1,
    ),
    ("an unknown kind", lambda log: log.update().where(log.c.seq == 1).values(kind="blessed"), 1),
    (
        "an added entry",
        lambda log: log.insert().values(
            seq=5,
            previous="0" * 64,
            hash="0" * 64,
            at_us=1,
            kind="answered",
            request_id="x",
            data="{}",
        ),
        5,
    ),
]


@pytest.mark.parametrize(
    ("tamper", "where"), [row[1:] for row in TAMPERING], ids=[row[0] for row in TAMPERING]
)
def test_tampering_with_the_log_is_found_where_it_happened(
    store: ApprovalStore, tamper: Callable[[Any], Any], where: int
) -> None:
    full_walk(store)
    with store._db._connection() as connection, connection.begin():
        connection.execute(tamper(schema.log))
    report = store.verify_chain()
    assert not report.ok
    assert report.broken_at == where
    assert report.problem


def test_no_argument_answer_or_grant_is_readable_in_the_database(tmp_path: Path) -> None:
    secret = "hunter" + "2-" + "correct-horse"
    path = tmp_path / "a.db"
    arguments = {"password": secret}
    with_secret = a_request(
        arguments,
        arguments_preview={"password": "[redacted]"},
        message=f"message {secret}",
        suggested_updates=[{"type": "grant", "args": {"password": {"equals": secret}}}],
    )
    store = ApprovalStore(path)
    request = store.create(with_secret, arguments, context={"token": secret})
    store.answer(
        request.request_id, yes(reason=f"because {secret}", edited_input=arguments, remember=0)
    )
    assert store.claim(request.invocation_id, **bindings(request)).context == {"token": secret}
    store.close()
    for file in tmp_path.iterdir():
        assert secret.encode() not in file.read_bytes(), file.name
        assert file.stat().st_mode & 0o077 == 0, file.name


def test_a_readable_log_holds_nothing_that_a_person_typed(store: ApprovalStore) -> None:
    request = store.create(a_request(), ARGS)
    store.answer(request.request_id, no(reason="the-typed-reason"))
    assert "the-typed-reason" not in str(store.log_entries())
    assert store.get(request.request_id).answer_reason == "the-typed-reason"


# --- key ------------------------------------------------------------------------------------------


def test_the_key_file_is_made_once_and_serves_the_next_process(tmp_path: Path) -> None:
    request = ApprovalStore(tmp_path / "a.db").create(a_request(), ARGS)
    assert ApprovalStore(tmp_path / "a.db").stored_call(request.request_id).arguments == ARGS


def test_a_lost_key_file_is_told_and_not_replaced(tmp_path: Path) -> None:
    ApprovalStore(tmp_path / "a.db")
    (tmp_path / "a.db.key").unlink()
    with pytest.raises(ConfigurationError, match="can't be opened"):
        ApprovalStore(tmp_path / "a.db")
    assert not (tmp_path / "a.db.key").exists()


def test_another_key_is_refused_when_the_store_is_opened(tmp_path: Path) -> None:
    ApprovalStore(tmp_path / "a.db", key=generate_key())
    with pytest.raises(ApprovalStoreError, match="another key"):
        ApprovalStore(tmp_path / "a.db", key=generate_key())


def test_a_key_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    ApprovalStore(tmp_path / "a.db")
    (tmp_path / "a.db.key").chmod(0o644)
    with pytest.raises(ConfigurationError, match="chmod 600"):
        ApprovalStore(tmp_path / "a.db")


def test_the_key_may_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTTOOL_APPROVALS_KEY", generate_key())
    ApprovalStore(tmp_path / "a.db")
    assert not (tmp_path / "a.db.key").exists()


@pytest.mark.parametrize("bad", ["", "short", "x" * 44, b"12345", "00" * 31, "é" * 43])
def test_a_bad_key_is_refused_without_being_shown(tmp_path: Path, bad: str | bytes) -> None:
    with pytest.raises(ConfigurationError) as caught:
        ApprovalStore(tmp_path / "a.db", key=bad)
    assert not bad or str(bad) not in str(caught.value)


@pytest.mark.parametrize(
    "form", [lambda raw: raw, lambda raw: raw.hex(), lambda raw: f" {raw.hex().upper()}\n"]
)
def test_a_key_is_read_in_each_of_its_forms(form: Callable[[bytes], Any]) -> None:
    raw = os.urandom(32)
    assert parse_key(form(raw)) == raw


# --- another key ----------------------------------------------------------------------------------


def used_and_open(store: ApprovalStore) -> tuple[Any, Any, Any]:
    """A used request with a grant, an approved one, and a pending one."""
    used = store.create(a_request(suggested_updates=[{"type": "grant"}]), ARGS, context={"a": 1})
    store.answer(used.request_id, yes(remember=0))
    store.finish(store.claim(used.invocation_id, **bindings(used)), "succeeded")
    approved, pending = (store.create(a_request(), ARGS) for _ in range(2))
    store.answer(approved.request_id, yes())
    store.keep_required("inv_waits", "ui/pick", {"n": 1}, {}, declaration_digest="d")
    return used, approved, pending


def test_after_a_change_of_the_key_everything_goes_on(
    open_store: Callable[..., ApprovalStore],
) -> None:
    store, other, new_key = open_store(), open_store(), generate_key()
    used, approved, pending = used_and_open(store)
    before = store.verify_chain()
    store.rotate_key(new_key)
    assert store.verify_chain().ok
    last = store.log_entries()[-1]
    assert (last.kind, last.data["previous_head"]) == (Kind.KEY_ROTATED, before.head)
    for act in (
        other.list,
        lambda: other.claim(approved.invocation_id, **bindings(approved)),
        open_store,
    ):
        with pytest.raises(ApprovalStoreError, match="another key"):
            act()
    again = open_store(key=new_key)
    assert again.verify_chain().ok
    assert again.claim(approved.invocation_id, **bindings(approved)).arguments == ARGS
    assert again.answer(pending.request_id, yes()).status is Status.APPROVED
    assert again.stored_call(used.request_id).context == {"a": 1}
    assert again.take_required("inv_waits", "completed").arguments == {"n": 1}
    assert len(again.list_grants()) == 1
    with pytest.raises(ApprovalConflict):
        again.claim(used.invocation_id, **bindings(used))
    assert again.verify_chain().ok


def test_a_key_file_is_replaced_even_if_the_process_dies_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.db"
    store = ApprovalStore(path)
    _, approved, _ = used_and_open(store)
    first = (tmp_path / "a.db.key").read_text()
    store.rotate_key()
    second = (tmp_path / "a.db.key").read_text()
    assert second != first
    real = os.replace
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda a, b: None if str(a).endswith(".next") else real(a, b))
        store.rotate_key()
    store.close()
    assert (tmp_path / "a.db.key").read_text() == second
    again = ApprovalStore(path)
    assert (tmp_path / "a.db.key").read_text() != second
    assert again.claim(approved.invocation_id, **bindings(approved)).arguments == ARGS
    assert again.verify_chain().ok
    assert {file.stat().st_mode & 0o077 for file in tmp_path.iterdir()} == {0}


def test_an_edited_store_keeps_its_key(store: ApprovalStore) -> None:
    used_and_open(store)
    with store._db._connection() as connection, connection.begin():
        connection.execute(schema.requests.update().values(actor_id="agent:other"))
    with pytest.raises(ApprovalStoreError, match="keeps its key"):
        store.rotate_key(generate_key())
    with pytest.raises(ConfigurationError, match="has to be given"):
        store.rotate_key()


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=150)
@given(JSON, st.integers(0, 10_000), st.integers(1, 255))
def test_sealed_values_open_and_any_changed_byte_is_noticed(value: Any, at: int, flip: int) -> None:
    sealer = Sealer(b"k" * 32)
    data = sealer.seal(value, purpose="call", row="r1")
    assert sealer.open(data, purpose="call", row="r1") == value
    changed = bytearray(data)
    changed[at % len(data)] ^= flip
    for forged, purpose, row in (
        (bytes(changed), "call", "r1"),
        (data, "answer", "r1"),
        (data, "call", "r2"),
    ):
        with pytest.raises(ApprovalStoreError):
            sealer.open(forged, purpose=purpose, row=row)


# --- opening --------------------------------------------------------------------------------------


def test_a_store_of_an_earlier_package_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.db") as old:
        old.execute(
            "CREATE TABLE agenttool_approval_schema (version INTEGER PRIMARY KEY, applied_us BIGINT)"
        )
    with pytest.raises(ApprovalStoreError, match="earlier agenttool-otel"):
        ApprovalStore(tmp_path / "a.db", key=generate_key())


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    ApprovalStore(tmp_path / "a.db")
    with sqlite3.connect(tmp_path / "a.db") as newer:
        newer.execute("UPDATE agenttool_approval_head SET version = 99")
    with pytest.raises(ApprovalStoreError, match="version 99"):
        ApprovalStore(tmp_path / "a.db")


def test_sqlite_is_opened_durably(tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path / "a.db")
    with store._db._connection() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2


@pytest.mark.parametrize(
    "content",
    [b"not a database at all, but long enough to be taken for one" * 40, b"SQLite format 3"],
)
def test_a_corrupt_file_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.db").write_bytes(content)
    with pytest.raises(ApprovalStoreError):
        ApprovalStore(tmp_path / "a.db", key=generate_key())


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u@localhost/x",
        "nonsense://",
        "://",
        "postgresql+asyncpg://u@h/x",
        "postgresql+nodriver://u@h/x",
    ],
)
def test_other_databases_and_broken_urls_are_refused(url: str) -> None:
    with pytest.raises((ConfigurationError, ApprovalStoreError)):
        ApprovalStore(url, key=generate_key())


def test_an_unreachable_server_is_told_without_its_password() -> None:
    password = "pa" + "ss-word-1"
    with pytest.raises(ApprovalStoreError) as caught:
        ApprovalStore(f"postgresql://u:{password}@127.0.0.1:1/x", key=generate_key(), timeout=0.5)
    assert password not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_shared_store_without_a_key_is_refused(
    postgres_free_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENTTOOL_APPROVALS_KEY", raising=False)
    with pytest.raises((ConfigurationError, ApprovalStoreError)):
        ApprovalStore(postgres_free_url, timeout=0.5)


@pytest.fixture
def postgres_free_url() -> str:
    return "postgresql://u@127.0.0.1:1/x"


# --- grants ---------------------------------------------------------------------------------------


def remember(store: ApprovalStore, suggestion: dict[str, Any], **values: Any) -> None:
    request = store.create(a_request(suggested_updates=[suggestion], **values), ARGS)
    store.answer(request.request_id, yes(remember=0))


def a_call(**changes: Any) -> dict[str, Any]:
    return {
        "tool_id": "local.files/write_file",
        "declaration_digest": "sha256:tool-v1",
        "actor_id": "agent:support",
        "tenant": "acme",
        "session_id": "s-1",
        "arguments": ARGS,
        **changes,
    }


def covering(store: ApprovalStore, **changes: Any) -> list[Grant]:
    wanted = GrantQuery(**a_call(**changes), rule_refs=frozenset(), approver_roles=frozenset())
    digest = args_digest(wanted.arguments)
    return [grant for grant in store.list_grants() if grant_covers(grant, wanted, digest)]


SESSION = {
    "type": "grant",
    "scope": "session",
    "args": {"path": {"equals": "notes.txt"}, "content": {"any": True}},
}
ACTOR = {**SESSION, "scope": "actor"}
TENANT = {**SESSION, "scope": "tenant"}
EXACT = {"type": "grant"}
CHOICE = {
    "type": "grant",
    "args": {"path": {"one_of": ["a", "notes.txt"]}, "content": {"any": True}},
}

GRANT_ROWS: list[tuple[str, dict[str, Any], dict[str, Any], bool]] = [
    ("the same call", EXACT, {}, True),
    ("other arguments, exact", EXACT, {"arguments": {**ARGS, "content": "x"}}, False),
    ("another free argument", SESSION, {"arguments": {**ARGS, "content": "x"}}, True),
    ("one of", CHOICE, {}, True),
    ("none of", CHOICE, {"arguments": {**ARGS, "path": "b"}}, False),
    ("another path", SESSION, {"arguments": {"path": "/etc/passwd", "content": "x"}}, False),
    (
        "a longer path",
        SESSION,
        {"arguments": {"path": "notes.txt/../../etc", "content": "x"}},
        False,
    ),
    ("an argument more", SESSION, {"arguments": {**ARGS, "mode": "w"}}, False),
    ("an argument less", SESSION, {"arguments": {"path": "notes.txt"}}, False),
    (
        "another type",
        {"type": "grant", "args": {"path": {"any": True}, "content": {"equals": 1}}},
        {},
        False,
    ),
    ("another session", SESSION, {"session_id": "s-2"}, False),
    ("no session", SESSION, {"session_id": None}, False),
    ("another session, actor scope", ACTOR, {"session_id": "s-2"}, True),
    ("another actor", ACTOR, {"actor_id": "agent:x"}, False),
    ("another actor, tenant scope", TENANT, {"actor_id": "agent:x"}, True),
    ("another tenant", TENANT, {"tenant": "evil"}, False),
    ("no tenant", TENANT, {"tenant": None}, False),
    ("another tool", TENANT, {"tool_id": "local.shell/run"}, False),
    ("a changed tool", TENANT, {"declaration_digest": "sha256:tool-v2"}, False),
]


@pytest.mark.parametrize(
    ("suggestion", "changes", "covered"),
    [row[1:] for row in GRANT_ROWS],
    ids=[row[0] for row in GRANT_ROWS],
)
def test_a_grant_covers_what_it_says_and_no_more(
    store: ApprovalStore, suggestion: dict[str, Any], changes: dict[str, Any], covered: bool
) -> None:
    remember(store, suggestion)
    assert bool(covering(store, **changes)) is covered


def test_a_grant_ends_by_time_and_by_revocation(store: ApprovalStore, clock: FakeClock) -> None:
    remember(store, {"type": "grant", "expires_in": 120})
    remember(store, EXACT)
    assert len(covering(store)) == 2
    clock.move(121)
    [left] = covering(store)
    store.revoke(left.grant_id, revoked_by="user:ada")
    store.revoke(left.grant_id)
    assert covering(store) == []
    assert [entry.kind for entry in store.log_entries()].count(Kind.GRANT_REVOKED) == 1


@pytest.mark.parametrize(
    "suggestion",
    [
        {},
        {"type": "rule"},
        {"type": "grant", "scope": "world"},
        {"type": "grant", "scope": ["session"]},
        {"type": "grant", "tool": "local.shell/run"},
        {"type": "grant", "expires_in": 0},
        {"type": "grant", "expires_in": True},
        {"type": "grant", "expires_in": 10**9},
        {"type": "grant", "args": "any"},
        {"type": "grant", "args": {"path": {"prefix": "/tmp"}}},
        {"type": "grant", "args": {"path": {"equals": 1, "any": True}}},
        {"type": "grant", "args": {"path": {"any": 1}}},
        {"type": "grant", "args": {"path": "notes.txt"}},
        {"type": "grant", "pattern": "*"},
    ],
    ids=repr,
)
def test_a_suggestion_that_is_not_understood_is_not_remembered(
    tmp_path: Path, suggestion: dict[str, Any]
) -> None:
    store = ApprovalStore(tmp_path / "a.db")
    request = store.create(a_request(suggested_updates=[suggestion]), ARGS)
    with pytest.raises(ApprovalConflict):
        store.answer(request.request_id, yes(remember=0))
    assert store.list_grants() == []
    assert store.get(request.request_id).status is Status.PENDING


def test_a_scope_the_request_lacks_is_not_remembered(store: ApprovalStore) -> None:
    for missing, scope in (("session_id", "session"), ("tenant", "tenant")):
        with pytest.raises(ApprovalConflict):
            remember(store, {"type": "grant", "scope": scope}, **{missing: None})


# --- asynchronous code ----------------------------------------------------------------------------


async def test_the_asynchronous_methods_walk_the_same_way(store: ApprovalStore) -> None:
    request = await store.acreate(a_request(), ARGS, context={"a": 1})
    assert (await store.aby_invocation(request.invocation_id)) is not None
    await store.aanswer(request.request_id, yes())
    assert (await store.astored_call(request.invocation_id)).arguments == ARGS
    claim = await store.aclaim(request.invocation_id, **bindings(request))
    await store.aextend(claim)
    await store.afinish(claim, "succeeded")
    assert (await store.aget(request.request_id)).outcome == "succeeded"
    assert await store.arecover() == []
    with pytest.raises(ApprovalError):
        await store.acancel(request.request_id, "x")


async def test_a_claim_whose_task_is_canceled_is_given_back(tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path / "a.db")
    for delay in (0.0, 0.0005, 0.002, 0.01):
        request = store.create(a_request(), ARGS)
        store.answer(request.request_id, yes())
        task = asyncio.create_task(store.aclaim(request.invocation_id, **bindings(request)))
        await asyncio.sleep(delay)
        task.cancel()
        done = False
        try:
            await task
            done = True
        except asyncio.CancelledError:
            pass
        assert store.get(request.request_id).status is (
            Status.CONSUMED if done else Status.APPROVED
        )


@pytest.mark.parametrize(
    "value", [2**70, -1.5e300, "\ud800", "\x00", "a\u202eb", [[]], {"$int": "0x1"}, True, 1.0]
)
def test_a_resumed_call_gets_the_very_value_that_was_asked_about(
    store: ApprovalStore, value: Any
) -> None:
    arguments = {"v": value}
    request = store.create(a_request(arguments, arguments_preview={}), arguments)
    store.answer(request.request_id, yes())
    back = store.claim(request.invocation_id, **bindings(request)).arguments["v"]
    assert (back, type(back)) == (value, type(value))


# --- digests --------------------------------------------------------------------------------------


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), JSON, max_size=4)
)
def test_a_digest_does_not_depend_on_the_order_of_keys(value: dict[str, Any]) -> None:
    assert args_digest(dict(reversed(value.items()))) == args_digest(value)


@pytest.mark.parametrize("value", [{"a": float("nan")}, {"a": b"x"}, {1: "x"}, {"a": {1}}])
def test_what_can_not_be_kept_as_json_has_no_digest(value: Any) -> None:
    with pytest.raises(ApprovalError):
        args_digest(value)
