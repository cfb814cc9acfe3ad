"""The instrumentor never lets a call through because it could not be set up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool

from agenttool_otel import ConfigurationError, ToolDenied
from agenttool_otel.call.runtime import replace_default
from agenttool_otel.integrations import instrumentor as module
from agenttool_otel.integrations.facts import read_facts
from agenttool_otel.integrations.instrumentor import (
    AgentToolInstrumentor,
    is_instrumented,
    require_instrumented,
)
from samples import one_case_in

APP = """
import asyncio
from langchain_core.tools import tool

@tool
def read_file(path: str) -> str:
    "Read a file."
    print("RAN", path)
    return "content"

call = {"type": "tool_call", "name": "read_file", "args": {"path": "notes.txt"}, "id": "c"}
print("STATUS", read_file.invoke(call).status)
print("STATUS", asyncio.run(read_file.ainvoke(call)).status)
try:
    read_file.invoke({"path": "notes.txt"})
except PermissionError as refused:
    print("REFUSED", refused)
"""


@pytest.mark.parametrize(
    ("stated", "told"),
    one_case_in(
        5,
        [
            (None, "FileNotFoundError"),
            ("", "no JSON"),
            ("{'a': 1}", "no JSON"),
            ("[]", "object of objects"),
            ("directory", "IsADirectoryError"),
        ],
    ),
)
def test_a_program_with_unusable_facts_refuses_every_call(
    tmp_path: Path, stated: str | None, told: str
) -> None:
    (tmp_path / "app.py").write_text(APP, encoding="utf-8")
    facts = tmp_path / "facts.json"
    if stated == "directory":
        facts.mkdir()
    elif stated is not None:
        facts.write_text(stated, encoding="utf-8")
    done = subprocess.run(
        [str(Path(sys.executable).parent / "opentelemetry-instrument"), sys.executable, "app.py"],
        cwd=tmp_path,
        env={
            **os.environ,
            "OTEL_TRACES_EXPORTER": "console",
            "OTEL_METRICS_EXPORTER": "none",
            "OTEL_LOGS_EXPORTER": "none",
            "AGENTTOOL_TOOLS": str(facts),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "RAN" not in done.stdout, done.stdout
    assert done.stdout.count("STATUS error") == 2, done.stderr
    assert "REFUSED" in done.stdout
    assert told in done.stdout
    assert str(facts) in done.stdout
    assert done.stdout.count('"name": "execute_tool read_file"') == 3
    assert '"agenttool.permission.behavior": "deny"' in done.stdout
    assert str(facts) in done.stderr  # and whoever started it reads it at once


@pytest.fixture
def instrumented() -> Iterator[AgentToolInstrumentor]:
    old = replace_default(None)
    instrumentor = AgentToolInstrumentor()
    yield instrumentor
    if instrumentor.is_instrumented_by_opentelemetry:
        instrumentor.uninstrument()
    replace_default(old)


def make_tool() -> Any:
    @tool
    def echo(text: str) -> str:
        """Echo."""
        raise AssertionError("it ran")

    return echo


def test_any_other_error_of_the_setup_refuses_too(
    instrumented: AgentToolInstrumentor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> None:
        raise RuntimeError("a secret text")

    monkeypatch.setattr(module, "default_governor", fails)
    instrumented.instrument(facts={})
    with pytest.raises(ToolDenied, match="RuntimeError") as refused:
        make_tool().invoke({"text": "x"})
    assert "secret" not in str(refused.value)


def test_a_tool_whose_own_facts_are_unusable_is_refused(
    instrumented: AgentToolInstrumentor,
) -> None:
    instrumented.instrument(facts={"echo": {"readonly": True}})
    message = make_tool().invoke(
        {"type": "tool_call", "name": "echo", "args": {"text": "x"}, "id": "c"}
    )
    assert message.status == "error"
    assert "readonly" in message.content


def test_nothing_passes_where_no_governor_at_all_can_be_had(
    instrumented: AgentToolInstrumentor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError

    instrumented.instrument(facts={"echo": {"readonly": True}})
    monkeypatch.setattr(module, "Governor", fails)
    with pytest.raises(ToolDenied):
        make_tool().invoke({"text": "x"})


def test_a_program_can_ask_whether_it_is_instrumented(instrumented: AgentToolInstrumentor) -> None:
    assert not is_instrumented()
    with pytest.raises(ConfigurationError, match="opentelemetry-instrument"):
        require_instrumented()
    instrumented.instrument(facts={})
    assert is_instrumented()
    require_instrumented()


def test_facts_are_read_by_name_or_glob(tmp_path: Path) -> None:
    (tmp_path / "facts.json").write_text(
        json.dumps({"read_*": {"read_only": True}}), encoding="utf-8"
    )
    assert read_facts(str(tmp_path / "facts.json")) == {"read_*": {"read_only": True}}
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match=r"bytes\.json"):
        read_facts(str(tmp_path / "bytes.json"))
