"""A SQLite store knows the file that it has open: what was put in its place is never taken
for it.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from approval_helpers import ARGS, a_request, bindings, yes

from agenttool_otel.approvals.store.sealing import generate_key
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.errors import ApprovalStoreError
from agenttool_otel.names import ResultStatus

KEY = generate_key()
FILE = "approvals.db"


def copied(path: Path) -> Path:
    copy = path.with_name("copy.db")
    source, target = sqlite3.connect(path), sqlite3.connect(copy)
    source.backup(target)
    source.close()
    target.close()
    return copy


def without_log(path: Path) -> None:
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)


def replace_by_a_copy(path: Path) -> None:
    os.replace(copied(path), path)
    without_log(path)


def replace_by_an_empty_file(path: Path) -> None:
    path.with_name("empty").touch()
    os.replace(path.with_name("empty"), path)
    without_log(path)


def replace_by_a_folder_of_it(path: Path) -> None:
    copy = copied(path)
    path.unlink()
    without_log(path)
    shutil.copy(copy, path)


def remove(path: Path) -> None:
    path.unlink()
    without_log(path)


def overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(os.urandom(20_000))


CHANGES = [
    replace_by_a_copy,
    replace_by_an_empty_file,
    replace_by_a_folder_of_it,
    remove,
    overwrite,
]


class Prepared:
    """A store with a request in each state that an operation begins from."""

    def __init__(self, path: Path) -> None:
        self.store = ApprovalStore(path, key=KEY)
        self.pending, self.approved, self.running = (
            self.store.create(a_request(), ARGS) for _ in range(3)
        )
        for request in (self.approved, self.running):
            self.store.answer(request.request_id, yes())
        self.claim = self.store.claim(self.running.request_id, **bindings(self.running))


OPERATIONS: dict[str, Callable[[Prepared], Any]] = {
    "ask": lambda it: it.store.create(a_request(), ARGS),
    "answer": lambda it: it.store.answer(it.pending.request_id, yes()),
    "cancel": lambda it: it.store.cancel(it.pending.request_id, "why"),
    "claim": lambda it: it.store.claim(it.approved.request_id, **bindings(it.approved)),
    "outcome": lambda it: it.store.finish(it.claim, ResultStatus.SUCCEEDED),
    "list": lambda it: it.store.list(),
    "chain": lambda it: it.store.verify_chain(),
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("change", CHANGES)
def test_an_operation_on_another_file_is_refused(
    tmp_path: Path, change: Callable[[Path], None], operation: str
) -> None:
    prepared = Prepared(tmp_path / FILE)
    change(tmp_path / FILE)
    with pytest.raises(ApprovalStoreError):
        OPERATIONS[operation](prepared)


def test_after_a_faithful_copy_the_next_operation_works(tmp_path: Path) -> None:
    prepared = Prepared(tmp_path / FILE)
    replace_by_a_copy(tmp_path / FILE)
    with pytest.raises(ApprovalStoreError, match="replaced"):
        OPERATIONS["claim"](prepared)
    OPERATIONS["claim"](prepared)
    assert (
        ApprovalStore(tmp_path / FILE, key=KEY).get(prepared.approved.request_id).status
        == "consumed"
    )


def test_an_older_copy_stays_refused(tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path / FILE, key=KEY)
    request = store.create(a_request(), ARGS)
    store.answer(request.request_id, yes())
    copy = copied(tmp_path / FILE)
    store.claim(request.request_id, **bindings(request))
    os.replace(copy, tmp_path / FILE)
    without_log(tmp_path / FILE)
    for _ in range(3):
        with pytest.raises(ApprovalStoreError):
            store.claim(request.request_id, **bindings(request))


def test_no_empty_store_is_made_where_one_was(tmp_path: Path) -> None:
    prepared = Prepared(tmp_path / FILE)
    remove(tmp_path / FILE)
    for _ in range(3):
        with pytest.raises(ApprovalStoreError, match="removed"):
            OPERATIONS["ask"](prepared)
    assert not (tmp_path / FILE).exists()


def test_a_file_that_is_back_is_used_again(tmp_path: Path) -> None:
    prepared = Prepared(tmp_path / FILE)
    copy = copied(tmp_path / FILE)
    remove(tmp_path / FILE)
    with pytest.raises(ApprovalStoreError):
        OPERATIONS["list"](prepared)
    os.replace(copy, tmp_path / FILE)
    assert len(prepared.store.list()) == 3


def test_a_file_replaced_within_a_transaction_is_noticed(tmp_path: Path) -> None:
    prepared = Prepared(tmp_path / FILE)
    with pytest.raises(ApprovalStoreError, match="replaced"), prepared.store._db.write():
        replace_by_a_copy(tmp_path / FILE)


def test_checkpoints_of_other_processes_cost_nothing(tmp_path: Path) -> None:
    prepared = Prepared(tmp_path / FILE)
    for _ in range(3):
        other = sqlite3.connect(tmp_path / FILE)
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        other.close()
        assert prepared.store.create(a_request(), ARGS).status == "pending"
    assert prepared.store.verify_chain().ok


def test_a_parents_removed_file_is_not_made_by_its_child(tmp_path: Path) -> None:
    prepared = Prepared(tmp_path / FILE)
    remove(tmp_path / FILE)
    child = os.fork()
    if child == 0:
        try:
            OPERATIONS["ask"](prepared)
        except ApprovalStoreError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert not (tmp_path / FILE).exists()
