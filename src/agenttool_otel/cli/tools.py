"""``agenttool tools``: which tools declare no facts, a first guess at them, and which tools no guard
sees. Runs no tool.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import typer
from rich.console import Console

from agenttool_otel.catalog import ToolSpec
from agenttool_otel.cli.common import group
from agenttool_otel.cli.permissions import Module, governor_of
from agenttool_otel.integrations.coverage import unseen_in
from agenttool_otel.preflight.guessed_facts import skeleton, undeclared
from agenttool_otel.preflight.posture import described_tools

app = group("tools", "What a program's tools declare.")


@app.callback()
def tools() -> None:
    """What a program's tools declare."""


@app.command()
def suggest(module: Module) -> None:
    """Print a skeleton of facts for the tools that declare none; each fact is a guess to check."""
    governor = governor_of(module)
    specs = {spec.name: spec for spec in _of_langchain(module)}
    for tool in described_tools(governor):
        specs[tool.spec.name] = tool.spec
    lacking = {}
    for name, spec in sorted(specs.items()):
        if undeclared(spec):
            lacking[name] = spec
    count = f"{len(lacking)} of {len(specs)} tools declare no facts"
    Console(stderr=True).print(count, highlight=False)
    if lacking:
        sys.stdout.write(f"{skeleton(lacking)}\n")


@app.command()
def coverage(module: Module) -> None:
    """List the tools that the agents of a module call and that no guard sees; ends with 1 for any."""
    name = module.partition(":")[0]
    governor_of(module)
    found = list(unseen_in(sys.modules[name]))
    ungoverned = 0
    for place, tools in found:
        for tool in tools:
            ungoverned += 1
            sys.stdout.write(f"{name}.{place}: nothing governs {tool}\n")
    sys.stdout.write(f"{ungoverned} ungoverned tools behind {len(found)} agents\n")
    if ungoverned:
        raise typer.Exit(1)


def _of_langchain(module: str) -> Iterator[ToolSpec]:
    """Yield the declarations of the LangChain tools in the module that are not governed yet.

    They stand in the module itself, alone or in a list: ``TOOLS = [search, send_mail]``.
    """
    if "langchain_core" not in sys.modules:
        return
    from langchain_core.tools import BaseTool

    from agenttool_otel.integrations.langchain.govern import declare_langchain, is_governed

    name, _, _ = module.partition(":")
    # a copy: declaring a tool may import, which adds names to the module
    for value in list(vars(sys.modules[name]).values()):
        tools = value if isinstance(value, (list, tuple)) else [value]
        for tool in tools:
            if isinstance(tool, BaseTool) and not is_governed(tool):
                yield declare_langchain(tool, {})
