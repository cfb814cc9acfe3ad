"""Where the time and the bytes of governed calls go: the budget tables of docs/comparison.md.

``python -m benchmarks.budget`` takes a sample of the call stack every millisecond of CPU time while
calls of one kind run, gives each sample to the part of the program that was at work (the innermost
frame that is some part's own), and shares the calls' measured CPU time out by that. The parts
therefore add up to the whole. The hand-written code is that of ``benchmarks.reference``. Then it
counts the bytes of an exported span by what they say, and the CPU time of an import by what is
made. ``--seconds N`` (6) is how long each kind of call is sampled.
"""

from __future__ import annotations

import gc
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from rich.console import Console
from rich.table import Table

from agenttool_otel import Governor, TelemetrySettings, agent_context
from agenttool_otel.testing import capture
from benchmarks.matrix import (
    FILES,
    READS,
    Kind,
    _arguments,
    _governed,
    _hand_written,
    _providers,
    answer_all,
    context_in,
    kinds,
)
from benchmarks.reference import bare

PARTS: list[tuple[str, tuple[str, ...]]] = [
    ("SDK: span, attributes, events", ("sdk/trace", "opentelemetry/attributes", "sdk/util")),
    ("SDK: metrics", ("opentelemetry/sdk/metrics",)),
    ("facts of the arguments", ("agenttool_otel/facts", "agenttool_otel/readers")),
    ("decision: key and cache", ("agenttool_otel/policy/cache", "agenttool_otel/policy/bundles")),
    ("decision: document, evaluation, answer", ("agenttool_otel/policy",)),
    ("redaction", ("agenttool_otel/redaction", "recording/redaction", "recording/argument_secrets")),
    ("approval store: seals and MACs", ("agenttool_otel/approvals/store/sealing",)),
    ("approval store: SQLAlchemy", ("sqlalchemy/",)),
    ("approval store: statements, rows, checks", ("agenttool_otel/approvals",)),
    ("making the approval request", ("agenttool_otel/call/approval_requests", "agenttool_otel/call/pending")),
    ("what is emitted: values of attributes, events", ("call/recording", "agenttool_otel/telemetry")),
    ("reading and binding arguments", ("call/binding", "phases/inputs", "agenttool_otel/catalog")),
    ("session and context", ("agenttool_otel/context",)),
    ("records: outcome and decision", ("call/envelope", "call/records", "_otel/records", "_otel/errors", "pydantic")),
    ("the result: size, delivery", ("agenttool_otel/results", "call/delivery", "phases/execute")),
    ("phases, drivers, wrapper", ("agenttool_otel/", "wrapt/")),
]  # fmt: skip
"""The parts of a call with the files that are theirs, the special ones first."""

_REST = "benchmark, tool"
_WHOLE, _BY_HAND, _BARE = "governed call", "hand-written", "bare span"
_INTERVAL = 0.001
_IMPORT = """
import dataclasses, enum, json, re, sys, time
from time import thread_time_ns as now
start = now()
import pydantic, opentelemetry.trace, wrapt
libraries, spent = now() - start, {}
from pydantic._internal import _model_construction as models
def counted(owner, name, what):
    inner, depth = getattr(owner, name), [0]
    def call(*args, **kwargs):
        depth[0] += 1
        began = now()
        try:
            return inner(*args, **kwargs)
        finally:
            depth[0] -= 1
            if not depth[0]:
                spent[what] = spent.get(what, 0) + now() - began
    setattr(owner, name, call)
counted(dataclasses, "_process_class", "dataclasses")
counted(re._compiler, "compile", "regular expressions")
counted(enum.EnumType, "__new__", "enumerations")
counted(models.ModelMetaclass, "__new__", "record classes")
counted(models, "complete_model_class", "validators of records")
began = now()
from agenttool_otel import Governor, agent_context, govern
print(json.dumps({"libraries": libraries, "ours": now() - began, **spent}))
"""


def places_without_files() -> list[str]:
    """The places that are no loaded file's, so that another part has their time."""
    loaded = [getattr(module, "__file__", None) or "" for module in sys.modules.values()]
    places = [place for _, places in PARTS for place in places]
    return [place for place in places if not any(place in file for file in loaded)]


