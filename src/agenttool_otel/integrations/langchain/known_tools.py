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
    """Return the reviewed facts of a tool object; none for a class that was not reviewed."""
    cls = base_of(tool)
    name = f"{cls.__module__}.{cls.__qualname__}"
    entry = _table()["tools"].get(name)
    if entry is None:
        return GovernOptions()
    # a class of another file may have __module__ = "langchain_community.tools.file_management"
    module = sys.modules.get(cls.__module__)
    if getattr(module, cls.__qualname__, None) is not cls:
        return GovernOptions()
    package, _, _ = cls.__module__.partition(".")
    if not is_reviewed(package):
        return GovernOptions()
    # "where": {"allow_dangerous_requests": [false]}
    for attribute, values in entry.get("where", {}).items():
        if getattr(tool, attribute, None) not in values:
            return GovernOptions()
    return cast(GovernOptions, dict(entry["facts"]))


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = load_table(__package__, "known_tools.json")
    return table


@cache
def is_reviewed(package: str) -> bool:
    """Return whether the installed version of a package is the reviewed one: 0.4 of 0.4.1.

    Args:
        package: its name in ``import``.
    """
    distribution, version = _table()["reviewed"][package]
    try:
        return metadata.version(distribution).startswith(version)
    except metadata.PackageNotFoundError:
        return False
