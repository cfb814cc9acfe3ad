"""The doors of frameworks that have an environment of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import frameworks


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", frameworks.FRAMEWORKS)
def test_the_doors_tests_pass_in_their_environment(name: str) -> None:
    program = str(Path(frameworks.__file__))
    done = subprocess.run(
        [sys.executable, program, name], capture_output=True, text=True, check=False
    )
    if done.returncode == frameworks.UNAVAILABLE:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", frameworks.FRAMEWORKS)
def test_an_environment_has_tests(name: str) -> None:
    assert (frameworks.ROOT / frameworks.FRAMEWORKS[name].tests).is_file()
