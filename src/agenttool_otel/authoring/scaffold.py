"""A policy project to start from: one rule, its data, its test, an input to try it on, and the
schema for editors.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.policy.bundles.input_schema import schema_text

_SCHEMA: Final = "schemas/input.json"
_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")
_IGNORED: Final = frozenset({".git"})


@dataclass(slots=True)
class Written:
    """What was made of a folder."""

    root: Path
    made: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)


def init_project(root: Path, *, force: bool = False) -> Written:
    """Write a project."""
    if root.exists() and not root.is_dir():
        raise ConfigurationError(f"{root} is not a folder")
    written = Written(root)
    try:
        root.mkdir(parents=True, exist_ok=True)
        present = sorted(entry.name for entry in root.iterdir() if entry.name not in _IGNORED)
        if present and not force:
            raise ConfigurationError(
                f"{root} is not empty ({present[0]} is in it); --force adds what is missing"
            )
        name = _NAME.sub("-", root.resolve().name).strip("-.") or "policy"
        template = resources.files(__package__).joinpath("template")
        for relative, source in _files(template):
            text = source.read_text("utf-8").replace("PROJECT_NAME", name)
            # packaging tools leave out files whose name starts with a dot
            _write(written, ".manifest" if relative == "manifest.json" else relative, text)
        _write(written, _SCHEMA, schema_text())
    except OSError as error:
        raise ConfigurationError(f"{root}: {error.strerror or error}") from None
    return written


def _files(folder: Traversable, prefix: str = "") -> list[tuple[str, Traversable]]:
    found: list[tuple[str, Traversable]] = []
    for entry in sorted(folder.iterdir(), key=lambda item: item.name):
        name = f"{prefix}{entry.name}"
        found += _files(entry, f"{name}/") if entry.is_dir() else [(name, entry)]
    return found


def _write(written: Written, relative: str, text: str) -> None:
    target = written.root / relative
    if target.exists():
        written.kept.append(relative)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    written.made.append(relative)
