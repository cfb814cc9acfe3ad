"""The private directory of results: there while its Governor is, and gone with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agenttool_otel import Governor
from agenttool_otel.testing import StaticEngine


def persisted(governor: Governor) -> Any:
    def big() -> str:
        return "y" * 1000

    return governor.govern(big).tool.invoke()


def private(folder: Path) -> list[Path]:
    return list(folder.glob("agenttool-payloads-*"))


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def governor_of(**options: Any) -> Governor:
    return Governor(
        policy=StaticEngine("allow"), approvals="sqlite://", max_inline_chars=10, **options
    )


def test_private_payloads_go_when_the_governor_is_closed(scratch: Path) -> None:
    governor = governor_of()
    assert persisted(governor).resource_refs
    assert len(private(scratch)) == 1
    governor.close()
    governor.close()
    assert private(scratch) == []


def test_they_go_with_a_governor_that_nobody_closes(scratch: Path) -> None:
    script = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from agenttool_otel import Governor
from agenttool_otel.testing import StaticEngine
governor = Governor(policy=StaticEngine("allow"), approvals="sqlite://", max_inline_chars=10)
assert governor.govern(lambda: "y" * 1000, name="big").tool.invoke().resource_refs
"""
    subprocess.run([sys.executable, "-c", script, str(scratch)], check=True, timeout=120)
    assert private(scratch) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_does_not_remove_its_parents(scratch: Path) -> None:
    script = """
import os, sys, tempfile
tempfile.tempdir = sys.argv[1]
from agenttool_otel import Governor
from agenttool_otel.testing import StaticEngine
governor = Governor(policy=StaticEngine("allow"), approvals="sqlite://", max_inline_chars=10)
assert governor.govern(lambda: "y" * 1000, name="big").tool.invoke().resource_refs
child = os.fork()
if child == 0:
    sys.exit(0)
os.waitpid(child, 0)
assert [name for name in os.listdir(sys.argv[1]) if name.startswith("agenttool-payloads-")]
"""
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, str(scratch)], check=True, timeout=120
    )


def test_a_directory_of_the_users_own_stays(tmp_path: Path) -> None:
    governor = governor_of(results_dir=str(tmp_path / "kept"))
    assert persisted(governor).resource_refs
    governor.close()
    assert any(path.is_file() for path in (tmp_path / "kept").rglob("*"))
