"""Paths: what their text says, where they lead, and opening what was checked."""

from agenttool_otel.facts.paths.checked import PathChanged, open_checked
from agenttool_otel.facts.paths.fact import path_fact

__all__ = ["PathChanged", "open_checked", "path_fact"]
