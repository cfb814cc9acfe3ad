"""What an import costs: CPU time in fresh processes, interleaved, with compiled files warm, as on
any second start.

``python -m benchmarks.import_cost`` prints it alone.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile

LIBRARIES = "import pydantic, opentelemetry.trace, wrapt"
STATEMENTS = {
    "libraries": LIBRARIES,
    "package": f"{LIBRARIES}\nimport agenttool_otel",
    "what most programs import": f"{LIBRARIES}\nfrom agenttool_otel import Governor, agent_context, govern",
}
BAR = 2.2
ROUNDS = 9

_PROGRAM = "import time\nstart = time.process_time()\n{}\nprint(time.process_time() - start)"


def _seconds(statement: str, environment: dict[str, str]) -> float:
    program = _PROGRAM.format(statement)
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def medians(rounds: int = ROUNDS) -> dict[str, float]:
    """CPU seconds of each statement: medians of fresh processes, in a new order each round."""
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    with tempfile.TemporaryDirectory() as folder:
        environment["PYTHONPYCACHEPREFIX"] = folder
        for statement in STATEMENTS.values():
            _seconds(statement, environment)
        found: dict[str, list[float]] = {name: [] for name in STATEMENTS}
        names = list(STATEMENTS)
        for _ in range(rounds):
            random.shuffle(names)
            for name in names:
                found[name].append(_seconds(STATEMENTS[name], environment))
    return {name: statistics.median(times) for name, times in found.items()}


def bars() -> list[tuple[str, float, float, str]]:
    """Rows of the table of bars."""
    found = medians()
    libraries = found.pop("libraries")
    shown = f"{libraries * 1e3:.0f} ms for pydantic, opentelemetry-api and wrapt"
    return [
        (f"import: {name}", seconds / libraries, BAR, f"{seconds * 1e3:.0f} ms; {shown}")
        for name, seconds in found.items()
    ]


def rows() -> list[tuple[str, object]]:
    """No parts of its own."""
    return []


if __name__ == "__main__":
    for title, ratio, bar, times in bars():
        print(f"{title}: {ratio:.2f} x (bar {bar} x; {times})")
