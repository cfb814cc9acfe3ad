"""A real OPA program, where this machine has one: found, and run on a bundle that is written to a
folder of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from agenttool_otel.errors import PolicyUnavailable
from agenttool_otel.names import Env
from agenttool_otel.policy.bundles.bundle import Bundle

_TIMEOUT: Final = 120.0


def find_opa() -> str | None:
    """Return the path of an OPA program, or ``None``.

    Looked at, in this order: the environment's ``AGENTTOOL_OPA``, ``.servers`` and ``.servers/bin``
    below the working directory (``make servers``), ``PATH``, and the user's cache.
    """
    servers = Path.cwd() / ".servers"
    candidates = (
        os.environ.get(Env.OPA_PROGRAM),
        str(servers / "bin" / "opa"),
        str(servers / "opa"),
        shutil.which("opa"),
        str(Path.home() / ".cache" / "agenttool" / "bin" / "opa"),
    )
    for path in candidates:
        if path and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


class OpaRun:
    """One run of an OPA program.

    Args:
        program: Path of the program.
        arguments: Its arguments, such as ``"test", "--format=json", "."``.
        folder: The directory that it runs in.

    Raises:
        PolicyUnavailable: It can't be started, or takes longer than two minutes.
    """

    def __init__(self, program: str, *arguments: str, folder: Path) -> None:
        try:
            done = subprocess.run(  # noqa: S603 - no shell, and the program is the user's own OPA
                [program, *arguments],
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise PolicyUnavailable(f"opa {arguments[0]} took longer than {_TIMEOUT:g} s") from None
        except (OSError, ValueError) as error:
            kind = type(error).__name__
            raise PolicyUnavailable(f"the OPA program can't be run: {kind}") from None
        self.status = done.returncode
        self.output = done.stdout
        self.errors = done.stderr

    def json(self) -> Any:
        """Return the output as JSON, or ``None`` when it is not JSON."""
        try:
            return json.loads(self.output)
        except ValueError:
            return None


def opa_version(program: str) -> str:
    """Return the version that an OPA program prints, or an empty string."""
    run = OpaRun(program, "version", folder=Path.cwd())
    lines = run.output.splitlines()
    if not lines:
        return ""
    # Version: 1.2.0
    return lines[0].removeprefix("Version:").strip()


class OpaError(NamedTuple):
    """One error that OPA reports."""

    file: str  # its file; empty where OPA names none
    line: int  # its line, or 0
    message: str  # OPA's message, on one line


def opa_errors(run: OpaRun) -> list[OpaError]:
    """Return the errors that a run of OPA reports; one with its output where that is not JSON."""
    # opa check writes its JSON to standard error, opa test to standard output
    for text in (run.output, run.errors):
        try:
            document = json.loads(text)
        except ValueError:
            continue
        if isinstance(document, dict) and isinstance(document.get("errors"), list):
            return [_opa_error(error) for error in document["errors"]]
    text = " ".join((run.errors or run.output).split())
    return [OpaError("", 0, text[:500] or f"OPA ended with status {run.status}")]


def _opa_error(error: dict[str, Any]) -> OpaError:
    place = error.get("location") or {}
    message = " ".join(str(error.get("message", "")).split())
    # undefined ref: input.tool.nme, with {"want": ["id", "kind", "name"]} as details
    details = error.get("details")
    wanted = details.get("want") if isinstance(details, dict) else None
    if isinstance(wanted, str):
        message += f" (there is: {wanted})"
    elif isinstance(wanted, list):
        names = ", ".join(str(name) for name in wanted)
        message += f" (there is: {names})"
    return OpaError(
        file=str(place.get("file", "")),
        line=int(place.get("row", 0)),
        message=message,
    )


@contextlib.contextmanager
def unpacked(bundle: Bundle, extra: Mapping[str, str]) -> Iterator[Path]:
    """Write a bundle's modules and data, and further files, to a folder that is removed
    afterwards.
    """
    files = {
        **bundle.modules,
        "data.json": bundle.data_json,
        **extra,
    }
    with tempfile.TemporaryDirectory(prefix="agenttool-policy-") as name:
        root = Path(name)
        for path, text in files.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        yield root
