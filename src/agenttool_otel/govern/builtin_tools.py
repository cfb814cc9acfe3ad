"""The tools that a Governor brings along, for a model to call: reading large results, and asking
what it may do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from agenttool_otel.call.runtime import Runtime
from agenttool_otel.catalog import GovernOptions
from agenttool_otel.context.context import current_context
from agenttool_otel.errors import PersistenceError
from agenttool_otel.govern.governed import govern_with
from agenttool_otel.govern.typing import Governed
from agenttool_otel.names import ToolKind
from agenttool_otel.preflight.discovery import search_and_load
from agenttool_otel.preflight.permission_tools import permission_functions
from agenttool_otel.preflight.posture import PERMISSION_TOOLS
from agenttool_otel.preflight.surfaces import Surfaces
from agenttool_otel.results.persistence.read_result import make_read_result
from agenttool_otel.results.stores.types import PayloadStore

OwnTool: TypeAlias = Governed[..., dict[str, Any]]
"""A governed function that returns a JSON object."""

READ_RESULT_ID: Final = "agenttool.results.read_result"
"""Tool id of the tool that pages through persisted results."""

TOOL_SEARCH_ID: Final = "agenttool.catalog.tool_search"
"""Tool id of the tool that finds and loads other tools."""


def tool_search_facts(surfaces: Surfaces) -> GovernOptions:
    """Return the facts of the tool ``tool_search``; what it shows of tools from elsewhere was
    written there.
    """
    return {
        "tool_id": TOOL_SEARCH_ID,
        "namespace": "agenttool.catalog",
        "name": "tool_search",
        "search_hint": "find and load other tools",
        "read_only": True,
        "destructive": False,
        "open_world": lambda arguments: surfaces.catalog.has_foreign,
        "concurrency_safe": True,
        "risk_level": "low",
        "access_kinds": [],
        "write_effects": [],
        "always_load": True,
    }


def tool_search_of(runtime: Runtime, surfaces: Surfaces, limit: int) -> OwnTool:
    """Make the governed tool ``tool_search`` of a Governor.

    Args:
        runtime: the Governor; the tool spends none of its sessions' budgets.
        surfaces: its surfaces.
        limit: most matches where the model gives no limit.
    """
    most = limit

    def tool_search(query: str, limit: int = most) -> dict[str, Any]:
        """Find tools that are not shown to you, and load them: what is found can be called next.

        Args:
            query: words about what you want to do, or select:name,other_name for tools whose names
              you know.
            limit: most tools to load.
        """
        return search_and_load(surfaces, surfaces.in_force(), query, limit)[0]

    governed: OwnTool = govern_with(runtime, tool_search, tool_search_facts(surfaces))
    runtime.sessions.exempt.add(TOOL_SEARCH_ID)
    return governed


def read_result_of(runtime: Runtime, max_page: int) -> OwnTool:
    """Make the governed tool ``read_result`` of a Governor.

    Args:
        runtime: the Governor; its store is read, and its contexts name the caller.
        max_page: most bytes of a page.
    """

    def store() -> PayloadStore:
        opened = runtime.results.store
        if opened is None:
            raise PersistenceError("no store is configured")
        return opened

    def identity() -> dict[str, str]:
        context = runtime.effective(current_context())
        return {"tenant": context.tenant or "", "session_id": context.session_id or ""}

    function = make_read_result(
        store,
        identity,
        max_page=max_page,
        deadline_s=runtime.results.deadline_s,
    )
    facts: GovernOptions = {
        "tool_id": READ_RESULT_ID,
        "namespace": "agenttool.results",
        "name": "read_result",
        "search_hint": "page through a large tool result",
        "read_only": True,
        "destructive": False,
        # what it shows may have come from anywhere: provenance treats it so
        "open_world": True,
        "concurrency_safe": True,
        "risk_level": "low",
    }
    governed: OwnTool = govern_with(runtime, function, facts)
    governed.tool.spec.exempt = True
    return governed


def permission_tools_of(runtime: Runtime) -> tuple[OwnTool, OwnTool]:
    """Make the governed tools ``permissions_check`` and ``permissions_describe`` of a Governor.

    Args:
        runtime: the Governor; the tools spend none of its sessions' budgets.
    """
    check_id, describe_id = PERMISSION_TOOLS
    check_function, describe_function = permission_functions(runtime)
    check = _permission_tool(runtime, check_function, check_id)
    # the arguments of a call that is only planned reach nothing
    check.tool.spec.facts = None
    describe = _permission_tool(runtime, describe_function, describe_id)
    runtime.sessions.exempt.update(PERMISSION_TOOLS)
    return check, describe


def _permission_tool(runtime: Runtime, function: Callable[..., Any], tool_id: str) -> OwnTool:
    facts: GovernOptions = {
        "tool_id": tool_id,
        "namespace": "agenttool.permissions",
        "tool_kind": ToolKind.POLICY_CHECK.value,
        "search_hint": "may I call this tool",
        "read_only": True,
        "destructive": False,
        "open_world": False,
        "concurrency_safe": True,
        "risk_level": "low",
        "access_kinds": [],
        "write_effects": [],
    }
    governed: OwnTool = govern_with(runtime, function, facts)
    return governed
