"""This package as a subject of the conformance runner, with one text of its source replaced.

``python mutated_subject.py '{"file": "call/batch.py", "old": "...", "new": "..."}'``; a path below
``src/agenttool_otel``, and a text that is once in the file. Nothing is written, so that several can
run at once.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from mutants import LineMutant  # type: ignore[import-not-found]

if __name__ == "__main__":
    LineMutant(**json.loads(sys.argv[1])).install()
    runpy.run_module("agenttool_otel.conformance", run_name="__main__", alter_sys=True)
