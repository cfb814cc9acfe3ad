"""Policy projects in temporary folders, and the command line run on them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from agenttool_otel.cli.main import app
from agenttool_otel.policy.authoring.scaffold import init_project

REPOSITORY = Path(__file__).resolve().parents[2]


def run(*arguments: str | Path, stdin: str | bytes | None = None) -> Result:
    """Run ``agenttool policy``."""
    return CliRunner().invoke(app, ["policy", *map(str, arguments)], input=stdin)


def run_json(*arguments: str | Path, stdin: str | bytes | None = None) -> tuple[int, Any]:
    """Run it, and read what it printed."""
    done = run(*arguments, stdin=stdin)
    return done.exit_code, json.loads(done.stdout)


def find_real_opa() -> str | None:
    """A real OPA, whatever the tested code thinks of where one is."""
    candidates = (
        os.environ.get("AGENTTOOL_OPA"),
        str(REPOSITORY / ".servers" / "bin" / "opa"),
        str(REPOSITORY / ".servers" / "opa"),
        shutil.which("opa"),
        str(Path.home() / ".cache" / "agenttool" / "bin" / "opa"),
    )
    return next((item for item in candidates if item and os.access(item, os.X_OK)), None)


def require_real_opa() -> str:
    """The same, or skip."""
    program = find_real_opa()
    if program is None:
        pytest.skip("no OPA program found: set AGENTTOOL_OPA or run make servers")
    return program


def make_project(root: Path) -> Path:
    """The project that ``policy init`` makes."""
    init_project(root)
    return root


def write(root: Path, files: Mapping[str, str]) -> Path:
    """Write files below a folder."""
    for name, text in files.items():
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
    return root


def rule_file(body: str, *, package: str = "agenttool.custom.more", imports: str = "") -> str:
    """A module with one documented rule that denies."""
    return (
        "# METADATA\n# title: Ours\n# scope: package\n# schemas:\n#   - input: schema.input\n"
        f"package {package}\n{imports}\n"
        '# METADATA\n# title: A rule\ndeny contains {"rule": "custom.rule", "message": "a rule of ours"} if {\n'
        f"{body}\n}}\n"
    )


def example_input(root: Path, **changes: Any) -> dict[str, Any]:
    """The input of the project, with whole members replaced."""
    document: dict[str, Any] = json.loads((root / "input.json").read_text("utf-8"))
    return {**document, **changes}
