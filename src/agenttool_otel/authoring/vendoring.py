"""The stock policy as files of a project, so that ``opa check``, ``opa test`` and editors find what its
rules call.

They lie in a hidden folder: OPA and language servers read it, a bundle leaves it out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from agenttool_otel.authoring.project import FIXTURES
from agenttool_otel.authoring.scaffold import SCHEMA
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.policy.bundles.bundle import Bundle, default_bundle_path
from agenttool_otel.policy.bundles.input_schema import schema_text
from agenttool_otel.policy.bundles.load import load_bundle

FOLDER: Final = ".agenttool/stock"
"""Where the stock policy lies in a project."""

REGAL: Final = ".regal/config.yaml"
"""The configuration of the linter and language server Regal."""

_DATA: Final = f"{FOLDER}/agenttool/defaults.rego"
_HEAD: Final = "# Made by `agenttool policy vendor`. Edits are lost.\n"
_REGAL_CONFIG: Final = f"""\
# Regal, the linter and language server of Rego, reads this.
ignore:
  files:
    # the stock policy, made by `agenttool policy vendor`
    - {FOLDER}/*
rules:
  imports:
    unresolved-reference:
      level: error
      # of the stock policy, and of data files, which Regal does not read
      except-paths:
        - data.agenttool.*
"""


@dataclass(slots=True)
class Vendored:
    """What was written, or what would be."""

    changed: list[str] = field(default_factory=list)  # files that are new or had another text
    removed: list[str] = field(default_factory=list)  # files of an older version
    kept: list[str] = field(default_factory=list)  # files of one's own, as they were


def vendor(root: Path, *, write: bool = True) -> Vendored:
    """Put the stock policy of this version into a project.

    Args:
        root: the project's folder.
        write: whether files are written; otherwise only what is out of date is returned.

    Raises:
        ConfigurationError: it is no project of rules on top of the stock bundle, or can't be
          written.
    """
    if not root.is_dir():
        raise ConfigurationError(f"{root} is not a folder")
    if (root / "agenttool" / "permission").is_dir():
        raise ConfigurationError(f"{root} is a whole bundle, which has what it calls")
    files = _files(load_bundle(default_bundle_path()))
    try:
        return _put(root, files, write=write)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{root}: {error}") from None


def _files(stock: Bundle) -> dict[str, str]:
    files = {f"{FOLDER}/{path}": _HEAD + text for path, text in stock.modules.items()}
    files[f"{FOLDER}/{FIXTURES}"] = _HEAD + stock.tests[FIXTURES]
    files[_DATA] = _defaults(stock)
    files[SCHEMA] = schema_text()
    return files


def _defaults(stock: Bundle) -> str:
    """Return the stock data as a module: a data file's place in ``data`` would be below the hidden
    folder's name.
    """
    text = json.dumps(stock.data["agenttool"]["defaults"], indent=2)
    if "`" in text:
        raise ConfigurationError("the stock data has a character that ends a raw text of Rego")
    # not as a literal: its type would be known, and a member that may be there an error
    return f"{_HEAD}package agenttool\n\ndefaults := json.unmarshal(`{text}`)\n"


def _put(root: Path, files: dict[str, str], *, write: bool) -> Vendored:
    done = Vendored()
    for relative, text in files.items():
        target = root / relative
        if target.is_file() and target.read_text("utf-8") == text:
            continue
        done.changed.append(relative)
        if write:
            _write(target, text)
    for path in sorted((root / FOLDER).rglob("*.rego")):
        relative = path.relative_to(root).as_posix()
        if relative in files:
            continue
        done.removed.append(relative)
        if write:
            path.unlink()
    _put_regal(root, done, write=write)
    return done


def _put_regal(root: Path, done: Vendored, *, write: bool) -> None:
    target = root / REGAL
    if target.exists():
        done.kept.append(REGAL)
        return
    done.changed.append(REGAL)
    if write:
        _write(target, _REGAL_CONFIG)


def _write(target: Path, text: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
