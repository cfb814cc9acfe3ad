"""Facts of tools of another author: stated beside the program, by name or glob.

A tool's own metadata is not among them: a remote tool's comes from its server, which could choose
its own permissions with it, even another tool's id. A host that trusts a tool's metadata states
that (``facts_in_metadata``).
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
"""Whether the host vouches for what a tool object states in its own metadata."""

_KEY = "agenttool"
_HINTS = {
    "readOnlyHint": "read_only",
    "destructiveHint": "destructive",
}
"""MCP's tool annotations, which its adapters keep as the tool's metadata, and the facts that they
hint at.

Not ``openWorldHint``: with ``false`` a server would make its own results trusted, which only its
host can decide.
"""


def facts_in_metadata(tool: Any) -> GovernOptions:
    """Return the facts in a tool's metadata: ``metadata["agenttool"]``, and MCP's hints where that
    has none.

    Nothing in this package reads it unasked. Use it for tools whose maker you trust as you trust
    your own code: ``govern(tool, **facts_in_metadata(tool))``, or ``trust_metadata`` of the agents'
    guards and the instrumentor.
    """
    metadata = getattr(tool, "metadata", None)
    if not isinstance(metadata, Mapping):
        return GovernOptions()
    hints = {}
    for hint, fact in _HINTS.items():
        # {"readOnlyHint": "yes"} is no hint
        if isinstance(metadata.get(hint), bool):
            hints[fact] = metadata[hint]
    stated = metadata.get(_KEY)
    if not isinstance(stated, Mapping):
        return cast(GovernOptions, hints)
    return cast(GovernOptions, {**hints, **flat_options(stated)})


def server_facts(server: str, *, prefix: str = "") -> dict[str, GovernOptions]:
    """Return the reviewed facts of a common MCP server's tools, by tool name: ``known_servers.json``.

    The program that connects to the server names it, since any server may call itself ``git``: name
    it for the tools of that very server (``AgentToolMiddleware(facts=server_facts("git"))``). A tool
    that was not reviewed has no entry.

    Args:
        server: ``filesystem``, ``git``, ``fetch``, ``github``, ``slack`` or ``postgres``.
        prefix: what the client puts before the names of that server's tools, such as ``"git_"``.

    Raises:
        ConfigurationError: no server of that name was reviewed.
    """
    servers = load_table(__package__, "known_servers.json")["servers"]
    if server not in servers:
        names = ", ".join(servers)
        raise ConfigurationError(f"no server {server!r} was reviewed; it is one of {names}")
    by_tool: dict[str, GovernOptions] = {}
    for group in servers[server]["tools"]:
        facts = cast(GovernOptions, {"ownership": "mcp", **group["facts"]})
        if "absolute" in group:
            facts["validate"] = partial(_refuse_relative, group["absolute"])
        for name in group["names"]:
            by_tool[f"{prefix}{name}"] = facts
    return by_tool


def _refuse_relative(names: Sequence[str], arguments: Mapping[str, Any]) -> None:
    """Refuse a path whose meaning depends on the directory of a server's own process."""
    for name in names:
        value = arguments.get(name)
        # read_file has a path, read_multiple_files a list of them
        paths = value if isinstance(value, list) else [value]
        for path in paths:
            if isinstance(path, str) and not Path(path).is_absolute():
                raise ValueError(
                    f"{name} has to be an absolute path: the server has a directory of its own"
                )


def options_for(facts: Mapping[str, GovernOptions], name: str) -> GovernOptions:
    """Return the facts stated of a tool: by its name, else by the first glob that matches.

    Raises:
        ConfigurationError: what is stated of it is no object.
    """
    key = _key_for(facts, name)
    if key is None:
        return GovernOptions()
    stated = facts[key]
    if not isinstance(stated, Mapping):
        raise ConfigurationError(
            f"the facts of {key!r} have to be an object, not {type(stated).__name__}"
        )
    return flat_options(stated)


def _key_for(facts: Mapping[str, GovernOptions], name: str) -> str | None:
    if name in facts:
        return name
    for pattern in facts:
        # {"read_*": {...}}
        if isinstance(pattern, str) and fnmatchcase(name, pattern):
            return pattern
    return None


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
