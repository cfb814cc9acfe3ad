"""A compiled bundle is kept beside Python's bytecode, on the same terms, and only for exactly what
it was made from.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from parsed_bundles import parsings, word_of

from agenttool_otel.names import EntryPoint
from agenttool_otel.policy.bundles.bundle import Bundle, bundle_from_files, default_bundle_path
from agenttool_otel.policy.bundles.load import load_bundle
from agenttool_otel.policy.engines import evaluation
from agenttool_otel.policy.engines.embedded import EmbeddedEngine
from agenttool_otel.policy.samples import sample_documents

STOCK = load_bundle(default_bundle_path())
TABLE = b"""package agenttool.permission
decision := {"behavior": data.word}
"""


def bundle(word: str) -> Bundle:
    return bundle_from_files(
        {"p.rego": TABLE, "data.json": b'{"word": "%s"}' % word.encode()}, origin="t"
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this process keeps its bytecode now."""
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(evaluation, "_WORTH_KEEPING", 0.0)
    monkeypatch.setattr(evaluation, "_shared", evaluation.LRUCache(4))
    return tmp_path


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("bundle-*.bin"))


def test_a_kept_bundle_decides_and_reads_as_the_parsed_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = parsings(monkeypatch)
    first = EmbeddedEngine(STOCK)
    assert len(files(folder)) == 1
    evaluation._shared.clear()
    again = EmbeddedEngine(STOCK)
    assert len(parsed) == 1
    assert again._compiled is not first._compiled
    assert again.interpreted_because == first.interpreted_because == ""
    for document in sample_documents(evaluation.load_program(STOCK), 60):
        one, other = (
            e.evaluate(EntryPoint.DECISION, document, timeout=5.0).value for e in (first, again)
        )
        assert one == other
        one_reads, other_reads = (e.reads(EntryPoint.DECISION, document) for e in (first, again))
        assert one_reads is not None
        assert other_reads is not None
        assert one_reads[1] == other_reads[1]


def test_another_bundle_or_another_python_finds_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert word_of(EmbeddedEngine(bundle("allow"))) == "allow"
    parsed = parsings(monkeypatch)
    assert word_of(EmbeddedEngine(bundle("deny"))) == "deny"
    evaluation._shared.clear()
    monkeypatch.setattr(sys, "version", "another Python")
    assert word_of(EmbeddedEngine(bundle("allow"))) == "allow"
    assert len(parsed) == 2


@pytest.mark.parametrize("harm", ["cut", "changed", "empty", "writable by others"])
def test_a_file_that_can_not_be_trusted_is_made_anew(
    harm: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    EmbeddedEngine(bundle("deny"))
    (path,) = files(folder)
    content = path.read_bytes()
    if harm == "writable by others":
        path.chmod(0o666)
    else:
        path.write_bytes({"cut": content[:-1], "changed": content[:-1] + b"x", "empty": b""}[harm])
    evaluation._shared.clear()
    parsed = parsings(monkeypatch)
    assert word_of(EmbeddedEngine(bundle("deny"))) == "deny"
    assert len(parsed) == 1
    evaluation._shared.clear()
    assert word_of(EmbeddedEngine(bundle("deny"))) == "deny"
    assert len(parsed) == 1  # the new file is as good as the first
    assert path.stat().st_mode & 0o777 == 0o600


def test_only_the_stock_bundle_may_be_read_by_others(folder: Path) -> None:
    EmbeddedEngine(bundle("deny"))
    assert [path.stat().st_mode & 0o777 for path in files(folder)] == [0o600]
    EmbeddedEngine(STOCK)
    assert sorted(path.stat().st_mode & 0o777 for path in files(folder)) == [0o600, 0o644]


def test_nothing_is_written_where_python_writes_no_bytecode(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    EmbeddedEngine(bundle("deny"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", "/dev/null/nowhere")
    evaluation._shared.clear()
    assert word_of(EmbeddedEngine(bundle("deny"))) == "deny"
    assert files(folder) == []


def test_the_last_few_bundles_are_kept(folder: Path) -> None:
    for number in range(11):
        EmbeddedEngine(bundle(f"w{number}"))
    assert len(files(folder)) == 8


def test_what_is_used_stays_when_many_others_come(folder: Path) -> None:
    EmbeddedEngine(bundle("used"))
    used = files(folder)[0]
    for number in range(12):
        os.utime(used, (number, number))
        evaluation._shared.clear()
        EmbeddedEngine(bundle("used"))
        EmbeddedEngine(bundle(f"other {number}"))
    assert used in files(folder)
