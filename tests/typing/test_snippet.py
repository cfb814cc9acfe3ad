"""Governed functions keep their types: mypy --strict on a snippet whose comments say what it has to
find.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
SNIPPET = Path(__file__).parent / "snippet.py"
SOURCE = Path(__file__).parents[2] / "src"
EXPECTED = re.compile(r"# (?P<kind>[RE]): (?P<what>.+)$")
FOUND = re.compile(
    r'snippet\.py:(?P<line>\d+): (?:note: Revealed type is "(?P<type>.+)"|error: .*\[(?P<code>[\w-]+)\])$'
)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[int, tuple[str, str]]:
    config = tmp_path_factory.mktemp("mypy") / "mypy.ini"
    config.write_text(f"[mypy]\nstrict = true\nmypy_path = {SOURCE}\nfollow_imports = silent\n")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--config-file",
            str(config),
            f"--cache-dir={config.parent}/cache",
            str(SNIPPET),
        ],
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert "Traceback" not in done.stderr, done.stderr
    lines = [match for line in done.stdout.splitlines() if (match := FOUND.search(line))]
    assert lines, done.stdout + done.stderr
    return {int(m["line"]): ("R", m["type"]) if m["type"] else ("E", m["code"]) for m in lines}


def test_every_governed_call_has_the_types_of_its_function(
    found: dict[int, tuple[str, str]],
) -> None:
    wrong = []
    for number, line in enumerate(SNIPPET.read_text().splitlines(), 1):
        match = EXPECTED.search(line)
        expected = (match["kind"], match["what"].split(" | ")) if match else None
        got = found.get(number)
        if (expected is None) != (got is None) or (
            expected and got and (expected[0], got[1] in expected[1]) != (got[0], True)
        ):
            wrong.append(f"{number}: expected {expected}, found {got}: {line.strip()}")
    assert not wrong, "\n".join(wrong)
