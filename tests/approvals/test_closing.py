"""A store that is closed while another thread reads it, as the export of metrics does."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import contextlib
import sys
import threading

from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.errors import ApprovalStoreError

store = ApprovalStore(sys.argv[1])
closed = threading.Event()


def read():
    while not closed.is_set():
        with contextlib.suppress(ApprovalStoreError):
            store.levels()


readers = [threading.Thread(target=read) for _ in range(2)]
for reader in readers:
    reader.start()
for _ in range(300):
    store.close()
closed.set()
for reader in readers:
    reader.join()
print("whole")
"""


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_closing_under_a_reader_breaks_nothing(
    tmp_path_factory: pytest.TempPathFactory, kind: str
) -> None:
    url = "sqlite://"
    if kind == "file":
        url = f"sqlite:///{tmp_path_factory.mktemp('store')}/approvals.db"
    # SQLite ends the process where a connection is closed under an operation
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, url], capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "whole\n", (done.returncode, done.stderr)
