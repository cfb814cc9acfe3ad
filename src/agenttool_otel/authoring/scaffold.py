"""A policy project to start from: one rule, its data, its test, an input to try it on, and the
schema for editors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.policy.bundles.input_schema import schema_text

SCHEMA: Final = "schemas/input.json"
"""The JSON Schema of the input, in a project."""

_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")
_IGNORED: Final = frozenset({".git"})


@dataclass(slots=True)
class Written:
    """The files of a new project."""

    root: Path  # its folder
    made: list[str] = field(default_factory=list)  # files that were written
    kept: list[str] = field(default_factory=list)  # files that were there and are as they were


def init_project(root: Path, *, force: bool = False) -> Written:
    """Write a new project.

    Args:
        root: Its folder, which is made.
        force: Whether the folder may have something in it; files that are there stay.

    Raises:
        ConfigurationError: It is no folder, is not empty, or can't be written.
    """
    if root.exists() and not root.is_dir():
        raise ConfigurationError(f"{root} is not a folder")
    written = Written(root)
    try:
        root.mkdir(parents=True, exist_ok=True)
        present = sorted({entry.name for entry in root.iterdir()} - _IGNORED)
        if present and not force:
            raise ConfigurationError(
                f"{root} is not empty ({present[0]} is in it); --force adds what is missing"
            )
        # "my policies (2)" becomes "my-policies-2"
        name = _NAME.sub("-", root.resolve().name).strip("-.") or "policy"
        template = resources.files(__package__).joinpath("template")
        for relative, source in _files(template):
            # packaging tools leave out files whose name starts with a dot
            if relative == "manifest.json":
                relative = ".manifest"
            text = source.read_text("utf-8")
            _write(written, relative, text.replace("PROJECT_NAME", name))
        _write(written, SCHEMA, schema_text())
    except OSError as error:
        raise ConfigurationError(f"{root}: {error.strerror or error}") from None
    return written


def _files(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, Traversable]]:
    """Yield each file below a folder, with its path from there."""
    for entry in sorted(folder.iterdir(), key=lambda item: item.name):
        path = f"{prefix}{entry.name}"
        if entry.is_dir():
            yield from _files(entry, f"{path}/")
        else:
            yield path, entry


def _write(written: Written, relative: str, text: str) -> None:
    target = written.root / relative
    if target.exists():
        written.kept.append(relative)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    written.made.append(relative)
