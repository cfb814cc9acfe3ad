"""A state directory and a root, where this host can rehearse."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenttool_otel.enforcement.rehearsal import Rehearsals, RehearsalUnavailable


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip where this host can't rehearse, with the reason."""
    folder = tmp_path_factory.mktemp("host")
    (folder / "root").mkdir()
    try:
        layer = Rehearsals(folder / "state").open([folder / "root"], places=())
        with layer:
            layer.run(["true"], cwd=folder / "root")
    except RehearsalUnavailable as unavailable:
        pytest.skip(f"no rehearsal on this host: {unavailable.reason}")


@pytest.fixture
def root(tmp_path: Path, host: None) -> Path:
    """A directory with a few files."""
    path = tmp_path / "root"
    (path / "sub" / "deep").mkdir(parents=True)
    (path / "a.txt").write_text("one\n")
    (path / "sub" / "b.txt").write_text("two\n")
    (path / "sub" / "deep" / "c.txt").write_text("three\n")
    return path


@pytest.fixture
def rehearsals(tmp_path: Path, host: None) -> Rehearsals:
    """A state directory on the file system of the root."""
    return Rehearsals(tmp_path / "state")
