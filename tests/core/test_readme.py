"""What the README shows is true: its Python runs, its files exist, its settings are settings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agenttool_otel.call.runtime import replace_default
from agenttool_otel.context.settings import Settings
from agenttool_otel.testing import capture

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_its_python_runs(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    old = replace_default(None)
    try:
        exec(compile(BLOCKS[number], f"README block {number}", "exec"), {"__name__": "readme"})
    finally:
        replace_default(old)
    promised = re.findall(r"print\(.*?\)\s*# (\S+)", BLOCKS[number])
    assert capsys.readouterr().out.split()[: len(promised)] == promised


def test_the_span_it_shows_is_that_of_the_denied_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with capture() as captured:
        old = replace_default(captured.governor)
        try:
            exec(compile(BLOCKS[0], "README block 0", "exec"), {"__name__": "readme"})
        finally:
            replace_default(old)
    denied = captured.spans[-1]
    (shown,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    title, *lines = shown.splitlines()
    assert title.split() == [*denied.name.split(), denied.status.status_code.name]
    for line in lines:
        name, value = line.split()
        assert str(denied.attributes[name]) == value


def test_the_files_it_names_exist() -> None:
    for name in set(re.findall(r"\b((?:docs|dashboards|policies|semconv)/[\w./-]+\.\w+)", README)):
        assert (ROOT / name).exists(), name


def test_the_settings_it_names_exist() -> None:
    known = set(Settings.variables().values())
    for name in set(re.findall(r"\bAGENTTOOL_\w+", README)):
        assert name in known, name
