"""Files of sinks: several processes rotate one, somebody moves it away, a process is told
to end.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from agenttool_otel import ConfigurationError
from agenttool_otel.errors import PersistenceError
from agenttool_otel.results.stores.local import LocalBackend
from agenttool_otel.telemetry.sinks import CloudEventsSink, JsonlSink, Sink

pytestmark = pytest.mark.unchecked_records("records are numbers, to see what becomes of lines")


def put(sink: Sink, *numbers: int) -> None:
    for number in numbers:
        sink.put(
            lambda number=number: [
                ("tool_event", {"n": number, "pad": "x" * 200, "event_type": "e"})
            ]
        )
        assert sink.flush(10)


def numbers(folder: Path) -> list[int]:
    lines = [line for file in folder.iterdir() for line in file.read_text().splitlines()]
    return sorted(line.get("record", line.get("data"))["n"] for line in map(json.loads, lines))


def opened(kind: str, path: Path, **options: Any) -> Sink:
    return JsonlSink(path, **options) if kind == "jsonl" else CloudEventsSink(path, **options)


@pytest.mark.parametrize("kind", ["jsonl", "cloudevents"])
def test_sinks_that_rotate_one_file_lose_nothing(tmp_path: Path, kind: str) -> None:
    sinks = [opened(kind, tmp_path / "r", max_bytes=2_000, backups=100) for _ in range(3)]
    for number in range(90):
        put(sinks[number % 3], number)
    assert numbers(tmp_path) == list(range(90))
    assert [sink.lost for sink in sinks] == [0, 0, 0]


def test_only_so_many_older_files_are_kept(tmp_path: Path) -> None:
    put(JsonlSink(tmp_path / "r", max_bytes=500, backups=3), *range(30))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["r", "r.1", "r.2", "r.3"]
    assert numbers(tmp_path)[-1] == 29
    with pytest.raises(ConfigurationError):
        JsonlSink(tmp_path / "r", backups=0)


@pytest.mark.parametrize("how", ["moved", "removed", "replaced"])
def test_a_sink_follows_the_name_of_its_file(tmp_path: Path, how: str) -> None:
    sink, path = JsonlSink(tmp_path / "r"), tmp_path / "r"
    put(sink, 1)
    if how == "moved":
        path.rename(tmp_path / "old")
    elif how == "removed":
        path.unlink()
    else:
        (tmp_path / "new").touch()
        (tmp_path / "new").replace(path)
    put(sink, 2)
    assert json.loads(path.read_text())["record"]["n"] == 2


def test_a_result_store_knows_its_directory(tmp_path: Path) -> None:
    store = LocalBackend(tmp_path / "results")
    store.put("a", [b"1"])
    (tmp_path / "results").rename(tmp_path / "away")
    for _ in range(2):
        with pytest.raises(PersistenceError, match="removed"):
            store.put("b", [b"2"])
        with pytest.raises(PersistenceError, match="removed"):
            store.get("a", 0, 1)
    (tmp_path / "results").mkdir(mode=0o700)
    with pytest.raises(PersistenceError, match="replaced"):
        store.put("b", [b"2"])
    store.put("b", [b"2"])
    assert store.get("b", 0, 1) == b"2"


PROGRAM = """
    import os, signal, sys, time
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
    from agenttool_otel import Governor

    class ToFile(SpanExporter):
        def export(self, spans):
            with open(sys.argv[1] + "/spans", "a") as file:
                file.writelines("span\\n" for _ in spans)
            return SpanExportResult.SUCCESS

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(ToFile()))
    trace.set_tracer_provider(provider)
    governor = Governor(sink="file:" + sys.argv[1] + "/records")
    if sys.argv[2] == "own":
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
    governor.close_on_signals()

    @governor.govern(read_only=True, access_kinds=[], write_effects=["none"])
    def look() -> str:
        return "x"

    for _ in range(300):
        look()
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGTERM to handle")
@pytest.mark.parametrize(("handler", "code"), [("none", -signal.SIGTERM), ("own", 7)])
def test_sigterm_flushes_and_then_ends_the_process(tmp_path: Path, handler: str, code: int) -> None:
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(tmp_path), handler]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ}
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.terminate()
        assert process.wait(60) == code
    assert len((tmp_path / "spans").read_text().splitlines()) == 300
    lines = [json.loads(line) for line in (tmp_path / "records").read_text().splitlines()]
    assert sum(line["object"] == "tool_result" for line in lines) == 300