def part_of(frame: FrameType | None) -> str:
    """The part whose frame is the innermost."""
    while frame is not None:
        file = frame.f_code.co_filename
        for part, places in PARTS:
            if any(place in file for place in places):
                return part
        frame = frame.f_back
    return _REST


class Sampler:
    """Counts the parts at work, every millisecond of CPU time."""

    def __init__(self) -> None:
        self.found: Counter[str] = Counter()
        self.spent = 0.0

    def _take(self, _: int, frame: FrameType | None) -> None:
        self.found[part_of(frame)] += 1

    def run(self, call: Any, times: int) -> None:
        """Run calls and sample them."""
        signal.signal(signal.SIGPROF, self._take)
        signal.setitimer(signal.ITIMER_PROF, _INTERVAL, _INTERVAL)
        for _ in range(times):
            call()
        signal.setitimer(signal.ITIMER_PROF, 0)


def _microseconds(
    contestants: dict[str, Any], between: Any, rounds: int = 30, calls: int = 20
) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        between()
        gc.collect()
        gc.disable()
        for name, call in contestants.items():
            start = time.thread_time_ns()
            for _ in range(calls):
                call()
            times[name].append((time.thread_time_ns() - start) / calls / 1000)
        gc.enable()
    return {name: statistics.median(found) for name, found in times.items()}


def budget(
    kind: Kind, root: str, *, varying: bool, sampled: bool, seconds: float
) -> dict[str, float]:
    """Microseconds of a call of one kind by part, with the whole, the hand-written code's and a
    bare span's.
    """
    context = context_in(root)
    tracer, meter = _providers() if sampled else _unsampled()
    governor = Governor(telemetry=TelemetrySettings(tracer_provider=tracer, meter_provider=meter))
    with agent_context(**context):
        call = _governed(governor, kind, _arguments(kind, varying=varying), context).call
        hand = _hand_written(kind, None if sampled else _unsampled()).call

        spans = bare(tracer if sampled else _providers()[0], lambda: None)

        def between() -> None:
            if kind.behavior == "ask":
                answer_all(governor)

        for _ in range(40):
            call(), hand(), spans()
        times = _microseconds({_WHOLE: call, _BY_HAND: hand, _BARE: spans}, between)
        sampler = Sampler()
        until = time.process_time() + seconds
        while time.process_time() < until:
            between()
            sampler.run(call, 40)
    governor.close()
    whole = sampler.found.total()
    shares = {part: sampler.found[part] / whole for part, _ in [*PARTS, (_REST, ())]}
    return {**{part: share * times[_WHOLE] for part, share in shares.items()}, **times}


def _unsampled() -> tuple[TracerProvider, MeterProvider]:
    return TracerProvider(sampler=ALWAYS_OFF), MeterProvider(
        metric_readers=[InMemoryMetricReader()]
    )


def calls_table(seconds: float) -> Table:
    """The budget of each kind of call for which there is a bar."""
    with tempfile.TemporaryDirectory() as root:
        rows = {(kind.name, kind.behavior): kind for kind in kinds(root)}
        chosen = [
            ("cached: no facts", "4", rows["no facts", "allow"], False, True),
            ("cached: file", "9", rows["file", "allow"], False, True),
            ("unsampled, cached", "3 x", rows["no facts", "allow"], False, False),
            ("fresh: file", "11", rows["file", "allow"], True, True),
            ("fresh: shell", "30", rows["shell", "allow"], True, True),
            ("fresh: SQL", "22", rows["SQL", "allow"], True, True),
            ("fresh: URL", "11", rows["URL", "allow"], True, True),
            ("deny: file", "45", rows["file", "deny"], True, True),
            ("ask: no facts", "2 ms", rows["no facts", "ask"], True, True),
            ("ask: file", "3 ms", rows["file", "ask"], True, True),
        ]
        found = {
            name: budget(kind, root, varying=varying, sampled=sampled, seconds=seconds)
            for name, _, kind, varying, sampled in chosen
        }
    shown = Table(
        title="CPU time of one governed call by part, in times the hand-written code of the same records"
    )
    shown.add_column("part")
    for name in found:
        shown.add_column(name, justify="right")
    for part, _ in [*PARTS, (_REST, ())]:
        shown.add_row(
            part, *(f"{column[part] / column[_BY_HAND]:.2f}" for column in found.values())
        )
    shown.add_row(
        "whole", *(f"{column[_WHOLE] / column[_BY_HAND]:.1f}" for column in found.values())
    )
    shown.add_row(
        "added to it, in bare spans",
        *(f"{(one[_WHOLE] - one[_BY_HAND]) / one[_BARE]:.1f}" for one in found.values()),
    )
    shown.add_row("bar of what is added", *(bar for _, bar, *_ in chosen))
    shown.add_row(
        "µs: whole / hand-written / bare",
        *(f"{one[_WHOLE]:.0f} / {one[_BY_HAND]:.0f} / {one[_BARE]:.0f}" for one in found.values()),
    )
    return shown


