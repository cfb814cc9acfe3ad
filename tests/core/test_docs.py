"""What docs/ shows is true: its Python runs as it stands, and docs/govern.md has every keyword and
word.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agenttool_otel.catalog.options import GovernOptions, RetryOptions
from agenttool_otel.context.settings import Settings
from agenttool_otel.names import (
    AccessKind,
    Env,
    ExecutionKind,
    InterruptBehavior,
    Lifecycle,
    Ownership,
    PersistenceStrategy,
    RiskLevel,
    ToolKind,
    WriteEffect,
)

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if "```python" in page.read_text("utf-8")],
    ids=lambda page: page.name,
)
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    for number, block in enumerate(blocks):  # each as a program of its own: a reader copies one
        (tmp_path / f"block{number}.py").write_text(block, encoding="utf-8")
    environment = {**os.environ}
    if not any("capture(" in block for block in blocks):
        environment["OTEL_SDK_DISABLED"] = "true"
    code = "import runpy, sys\nfor name in sys.argv[1:]: runpy.run_path(name)"
    done = subprocess.run(
        [sys.executable, "-c", code, *(f"block{number}.py" for number in range(len(blocks)))],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_every_keyword_and_word_is_on_the_page_of_govern() -> None:
    text = (ROOT / "docs" / "govern.md").read_text(encoding="utf-8")
    vocabularies = (
        AccessKind, ExecutionKind, InterruptBehavior, Lifecycle, Ownership, PersistenceStrategy, RiskLevel, ToolKind,
        WriteEffect,
    )  # fmt: skip
    words = {str(word) for vocabulary in vocabularies for word in vocabulary}
    for name in {*GovernOptions.__annotations__, *RetryOptions.__annotations__, *words}:
        assert f"`{name}`" in text, name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_settings_that_a_page_names_exist(page: Path) -> None:
    known = {*Settings.variables().values()} | Env.beside_settings()
    known |= {"AGENTTOOL_SCREENSHOTS", "AGENTTOOL_SERVERS_DIR"}
    for name in set(re.findall(r"\bAGENTTOOL_[A-Z_]*[A-Z]\b", page.read_text(encoding="utf-8"))):
        assert name in known, name
