"""docs/configuration.md is what the settings say, and names every variable."""

from __future__ import annotations

from pathlib import Path

from configuration import TARGET, configuration

from agenttool_otel.context.settings import Settings
from agenttool_otel.names import Env


def test_the_document_is_what_the_settings_say() -> None:
    assert TARGET.read_text(encoding="utf-8") == configuration(), "run make docs"


def test_every_variable_is_in_the_document() -> None:
    text = TARGET.read_text(encoding="utf-8")
    known = {
        *Settings.variables().values(),
        Env.APPROVALS_URL,
        Env.APPROVALS_KEY,
        Env.OPA_PROGRAM,
        Env.CAPTURE_CONTENT,
    }
    assert [name for name in known if f"`{name}`" not in text] == []


def test_the_document_is_found_from_the_readme() -> None:
    assert "docs/configuration.md" in (Path(__file__).parents[2] / "README.md").read_text(
        encoding="utf-8"
    )
