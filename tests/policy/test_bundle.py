"""Bundles: what loads, what is refused, and that the refusal names file and line."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path

import pytest

from agenttool_otel.errors import PolicyLoadError
from agenttool_otel.names import FailClosedCause
from agenttool_otel.policy.bundles import bundle as bundle_module
from agenttool_otel.policy.bundles.bundle import bundle_from_files, default_bundle_path
from agenttool_otel.policy.bundles.bundle_files import bundle_files, read_archive, write_archive
from agenttool_otel.policy.bundles.load import load_bundle

RULE = b'package agenttool.permission\n\ndecision := {"behavior": "deny"}\n'


def write(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def tar(entries: list[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for info, content in entries:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def test_a_directory_and_its_archive_are_the_same_bundle(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "b",
        {
            "agenttool/p.rego": RULE,
            "limits/data.json": b'{"calls": 5}',
            ".manifest": b'{"revision": "r7"}',
        },
    )
    one = load_bundle(folder)
    archive = tmp_path / "b.tar.gz"
    archive.write_bytes(write_archive(bundle_files(one)))
    two = load_bundle(archive)
    assert one.revision == two.revision == "r7"
    assert one.data == two.data == {"limits": {"calls": 5}}
    assert dict(one.modules) == dict(two.modules)


def test_without_a_manifest_the_revision_is_the_contents_digest(tmp_path: Path) -> None:
    one = load_bundle(write(tmp_path / "a", {"p.rego": RULE}))
    two = load_bundle(write(tmp_path / "b", {"p.rego": RULE}))
    three = load_bundle(write(tmp_path / "c", {"p.rego": RULE + b"\n"}))
    assert one.revision == two.revision == one.digest[:16]
    assert three.revision != one.revision


def test_test_files_take_no_part_in_decisions(tmp_path: Path) -> None:
    bundle = load_bundle(write(tmp_path, {"p.rego": RULE, "p_test.rego": b"this is no rego"}))
    assert list(bundle.modules) == ["p.rego"]
    assert list(bundle.tests) == ["p_test.rego"]


def test_only_data_files_of_the_right_name_are_data(tmp_path: Path) -> None:
    files = {
        "p.rego": RULE,
        "schemas/input.json": b"[1]",
        "a/data.yaml": b"b: [1, 2]",
        ".git/x.rego": b"no",
    }
    assert load_bundle(write(tmp_path, files)).data == {"a": {"b": [1, 2]}}


def test_a_bundle_can_not_be_changed(tmp_path: Path) -> None:
    bundle = load_bundle(write(tmp_path, {"p.rego": RULE, "data.json": b'{"a": {"b": 1}}'}))
    with pytest.raises(TypeError):
        bundle.modules["q.rego"] = "package q"  # type: ignore[index]
    bundle.data["a"]["b"] = 2
    assert bundle.data == {"a": {"b": 1}}


class TestRefused:
    """Each broken bundle is a PolicyLoadError that names what is wrong."""

    def test_missing(self, tmp_path: Path) -> None:
        with pytest.raises(PolicyLoadError, match="does not exist") as caught:
            load_bundle(tmp_path / "none")
        assert caught.value.cause is FailClosedCause.BUNDLE_MISSING

    def test_empty_directory(self, tmp_path: Path) -> None:
        with pytest.raises(PolicyLoadError, match="no Rego policy"):
            load_bundle(tmp_path)

    def test_tests_alone_are_no_policy(self, tmp_path: Path) -> None:
        with pytest.raises(PolicyLoadError, match="no Rego policy"):
            load_bundle(write(tmp_path, {"p_test.rego": RULE}))

    @pytest.mark.parametrize(
        ("files", "message"),
        [
            ({"data.json": b"{"}, r"data\.json:1: not JSON"),
            ({"data.json": b'{"a": 1, "a": 2}'}, "same key twice"),
            ({"data.json": b'{"a": NaN}'}, "NaN"),
            ({"data.json": b"[1]"}, "not an object"),
            ({"data.json": b"[" * 100_000}, "too deeply"),
            ({"data.yaml": b"a: [1"}, r"data\.yaml:1"),
            ({"a/data.json": b"1", "data.json": b'{"a": 2}'}, "defined twice"),
            ({"bad.rego": b"\xff\xfe"}, r"bad\.rego: not UTF-8"),
            ({".manifest": b"[]"}, r"\.manifest: not an object"),
            ({".manifest": b'{"revision": 3}'}, "revision is not a string"),
            ({".manifest": b'{"roots": "a"}'}, "roots is not a list"),
            ({".manifest": b'{"rego_version": 0}'}, "only Rego v1"),
            ({".manifest": b'{"wasm": [{"module": "x"}]}'}, "WASM"),
            (
                {".manifest": b'{"roots": ["agenttool"]}', "data.json": b'{"other": 1}'},
                "data/other lies outside",
            ),
            ({".signatures.json": b'{"signatures": ["x"]}'}, "no verification key"),
        ],
    )
    def test_broken(self, tmp_path: Path, files: dict[str, bytes], message: str) -> None:
        with pytest.raises(PolicyLoadError, match=message):
            load_bundle(write(tmp_path, {"p.rego": RULE, **files}))

    def test_too_large(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(bundle_module, "MAX_BUNDLE_BYTES", 50)
        with pytest.raises(PolicyLoadError, match="more than 50 bytes"):
            bundle_from_files({"p.rego": RULE}, origin="test")

    def test_a_ten_megabyte_data_file_loads(self, tmp_path: Path) -> None:
        big = json.dumps(
            {"hosts": [f"host-{number:07d}.example" for number in range(400_000)]}
        ).encode()
        assert len(big) > 9_000_000
        bundle = load_bundle(write(tmp_path, {"p.rego": RULE, "data.json": big}))
        assert len(bundle.data["hosts"]) == 400_000


class TestArchives:
    """An archive is read completely or not at all."""

    GOOD = write_archive({"p.rego": RULE, "q.rego": b"package q\n\nx := 1\n"})

    @pytest.mark.parametrize("keep", [0, 1, 10, 50, 0.3, 0.5, 0.9, 0.999])
    def test_cut_short(self, keep: float) -> None:
        size = int(len(self.GOOD) * keep) if isinstance(keep, float) else keep
        with pytest.raises(PolicyLoadError, match=r"not a complete|empty"):
            read_archive(self.GOOD[:size], origin="b.tar.gz")

    def test_every_flipped_byte_is_noticed_or_harmless(self) -> None:
        whole = read_archive(self.GOOD, origin="b")
        for index in range(10, len(self.GOOD), 7):
            broken = bytearray(self.GOOD)
            broken[index] ^= 0x55
            try:
                assert read_archive(bytes(broken), origin="b") == whole
            except PolicyLoadError:
                continue

    def test_html_instead_of_an_archive(self) -> None:
        with pytest.raises(PolicyLoadError, match="not a complete"):
            read_archive(b"<html>sign in</html>", origin="b")

    @pytest.mark.parametrize("name", ["../evil.rego", "a/../../evil.rego", "a\\..\\b.rego"])
    def test_paths_that_leave_the_archive(self, name: str) -> None:
        with pytest.raises(PolicyLoadError, match="leaves the archive"):
            read_archive(tar([(tarfile.TarInfo(name), RULE)]), origin="b")

    def test_links_and_doubles(self) -> None:
        link = tarfile.TarInfo("p.rego")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        with pytest.raises(PolicyLoadError, match="not a regular file"):
            read_archive(tar([(link, b"")]), origin="b")
        with pytest.raises(PolicyLoadError, match="twice"):
            read_archive(
                tar([(tarfile.TarInfo("p.rego"), RULE), (tarfile.TarInfo("/p.rego"), RULE)]),
                origin="b",
            )

    def test_a_bomb_stops_at_the_limit(self) -> None:
        bomb = gzip.compress(b"\0" * (bundle_module.MAX_BUNDLE_BYTES + 1000), 1)
        assert len(bomb) < 1_000_000
        with pytest.raises(PolicyLoadError, match="more than a bundle may hold"):
            read_archive(bomb, origin="b")


def test_the_stock_bundle_is_found() -> None:
    bundle = load_bundle(default_bundle_path())
    assert any("agenttool" in path for path in bundle.modules)
