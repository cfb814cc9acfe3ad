"""``agenttool run --shadow app.py``: a Python program as it is, decided in shadow mode, and then what
the policy would have done.

The program runs in a process of its own, with a tracer provider that writes a file; LangChain tools
are governed without a line of code.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from rich.console import Console

from agenttool_otel.cli.trace_sources import read_file
from agenttool_otel.cli.would_have import render_would_have
from agenttool_otel.names import Env, PolicyMode

_MODULE: Final = "agenttool_otel.cli.run_shadow"


def run_in_shadow(program: Sequence[str], file: Path) -> int:
    """Run a Python program, print what the policy would have done, and return the program's status.

    Args:
        program: a file and its arguments, or ``-m``, a module and its arguments.
        file: where the spans go.

    Raises:
        TraceUnavailable: the file can't be read back.
    """
    environment = {**os.environ, f"{Env.PREFIX}POLICY_MODE": PolicyMode.SHADOW.value}
    # without -P, a logging.py in this directory would be imported for Python's own
    command = [sys.executable, "-P", "-m", _MODULE, str(file), *program]
    child = subprocess.Popen(command, env=environment)  # noqa: S603 - the user's own program
    status = _wait(child)
    console = Console(stderr=True)
    if not file.exists():
        return status  # the program could not be started: it has printed why
    console.print(render_would_have(read_file(file)))
    console.print(f"The trace is in {file}: agenttool trace {file}", soft_wrap=True)
    return status


def _wait(child: subprocess.Popen[bytes]) -> int:
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:
            continue  # the terminal has interrupted the program, too


def main() -> None:
    """Run the program that the command line names, in this process."""
    file, *program = sys.argv[1:]
    _record(Path(file))
    if find_spec("langchain_core") is not None:
        from agenttool_otel.integrations.instrumentor import AgentToolInstrumentor

        AgentToolInstrumentor().instrument()
    if program[0] == "-m":
        sys.argv = program[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = list(program)
        sys.path.insert(0, os.path.dirname(os.path.abspath(program[0])))
        runpy.run_path(program[0], run_name="__main__")


def _record(file: Path) -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    from agenttool_otel.cli.trace_file import TraceFile

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(TraceFile(file)))
    trace.set_tracer_provider(provider)


if __name__ == "__main__":
    main()
