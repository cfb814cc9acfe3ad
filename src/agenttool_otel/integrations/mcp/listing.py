"""The tools that an MCP server lists, as they are governed.

What a server states of its tools is a hint. It can make a tool look more dangerous, never less:
``readOnlyHint: true`` is recorded and decides nothing, ``destructiveHint: true`` makes the tool
destructive. Facts that loosen are the host's to state.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, cast

from agenttool_otel.call.runtime import Runtime, default_runtime
from agenttool_otel.call.tool import GovernedTool, refused_tool, unknown_tool
from agenttool_otel.catalog import GovernOptions
from agenttool_otel.catalog.identity import spelt
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.integrations.facts import options_for
from agenttool_otel.integrations.foreign import ForeignTool, foreign_tool
from agenttool_otel.integrations.mcp.pins import Definition, Pins, definition
from agenttool_otel.integrations.mcp.sdk import Tool

SOURCE: Final = "mcp"
MAX_PAGES: Final = 100
"""Pages of a list that are read: a server may name a next page for ever."""

Send = Callable[[str, dict[str, Any]], Awaitable[Any]]
"""Sends a call of a tool to its server."""


class _Listed(NamedTuple):
    definition: Definition
    handle: ForeignTool


class ServerTools:
    """The tools of one server.

    Args:
        governor: The Governor; ``None`` for the default one.
        server: The server's name, which the program that connects to it gives.
        facts: Facts of its tools, by name or glob.
        common: Facts of each of its tools, where ``facts`` has no other.
        pins: What was accepted of its tools; ``None`` where nothing is pinned.
        send: Sends a call; what a batch or a resume by the Governor runs.
    """

    def __init__(
        self,
        governor: Runtime | None,
        server: str,
        *,
        facts: Mapping[str, GovernOptions] | None = None,
        common: GovernOptions | None = None,
        pins: Pins | None = None,
        send: Send | None = None,
    ) -> None:
        self.server = server
        self._governor = governor
        self._facts = facts or {}
        self._common = common or GovernOptions()
        self._pins = pins
        self._send = send
        self._listed: dict[str, _Listed] = {}

    def take(self, tools: Iterable[Tool]) -> None:
        """Govern the tools of a list; what was governed and has not changed stays as it is.

        Args:
            tools: A page of what the server lists.
        """
        seen: dict[str, Definition] = {}
        for tool in tools:
            found = definition(tool)
            # a server that lists "read" twice could have the first read, and the second run
            if seen.setdefault(tool.name, found) != found:
                self._listed[tool.name] = _Listed(found, self.refused(tool.name, "listed twice"))
                continue
            known = self._listed.get(tool.name)
            if known is None or known.definition != found:
                self._listed[tool.name] = _Listed(found, self._govern(tool, found))

    def shown(self, tools: Iterable[Tool]) -> list[Tool]:
        """Return the tools that a model may be shown, in the order in which they are listed.

        Args:
            tools: A page of what the server lists, taken before.
        """
        return [tool for tool in tools if self._is_shown(tool.name)]

    def find(self, name: str) -> ForeignTool | None:
        """Return a tool, a refused one included; ``None`` for a name that was not listed.

        Args:
            name: Its name.
        """
        known = self._listed.get(name)
        return None if known is None else known.handle

    def unknown(self, name: str) -> GovernedTool:
        """Return what stands for a tool that the server does not list.

        Args:
            name: Its name.
        """
        return unknown_tool(name, self._governor, self._namespace)

    def refused(self, name: str, why: str) -> ForeignTool:
        """Return what stands for a tool whose calls are all denied, with a span and the reason.

        Args:
            name: Its name.
            why: The reason.
        """
        stand_in = refused_tool(name, self._governor, why, self._namespace)
        return ForeignTool(
            stand_in.spec,
            stand_in.function,
            governor=self._governor,
            is_async=True,
            streams=False,
        )

    def unlisted(self, name: str, why: str) -> GovernedTool:
        """Return what stands for a tool of a server whose list can't be read.

        Its id is another than the tool's own, of which nothing is known yet.

        Args:
            name: Its name.
            why: The reason.
        """
        return refused_tool(name, self._governor, why, f"{self._namespace}.unlisted")

    @property
    def governor(self) -> Runtime:
        """The Governor in charge: the given one, or the default one as it is now."""
        return default_runtime() if self._governor is None else self._governor

    @property
    def _namespace(self) -> str:
        return f"{SOURCE}.{spelt(self.server)}"

    def _is_shown(self, name: str) -> bool:
        handle = self.find(name)
        # a refused tool has the id under which an earlier form of it may be in the catalog
        if handle is None or handle.spec.refusal:
            return False
        return handle.visible()

    def _govern(self, tool: Tool, found: Definition) -> ForeignTool:
        why = None if self._pins is None else self._pins.refusal(self.server, tool)
        if why is not None:
            return self.refused(tool.name, why)
        try:
            stated = options_for(self._facts, tool.name)
            facts = {**self._common, **stated_facts(tool.name, found, stated), **stated}
        except ConfigurationError as error:
            return self.refused(tool.name, str(error))
        handle = foreign_tool(
            tool.name,
            found["inputSchema"],
            source=SOURCE,
            server=self.server,
            description=tool.description or "",
            facts={tool.name: cast(GovernOptions, facts)},
            body=None if self._send is None else _body(self._send, tool.name),
            is_async=True,
            governor=self._governor,
        )
        handle.register()
        return handle


def _body(send: Send, name: str) -> Callable[[dict[str, Any]], Awaitable[Any]]:
    async def body(arguments: dict[str, Any]) -> Any:
        return await send(name, arguments)

    return body


def stated_facts(name: str, found: Definition, stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a server's own statement of a tool adds to the facts of its host.

    Args:
        name: The tool's name.
        found: The tool, as listed.
        stated: What the host states of it.
    """
    hints = found.get("annotations")
    facts: dict[str, Any] = {
        "tool_kind": "mcp_tool",
        "external_mappings": [{"source": SOURCE, "method": "tools/call", "tool_name": name}],
        # the work is done by a process that no sandbox of a call holds
        "runs_elsewhere": True,
    }
    if hints is None:
        return facts
    facts["annotations"] = dict(hints)
    # a host that has looked at the tool knows better in either direction
    if hints.get("destructiveHint") is True and stated.get("read_only") is not True:
        facts["destructive"] = True
    if hints.get("openWorldHint") is True:
        facts["open_world"] = True
    return facts
