from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.approvals.web.server import ApprovalsServer


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ApprovalStore]:
    """A store of SQLite, on the clock of this machine."""
    store = ApprovalStore(tmp_path / "approvals.db")
    yield store
    store.close()


@pytest.fixture
def server(store: ApprovalStore) -> Iterator[ApprovalsServer]:
    """A page on which one operator answers."""
    with ApprovalsServer(
        store, answered_by="user:ada", roles=("operator",), interval=0.05
    ) as server:
        yield server
