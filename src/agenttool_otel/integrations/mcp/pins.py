"""What was accepted of a server's tools: names, descriptions, schemas and annotations, in a lock file.

A server may change a description after a person has read it, and with it what a model does. A tool
that is not as it was accepted is quarantined: no model is shown it, and its calls are denied.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.integrations.mcp.sdk import Tool
from agenttool_otel.names.mcp import PinState
from agenttool_otel.values.conversion import loads_unique

_VERSION: Final = 1
_PINNED: Final = ("title", "description", "inputSchema", "outputSchema", "annotations")
"""Members of a listed tool that reach a model, or say what it does."""

Definition = Mapping[str, Any]
"""The pinned members of one tool."""


def definition(tool: Tool) -> dict[str, Any]:
    """Return the pinned members of a tool, as MCP writes them.

    Args:
        tool: The tool, as listed.
    """
    listed = tool.model_dump(by_alias=True, mode="json", exclude_none=True)
    return {name: listed[name] for name in _PINNED if name in listed}


@dataclass(frozen=True, slots=True)
class PinChange:
    """A tool and what it is, beside its pin.

    Attributes:
        name: the tool's name.
        state: same, changed, new or gone.
        before: the accepted members; ``None`` of a new tool.
        after: the listed members; ``None`` of one that is gone.
    """

    name: str
    state: PinState
    before: Definition | None
    after: Definition | None

    @property
    def members(self) -> list[str]:
        """The members that differ."""
        before = self.before or {}
        after = self.after or {}
        return [name for name in _PINNED if before.get(name) != after.get(name)]


class Pins:
    """A lock file of accepted tools, by server and name.

    Args:
        servers: The accepted members of each tool.
    """

    def __init__(self, servers: Mapping[str, Mapping[str, Definition]] | None = None) -> None:
        self._servers = {name: dict(tools) for name, tools in (servers or {}).items()}

    @classmethod
    def read(cls, path: str | Path) -> Pins:
        """Read a lock file; one that is not there has accepted nothing.

        Args:
            path: The file.

        Raises:
            ConfigurationError: It is no lock file.
        """
        try:
            text = Path(path).read_text("utf-8")
        except FileNotFoundError:
            return cls()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(
                f"the pins in {path} can't be read: {type(error).__name__}"
            ) from None
        try:
            return cls(_servers(loads_unique(text)))
        except (ValueError, RecursionError):
            raise ConfigurationError(f"{path} is no file of pins") from None

    def write(self, path: str | Path) -> None:
        """Write the lock file, at once: a reader finds the old or the new one.

        Args:
            path: The file.

        Raises:
            ConfigurationError: It can't be written.
        """
        data = {"version": _VERSION, "servers": self._servers}
        text = json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        folder = Path(path).absolute().parent
        try:
            with tempfile.NamedTemporaryFile(
                "w", encoding="utf-8", dir=folder, delete=False
            ) as file:
                file.write(text)
            os.replace(file.name, path)
        except OSError as error:
            raise ConfigurationError(
                f"the pins can't be written to {path}: {type(error).__name__}"
            ) from None

    def compare(self, server: str, tools: Iterable[Tool]) -> list[PinChange]:
        """Return each tool beside its pin, by name.

        Args:
            server: The server's name.
            tools: All that it lists.
        """
        pinned = self._servers.get(server, {})
        listed = {tool.name: definition(tool) for tool in tools}
        changes = []
        for name in sorted({*pinned, *listed}):
            before = pinned.get(name)
            after = listed.get(name)
            changes.append(PinChange(name, _state(before, after), before, after))
        return changes

    def accept(self, server: str, tools: Iterable[Tool]) -> None:
        """Pin what a server lists now, in place of what was pinned of it.

        Args:
            server: The server's name.
            tools: All that it lists.
        """
        self._servers[server] = {tool.name: definition(tool) for tool in tools}

    def refusal(self, server: str, tool: Tool) -> str | None:
        """Return why a tool is quarantined; ``None`` for one that is as it was accepted.

        Args:
            server: The server's name.
            tool: The tool, as listed.
        """
        before = self._servers.get(server, {}).get(tool.name)
        change = PinChange(tool.name, PinState.SAME, before, definition(tool))
        if before is None:
            return "quarantined: it is not among the accepted tools of its server"
        if change.members:
            return f"quarantined: its {', '.join(change.members)} changed since it was accepted"
        return None


def _state(before: Definition | None, after: Definition | None) -> PinState:
    if before is None:
        return PinState.NEW
    if after is None:
        return PinState.GONE
    return PinState.SAME if before == after else PinState.CHANGED


def _servers(data: Any) -> dict[str, dict[str, Definition]]:
    if not isinstance(data, dict) or data.get("version") != _VERSION:
        raise ValueError("no version that is known")
    servers = data.get("servers")
    if not isinstance(servers, dict):
        raise ValueError("no servers")
    for tools in servers.values():
        if not isinstance(tools, dict):
            raise ValueError("no tools")
        if not all(isinstance(pinned, dict) for pinned in tools.values()):
            raise ValueError("no definition")
    return servers
