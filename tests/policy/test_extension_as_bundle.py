"""A policy project that is given where a whole bundle is meant: the error names the way."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from agenttool_otel import Governor, load_bundle
from agenttool_otel.cli.main import app
from agenttool_otel.errors import PolicyLoadError
from agenttool_otel.policy.engines.embedded import EmbeddedEngine

ON_TOP = "rules on top of the stock bundle.* extension.* --with-base"


@pytest.fixture
def project(tmp_path: Path) -> str:
    folder = str(tmp_path / "house")
    assert CliRunner().invoke(app, ["policy", "init", folder]).exit_code == 0
    return folder


def test_a_project_is_no_whole_bundle(project: str) -> None:
    with pytest.raises(PolicyLoadError, match=ON_TOP):
        Governor(project)


def test_a_project_is_no_shadow_engine(project: str) -> None:
    with pytest.raises(PolicyLoadError, match=ON_TOP):
        EmbeddedEngine(load_bundle(project))


def test_a_project_is_an_extension(project: str) -> None:
    Governor(extension=project)
