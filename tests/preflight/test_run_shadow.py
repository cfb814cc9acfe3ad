"""``agenttool run --shadow``: a program without a line of set-up, and what the policy would have done."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, SpanKind

from agenttool_otel.cli.trace_file import TraceFile, otlp_document
from agenttool_otel.cli.trace_sources import read_file
from agenttool_otel.names import Attr, GenAI

AGENTTOOL = str(Path(sys.executable).parent / "agenttool")
OWN = """
import sys
from agenttool_otel import govern

@govern(access_kinds=["payment"])
def pay(amount: int) -> str:
    "Pay."
    return f"paid {amount}"

print(pay(3), sys.argv[1:])
sys.exit(3)
"""
LANGCHAIN = """
from langchain_core.tools import tool

@tool
def send_mail(to: str) -> str:
    "Send a mail."
    return f"sent to {to}"

print(send_mail.invoke({"to": "ada@example.com"}))
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [AGENTTOOL, "run", "--shadow", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_program_runs_as_it_is_and_the_table_follows(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(OWN, "utf-8")
    done = run(tmp_path, "app.py", "--loud", "x")
    assert (done.returncode, done.stdout) == (3, "paid 3 ['--loud', 'x']\n")
    assert "Of 1 calls decided in shadow, 1 would not just have run" in done.stderr
    (span,) = read_file(tmp_path / "agenttool-trace.jsonl")
    assert span.get(GenAI.TOOL_NAME) == "pay"
    assert span.get(Attr.PERMISSION_SHADOW_BEHAVIOR) == "ask"


@pytest.mark.slow
def test_langchains_tools_need_no_line_of_code(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(LANGCHAIN, "utf-8")
    done = run(tmp_path, "--trace", "spans.jsonl", "--", "-m", "app")
    assert (done.returncode, done.stdout) == (0, "sent to ada@example.com\n")
    assert "send_mail" in done.stderr
    assert (tmp_path / "spans.jsonl").stat().st_mode & 0o077 == 0


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    done = run(tmp_path, "nowhere.py")
    assert done.returncode == 2
    assert "nowhere.py is no Python file" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "options", [["--profile", "read"], ["--root", "."]], ids=lambda options: str(options[0])
)
def test_an_option_without_effect_is_refused(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "app.py").write_text("open('written', 'w')", "utf-8")
    done = run(tmp_path, *options, "app.py")
    assert done.returncode == 2
    assert f"{options[0]} has no effect with --shadow" in done.stderr
    assert not (tmp_path / "written").exists()


def test_a_file_for_spans_needs_shadow(tmp_path: Path) -> None:
    command = [AGENTTOOL, "run", "--trace", "a", "true"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "--trace needs --shadow" in done.stderr) == (2, True)


@pytest.mark.slow
def test_a_module_beside_the_program_is_not_taken_for_pythons(tmp_path: Path) -> None:
    (tmp_path / "logging.py").write_text("raise SystemExit('taken')", "utf-8")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "app.py").write_text("print('ran')", "utf-8")
    done = run(tmp_path, "sub/app.py")
    assert (done.returncode, done.stdout) == (0, "ran\n")


# --- the file -------------------------------------------------------------------------------------


def a_span() -> ReadableSpan:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("t")
    with tracer.start_as_current_span("before") as before:
        link = Link(before.get_span_context())
    with tracer.start_as_current_span("after", links=[link], kind=SpanKind.CLIENT):
        pass
    return exporter.get_finished_spans()[1]


def test_a_line_has_ids_in_hexadecimal_and_kinds_as_numbers() -> None:
    span = a_span()
    document = otlp_document([span])
    (written,) = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert written["traceId"] == f"{span.context.trace_id:032x}"
    assert written["links"][0]["spanId"] == f"{span.links[0].context.span_id:016x}"
    assert written["kind"] == 3


def test_a_file_that_others_could_read_is_made_private(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text("old", "utf-8")
    path.chmod(0o644)
    written = TraceFile(path)
    written.export([a_span()])
    written.shutdown()
    assert path.stat().st_mode & 0o077 == 0
    assert "old" not in path.read_text("utf-8")


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("kept", "utf-8")
    (tmp_path / "trace.jsonl").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic link"):
        TraceFile(tmp_path / "trace.jsonl")
    assert (tmp_path / "victim").read_text("utf-8") == "kept"
