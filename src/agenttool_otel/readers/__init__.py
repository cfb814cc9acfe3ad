"""Readers: text in, fact out. They depend on no agents, tools or calls, and can be used alone.

    >>> from agenttool_otel.readers import shell_fact
    >>> shell_fact("ls -l src | wc -l")["read_only"]
    True

Each reader is imported when it is first used: who reads no SQL does not pay for its parser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenttool_otel.readers.types import PathFact, ShellFact, SqlFact, Surroundings, UrlFact
from agenttool_otel.values.lazy import lazy_attributes

if TYPE_CHECKING:
    from agenttool_otel.readers.paths import path_fact
    from agenttool_otel.readers.shell import shell_fact
    from agenttool_otel.readers.sql import sql_fact
    from agenttool_otel.readers.urls import url_fact

__all__ = [
    "PathFact",
    "ShellFact",
    "SqlFact",
    "Surroundings",
    "UrlFact",
    "path_fact",
    "shell_fact",
    "sql_fact",
    "url_fact",
]

_HOMES = {"path_fact": "paths", "shell_fact": "shell", "sql_fact": "sql", "url_fact": "urls"}

__getattr__ = lazy_attributes(__name__, _HOMES)
