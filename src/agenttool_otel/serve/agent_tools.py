"""The tools of coding agents: those with reviewed facts, and those that are met by name alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, cast

from agenttool_otel.call.runtime import Runtime
from agenttool_otel.call.tool import GovernedTool
from agenttool_otel.catalog import GovernOptions
from agenttool_otel.coding_agents.dialects import Dialect, KnownTool
from agenttool_otel.coding_agents.open_shells import refuse_open_shell
from agenttool_otel.coding_agents.payloads import HookCall
from agenttool_otel.integrations.foreign import declare_foreign
from agenttool_otel.names import Ownership, ProblemType
from agenttool_otel.serve.problems import Refusal

_MOST_UNKNOWN: Final = 500
"""Tools without facts that are declared; calls of further ones are refused."""
_MAX_NAME_CHARS: Final = 128


class AgentTools:
    """The tools of the agents whose hooks a decision point answers.

    Args:
        governor: who decides their calls.
    """

    def __init__(self, governor: Runtime) -> None:
        self._governor = governor
        self._held: dict[tuple[str, str], GovernedTool] = {}  # a Governor forgets what nobody holds
        self._unknown = 0

    def declare(self, dialect: Dialect) -> None:
        """Declare the tools of an agent that have reviewed facts.

        Args:
            dialect: the agent's dialect.
        """
        for name, known in dialect.tools.items():
            self._declare(dialect, name, _facts_of(known), known.schema_of_arguments)

    def name_of(self, dialect: Dialect, call: HookCall) -> str:
        """Return the id of the tool of a call; a tool that is not known is declared without facts,
        so that the policy sees it as one that may do anything.

        Args:
            dialect: the agent's dialect.
            call: the call.

        Raises:
            Refusal: there are too many unknown tools, or this name can't be one.
        """
        held = self._held.get((dialect.namespace, call.tool))
        if held is not None:
            return held.spec.tool_id
        # facts that the operator has stated in the file of tools
        stated: GovernedTool | None = self._governor.find(f"{dialect.namespace}.{call.tool}")
        if stated is not None:
            return stated.spec.tool_id
        if self._unknown >= _MOST_UNKNOWN or len(call.tool) > _MAX_NAME_CHARS:
            raise Refusal(ProblemType.BUSY, "too many tools are unknown here")
        self._unknown += 1
        kind = {"tool_kind": "mcp_tool"} if call.is_mcp else {}
        return self._declare(dialect, call.tool, kind, {"type": "object"}).spec.tool_id

    def _declare(
        self, dialect: Dialect, name: str, facts: Mapping[str, Any], schema: Mapping[str, Any]
    ) -> GovernedTool:
        options = {
            "description": f"A tool of {dialect.title}.",
            **facts,
            "namespace": dialect.namespace,
            "ownership": Ownership.CUSTOM.value,
        }
        tool = declare_foreign(
            dialect.namespace,
            name,
            description=str(options["description"]),
            schema=schema,
            body=_runs_in_the_agent,
            governor=self._governor,
            options=cast(GovernOptions, options),
        )
        tool.register()
        self._held[dialect.namespace, name] = tool
        return tool


def _facts_of(known: KnownTool) -> Mapping[str, Any]:
    facts = dict(known.facts)
    if known.patch:
        facts["destructive"] = _deletes
    if known.stays_open:
        argument = known.facts["command_args"][0]
        facts["validate"] = partial(refuse_open_shell, argument, known.stays_open)
    return facts


def _deletes(arguments: Mapping[str, Any]) -> bool:
    return bool(arguments.get("deleted_paths"))


def _runs_in_the_agent(**arguments: Any) -> Any:
    raise RuntimeError("the body of this tool runs in the agent")
