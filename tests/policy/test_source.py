"""Reload without restart: last good kept, failures reported, HTTP with ETags."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bundle_server import BundleServer, running_server
from policy_inputs import make_document

from agenttool_otel.errors import ConfigurationError, PolicyLoadError
from agenttool_otel.policy.bundles.bundle_files import write_archive
from agenttool_otel.policy.bundles.load import load_bundle
from agenttool_otel.policy.bundles.source import BundleSource, ReloadResult
from agenttool_otel.policy.engines.embedded import EmbeddedEngine

DECISION = "data.agenttool.permission.decision"


def rule(number: int) -> str:
    return f"package agenttool.permission\n\ndecision := {number}\n"


def decided(engine: EmbeddedEngine) -> Any:
    return engine.evaluate(DECISION, make_document(), timeout=5).value


class TestDirectory:
    """Files on disk."""

    def test_a_change_is_activated_and_reported_once(self, tmp_path: Path) -> None:
        (tmp_path / "p.rego").write_text(rule(1))
        seen: list[ReloadResult] = []
        source = BundleSource(tmp_path, on_reload=seen.append)
        engine = EmbeddedEngine(source)
        assert source.reload().status == "unchanged"
        (tmp_path / "p.rego").write_text(rule(22))
        result = source.reload()
        assert (result.status, result.revision) == ("activated", source.bundle.revision)
        assert decided(engine) == 22
        assert source.reload().status == "unchanged"
        assert [item.status for item in seen] == ["activated"]

    @pytest.mark.parametrize(
        "broken",
        [
            "package agenttool.permission\n\ndecision := {",
            "package other\n\nx := 1",
            "",
            "package a\n\nx := y",
        ],
    )
    def test_a_broken_bundle_is_told_once_and_the_last_good_stays(
        self, tmp_path: Path, broken: str
    ) -> None:
        (tmp_path / "p.rego").write_text(rule(1))
        seen: list[ReloadResult] = []
        source = BundleSource(tmp_path, on_reload=seen.append)
        engine = EmbeddedEngine(source)
        good = source.bundle
        (tmp_path / "p.rego").write_text(broken)
        for _ in range(3):
            result = source.reload()
        assert result.status == "failed"
        assert source.last_error == seen[0].error != ""
        assert (len(seen), source.bundle) == (1, good)
        assert decided(engine) == 1
        (tmp_path / "p.rego").write_text(rule(333))
        assert source.reload().status == "activated"
        assert (decided(engine), source.last_error) == (333, "")

    def test_a_directory_that_vanishes(self, tmp_path: Path) -> None:
        folder = tmp_path / "b"
        folder.mkdir()
        (folder / "p.rego").write_text(rule(1))
        source = BundleSource(folder)
        engine = EmbeddedEngine(source)
        (folder / "p.rego").unlink()
        folder.rmdir()
        assert "does not exist" in source.reload().error
        assert decided(engine) == 1

    def test_one_engine_that_refuses_keeps_all_on_the_old_bundle(self, tmp_path: Path) -> None:
        (tmp_path / "p.rego").write_text(rule(1) + "\nother := 1\n")
        source = BundleSource(tmp_path)
        lenient = EmbeddedEngine(source)
        strict = EmbeddedEngine(source, entry_points=[DECISION, "data.agenttool.permission.other"])
        (tmp_path / "p.rego").write_text(rule(2))
        assert source.reload().status == "failed"
        assert (decided(lenient), decided(strict)) == (1, 1)

    def test_a_callback_that_raises_changes_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "p.rego").write_text(rule(1))

        def broken(result: ReloadResult) -> None:
            raise RuntimeError("callback")

        source = BundleSource(tmp_path, on_reload=broken)
        engine = EmbeddedEngine(source)
        (tmp_path / "p.rego").write_text(rule(22))
        assert source.reload().status == "activated"
        assert decided(engine) == 22

    def test_the_watch_notices_by_itself(self, tmp_path: Path) -> None:
        (tmp_path / "p.rego").write_text(rule(1))
        changed = threading.Event()
        source = BundleSource(tmp_path, on_reload=lambda result: changed.set())
        engine = EmbeddedEngine(source)
        source.watch(0.02)
        try:
            (tmp_path / "p.rego").write_text(rule(22))
            assert changed.wait(60)
            assert decided(engine) == 22
        finally:
            source.close()

    def test_the_first_bundle_has_to_be_good(self, tmp_path: Path) -> None:
        with pytest.raises(PolicyLoadError):
            BundleSource(tmp_path)


@pytest.fixture
def server() -> Iterator[BundleServer]:
    with running_server() as server:
        yield server


class TestHttp:
    """A bundle server."""

    def test_it_is_fetched_again_only_when_its_etag_changed(self, server: BundleServer) -> None:
        token = "-".join(["bearer", "of", "tests"])
        server.answer = (200, {"ETag": '"one"'}, write_archive({"p.rego": rule(1).encode()}))
        source = BundleSource(server.url, token=token)
        engine = EmbeddedEngine(source)
        assert source.reload().status == "unchanged"
        assert server.seen[1]["if-none-match"] == '"one"'
        assert server.seen[0]["authorization"] == f"Bearer {token}"
        server.answer = (200, {"ETag": '"two"'}, write_archive({"p.rego": rule(2).encode()}))
        assert source.reload().status == "activated"
        assert decided(engine) == 2

    @pytest.mark.parametrize(
        ("answer", "message"),
        [
            ((500, {}, b"oops"), "status 500"),
            ((404, {}, b""), "status 404"),
            ((302, {"Location": "http://127.0.0.1:1/x"}, b""), "status 302"),
            ((200, {}, b"<html>sign in</html>"), "not a complete"),
            ((200, {"Content-Length": "100000"}, b"half"), "within its answer"),
            ((304, {}, b""), "status 304"),
        ],
    )
    def test_what_is_no_bundle_is_refused(
        self, server: BundleServer, answer: Any, message: str
    ) -> None:
        server.answer = answer
        with pytest.raises(PolicyLoadError, match=message):
            load_bundle(server.url, timeout=2.0)

    def test_a_broken_new_bundle_is_fetched_again_until_it_is_good(
        self, server: BundleServer
    ) -> None:
        server.answer = (200, {"ETag": '"one"'}, write_archive({"p.rego": rule(1).encode()}))
        source = BundleSource(server.url)
        engine = EmbeddedEngine(source)
        server.answer = (200, {"ETag": '"two"'}, write_archive({"p.rego": b"package x ("}))
        assert source.reload().status == "failed"
        assert server.seen[-1]["if-none-match"] == '"one"'
        assert decided(engine) == 1
        server.answer = (200, {"ETag": '"two"'}, write_archive({"p.rego": rule(2).encode()}))
        assert source.reload().status == "activated"
        assert decided(engine) == 2

    def test_a_server_that_is_not_there(self) -> None:
        started = time.monotonic()
        with pytest.raises(PolicyLoadError, match="no connection"):
            load_bundle("http://127.0.0.1:1/b.tar.gz", timeout=1.0)
        assert time.monotonic() - started < 30

    @pytest.mark.parametrize(
        "url", ["http://user:pw@host/b", "http:///b", "http://host:99999/b", "http://host/a b"]
    )
    def test_urls_that_can_not_be_used(self, url: str) -> None:
        with pytest.raises(ConfigurationError):
            load_bundle(url)
