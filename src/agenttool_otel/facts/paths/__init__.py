"""Paths: what their text says, where they lead, and opening what was checked."""

from agenttool_otel.facts.paths.checked import PathChanged, open_checked, path_unchanged
from agenttool_otel.facts.paths.fact import path_fact
from agenttool_otel.facts.paths.text import normalize_path

__all__ = ["PathChanged", "normalize_path", "open_checked", "path_fact", "path_unchanged"]
