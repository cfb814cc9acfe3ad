"""What an import brings into a program: nothing that only some calls need."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "sqlalchemy", "sqlglot", "tree_sitter", "tree_sitter_bash",
    "http.client", "urllib3", "requests", "httpx", "aiohttp",
    "opentelemetry.sdk", "langchain_core", "typer", "rich",
    "agenttool_otel.readers.shell", "agenttool_otel.readers.sql", "agenttool_otel.readers.urls",
    "agenttool_otel.redaction.cleaner", "agenttool_otel.redaction.keys", "agenttool_otel.redaction.plausibility",
)  # fmt: skip


def loaded(statement: str) -> set[str]:
    """The modules that a fresh process has after a statement."""
    program = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True
    )
    return set(done.stdout.split())


def test_the_package_itself_loads_almost_nothing() -> None:
    found = loaded("import agenttool_otel")
    assert not found & {*HEAVY, "pydantic", "regorus"}
    assert {name for name in found if name.startswith("agenttool_otel.")} == {
        "agenttool_otel.govern"
    }


def test_what_most_programs_import_loads_no_heavy_library() -> None:
    opened_by_a_governor = {
        f"agenttool_otel.{name}"
        for name in ("policy.open", "policy.decider", "call.phases.pipeline", "preflight.posture")
    }
    found = loaded("from agenttool_otel import Governor, agent_context, govern")
    assert not found & {*HEAVY, *opened_by_a_governor, "regorus"}


@pytest.mark.parametrize("name", ["errors", "names", "records", "context.context", "telemetry"])
def test_a_public_module_loads_no_heavy_library(name: str) -> None:
    assert not loaded(f"import agenttool_otel.{name}") & set(HEAVY)


def test_the_rooms_name_is_the_function_after_any_import() -> None:
    for first in (
        "import agenttool_otel.govern.governor",
        "from agenttool_otel.testing import capture",
        "pass",
    ):
        program = f"{first}\nfrom agenttool_otel import govern\nassert govern.__module__.endswith('.decorators')"
        subprocess.run([sys.executable, "-c", program], timeout=120, check=True)
