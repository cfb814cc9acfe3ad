"""What is released holds what it should, and works with an OPA server without the native engine."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

ROOT = Path(__file__).resolve().parents[2]


def release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Wheel and sdist."""
    pytest.importorskip("hatchling")
    wheel, sdist = release().build(tmp_path_factory.mktemp("dist"))
    return wheel, sdist


_REFUSE_TO_PARSE = """
import sys
import agenttool_otel
from agenttool_otel import Governor
from agenttool_otel.policy.bundles.bundle import default_bundle_path
from agenttool_otel.policy.bundles.load import load_bundle
from agenttool_otel.policy.bundles.settings_check import presets_of
from agenttool_otel.policy.engines import evaluation
from agenttool_otel.policy.rego import syntax

def refuse(*_):
    raise SystemExit("the stock bundle is parsed")

evaluation.load_program = syntax._trees = refuse
"""
_THEN: Final = """
print(agenttool_otel.__file__)
stock = load_bundle(default_bundle_path())
for preset in presets_of(stock):
    Governor(policy_data={"agenttool": {"settings": {"preset": preset}}})
"""


@pytest.mark.slow
def test_a_read_only_installation_starts_warm(built: tuple[Path, Path], tmp_path: Path) -> None:
    with zipfile.ZipFile(built[0]) as archive:
        archive.extractall(tmp_path / "site")
    for path in [*(tmp_path / "site").rglob("*"), tmp_path / "site"]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(tmp_path / "site"),
        "PYTHONPYCACHEPREFIX": "/dev/null/nowhere",  # root may write anywhere else
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": "/dev/null/nowhere",
    }
    words = [sys.executable, "-c", _REFUSE_TO_PARSE + release().TRY + _THEN]
    done = subprocess.run(
        words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.stderr, done.returncode) == ("", 0)
    decided, place = done.stdout.splitlines()
    assert decided == "decided"
    assert Path(place).is_relative_to(tmp_path / "site")
    assert not list((tmp_path / "site").rglob("__pycache__"))


@pytest.mark.slow
def test_wheel_and_sdist_hold_what_they_should(built: tuple[Path, Path], tmp_path: Path) -> None:
    tool = release()
    _, sdist = built
    wheel = Path(shutil.copy(built[0], tmp_path))
    assert tool.problems(wheel, sdist) == []
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("agenttool_otel/secrets.db", "x")
    assert tool.problems(wheel, sdist) == ["the wheel has agenttool_otel/secrets.db"]


def test_an_opa_server_needs_no_native_engine(tmp_path: Path) -> None:
    words = [sys.executable, str(ROOT / "tools" / "without_engine.py"), "hide"]
    done = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose changelog has an entry for 1.2.0."""
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## [1.2.0] - 2026-01-01\n\n- New.\n")
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def git(root: Path, *words: str) -> str:
    named = ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", *words]
    return subprocess.run(named, cwd=root, check=True, capture_output=True, text=True).stdout


def commit(root: Path) -> None:
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "m")


@pytest.fixture(autouse=True)
def identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """An annotated tag has an author."""
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "t")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "t@example.com")


def test_a_version_with_an_entry_is_tagged(repository: Path) -> None:
    assert release().tag(repository, "1.2.0") == "v1.2.0"
    assert git(repository, "tag", "--list") == "v1.2.0\n"


def test_tagging_the_same_commit_again_changes_nothing(repository: Path) -> None:
    release().tag(repository, "1.2.0")
    assert release().tag(repository, "1.2.0") == "v1.2.0"


def refusal(repository: Path, version: str) -> str:
    with pytest.raises(SystemExit) as refused:
        release().tag(repository, version)
    return str(refused.value)


def test_a_tree_that_is_not_clean_is_not_tagged(repository: Path) -> None:
    (repository / "new.txt").write_text("x")
    assert "not clean" in refusal(repository, "1.2.0")
    assert git(repository, "tag", "--list") == ""


def test_a_version_without_an_entry_is_not_tagged(repository: Path) -> None:
    assert "no entry for 1.3.0" in refusal(repository, "1.3.0")


def test_entries_without_a_version_are_not_tagged(repository: Path) -> None:
    changelog = repository / "CHANGELOG.md"
    changelog.write_text(changelog.read_text().replace("## [1", "## [Unreleased]\n\n- x\n\n## [1"))
    commit(repository)
    assert "Unreleased" in refusal(repository, "1.2.0")


def test_a_tag_of_another_commit_stays(repository: Path) -> None:
    release().tag(repository, "1.2.0")
    (repository / "new.txt").write_text("x")
    commit(repository)
    assert "raise the version" in refusal(repository, "1.2.0")


def test_the_present_version_has_an_entry() -> None:
    version = release().PROJECT["version"]
    assert f"\n## [{version}]" in (ROOT / "CHANGELOG.md").read_text("utf-8")
