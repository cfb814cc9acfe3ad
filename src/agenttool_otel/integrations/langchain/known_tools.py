"""Facts of tools that many programs take from LangChain's own packages, as reviewed
(``known_tools.json``).

They serve these very classes of the reviewed versions, never a subclass or a class of the same
name, and give way to every fact that the host states.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import metadata
from typing import Any, cast

from agenttool_otel.catalog import GovernOptions
from agenttool_otel.integrations.langchain.first_use import base_of
from agenttool_otel.values.tables import load_table


def known_facts(tool: Any) -> GovernOptions:
    """Return the reviewed facts of a tool object; none for a class that nobody reviewed."""
    cls = base_of(tool)
    name = f"{cls.__module__}.{cls.__qualname__}"
    entry = _table()["tools"].get(name)
    if entry is None or getattr(sys.modules.get(cls.__module__), cls.__qualname__, None) is not cls:
        return GovernOptions()
    if not _is_reviewed(cls.__module__.partition(".")[0]):
        return GovernOptions()
    for attribute, values in entry.get("where", {}).items():
        if getattr(tool, attribute, None) not in values:
            return GovernOptions()
    return cast(GovernOptions, dict(entry["facts"]))


@cache
def _table() -> dict[str, Any]:
    return cast(dict[str, Any], load_table(__package__, "known_tools.json"))


@cache
def _is_reviewed(package: str) -> bool:
    distribution, version = _table()["reviewed"][package]
    try:
        return metadata.version(distribution).startswith(version)
    except metadata.PackageNotFoundError:
        return False
