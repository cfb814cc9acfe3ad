"""Engines are found by the tests themselves, so that a program lying about does not change what is
tested.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from opa_program import require_opa
from policy_project import make_project


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A fresh project."""
    return make_project(tmp_path / "project")


@pytest.fixture
def no_opa(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without an OPA program."""
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.delenv("AGENTTOOL_OPA", raising=False)
    monkeypatch.setenv("PATH", str(empty))
    monkeypatch.setenv("HOME", str(empty))
    monkeypatch.chdir(empty)


@pytest.fixture
def real_opa(monkeypatch: pytest.MonkeyPatch) -> str:
    """A machine with an OPA program."""
    program = require_opa()
    monkeypatch.setenv("AGENTTOOL_OPA", program)
    return program
