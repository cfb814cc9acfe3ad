"""Run a smoke part of the tests on every CPython from 3.11 on that this machine has: ``make
test-pythons``.

Each gets a virtual environment of its own in ``.venvs``, from requirements.lock. The version that
runs this file is left out, because ``make test`` is for it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from environments import ROOT, made

FOLDER: Final = ROOT / ".venvs"
OLDEST_MINOR: Final = 11
NEWEST_MINOR: Final = 19
SMOKE: Final = ("tests/core", "tests/records", "tests/hooks/test_registry.py", "tests/typing")
LEFT_OUT: Final = "not slow and not speed"
AT_ONCE: Final = ("-n", "2", "--dist", "loadfile")

_WHAT = "import sys; print(sys.implementation.name, sys.version_info.minor, sys.version.split()[0])"


def _candidates() -> Iterator[str]:
    for minor in range(OLDEST_MINOR, NEWEST_MINOR + 1):
        found = shutil.which(f"python3.{minor}")
        if found is not None:
            yield found
        for pattern in (
            ".pyenv/versions/*/bin/python3.{}",
            ".local/share/uv/python/*/bin/python3.{}",
        ):
            yield from map(str, sorted(Path.home().glob(pattern.format(minor))))


def pythons() -> dict[int, str]:
    """The programs by minor version: the first that really is a CPython of that version (a shim may
    lead nowhere).
    """
    found: dict[int, str] = {}
    for program in _candidates():
        done = subprocess.run([program, "-c", _WHAT], capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.startswith("cpython "):
            found.setdefault(int(done.stdout.split()[1]), program)
    return found


def _run(*command: str) -> int:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def _installed(program: str, minor: int) -> Path | None:
    venv = FOLDER / f"3.{minor}"
    python, stamp, lock = venv / "bin" / "python", venv / ".installed", ROOT / "requirements.lock"
    if stamp.exists() and stamp.stat().st_mtime > lock.stat().st_mtime:
        return python
    installations = (
        ("--require-hashes", "-r", str(lock)),
        ("--no-build-isolation", "--no-deps", "--editable", str(ROOT)),
    )
    if made(venv, program, installations) is None:
        return None
    stamp.touch()
    return python


def main() -> int:
    """Test each, and say which passed."""
    own = sys.version_info.minor
    others = {minor: program for minor, program in sorted(pythons().items()) if minor != own}
    if not others:
        print(
            f"skipped: CPython 3.{own} is the only one from 3.{OLDEST_MINOR} on that this machine has"
        )
        return 0
    failed = 0
    for minor, program in others.items():
        python = _installed(program, minor)
        code = (
            1
            if python is None
            else _run(str(python), "-m", "pytest", "-m", LEFT_OUT, *AT_ONCE, *SMOKE)
        )
        outcome = "could not be installed" if python is None else "FAILED" if code else "ok"
        print(f"CPython 3.{minor} ({program}): {outcome}")
        failed |= code
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
