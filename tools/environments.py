"""Environments of their own for tests: made by uv, because pip takes minutes for what uv installs in seconds.

Where uv can't install (an index that only pip's configuration names), pip does it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
_UV: Final = Path(sys.executable).with_name("uv")
_SECONDS: Final = 480
"""What one installation may take; where a registry is slower, the packages can't be had."""


def made(folder: Path, program: str, installations: Sequence[Sequence[str]]) -> Path | None:
    """Make an environment anew, and return its Python; ``None`` where something can't be installed.

    Args:
        folder: where it is made; what stands there is removed.
        program: the Python that it is made of.
        installations: arguments of one ``pip install`` each.
    """
    python = folder / "bin" / "python"
    if not _runs((program, "-m", "venv", "--clear", str(folder))):
        return None
    done = all(_installs(python, arguments) for arguments in installations)
    return python if done else None


def _installs(python: Path, arguments: Sequence[str]) -> bool:
    by_uv = (str(_UV), "pip", "install", "--quiet", "--python", str(python), *arguments)
    by_pip = (str(python), "-m", "pip", "install", "--quiet", *arguments)
    return _runs(by_uv) or _runs(by_pip)


def _runs(command: Sequence[str]) -> bool:
    try:
        done = subprocess.run(command, cwd=ROOT, check=False, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
