"""Facts of tools that somebody else wrote: stated beside the program, by name or glob.

What a tool says of itself is not among them: a remote tool's metadata is its server's word, and
with it a server would choose its own permissions, even another tool's id. A host that believes a
tool says so (``facts_in_metadata``).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, cast

from agenttool_otel.catalog import GovernOptions
from agenttool_otel.catalog.groups import flat_options
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.values.tables import load_table

_logger = logging.getLogger("agenttool_otel.facts")

Trusts = Callable[[Any], bool]
"""Tells whether the host vouches for what a tool object says of itself in its metadata."""

_KEY = "agenttool"
_HINTS = (("readOnlyHint", "read_only"), ("destructiveHint", "destructive"))
"""MCP's tool annotations, which its adapters keep as the tool's metadata, and the facts that they
hint at.

Not ``openWorldHint``: by it a server would have what it gives trusted, which its host alone can
say.
"""


def facts_in_metadata(tool: Any) -> GovernOptions:
    """Return what a tool says of itself: ``metadata["agenttool"]``, and MCP's hints where that says
    nothing.

    Nothing in this package reads it unasked. Use it for tools whose maker you trust as you trust
    your own code: ``govern(tool, **facts_in_metadata(tool))``, or ``trust_metadata`` of the agents'
    guards and the instrumentor.
    """
    metadata = getattr(tool, "metadata", None)
    if not isinstance(metadata, Mapping):
        return GovernOptions()
    hints = {fact: metadata[hint] for hint, fact in _HINTS if isinstance(metadata.get(hint), bool)}
    stated = metadata.get(_KEY)
    if not isinstance(stated, Mapping):
        return cast(GovernOptions, hints)
    return cast(GovernOptions, {**hints, **flat_options(stated)})


def server_facts(server: str, *, prefix: str = "") -> dict[str, GovernOptions]:
    """Return the reviewed facts of a common MCP server's tools, by tool name: ``known_servers.json``.

    Whoever connects the server names it, since a server's own name is only its word: name it for
    the tools of that very server (``AgentToolMiddleware(facts=server_facts("git"))``). A tool that
    nobody reviewed has no entry.

    Args:
        server: ``filesystem``, ``git``, ``fetch``, ``github``, ``slack`` or ``postgres``.
        prefix: what the client puts before the names of that server's tools, such as ``"git_"``.

    Raises:
        ConfigurationError: nobody reviewed a server of that name.
    """
    servers = load_table(__package__, "known_servers.json")["servers"]
    if server not in servers:
        raise ConfigurationError(
            f"nobody reviewed a server {server!r}; it is one of {', '.join(servers)}"
        )
    found: dict[str, GovernOptions] = {}
    for group in servers[server]["tools"]:
        facts = cast(GovernOptions, {"ownership": "mcp", **group["facts"]})
        if "absolute" in group:
            facts["validate"] = partial(_refuse_relative, group["absolute"])
        found.update((prefix + name, facts) for name in group["names"])
    return found


def _refuse_relative(names: Sequence[str], arguments: Mapping[str, Any]) -> None:
    """Refuse a path whose meaning depends on the directory of a server's own process."""
    for name in names:
        value = arguments.get(name)
        for path in value if isinstance(value, list) else [value]:
            if isinstance(path, str) and not Path(path).is_absolute():
                raise ValueError(
                    f"{name} has to be an absolute path: the server has a directory of its own"
                )


def options_for(facts: Mapping[str, GovernOptions], name: str) -> GovernOptions:
    """Return the facts stated of a tool: by its name, else by the first glob that matches.

    Raises:
        ConfigurationError: what is stated of it is no object.
    """
    matching = (
        pattern for pattern in facts if isinstance(pattern, str) and fnmatchcase(name, pattern)
    )
    key = name if name in facts else next(matching, None)
    if key is None:
        return GovernOptions()
    stated = facts[key]
    if not isinstance(stated, Mapping):
        raise ConfigurationError(
            f"the facts of {key!r} have to be an object, not {type(stated).__name__}"
        )
    return flat_options(stated)


def options_of(
    tool: Any, name: str, facts: Mapping[str, GovernOptions], trusts: Trusts | None
) -> GovernOptions:
    """Return the facts stated of a tool object, and where the host trusts it those of its metadata,
    too.
    """
    options = options_for(facts, name)
    if trusts is None or not trusts(tool):
        return options
    return cast(GovernOptions, {**facts_in_metadata(tool), **options})


def read_facts(path: str) -> Mapping[str, GovernOptions]:
    """Read a JSON file of facts by tool name or glob."""
    if not path:
        return {}
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ConfigurationError(
            f"the facts of tools in {path} are no JSON: {error.msg} in line {error.lineno}"
        ) from None
    except (OSError, ValueError, RecursionError) as error:  # a ValueError: bytes that are no UTF-8
        raise ConfigurationError(
            f"the facts of tools in {path} can't be read: {type(error).__name__}"
        ) from None
    if not isinstance(data, dict):
        raise ConfigurationError(
            f'the facts of tools in {path} have to be an object of objects, by tool name or glob: {{"read_*": {{...}}}}'
        )
    for name, entry in data.items():
        # refused with each tool that it is for, while the others are governed
        if not isinstance(entry, dict):
            _logger.error(
                "the facts of %r in %s have to be an object, not %s",
                name,
                path,
                type(entry).__name__,
            )
    return cast(Mapping[str, GovernOptions], data)