def bytes_table() -> Table:
    """The bytes of an allowed file read's span, and of a bare one."""
    with tempfile.TemporaryDirectory() as root, capture() as captured:
        path = Path(root, "notes.txt")
        path.write_text("x" * 200, encoding="utf-8")

        def read_file(path: str) -> str:
            """Read a file."""
            return Path(path).read_text(encoding="utf-8")

        facts = {
            **READS,
            **FILES,
            "path_args": ["path"],
            "access_kinds": ["file_read"],
            "namespace": "local.files",
        }
        with agent_context(actor="agent:demo", session_id="s-1", roots=[root]):
            captured.governor.govern(read_file, **facts)(str(path))
        message = encode_spans([captured.span])
    span = message.resource_spans[0].scope_spans[0].spans[0]
    bare = _bare()
    found = {
        "names of attributes": sum(len(one.key) for one in span.attributes),
        "values of attributes, with lengths and tags": sum(
            one.ByteSize() - len(one.key) for one in span.attributes
        ),
        "events": sum(event.ByteSize() for event in span.events),
    }
    found["ids, times, resource and scope"] = message.ByteSize() - sum(found.values())
    shown = Table(
        title=f"Bytes of an allowed file read, {len(span.attributes)} attributes, {len(span.events)} events"
    )
    shown.add_column("what")
    shown.add_column("bytes", justify="right")
    for name, size in found.items():
        shown.add_row(name, str(size))
    shown.add_row(
        "whole / bare execute_tool span",
        f"{message.ByteSize()} / {bare}: {message.ByteSize() / bare:.1f} x",
    )
    return shown


def _bare() -> int:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    said = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "read_file",
        "gen_ai.tool.type": "function",
    }
    with provider.get_tracer("bare").start_as_current_span(
        "execute_tool read_file", attributes=said
    ):
        pass
    return int(encode_spans(exporter.get_finished_spans()).ByteSize())


def import_table(rounds: int = 9) -> Table:
    """The CPU time of an import by what is made, medians of fresh processes with compiled
    files warm.
    """
    import json

    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    found: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        environment["PYTHONPYCACHEPREFIX"] = folder
        for number in range(rounds + 1):
            program = [sys.executable, "-c", _IMPORT]
            done = subprocess.run(
                program, env=environment, capture_output=True, text=True, check=True
            )
            if number:
                found.append(json.loads(done.stdout))
    shown = Table(
        title="ms of CPU time of: from agenttool_otel import Governor, agent_context, govern"
    )
    shown.add_column("what")
    shown.add_column("ms", justify="right")
    times = {name: statistics.median(one.get(name, 0) for one in found) / 1e6 for name in found[0]}
    ours = times.pop("ours")
    shown.add_row("pydantic, opentelemetry-api, wrapt", f"{times.pop('libraries'):.0f}")
    for name, spent in times.items():
        shown.add_row(name, f"{spent:.0f}")
    shown.add_row(
        "reading and running the modules, further libraries", f"{ours - sum(times.values()):.0f}"
    )
    return shown


def main(arguments: list[str]) -> int:
    """Measure and print."""
    seconds = (
        float(arguments[arguments.index("--seconds") + 1]) if "--seconds" in arguments else 6.0
    )
    console = Console(width=None if sys.stdout.isatty() else 220)
    console.print(calls_table(seconds))
    for place in places_without_files():
        console.print(f"no file is at {place}: its part has no time")
    console.print(bytes_table())
    console.print(import_table())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
