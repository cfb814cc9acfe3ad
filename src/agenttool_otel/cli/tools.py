"""``agenttool tools``: which tools state no facts, and what their facts may be. Runs no tool."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from rich.console import Console

from agenttool_otel.catalog import ToolSpec
from agenttool_otel.cli.common import group
from agenttool_otel.cli.permissions import Module, governor_of
from agenttool_otel.preflight.guessed_facts import skeleton, undeclared
from agenttool_otel.preflight.posture import described_tools

app = group("tools", "What a program's tools state.")


@app.callback()
def tools() -> None:
    """What a program's tools state."""


@app.command()
def suggest(module: Module) -> None:
    """Print a skeleton of facts for the tools that state none; each fact is a guess to be
    checked.
    """
    governor = governor_of(module)
    found = {spec.name: spec for spec in _of_langchain(module)}
    found |= {tool.spec.name: tool.spec for tool in described_tools(governor)}
    lacking = {name: spec for name, spec in sorted(found.items()) if undeclared(spec)}
    Console(stderr=True).print(
        f"{len(lacking)} of {len(found)} tools state no facts", highlight=False
    )
    if lacking:
        sys.stdout.write(skeleton(lacking) + "\n")


def _of_langchain(module: str) -> Iterator[ToolSpec]:
    """Declare the LangChain tools that lie in the module itself, alone or in a list, and that
    nobody governs yet.
    """
    if "langchain_core" not in sys.modules:
        return
    from langchain_core.tools import BaseTool

    from agenttool_otel.integrations.langchain.govern import declare_langchain, is_governed

    values: list[Any] = list(vars(sys.modules[module.partition(":")[0]]).values())
    for value in values:
        for tool in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(tool, BaseTool) and not is_governed(tool):
                yield declare_langchain(tool, {})
