"""What is built is pinned, built once, linked into the working copy, and told plainly when it can't
be had.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import servers


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with nothing in it, and a working copy of its own."""
    monkeypatch.setenv("AGENTTOOL_SERVERS_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(servers, "LINKS", tmp_path / ".servers")
    return tmp_path


def test_what_is_not_built_is_told_with_the_way_to_have_it(
    empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(
        servers.ServerUnavailable, match=r"jaeger v[\d.]+ is not built \(make servers\)"
    ):
        servers.path("jaeger")
    assert servers.main(["path", "jaeger"]) == 1
    assert "make servers" in capsys.readouterr().err


def test_without_go_the_reason_is_that_go_is_missing(
    empty: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(empty))
    assert servers.main(["build", "jaeger", "promtool"]) == 1
    told = capsys.readouterr().err
    assert "jaeger: Go is not installed" in told
    assert "promtool is not installed (apt-get install prometheus)" in told
    assert servers.main(["build", "--available", "jaeger"]) == 0, (
        "a machine without Go still runs the other tests"
    )


def test_a_program_is_built_once_and_linked(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = []

    def make(target: Path) -> None:
        built.append(target)
        target.write_text("program")

    monkeypatch.setitem(servers.SERVERS, "thing", servers.Server("thing", "v1.2.3", make))
    first = servers.build("thing")
    assert servers.build("thing") == first == empty / "cache" / "thing-v1.2.3" / "thing"
    assert len(built) == 1
    assert (empty / ".servers" / "thing").resolve() == first
    assert servers.path("thing") == first


def test_a_build_that_fails_leaves_nothing_that_looks_built(
    empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(target: Path) -> None:
        target.write_text("half")
        raise servers.ServerUnavailable("no")

    monkeypatch.setitem(servers.SERVERS, "thing", servers.Server("thing", "v1", fail))
    with pytest.raises(servers.ServerUnavailable, match="no"):
        servers.build("thing")
    with pytest.raises(servers.ServerUnavailable, match="is not built"):
        servers.path("thing")


def test_every_module_has_a_full_version() -> None:
    for parts in servers.COLLECTOR_PARTS.values():
        for part in parts:
            assert re.fullmatch(r"[\w./-]+ v\d+\.\d+\.\d+", part), part
    for package in servers.LEZER_PACKAGES:
        assert re.fullmatch(r"@[\w/-]+@\d+\.\d+\.\d+", package), package
    for package in (servers.FILESYSTEM_PACKAGE, servers.EVERYTHING_PACKAGE):
        assert re.fullmatch(r"@[\w/-]+@\d+\.\d+\.\d+", package), package
    for server in servers.SERVERS.values():
        assert server.build is None or re.search(r"\d+\.\d+\.\d+$", server.version), server


def test_an_unknown_name_or_command_shows_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["dance"], ["build", "nothing"], ["path"]):
        assert servers.main(arguments) == 2
    assert "python tools/servers.py build" in capsys.readouterr().out
