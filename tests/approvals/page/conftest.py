from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agenttool_otel.approvals.store.store import ApprovalStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ApprovalStore]:
    """A store of SQLite, on the clock of this machine."""
    store = ApprovalStore(tmp_path / "approvals.db")
    yield store
    store.close()
