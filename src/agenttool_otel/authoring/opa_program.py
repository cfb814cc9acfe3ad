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
from typing import Any, Final

from agenttool_otel.errors import PolicyUnavailable
from agenttool_otel.names import Env
from agenttool_otel.policy.bundles.bundle import Bundle

_TIMEOUT: Final = 120.0


def find_opa() -> str | None:
    """Return the path of an OPA program, or ``None``.

    Looked at, in this order: the environment's ``AGENTTOOL_OPA``, ``.servers`` and ``.servers/bin``
    below the working directory (``make servers``), ``PATH``, and the user's cache.
    """
    here = Path.cwd() / ".servers"
    candidates = (
        os.environ.get(Env.OPA_PROGRAM),
        str(here / "bin" / "opa"),
        str(here / "opa"),
        shutil.which("opa"),
        str(Path.home() / ".cache" / "agenttool" / "bin" / "opa"),
    )
    return next(
        (item for item in candidates if item and os.path.isfile(item) and os.access(item, os.X_OK)),
        None,
    )


class OpaRun:
    """One run of an OPA program."""

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
            raise PolicyUnavailable(
                f"the OPA program can't be run: {type(error).__name__}"
            ) from None
        self.status, self.output, self.errors = done.returncode, done.stdout, done.stderr

    def json(self) -> Any:
        """Return the output as JSON, or ``None`` when it is none."""
        try:
            return json.loads(self.output)
        except ValueError:
            return None


def opa_version(program: str) -> str:
    """Return the version that an OPA program states, or an empty string."""
    first = OpaRun(program, "version", folder=Path.cwd()).output.splitlines()[:1]
    return first[0].removeprefix("Version:").strip() if first else ""


def opa_errors(run: OpaRun) -> list[tuple[str, int, str]]:
    """Return what OPA complains about, as file, line and message."""
    for text in (run.output, run.errors):
        try:
            document = json.loads(text)
        except ValueError:
            continue
        if isinstance(document, dict) and isinstance(document.get("errors"), list):
            found = []
            for error in document["errors"]:
                place = error.get("location") or {}
                message = " ".join(str(error.get("message", "")).split())
                details = error.get("details")
                if isinstance(details, dict) and isinstance(details.get("want"), (str, list)):
                    wanted = details["want"]
                    message += f" (there is: {', '.join(map(str, wanted)) if isinstance(wanted, list) else wanted})"
                found.append((str(place.get("file", "")), int(place.get("row", 0)), message))
            return found
    text = " ".join((run.errors or run.output).split())
    return [("", 0, text[:500] or f"OPA ended with status {run.status}")]


@contextlib.contextmanager
def unpacked(bundle: Bundle, extra: Mapping[str, str]) -> Iterator[Path]:
    """Write a bundle's modules and data, and further files, to a folder that is removed
    afterwards.
    """
    with tempfile.TemporaryDirectory(prefix="agenttool-policy-") as name:
        root = Path(name)
        for path, text in (
            *bundle.modules.items(),
            ("data.json", bundle.data_json),
            *extra.items(),
        ):
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        yield root
