"""Where commands are rehearsed."""

from __future__ import annotations

from pathlib import Path

import pytest
from rehearsed_calls import Place

from agenttool_otel import enforcement
from agenttool_otel.enforcement.rehearsal import rehearsal_failure


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A root with a file; skips where this host can rehearse nothing."""
    state = tmp_path / "state" / "layers"
    failure = rehearsal_failure(state) or enforcement.available()["read"].reason
    if failure:
        pytest.skip(f"no rehearsal here: {failure}")
    root = tmp_path / "root"
    root.mkdir()
    (root / "notes.txt").write_text("first\n", "utf-8")
    return Place(root, state)
