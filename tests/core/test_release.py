"""What is released holds what it should, and works with an OPA server without the native engine."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_wheel_and_sdist_hold_what_they_should(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    tool = release()
    wheel, sdist = tool.build(tmp_path)
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
