"""The tools that a decision point knows: stated in a file of the operator's, never by a client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from agenttool_otel.call.runtime import Runtime
from agenttool_otel.call.tool import GovernedTool
from agenttool_otel.catalog import GovernOptions
from agenttool_otel.catalog.groups import flat_options
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.integrations.facts import read_facts
from agenttool_otel.integrations.foreign import declare_foreign
from agenttool_otel.names import Ownership

NAMESPACE: Final = "remote"
"""The namespace of a tool whose facts state none."""
_GLOB: Final = frozenset("*?[")


def declare_tools(path: str, governor: Runtime) -> list[GovernedTool]:
    """Declare the tools of a file of facts: one object a tool, by its name.

    Args:
        path: the JSON file, in the form of ``AGENTTOOL_TOOLS``; ``model_input_schema`` is the schema
          of a tool's arguments.
        governor: who decides their calls.

    Returns:
        The tools; a Governor knows them for as long as somebody holds them.

    Raises:
        ConfigurationError: the file can't be read, names no tool, or states what can't be.
    """
    facts = read_facts(path)
    if not facts:
        raise ConfigurationError("no tool is declared: name a file of tools (docs/serve.md)")
    return [_declare(name, stated, governor) for name, stated in facts.items()]


def _declare(name: str, stated: Any, governor: Runtime) -> GovernedTool:
    if not isinstance(stated, Mapping):
        raise ConfigurationError(f"the facts of {name!r} have to be an object")
    # "read_*" has no schema, and which tools it would be is known by clients alone
    if not _GLOB.isdisjoint(name):
        raise ConfigurationError(f"{name!r} is a pattern: a tool is declared by its name")
    facts: dict[str, Any] = {**flat_options(stated), "ownership": Ownership.CUSTOM.value}
    tool = declare_foreign(
        NAMESPACE,
        name,
        description=str(facts.get("description", name)),
        schema=facts.get("model_input_schema", {"type": "object"}),
        body=_runs_elsewhere,
        governor=governor,
        options=cast(GovernOptions, facts),
    )
    tool.register()
    return tool


def _runs_elsewhere(**arguments: Any) -> Any:
    raise RuntimeError("the body of this tool runs in the client")
