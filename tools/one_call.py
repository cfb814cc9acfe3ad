"""The way of one call: which files and functions of the package an allowed call with a cached
decision passes, and whether it goes straight or through the pipeline.

Usage: ``python tools/one_call.py`` prints the figures of calls of several kinds; with ``way`` it
prints each step too. Only functions of this package count; each resumption of a generator counts as
a call.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final

from langchain_core.tools import StructuredTool
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import agenttool_otel
from agenttool_otel import Governor, TelemetrySettings, agent_context
from agenttool_otel.integrations.foreign import ForeignCall, ForeignTool, foreign_tool
from agenttool_otel.integrations.mcp.calls import McpCall, text_result

PACKAGE: Final = str(Path(agenttool_otel.__file__).parent) + "/"
STRAIGHT: Final = "straight"
PIPELINE: Final = "through the pipeline"
PIPELINES_OWN: Final = "Pipeline.run"
"""A step that no straight call has."""

LIMITS: Final = {
    "no facts": (STRAIGHT, 24, 70),
    "file": (STRAIGHT, 34, 205),
    "coroutine": (STRAIGHT, 24, 77),
    "a body that raises": (STRAIGHT, 44, 330),
    "a LangChain tool": (STRAIGHT, 32, 110),
    "a call of a door": (STRAIGHT, 26, 88),
    "a call of MCP": (STRAIGHT, 29, 110),
    "a list": (PIPELINE, 37, 440),
}
"""Which way a call goes, the most files, and the most calls of Python functions, by kind."""


def trace(call: Callable[[], Any]) -> list[tuple[int, str, str]]:
    """Return what a call passes: depth, file and function of each step."""
    steps: list[tuple[int, str, str]] = []
    depth = 0

    def seen(frame: FrameType, event: str, _: Any) -> None:
        nonlocal depth
        if event not in ("call", "return") or not frame.f_code.co_filename.startswith(PACKAGE):
            return
        if event == "return":
            depth -= 1
            return
        steps.append((depth, frame.f_code.co_filename[len(PACKAGE) :], frame.f_code.co_qualname))
        depth += 1

    sys.setprofile(seen)
    try:
        call()
    finally:
        sys.setprofile(None)
    return steps


def way_of(steps: list[tuple[int, str, str]]) -> str:
    """Return by which way a call went."""
    return PIPELINE if any(step[2] == PIPELINES_OWN for step in steps) else STRAIGHT


def figures(steps: list[tuple[int, str, str]]) -> tuple[int, int, int]:
    """Return how many files, functions and calls there are."""
    return len({file for _, file, _ in steps}), len({step[1:] for step in steps}), len(steps)


def calls() -> dict[str, Callable[[], Any]]:
    """Return one allowed call of each kind, decided before, so that its decision is cached."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(InMemorySpanExporter()))
    governor = Governor(telemetry=TelemetrySettings(tracer_provider=provider))

    @governor.govern(namespace="local.text", read_only=True, open_world=False, risk_level="low")
    def count_words(text: str) -> int:
        return len(text.split())

    @governor.govern(namespace="local.text", read_only=True, open_world=False, risk_level="low")
    async def count_later(text: str) -> int:
        return len(text.split())

    @governor.govern(namespace="local.text", read_only=True, open_world=False, risk_level="low")
    def fail(text: str) -> int:
        raise LookupError(text)

    @governor.govern(namespace="local.text", read_only=True, open_world=False, risk_level="low")
    def count_all(texts: list[str]) -> int:
        return len(texts)

    @governor.govern(
        namespace="local.files",
        tool_kind="file_operation",
        access_kinds=["file_read"],
        read_only=True,
        open_world=False,
    )
    def read_file(path: str) -> str:
        return Path(path).read_text("utf-8")

    search = StructuredTool.from_function(lambda text: text, name="search", description="Search.")
    found = governor.govern(search, read_only=True, open_world=False, risk_level="low")

    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    facts: dict[str, Any] = {"read_only": True, "open_world": False, "risk_level": "low"}
    called = foreign_tool("read", schema, source="toy", facts={"read": facts}, governor=governor)
    served = foreign_tool("read", schema, source="mcp", facts={"read": facts}, governor=governor)

    folder = Path(_folder.name)
    (folder / "notes.txt").write_text("notes\n", "utf-8")

    return {
        "no facts": partial(count_words, "one two three"),
        "file": partial(read_file, str(folder / "notes.txt")),
        "coroutine": partial(_awaited, count_later, "one two three"),
        "a body that raises": partial(_raised, fail, "one"),
        "a LangChain tool": partial(found.invoke, {"text": "one two three"}),
        "a call of a door": partial(_called, called),
        "a call of MCP": partial(_served, served),
        "a list": partial(count_all, ["one", "two"]),
    }


def _called(tool: ForeignTool) -> Any:
    return ForeignCall(tool, {"text": "one two three"}, "call_1").run(lambda given: given["text"])


async def _send(given: dict[str, Any]) -> dict[str, Any]:
    return text_result(given["text"])


def _served(tool: ForeignTool) -> Any:
    return _awaited(McpCall(tool, {"text": "one two three"}).arun, _send)


def _awaited(function: Callable[..., Any], *args: Any) -> Any:
    return _runner.run(function(*args))


def _raised(function: Callable[..., Any], *args: Any) -> None:
    with contextlib.suppress(LookupError):
        function(*args)


_runner: Final = asyncio.Runner()
_folder: Final = tempfile.TemporaryDirectory(prefix="one-call-")


def main(arguments: list[str]) -> int:
    """Print the figures; return 1 for ``check`` where a limit is broken."""
    broken = False
    for kind, call in calls().items():
        with agent_context(actor="agent:demo", session_id="s-1", roots=[tempfile.gettempdir()]):
            for _ in range(3):
                call()
            steps = trace(call)
        files, functions, count = figures(steps)
        way = way_of(steps)
        wanted, max_files, max_calls = LIMITS[kind]
        broken |= files > max_files or count > max_calls or way != wanted
        print(
            f"{kind}: {way}, {files} files (of {max_files}), {functions} functions, {count} calls (at most {max_calls})"
        )
        if "way" in arguments:
            print("\n".join(f"{'  ' * depth}{function}  {file}" for depth, file, function in steps))
    return 1 if broken and "check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
