"""Facts of tools that somebody else wrote: stated beside the program, by name or glob.

What a tool says of itself is not among them: a remote tool's metadata is its server's word, and with it a server would
choose its own permissions, even another tool's id. A host that believes a tool says so (``facts_in_metadata``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, cast

from agenttool_otel.catalog import GovernOptions
from agenttool_otel.errors import ConfigurationError

Trusts = Callable[[Any], bool]
"""Tells whether the host vouches for what a tool object says of itself in its metadata."""

_KEY = "agenttool"
_HINTS = (("readOnlyHint", "read_only"), ("destructiveHint", "destructive"), ("openWorldHint", "open_world"))
"""MCP's tool annotations, which its adapters keep as the tool's metadata, and the facts that they hint at."""


def facts_in_metadata(tool: Any) -> GovernOptions:
    """Return what a tool says of itself: ``metadata["agenttool"]``, and MCP's hints where that says nothing.

    Nothing in this package reads it unasked. Use it for tools whose maker you trust as you trust your own code:
    ``govern(tool, **facts_in_metadata(tool))``, or ``trust_metadata`` of the agents' guards and the instrumentor."""
    metadata = getattr(tool, "metadata", None)
    if not isinstance(metadata, Mapping):
        return GovernOptions()
    hints = {fact: metadata[hint] for hint, fact in _HINTS if isinstance(metadata.get(hint), bool)}
    stated = metadata.get(_KEY)
    return cast(GovernOptions, {**hints, **stated} if isinstance(stated, Mapping) else hints)


def options_for(facts: Mapping[str, GovernOptions], name: str) -> GovernOptions:
    """Return the facts stated of a tool: by its name, else by the first glob that matches."""
    if name in facts:
        return facts[name]
    return next((stated for pattern, stated in facts.items() if fnmatchcase(name, pattern)), GovernOptions())


def read_facts(path: str) -> Mapping[str, GovernOptions]:
    """Read a JSON file of facts by tool name or glob."""
    if not path:
        return {}
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"the facts of tools in {path} can't be read: {type(error).__name__}") from None
    except json.JSONDecodeError as error:
        raise ConfigurationError(
            f"the facts of tools in {path} are no JSON: {error.msg} in line {error.lineno}"
        ) from None
    except (ValueError, RecursionError) as error:  # bytes that are no UTF-8
        raise ConfigurationError(f"the facts of tools in {path} can't be read: {type(error).__name__}") from None
    if not isinstance(data, dict) or not all(isinstance(entry, dict) for entry in data.values()):
        raise ConfigurationError(
            f'the facts of tools in {path} have to be an object of objects, by tool name or glob: {{"read_*": {{...}}}}'
        )
    return cast(Mapping[str, GovernOptions], data)
