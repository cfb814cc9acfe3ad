"""Test the door of a framework that can't share an environment with requirements.lock, in one of
its own: ``python tools/frameworks.py openai-agents``.

The environments stand in ``.venvs/frameworks``, and are made from the package index. Where that
can't be had, the program prints why and ends with 75.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

from environments import ROOT, made

FOLDER: Final = ROOT / ".venvs" / "frameworks"
UNAVAILABLE: Final = 75
"""Exit code: the packages can't be had here."""

_WITH: Final = (
    "pytest",
    "pytest-asyncio",
    "pytest-timeout",
    "hypothesis",
    "hatchling",
    "editables",
)


class Framework(NamedTuple):
    """A framework with an environment of its own."""

    requirement: str  # what pip installs, with a blank between packages
    tests: str  # its tests
    why: str  # why it can't share the environment of the others


FRAMEWORKS: Final[dict[str, Framework]] = {
    "deepagents": Framework(
        "deepagents>=0.7,<0.8 langgraph-checkpoint-sqlite",
        "tests/frameworks/test_deep_agents.py",
        "langchain-google-genai, which it needs, can't have websockets 17 of requirements.lock",
    ),
    "llama-index": Framework(
        "llama-index-core>=0.14,<0.15",
        "tests/frameworks/test_llama_index.py",
        "it brings packages that nothing else here needs",
    ),
    "smolagents": Framework(
        "smolagents>=1.26,<2",
        "tests/frameworks/test_smolagents.py",
        "it brings packages that nothing else here needs",
    ),
    "adk": Framework(
        "google-adk>=2.13,<3",
        "tests/frameworks/test_adk.py",
        "it needs an opentelemetry-api below that of requirements.lock",
    ),
    "crewai": Framework(
        "crewai>=1.15,<2",
        "tests/frameworks/test_crewai.py",
        "it needs pydantic below 2.13 and mcp below 2, and brings 900 MB",
    ),
    "mcp-1": Framework(
        "mcp>=1.23,<2",
        "tests/frameworks/test_mcp_1.py",
        "the extra mcp and requirements.lock have the SDK's releases 2.x",
    ),
    "openai-agents": Framework(
        "openai-agents>=0.24,<0.25",
        "tests/frameworks/test_openai_agents.py",
        "openai needs websockets below 17, and requirements.lock has a newer one",
    ),
}


def environment(name: str) -> Path | None:
    """Return the Python of a framework's environment; ``None`` where it can't be made.

    Args:
        name: The framework.
    """
    folder = FOLDER / name
    python, stamp = folder / "bin" / "python", folder / ".installed"
    wanted = FRAMEWORKS[name].requirement
    if stamp.exists() and stamp.read_text("utf-8") == wanted:
        return python
    installations = (
        (*wanted.split(), *_WITH),
        ("--no-build-isolation", "--editable", f"{ROOT}[cli]"),
    )
    if made(folder, sys.executable, installations) is None:
        return None
    stamp.write_text(wanted, "utf-8")
    return python


def main(names: list[str]) -> int:
    """Test frameworks; without a name, all of them."""
    failed = 0
    for name in names or FRAMEWORKS:
        python = environment(name)
        if python is None:
            print(f"{name}: its packages can't be installed here")
            return UNAVAILABLE
        command = (str(python), "-m", "pytest", FRAMEWORKS[name].tests)
        own = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        failed |= subprocess.run(command, cwd=ROOT, env=own, check=False).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
