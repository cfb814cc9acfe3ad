"""Put the compiled form of the stock bundle into a wheel (``compiled_form.py``).

Where the wheel is built without the package's dependencies, as pip does it from an sdist, it comes
without, and a first process compiles.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACE = "agenttool_otel/_compiled/stock.bin"


class CompiledForm(BuildHookInterface):  # type: ignore[type-arg]
    """Adds one file to a wheel; an editable one has none."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the file before the wheel is built."""
        self._folder = tempfile.TemporaryDirectory()
        if version == "editable" or importlib.util.find_spec("regorus") is None:
            return
        root = Path(self.root)
        file = Path(self._folder.name) / "stock.bin"
        # with seeded hashes, the same sources make the same bytes
        environment = {**os.environ, "PYTHONPATH": str(root / "src"), "PYTHONHASHSEED": "0"}
        words = [sys.executable, str(root / "tools" / "compiled_form.py"), str(file)]
        subprocess.run(words, env=environment, check=True)
        build_data["force_include"][str(file)] = PLACE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the file once the wheel has it."""
        self._folder.cleanup()
