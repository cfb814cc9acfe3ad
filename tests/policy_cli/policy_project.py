"""Policy projects in temporary folders, and the command line run on them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from click.testing import Result
from typer.testing import CliRunner

from agenttool_otel.authoring.scaffold import init_project
from agenttool_otel.cli.main import app

REPOSITORY = Path(__file__).resolve().parents[2]


def run(*arguments: str | Path, stdin: str | bytes | None = None) -> Result:
    """Run ``agenttool policy``."""
    return CliRunner().invoke(app, ["policy", *map(str, arguments)], input=stdin)


def run_json(*arguments: str | Path, stdin: str | bytes | None = None) -> tuple[int, Any]:
    """Run it, and read what it printed."""
    done = run(*arguments, stdin=stdin)
    return done.exit_code, json.loads(done.stdout)


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
