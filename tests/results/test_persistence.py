"""Large results are kept, previewed and found again; a store that fails costs the copy and never
the result.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agenttool_otel.errors import ConfigurationError, PersistenceError
from agenttool_otel.names import PersistenceStrategy, RedactionState
from agenttool_otel.results.persistence import ResultKeeper
from agenttool_otel.results.persistence.read_result import make_read_result, read_page
from agenttool_otel.results.persistence.strategy import Demand, StrategyChoice, choose_strategy
from agenttool_otel.results.persistence.stream import StreamCollector
from agenttool_otel.results.stores.cipher import CHUNK_BYTES, Cipher
from agenttool_otel.results.stores.local import LocalBackend
from agenttool_otel.results.stores.object_store import ObjectStoreBackend
from agenttool_otel.results.stores.store import URI_PREFIX, ResultStore, StoreLimits
from agenttool_otel.results.stores.types import (
    PayloadExpired,
    PayloadNotFound,
    PayloadStore,
    QuotaExceeded,
)
from agenttool_otel.results.transform import CleanText, RedactionFailed, Transform
from agenttool_otel.values.canonical import keyed_digest

S = PersistenceStrategy
SCHEMA = jsonschema_rs.validator_for(
    json.loads(
        (
            Path(__file__).parent.parent
            / "spec_schemas"
            / "agenttool-result-persistence.schema.json"
        ).read_text()
    )
)
LONG = "".join(f"match {i}: some text\n" for i in range(30_000))


class Clock:
    def __init__(self):
        self.now = datetime.now(UTC)

    def __call__(self):
        return self.now


@pytest.fixture(params=["local", "memory", "obstore-local", "encrypted"])
def store(request, tmp_path):
    if request.param == "local":
        return ResultStore(LocalBackend(tmp_path / "s", durable=False))
    if request.param == "encrypted":
        return ResultStore(
            LocalBackend(tmp_path / "s", durable=False), cipher=Cipher(os.urandom(32))
        )
    obstore = pytest.importorskip("obstore.store")
    inner = obstore.MemoryStore() if request.param == "memory" else obstore.LocalStore(tmp_path)
    return ResultStore(ObjectStoreBackend(inner, prefix="tenant/x"))


@pytest.fixture
def local(tmp_path):
    return ResultStore(LocalBackend(tmp_path / "s", durable=False))


def keeper(store, **options):
    return ResultKeeper(store, deadline_s=options.pop("deadline_s", 20), **options)


def keep(store, value, transform=None, invocation_id="inv_1", **options):
    found = keeper(store, **options)
    choice = found.choose(value)
    assert choice is not None
    kept = found.keep(value, choice, invocation_id=invocation_id, transform=transform)
    assert list(SCHEMA.iter_errors(kept.decision.to_json_object())) == []
    return kept


# --- strategy -------------------------------------------------------------------------------------

CASES = [
    ({"size": 10}, S.INLINE),
    ({"size": 101}, S.PREVIEW_AND_PERSIST),
    ({"size": None}, S.PREVIEW_AND_PERSIST),
    ({"size": 101, "contract_limit": 200}, S.INLINE),
    ({"size": 101, "contract_limit": 200, "obliged_limit": 50}, S.PREVIEW_AND_PERSIST),
    ({"size": 51, "contract_limit": 50, "obliged_limit": 500}, S.PREVIEW_AND_PERSIST),
    ({"size": 1, "obliged_limit": -1}, S.PREVIEW_AND_PERSIST),
    ({"size": 1, "obliged_limit": True}, S.PREVIEW_AND_PERSIST),
    ({"size": 1, "obliged_limit": "many"}, S.PREVIEW_AND_PERSIST),
    ({"size": 10, "obliged_strategy": "ref_only"}, S.REF_ONLY),
    ({"size": 10, "obliged_strategy": "ref_only", "has_store": False}, S.DROP_WITH_REASON),
    ({"size": 10, "obliged_strategy": "drop_with_reason"}, S.DROP_WITH_REASON),
    ({"size": 10, "obliged_strategy": "keep it somewhere"}, S.DROP_WITH_REASON),
    ({"size": 10, "contract_strategy": "policy://elsewhere"}, S.INLINE),
    ({"size": 10, "contract_strategy": "preview_and_persist"}, S.PREVIEW_AND_PERSIST),
    (
        {
            "size": 101,
            "contract_strategy": "preview_and_persist",
            "obliged_strategy": "never_persist",
        },
        S.NEVER_PERSIST,
    ),
    (
        {
            "size": 101,
            "contract_strategy": "never_persist",
            "obliged_strategy": "preview_and_persist",
        },
        S.NEVER_PERSIST,
    ),
    ({"size": 101, "obliged_strategy": "inline"}, S.INLINE),
    ({"size": 101, "obliged_strategy": "inline", "obliged_limit": 50}, S.NEVER_PERSIST),
    ({"size": 101, "sensitivity": "Secret"}, S.NEVER_PERSIST),
    ({"size": 101, "exempt": True}, S.NEVER_PERSIST),
    ({"size": 101, "supports_persistence": False}, S.NEVER_PERSIST),
    ({"size": 101, "has_store": False}, S.NEVER_PERSIST),
    ({"size": 10, "redact": True}, S.REDACT),
    ({"size": 101, "redact": True}, S.PREVIEW_AND_PERSIST),
]


def chosen(facts):
    wanted = {name: fact for name, fact in facts.items() if name not in ("size", "has_store")}
    return choose_strategy(
        Demand(**wanted),
        size=facts["size"],
        default_limit=100,
        has_store=facts.get("has_store", True),
    )


@pytest.mark.parametrize(("facts", "expected"), CASES)
def test_strategy_follows_contract_size_and_obligation(facts, expected):
    assert chosen(facts).strategy is expected


@given(
    size=st.one_of(st.none(), st.integers(0, 1000)),
    contract_limit=st.one_of(st.none(), st.integers(-5, 1000), st.text()),
    obliged_limit=st.one_of(st.none(), st.integers(-5, 1000), st.floats()),
    contract_strategy=st.one_of(st.none(), st.sampled_from([s.value for s in S]), st.text()),
    obliged_strategy=st.one_of(st.none(), st.sampled_from([s.value for s in S]), st.text()),
    sensitivity=st.one_of(st.none(), st.sampled_from(["secret", "public"])),
    supports_persistence=st.booleans(),
    has_store=st.booleans(),
    exempt=st.booleans(),
    redact=st.booleans(),
)
def test_what_must_not_be_stored_never_is(**facts):
    choice = chosen(facts)
    forbidden = (
        facts["sensitivity"] == "secret"
        or facts["exempt"]
        or not facts["supports_persistence"]
        or not facts["has_store"]
    )
    if forbidden or "never_persist" in (facts["contract_strategy"], facts["obliged_strategy"]):
        assert not choice.persists
    limit = facts["obliged_limit"]
    if type(limit) is int and limit >= 0 and facts["size"] is not None and facts["size"] > limit:
        assert choice.over_limit
        assert choice.strategy is not S.INLINE


def test_small_plain_results_cost_no_choice(local):
    assert keeper(local).choose("x") is None
    assert keeper(local).choose({"a": 1}) is None
    assert keeper(local).choose(None) is None
    assert keeper(local).choose(x for x in "abc") is None


# --- the standard's example -----------------------------------------------------------------------


def test_the_standards_large_result_example_by_field(local):
    text = ("src/module.py:12: matching line of a grep\n" * 20_000)[:481_204]
    kept = keep(local, text, invocation_id="inv_grep_big")
    record = kept.decision.to_json_object()
    example = {
        "schema_version": "0.2.0",
        "invocation_id": "inv_grep_big",
        "strategy": "preview_and_persist",
        "threshold": {"max_inline_chars": 50000},
        "original_size_bytes": 481204,
        "reason": "result_exceeded_inline_limit",
    }
    assert {name: record[name] for name in example} == example
    assert record["decision_id"].startswith("persist_")
    assert record["persisted_ref"]["uri"] == "agent-runtime://session/tool-results/inv_grep_big.txt"
    assert record["persisted_ref"]["media_type"] == "text/plain"
    assert record["persisted_ref"]["digest"] == keyed_digest(
        f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    )
    assert 1500 < record["preview_size_bytes"] <= 2048
    (block,) = kept.model_facing
    assert block["type"] == "text"
    assert block["text"].startswith("Output too large")
    assert kept.ref.uri in block["text"]
    assert " Preview:\n" in block["text"]


# --- keeping --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected", "media_type"),
    [
        (LONG, LONG.encode(), "text/plain"),
        (LONG.encode(), LONG.encode(), "text/plain"),
        (bytes(range(256)) * 1000, bytes(range(256)) * 1000, "application/octet-stream"),
        ({"rows": ["x" * 50] * 2000}, None, "application/json"),
        ("diff --git a/x b/x\n" + LONG, None, "text/x-diff"),
        ("😀" * 60_000, None, "text/plain"),
        ("\ud800" * 60_000, b"\\ud800" * 60_000, "text/plain"),
    ],
    ids=["text", "text bytes", "binary", "structure", "diff", "wide", "surrogates"],
)
def test_what_is_stored_is_read_back(store, value, expected, media_type):
    kept = keep(store, value)
    assert kept.failure is None
    assert kept.ref.media_type == media_type
    if expected is None:
        expected = (
            value.encode()
            if isinstance(value, str)
            else json.dumps(value, separators=(",", ":")).encode()
        )
    assert b"".join(store.open(kept.ref.uri)) == expected
    assert store.read(kept.ref.uri, 100, 50) == expected[100:150]
    assert store.read(kept.ref.uri, len(expected) + 5, 10) == b""
    assert len(kept.preview) <= 2048
    assert isinstance(store, PayloadStore)


def test_a_file_is_streamed_and_a_pipe_or_missing_one_no_trap(local, tmp_path):
    path = tmp_path / "big.log"
    path.write_text(LONG)
    found = keeper(local)
    choice = found.choose(path, Demand(obliged_strategy="preview_and_persist"))
    kept = found.keep(path, choice, invocation_id="i")
    assert b"".join(local.open(kept.ref.uri)) == LONG.encode()
    os.mkfifo(tmp_path / "pipe")
    for bad in (tmp_path / "pipe", tmp_path / "missing", tmp_path):
        kept = found.keep(bad, choice, invocation_id="i")
        assert kept.ref is None
        assert kept.failure is not None
        assert str(tmp_path) not in kept.failure


def test_data_frames_and_images_are_stored_in_readable_forms(local):
    numpy, pandas, image = (pytest.importorskip(name) for name in ("numpy", "pandas", "PIL.Image"))
    kept = keep(local, pandas.DataFrame({"a": range(20_000), "b": ["x"] * 20_000}))
    lines = b"".join(local.open(kept.ref.uri)).splitlines()
    assert json.loads(lines[-1]) == {"a": 19_999, "b": "x"}
    picture = image.new("RGB", (300, 300))
    kept = keep(local, picture)
    assert image.open(io.BytesIO(local.read(kept.ref.uri))).size == (300, 300)
    kept = keep(local, numpy.arange(20_000))
    assert len(b"".join(local.open(kept.ref.uri)).split()) == 20_000


def test_two_results_of_one_call_and_two_calls_with_one_content(store):
    first, second = keep(store, LONG), keep(store, LONG)
    assert first.ref.uri != second.ref.uri
    assert first.ref.digest == second.ref.digest
    objects = list(store._backend.list("objects"))
    assert len(objects) == 1


@pytest.mark.covers("reference-only-result-is-not-embedded", "drop-with-reason-shows-nothing")
def test_ref_only_shows_nothing_and_drop_keeps_nothing(local):
    found = keeper(local)
    shown = found.keep(
        LONG, found.choose(LONG, Demand(obliged_strategy="ref_only")), invocation_id="i"
    )
    assert shown.ref is not None
    assert "match" not in shown.preview
    dropped = found.keep(
        "small",
        found.choose("small", Demand(obliged_strategy="drop_with_reason")),
        invocation_id="i",
    )
    assert dropped.ref is None
    assert "small" not in dropped.preview
    assert dropped.decision.reason == "policy_obligation"


@pytest.mark.covers("never-persist-stores-nothing")
def test_never_persist_leaves_no_byte_behind(local):
    found = keeper(local)
    kept = found.keep(
        LONG, found.choose(LONG, Demand(obliged_strategy="never_persist")), invocation_id="i"
    )
    assert kept.ref is None
    assert kept.failure is None
    assert kept.decision.strategy is S.NEVER_PERSIST
    assert list(local._backend.list("")) == []
    assert "not kept" in kept.preview


def test_without_a_store_a_large_result_is_cut_and_says_so():
    kept = keep(None, LONG)
    assert kept.decision.strategy is S.NEVER_PERSIST
    assert kept.decision.reason == "no_store"
    assert len(kept.preview) <= 2048


# --- redaction before persistence -----------------------------------------------------------------

CANARY = "canary" + "-7f3a-" + "secret"
CLEAN = Transform(
    lambda text: text.replace(CANARY, "[gone]"),
    lambda value, pointer: json.loads(json.dumps(value).replace(CANARY, "[gone]")),
)


@pytest.mark.parametrize("position", [0, 131_060, 131_072 - 5, 139_264 - 7, 262_144 - 3, 400_000])
@pytest.mark.parametrize("separator", ["\n", " ", "x"])
def test_no_secret_survives_at_a_block_boundary(local, position, separator):
    text = (separator * 20 + "word") * 20_000
    text = text[:position] + CANARY + text[position:]
    kept = keep(local, text, CLEAN)
    stored = b"".join(local.open(kept.ref.uri)).decode()
    assert CANARY not in stored
    assert stored == text.replace(CANARY, "[gone]")
    assert kept.decision.redaction_state is RedactionState.REDACTED
    assert kept.decision.persisted_ref["redaction_state"] == "redacted"


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 300_000), st.booleans()), max_size=8), st.integers(1, 70_000)
)
def test_pieces_and_positions_do_not_matter(places, step):
    text = "lorem ipsum, " * 23_100
    for place, glued in sorted(places, reverse=True):
        text = text[:place] + (CANARY if glued else f" {CANARY} ") + text[place:]
    cleaner = CleanText(CLEAN.text)
    out = "".join(cleaner.pieces(text[i : i + step] for i in range(0, len(text), step)))
    assert out == text.replace(CANARY, "[gone]")


def test_structures_are_redacted_by_value_binary_text_too(local):
    kept = keep(local, {"filler": ["x" * 100] * 3000, "deep": {"k": [CANARY]}}, CLEAN)
    assert CANARY.encode() not in b"".join(local.open(kept.ref.uri))
    kept = keep(local, b"\0\xff" * 50_000 + CANARY.encode(), CLEAN)
    stored = b"".join(local.open(kept.ref.uri))
    assert CANARY.encode() not in stored
    assert stored.startswith(b"\0\xff" * 50_000)


@pytest.mark.parametrize(
    "value", [LONG, {"a": ["x"] * 50_000}, LONG.encode()], ids=["text", "structure", "bytes"]
)
def test_a_failing_redactor_stores_and_shows_nothing(local, value, all_stored):
    def broken(*args):
        raise RuntimeError(CANARY)

    kept = keep(local, value, Transform(broken, broken))
    assert kept.decision.redaction_state is RedactionState.FAILED
    assert kept.decision.strategy is S.DROP_WITH_REASON
    assert "match" not in str(kept.preview)
    assert CANARY not in (kept.failure or "")
    all_stored()
    assert list(local._backend.list("")) == []


def test_a_redactor_that_gives_no_text_counts_as_failed():
    with pytest.raises(RedactionFailed):
        list(CleanText(lambda text: None).pieces(["x"]))


# --- failing stores -------------------------------------------------------------------------------


class BrokenBackend(LocalBackend):
    def __init__(self, root, error):
        super().__init__(root, durable=False)
        self.error = error

    def put(self, key, chunks):
        for number, _ in enumerate(chunks):
            if number == 2:
                raise self.error
        raise self.error


@pytest.mark.parametrize(
    "error",
    [
        PersistenceError("can't write: No space left on device"),
        OSError(errno.EIO, CANARY),
        RuntimeError(CANARY),
    ],
)
def test_a_store_that_breaks_in_the_middle_costs_the_copy_only(tmp_path, error):
    kept = keep(ResultStore(BrokenBackend(tmp_path / "s", error)), LONG)
    assert kept.failure
    assert CANARY not in kept.failure
    assert kept.decision.reason == "store_failed"
    assert kept.ref is None
    assert kept.preview.endswith("match 29999: some text\n")
    assert len(kept.preview) <= 2048


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_a_persistence_error(tmp_path, monkeypatch):
    real = os.open

    def full(path, flags, mode=0o777, **options):
        return (
            real("/dev/full", os.O_WRONLY)
            if str(path).endswith(".tmp")
            else real(path, flags, mode, **options)
        )

    monkeypatch.setattr(os, "open", full)
    kept = keep(ResultStore(LocalBackend(tmp_path / "s", durable=False)), LONG)
    assert "No space left" in kept.failure
    assert kept.preview


@pytest.mark.skipif(os.name != "posix" or os.getuid() == 0, reason="root writes everywhere")
def test_a_read_only_directory_is_a_persistence_error(tmp_path):
    tmp_path.chmod(0o500)
    assert "Permission" in keep(ResultStore(LocalBackend(tmp_path / "s")), LONG).failure


def test_a_directory_that_cannot_be_made_is_a_persistence_error(tmp_path):
    (tmp_path / "file").write_text("x")
    kept = keep(ResultStore(LocalBackend(tmp_path / "file" / "s")), LONG)
    assert kept.failure
    assert kept.preview
    assert str(tmp_path) not in kept.failure


def test_a_directory_that_others_can_write_to_is_refused(tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s").chmod(0o777)
    assert "writable by others" in keep(ResultStore(LocalBackend(tmp_path / "s")), LONG).failure
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    assert "link" in keep(ResultStore(LocalBackend(tmp_path / "link")), LONG).failure


def test_a_hanging_store_cannot_hang_the_tool(tmp_path, let_go, all_stored):
    class Hanging(LocalBackend):
        def put(self, key, chunks):
            let_go.wait(30)
            super().put(key, chunks)

    store = ResultStore(Hanging(tmp_path / "s", durable=False))
    started = time.monotonic()
    kept = keep(store, LONG * 5, deadline_s=0.3)
    assert time.monotonic() - started < 20
    assert kept.failure == "deadline"
    assert kept.preview
    all_stored()
    assert list(store._backend.list("refs")) == []
    assert list(store._backend.list("objects")) == []


def test_many_hanging_calls_do_not_make_ever_more_threads(tmp_path, let_go):
    class Hanging(LocalBackend):
        def put(self, key, chunks):
            let_go.wait(30)
            raise PersistenceError("late")

    store = ResultStore(Hanging(tmp_path / "s"))
    before = threading.active_count()
    started = time.monotonic()
    failures = [keep(store, LONG, deadline_s=0.02).failure for _ in range(40)]
    assert time.monotonic() - started < 20
    assert set(failures) == {"deadline"}
    assert threading.active_count() - before <= 2 * 8 + 2


def test_a_store_that_is_made_when_needed_may_fail_then():
    def make():
        raise ConnectionError(CANARY)

    kept = keep(make, LONG)
    assert kept.failure
    assert CANARY not in kept.failure
    made = []
    found = ResultKeeper(lambda: made.append(1))
    assert found.choose("small") is None
    assert made == []


# --- the store itself -----------------------------------------------------------------------------


def test_permissions_are_private_whatever_the_umask(tmp_path):
    old = os.umask(0)
    try:
        keep(ResultStore(LocalBackend(tmp_path / "a" / "s")), LONG)
    finally:
        os.umask(old)
    for folder, folders, files in os.walk(tmp_path / "a" / "s"):
        assert os.stat(folder).st_mode & 0o777 == 0o700
        for name in files:
            assert os.stat(Path(folder) / name).st_mode & 0o777 == 0o600
        assert folders or files or folder.endswith("incoming")


def test_a_crash_in_the_middle_leaves_nothing_that_counts(local):
    def chunks():
        yield b"x" * 1000
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        local.put_stream(chunks(), "text/plain", name="i")
    assert list(local._backend.list("")) == []


def test_writers_of_the_same_content_at_the_same_time(tmp_path):
    """Real processes: each stores the same bytes many times while another sweeps without mercy."""
    root = tmp_path / "s"
    writer = (
        "import sys\n"
        "from agenttool_otel.results.stores.local import LocalBackend\n"
        "from agenttool_otel.results.stores.store import ResultStore\n"
        "store = ResultStore(LocalBackend(sys.argv[1], durable=False))\n"
        "data = b'same content' * 10_000\n"
        "for n in range(25):\n"
        "    ref = store.put_stream([data], 'text/plain', name=f'inv_{sys.argv[2]}_{n}')\n"
        "    assert store.read(ref.uri) == data\n"
        "    store.sweep()\n"
        "print('ok')\n"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", writer, str(root), str(n)], stdout=subprocess.PIPE, text=True
        )
        for n in range(3)
    ]
    assert [process.communicate(timeout=120)[0].strip() for process in running] == ["ok"] * 3
    store = ResultStore(LocalBackend(root))
    assert len(list(store._backend.list("objects"))) == 1
    assert len(list(store._backend.list("refs"))) == 75


@pytest.mark.covers("expired-payload-is-explained")
def test_expired_results_are_gone_but_still_explained(tmp_path):
    clock = Clock()
    limits = StoreLimits(ttl_s=60, grace_s=0, tombstone_ttl_s=1000)
    store = ResultStore(LocalBackend(tmp_path / "s", durable=False), limits=limits, clock=clock)
    kept = keep(store, LONG)
    assert store.sweep().expired == 0
    clock.now += timedelta(seconds=61)
    with pytest.raises(PayloadExpired) as caught:
        store.read(kept.ref.uri)
    assert caught.value.ref.digest == kept.ref.digest
    report = store.sweep()
    assert (report.expired, report.removed_objects) == (1, 1)
    assert report.removed_bytes == len(LONG)
    known = store.resolve(kept.ref.uri)
    assert (known.size_bytes, known.media_type) == (len(LONG), "text/plain")
    page = read_page(store, kept.ref.uri, identity={})
    assert page["status"] == "expired"
    assert page["digest"] == kept.ref.to_json()["digest"]
    clock.now += timedelta(seconds=2000)
    store.sweep()
    with pytest.raises(PayloadNotFound):
        store.resolve(kept.ref.uri)


def test_shared_bytes_live_as_long_as_any_reference(tmp_path):
    clock = Clock()
    store = ResultStore(
        LocalBackend(tmp_path / "s", durable=False), limits=StoreLimits(grace_s=0), clock=clock
    )
    short = store.put_stream([b"same"], "text/plain", ttl_s=10)
    long = store.put_stream([b"same"], "text/plain", ttl_s=100)
    clock.now += timedelta(seconds=20)
    store.sweep()
    with pytest.raises(PayloadExpired):
        store.read(short.uri)
    assert store.read(long.uri) == b"same"
    store.delete(long.uri)
    with pytest.raises(PayloadExpired):
        store.read(long.uri)
    store.sweep()
    assert list(store._backend.list("objects")) == []


def test_quota_is_kept_and_room_is_made_from_what_expired(tmp_path):
    clock = Clock()
    limits = StoreLimits(max_object_bytes=1000, max_total_bytes=2500, ttl_s=60, grace_s=0)
    store = ResultStore(LocalBackend(tmp_path / "s", durable=False), limits=limits, clock=clock)
    with pytest.raises(QuotaExceeded):
        store.put_stream([b"x" * 600, b"y" * 600], "text/plain")
    for n in range(2):
        store.put_stream([bytes([n]) * 1000], "text/plain")
    with pytest.raises(QuotaExceeded):
        store.put_stream([b"z" * 600], "text/plain")
    assert sum(blob.size for blob in store._backend.list("objects")) <= 2500
    clock.now += timedelta(seconds=61)
    store.sweep()
    assert store.put_stream([b"z" * 600], "text/plain").size_bytes == 600


def test_leftovers_of_killed_writers_are_swept(tmp_path):
    store = ResultStore(
        LocalBackend(tmp_path / "s", durable=False), limits=StoreLimits(grace_s=100)
    )
    store._backend.put("incoming/dead", [b"x"])
    old = time.time() - 1000
    os.utime(tmp_path / "s" / "incoming" / "dead", (old, old))
    store._backend.put("incoming/alive", [b"x"])
    store.sweep()
    assert [blob.key for blob in store._backend.list("incoming")] == ["incoming/alive"]


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "file:///etc/passwd",
        URI_PREFIX,
        URI_PREFIX + "../../etc/passwd",
        URI_PREFIX + "a/b",
        URI_PREFIX + "..",
        URI_PREFIX + "x\0y",
        URI_PREFIX + "a" * 500,
        URI_PREFIX + "nobody.txt",
    ],
)
def test_only_names_of_the_store_lead_anywhere(local, uri):
    with pytest.raises(PayloadNotFound):
        local.resolve(uri)


def test_a_damaged_reference_or_payload_is_noticed(local):
    kept = keep(local, LONG)
    (blob,) = local._backend.list("objects")
    local._backend.put(blob.key, [LONG.encode().replace(b"match 7:", b"MATCH 7:")])
    with pytest.raises(PersistenceError):
        list(local.open(kept.ref.uri))
    (ref,) = local._backend.list("refs")
    local._backend.put(ref.key, [b'{"uri": 5}'])
    with pytest.raises(PersistenceError):
        local.resolve(kept.ref.uri)


def test_encrypted_payloads_hide_text_and_show_any_change(tmp_path):
    key = os.urandom(32)
    store = ResultStore(LocalBackend(tmp_path / "s", durable=False), cipher=Cipher(key))
    text = CANARY * 20_000
    kept = keep(store, text)
    (blob,) = store._backend.list("objects")
    path = tmp_path / "s" / blob.key
    raw = path.read_bytes()
    assert CANARY.encode() not in raw
    assert kept.ref.digest.removeprefix("sha256:") not in blob.key
    block = CHUNK_BYTES + 16
    for broken in (
        raw[:100] + bytes([raw[100] ^ 1]) + raw[101:],
        raw[:-1],
        raw[: 19 + block] + raw[19 : 19 + block] + raw[19 + 2 * block :],
        raw[:12] + bytes([raw[12] ^ 1]) + raw[13:],
    ):
        path.write_bytes(broken)
        with pytest.raises(PersistenceError):
            list(store.open(kept.ref.uri))
    path.write_bytes(raw)
    rotated = ResultStore(
        LocalBackend(tmp_path / "s"), cipher=Cipher(key, older_keys=[os.urandom(32)])
    )
    assert b"".join(rotated.open(kept.ref.uri)) == text.encode()
    with pytest.raises(PersistenceError):
        list(
            ResultStore(LocalBackend(tmp_path / "s"), cipher=Cipher(os.urandom(32))).open(
                kept.ref.uri
            )
        )
    with pytest.raises(ConfigurationError):
        Cipher(b"short")


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.sampled_from([0, 1, 100, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES]),
    st.integers(0, 4 * CHUNK_BYTES),
    st.integers(0, 2 * CHUNK_BYTES),
)
def test_any_range_of_an_encrypted_payload_reads_right(tmp_path, size, offset, limit):
    store = ResultStore(LocalBackend(tmp_path / "s", durable=False), cipher=Cipher(b"k" * 32))
    data = os.urandom(size)
    ref = store.put_stream([data[:70_000], data[70_000:]], "application/octet-stream")
    assert store.read(ref.uri, offset, limit) == data[offset : offset + limit]
    store.delete(ref.uri)


# --- reading back ---------------------------------------------------------------------------------


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.text(st.characters(codec="utf-8"), max_size=400), st.integers(1, 300))
def test_pages_put_together_are_the_whole_text(local, text, limit):
    ref = local.put_stream([text.encode()], "text/plain")
    read = make_read_result(local, dict)
    found, offset, steps = "", 0, 0
    while offset is not None:
        page = read(ref.uri, offset, limit)
        assert page["status"] == "ok"
        assert len(page["text"].encode()) <= limit + 3
        found += page["text"]
        offset = page["next_offset"]
        steps += 1
        assert steps <= len(text.encode()) + 1
    assert found == text


def test_binary_pages_are_base64_and_bad_numbers_are_refused(local):
    import base64

    data = bytes(range(256)) * 300
    ref = local.put_stream([data], "application/octet-stream")
    read = make_read_result(local, dict)
    first = read(ref.uri)
    second = read(ref.uri, first["next_offset"], 10)
    assert base64.b64decode(first["data"]) + base64.b64decode(second["data"]) == data[: 8192 + 10]
    for offset, limit in ((-1, 1), (0, 0), ("0", 1), (True, 1), (0, None)):
        with pytest.raises((ValueError, TypeError)):
            read(ref.uri, offset, limit)


def test_a_page_is_never_larger_than_the_bound(local):
    ref = local.put_stream([b"x" * 500_000], "text/plain")
    page = make_read_result(local, dict)(ref.uri, 0, 10**9)
    assert len(page["text"]) <= 32_768 + 3
    assert keeper(local).choose(page, Demand(exempt=True)) is None


def test_somebody_elses_result_does_not_exist(local):
    ref = local.put_stream([b"x"], "text/plain", owner={"session_id": "s1", "tenant": "acme"})
    mine = {"session_id": "s1", "tenant": "acme"}
    assert read_page(local, ref.uri, identity=mine)["status"] == "ok"
    for other in (
        {},
        {"session_id": "s1"},
        {**mine, "tenant": "rival"},
        {**mine, "session_id": "s2"},
    ):
        answer = read_page(local, ref.uri, identity=other)
        assert answer == {"status": "not_found", "uri": ref.uri}
    assert "owner" not in ref.to_json()
    unowned = local.put_stream([b"x"], "text/plain", owner={"session_id": "", "tenant": ""})
    assert read_page(local, unowned.uri, identity={})["status"] == "ok"


def test_a_small_value_keeps_its_type_unless_redacted(local):
    pandas = pytest.importorskip("pandas")
    found = keeper(local)
    for value in (pandas.DataFrame({"a": [1]}), {"when": datetime(2026, 1, 1, tzinfo=UTC)}, (1, 2)):
        choice = found.choose(value, Demand(obliged_strategy="redact"))
        assert found.keep(value, choice, invocation_id="i", transform=CLEAN).preview is value
    changed = found.keep(
        {"k": CANARY},
        found.choose({}, Demand(obliged_strategy="redact")),
        invocation_id="i",
        transform=CLEAN,
    )
    assert changed.preview == {"k": "[gone]"}
    assert changed.decision.redaction_state is RedactionState.REDACTED


# --- streams --------------------------------------------------------------------------------------


def plain(limit=1000, strategy=S.INLINE, reason="within_inline_limit"):
    return StrategyChoice(strategy, reason, limit, False)


def test_a_small_stream_stays_inline_in_order(local):
    collector = StreamCollector("i", plain(), local)
    assert [collector.add(item) for item in ("a", "bc", "d")] == [1, 2, 1]
    outcome = collector.finish()
    assert (outcome.preview, outcome.items, outcome.decision) == ("abcd", 3, None)
    assert list(local._backend.list("")) == []


@pytest.mark.parametrize(
    ("items", "media_type"),
    [
        (["line\n"] * 5000, "text/plain"),
        ([b"\0\1"] * 5000, "application/octet-stream"),
        ([{"n": i} for i in range(5000)], "application/x-ndjson"),
    ],
    ids=["text", "bytes", "objects"],
)
def test_a_large_stream_overflows_to_the_store(store, items, media_type):
    collector = StreamCollector("inv_s", plain(), store, deadline_s=20)
    for item in items:
        collector.add(item)
    outcome = collector.finish()
    assert outcome.failure is None
    assert outcome.ref.media_type == media_type
    stored = b"".join(store.open(outcome.ref.uri))
    if media_type == "text/plain":
        assert stored.decode() == "".join(items)
        assert outcome.preview.endswith("line\n")
    elif media_type == "application/octet-stream":
        assert stored == b"".join(items)
    else:
        assert [json.loads(line) for line in stored.splitlines()] == items
    assert outcome.decision.strategy is S.PREVIEW_AND_PERSIST
    assert list(SCHEMA.iter_errors(outcome.decision.to_json_object())) == []
    assert len(outcome.preview) <= 2048


def test_an_abandoned_stream_keeps_what_it_gave(local):
    collector = StreamCollector("i", plain(100), local)
    for _ in range(100):
        collector.add("some text\n")
    outcome = collector.finish()
    assert b"".join(local.open(outcome.ref.uri)) == b"some text\n" * 100
    assert collector.add("late") == 4
    assert b"".join(local.open(outcome.ref.uri)) == b"some text\n" * 100


def test_a_stream_is_redacted_across_its_items(local):
    collector = StreamCollector("i", plain(100), local, transform=CLEAN)
    for start in range(0, len(CANARY), 3):
        collector.add(CANARY[start : start + 3])
    for _ in range(100):
        collector.add("filler text\n")
    outcome = collector.finish()
    assert CANARY not in b"".join(local.open(outcome.ref.uri)).decode()
    assert CANARY not in outcome.preview
    assert outcome.redaction_state is RedactionState.REDACTED


def test_a_failing_redactor_or_store_never_stops_a_stream(local, tmp_path):
    def broken(*args):
        raise RuntimeError(CANARY)

    collector = StreamCollector("i", plain(10), local, transform=Transform(broken, broken))
    for _ in range(5):
        collector.add({"k": CANARY})
    outcome = collector.finish()
    assert outcome.redaction_state is RedactionState.FAILED
    assert CANARY not in str(outcome.model_facing)
    failing = ResultStore(BrokenBackend(tmp_path / "b", PersistenceError("full")))
    collector = StreamCollector("i", plain(10), failing, deadline_s=5)
    for _ in range(5):
        collector.add("x" * 300_000)
    outcome = collector.finish()
    assert outcome.failure == "full"
    assert outcome.items == 5
    assert outcome.decision.reason == "store_failed"


@pytest.mark.parametrize("strategy", [S.NEVER_PERSIST, S.DROP_WITH_REASON])
def test_what_must_not_be_kept_of_a_stream_is_not(local, strategy):
    collector = StreamCollector("i", plain(300, strategy, "policy_obligation"), local)
    for _ in range(100):
        collector.add("canary ")
    outcome = collector.finish()
    assert outcome.ref is None
    assert list(local._backend.list("")) == []
    assert (CANARY[:6] in outcome.preview) == (strategy is S.NEVER_PERSIST)
