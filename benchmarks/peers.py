"""What other packages' decorators cost for the same function, each in an environment of its own.

Times of different environments can't be compared on a noisy machine, so each worker also measures a
bare ``start_as_current_span`` and hand-written code (a span, 12 attributes, 3 events), and the
ratio to the latter is what is shown. A peer that can't be installed is skipped with the reason.
None of the peers decides anything.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

__all__ = ["PEERS", "measure_peer"]

HERE = Path(__file__).resolve().parent
CACHE = HERE.parent / ".servers" / "peers"

PEERS: dict[str, tuple[tuple[str, ...], str]] = {
    "openinference @tool": (
        ("openinference-instrumentation", "opentelemetry-sdk"),
        "from openinference.instrumentation import OITracer, TraceConfig\n"
        "tracer = OITracer(provider.get_tracer('peer'), TraceConfig())\n"
        "peer = tracer.tool(function)\n",
    ),
    "logfire @instrument": (
        ("logfire", "opentelemetry-sdk"),
        "import logfire\n"
        "logfire.configure(send_to_logfire=False, console=False, additional_span_processors=[processor])\n"
        "peer = logfire.instrument(record_return=True)(function)\n",
    ),
    "langfuse @observe": (
        ("langfuse", "opentelemetry-sdk"),
        "import os\nos.environ.update(LANGFUSE_PUBLIC_KEY='pk', LANGFUSE_SECRET_KEY='sk', LANGFUSE_HOST='http://127.0.0.1:9')\n"
        "from langfuse import Langfuse, observe\nLangfuse(tracer_provider=provider)\n"
        "peer = observe(as_type='tool')(function)\n",
    ),
    "mlflow @trace": (
        ("mlflow-tracing", "opentelemetry-sdk"),
        "import mlflow, tempfile\nmlflow.set_tracking_uri('file://' + tempfile.mkdtemp())\n"
        "peer = mlflow.trace(span_type='TOOL')(function)\n",
    ),
    "util-genai tool()": (
        ("opentelemetry-util-genai", "opentelemetry-sdk"),
        "from opentelemetry.util.genai.handler import TelemetryHandler\n"
        "handler = TelemetryHandler(tracer_provider=provider)\n"
        "def peer(query):\n"
        "    with handler.tool('lookup'):\n"
        "        return function(query)\n",
    ),
}
"""Peers by name: what to install, and the code that makes ``peer`` of ``function``."""

WORKER = """
import json, statistics, time, random, gc
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

class Discard(SpanExporter):
    def export(self, spans): return SpanExportResult.SUCCESS
    def shutdown(self): pass

processor = BatchSpanProcessor(Discard())
provider = TracerProvider(); provider.add_span_processor(processor); trace.set_tracer_provider(provider)
hand_tracer = provider.get_tracer("hand")
RESULT = "x" * 200
def function(query): return RESULT
ATTRIBUTES = {f"bench.attribute.{n}": "value" for n in range(12)}
def bare(query):
    with hand_tracer.start_as_current_span("execute_tool lookup"):
        return function(query)
def hand(query):
    with hand_tracer.start_as_current_span("execute_tool lookup", attributes=ATTRIBUTES) as span:
        for n in range(3): span.add_event(f"event {n}", {"a": 1, "b": "x", "c": True})
        return function(query)
%s
contestants = {"bare": bare, "hand": hand, "peer": peer}
found = {name: [] for name in contestants}
for call in contestants.values():
    for _ in range(200): call("q")
for _ in range(15):
    names = list(contestants); random.shuffle(names)
    for name in names:
        call = contestants[name]; gc.collect(); gc.disable()
        start = time.thread_time_ns()
        for _ in range(150): call("q")
        found[name].append((time.thread_time_ns() - start) / 150 / 1000); gc.enable()
print("RESULT " + json.dumps({name: statistics.median(times) for name, times in found.items()}))
import os; os._exit(0)
"""


def measure_peer(name: str) -> tuple[float, float] | str:
    """Measure one peer.

    Args:
        name: its name in PEERS.

    Returns:
        Its time in microseconds and the ratio to hand-written code of the same environment; or why
        there is none.
    """
    requirements, setup = PEERS[name]
    folder = CACHE / "".join(letter for letter in name if letter.isalnum())
    python = folder / "bin" / "python"
    if not (folder / ".ready").exists():
        try:
            venv.create(folder, with_pip=True, clear=True)
            subprocess.run(
                [str(python), "-m", "pip", "install", "--quiet", *requirements],
                check=True, capture_output=True, timeout=600, env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
            )  # fmt: skip
        except (subprocess.SubprocessError, OSError) as error:
            return f"not installable: {type(error).__name__}"
        (folder / ".ready").touch()
    done = subprocess.run(
        [str(python), "-c", WORKER % setup],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    line = next((line for line in done.stdout.splitlines() if line.startswith("RESULT ")), None)
    if line is None:
        return "did not run: " + (done.stderr.strip().splitlines() or ["no output"])[-1][:120]
    times = json.loads(line.removeprefix("RESULT "))
    return times["peer"], times["peer"] / times["hand"]


if __name__ == "__main__":
    for peer in PEERS:
        print(peer, measure_peer(peer))
    sys.exit(0)
