"""Paths: what their text means, and where they lead."""

from agenttool_otel.readers.paths.fact import path_fact

__all__ = ["path_fact"]
