"""Fuzz targets that stay: what reads hostile input never raises, never runs long, and never says
what is not so.
"""

from __future__ import annotations

import io
import json
import os
import random
import sqlite3
import string
import tarfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from approval_helpers import ARGS, a_request, bindings, yes
from fuzzing import corpus, edited, fuzz
from hypothesis import strategies as st

from agenttool_otel.approvals.store.sealing import generate_key
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.errors import AgentToolError, ApprovalError, PolicyError
from agenttool_otel.facts import FactEnvironment
from agenttool_otel.policy.bundles.bundle import default_bundle_path
from agenttool_otel.policy.bundles.bundle_files import bundle_files, read_archive, write_archive
from agenttool_otel.policy.bundles.load import load_bundle
from agenttool_otel.readers.paths import path_fact
from agenttool_otel.readers.shell import shell_fact
from agenttool_otel.readers.sql import sql_fact
from agenttool_otel.readers.urls import url_fact
from agenttool_otel.redaction import RedactionSettings, Redactor
from agenttool_otel.values.canonical import canonical_bytes, digest
from agenttool_otel.values.conversion import to_json_value
from agenttool_otel.values.snapshot import snapshot

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]

MOST_CPU_SECONDS = 5.0
SQL = [
    "select 1",
    "select a, count(*) from t where b = 'x;--' group by a order by 2 limit 5",
    "with x as (delete from t returning *) select * from x",
    "insert into t values (1, 'a'); select 2",
    "select * from t where a in (select b from u) union all select pg_sleep(1)",
    "copy t to program 'sh'",
    "explain analyze update t set a = 1",
    "select 1 /*! into outfile '/tmp/x' */",
    "pragma writable_schema = 1",
]


def timed(work: Any) -> Any:
    """Do it, within CPU time that no input may exceed."""
    started = time.thread_time()
    found = work()
    assert time.thread_time() - started < MOST_CPU_SECONDS
    return found


def same_and_plain(work: Any) -> Any:
    """Do it twice: the facts are the same, and JSON."""
    found = timed(work)
    assert canonical_bytes(found) == canonical_bytes(work())
    return found


def test_shell_facts() -> None:
    def check(command: str) -> None:
        found = same_and_plain(lambda: shell_fact(command, argument="/command"))
        assert found["unparsed"] != "internal"
        if found["read_only"]:  # what a further command of the line does, it does
            more = shell_fact(command + "\nrm -rf x", argument="/command")
            assert not more["read_only"], command

    fuzz(edited(corpus("shell")), check)


def test_path_facts(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "out").symlink_to("..")
    environment = FactEnvironment(roots=(str(root),), cwd=str(root))

    def check(text: str) -> None:
        found = same_and_plain(
            lambda: path_fact(text, argument="/path", access="read", surroundings=environment)
        )
        assert found["rejected"] != "internal"
        if found["inside"] and found["certain"]:  # what the system opens is inside as well
            real = os.path.realpath(root / text)
            assert real == str(root) or real.startswith(f"{root}/"), (text, real)

    fuzz(edited([*corpus("paths"), "out/x", "a/../out/..", "./out/root/x"]), check)


def test_url_facts() -> None:
    def check(text: str) -> None:
        found = same_and_plain(
            lambda: url_fact(text, argument="/url", surroundings=FactEnvironment())
        )
        assert found["rejected"] != "internal"

    fuzz(edited(corpus("urls")), check)


def test_sql_facts() -> None:
    def check(query: str) -> None:
        found = same_and_plain(lambda: sql_fact(query, argument="/query"))
        if found["read_only"]:
            assert not sql_fact(query + "\n; drop table t", argument="/query")["read_only"], query

    fuzz(edited(SQL), check)


def test_redaction() -> None:
    redactor = Redactor(RedactionSettings())
    letters = string.ascii_letters + string.digits

    def check(drawn: tuple[str, str, int]) -> None:
        before, after, seed = drawn
        token = "gh" + "p_" + "".join(random.Random(seed).choices(letters, k=36))
        found = timed(lambda: redactor.redact_text(f"{before} {token} {after}"))
        assert found.state == "redacted"
        assert token not in str(found.value)
        value = timed(lambda: redactor.redact({before: [after, {"x": f"{after} {token}"}]}))
        assert token not in json.dumps(to_json_value(value.value))

    texts = [
        *corpus("shell"),
        *corpus("urls"),
        '{"password": "x", "key": [1, "-----BEGIN"]}',
        "a=b&token=%41",
    ]
    fuzz(st.tuples(edited(texts), edited(texts), st.integers(0, 2**32)), check)


def test_json_conversion() -> None:
    leaves = st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(max_size=40), st.complex_numbers(),
        st.dates(), st.datetimes(), st.timedeltas(), st.uuids(), st.decimals(), st.fractions(),
    )  # fmt: skip
    keys = st.one_of(
        st.text(max_size=5), st.integers(), st.none(), st.booleans(), st.tuples(st.integers())
    )
    values = st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=5),
            st.dictionaries(keys, inner, max_size=5),
            st.lists(inner, max_size=3).map(tuple),
        ),
        max_leaves=40,
    )

    def check(value: Any) -> None:
        found = timed(lambda: to_json_value(value))
        assert json.loads(json.dumps(found, allow_nan=False)) == found
        assert canonical_bytes(to_json_value(found)) == canonical_bytes(found)
        assert digest(value) == digest(snapshot(value))

    fuzz(values, check)


def test_bundle_loading(tmp_path: Path) -> None:
    stock = bundle_files(load_bundle(default_bundle_path()))
    packed = write_archive(stock)
    modules = sorted(path for path in stock if path.endswith(".rego"))
    words = [
        b"",
        b"default allow := true",
        b"import data.x",
        b"{",
        b"\0",
        b"http.send({})",
        b"package evil",
        b"\xff",
    ]
    place = tmp_path / "b.tar.gz"

    def check(drawn: tuple[bool, str, int, int, bytes]) -> None:
        of_archive, module, at, length, new = drawn
        if of_archive:
            content = packed[: at % len(packed)] + new + packed[at % len(packed) + length :]
        else:
            text = stock[module]
            edit = text[: at % len(text)] + new + text[at % len(text) + length :]
            content = write_archive({**stock, module: edit})
        try:
            files = read_archive(content, origin="fuzz")
        except PolicyError:
            return
        place.write_bytes(content)
        try:
            assert load_bundle(place).modules
        except PolicyError:
            assert files != stock, "the stock bundle loads"

    new = st.one_of(st.sampled_from(words), st.binary(max_size=8))
    fuzz(
        st.tuples(st.booleans(), st.sampled_from(modules), st.integers(0), st.integers(0, 40), new),
        check,
    )


def test_archives_of_hostile_names() -> None:
    def check(names: list[str]) -> None:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            for name in names:
                member = tarfile.TarInfo(name)
                member.size = 1
                archive.addfile(member, io.BytesIO(b"x"))
        try:
            files = read_archive(buffer.getvalue(), origin="fuzz")
        except PolicyError:
            return
        assert all(not path.startswith("/") and ".." not in path.split("/") for path in files)

    piece = st.sampled_from(
        ["a", "..", ".", "/", "\\", "\0", "x.rego", "data.json", ".manifest", "\u2025", "~"]
    )
    fuzz(
        st.lists(st.lists(piece, min_size=1, max_size=6).map("/".join), min_size=1, max_size=4),
        check,
    )


def test_approval_rows(tmp_path: Path) -> None:
    path, key = tmp_path / "approvals.db", generate_key()
    store = ApprovalStore(path, key=key)
    requests = [store.create(a_request(), ARGS) for _ in range(4)]
    for request in requests[:2]:
        store.answer(request.request_id, yes())
    store.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
        tables = [
            row[0]
            for row in connection.execute("select name from sqlite_master where type = 'table'")
        ]
        columns = {
            table: [row[1] for row in connection.execute(f"pragma table_info({table})")]
            for table in tables
            if table.startswith("agenttool_approval_")
        }
    clean = path.read_bytes()
    places = st.sampled_from(
        [(table, column) for table, names in columns.items() for column in names]
    )
    values = st.one_of(
        st.none(), st.integers(-(2**63), 2**63 - 1), st.text(max_size=30), st.binary(max_size=30),
        st.sampled_from(["approved", "consumed", "pending", "{}", "[]", '{"approved": true}', ""]),
    )  # fmt: skip

    def check(drawn: tuple[tuple[str, str], Any, int]) -> None:
        (table, column), value, row = drawn
        for leftover in tmp_path.glob("approvals.db-*"):
            leftover.unlink()
        path.write_bytes(clean)
        with closing(sqlite3.connect(path)) as connection:
            where = f"rowid = (select rowid from {table} limit 1 offset {row})"
            try:
                connection.execute(f"update {table} set {column} = ? where {where}", [value])
                connection.commit()
            except (sqlite3.IntegrityError, UnicodeEncodeError):
                return
        try:
            edited_store = ApprovalStore(path, key=key)
        except AgentToolError:
            return
        try:
            for request in requests:
                try:
                    claim = edited_store.claim(request.invocation_id, **bindings(request))
                except ApprovalError:
                    continue
                assert request in requests[:2], "nobody approved it"
                assert claim.arguments == ARGS
        finally:
            edited_store.close()

    fuzz(st.tuples(places, values, st.integers(0, 5)), check)
