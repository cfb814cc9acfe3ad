"""``agenttool tools``: which tools declare no facts, a first guess at them, and which tools no guard
sees. Runs no tool.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import typer
from rich.console import Console

from agenttool_otel.catalog import ToolSpec
from agenttool_otel.cli.common import AsJson, group, print_json
from agenttool_otel.cli.permissions import Module, governor_of
from agenttool_otel.cli.plain_text import clean
from agenttool_otel.integrations.coverage import unseen_in
from agenttool_otel.preflight.guessed_facts import guesses, skeleton, undeclared
from agenttool_otel.preflight.posture import described_tools

EXIT_CODES: Final = {"ok": 0, "failed": 1, "ungoverned": 1, "usage": 2}
"""What the exit codes of these commands mean."""

app = group("tools", "What a program's tools declare.")


@app.callback()
def tools() -> None:
    """What a program's tools declare."""


@app.command()
def suggest(module: Module, as_json: AsJson = False) -> None:
    """Print a skeleton of facts for the tools that declare none; each fact is a guess to check.

    With --json it is a file for AGENTTOOL_TOOLS, with the facts that can only restrict; the others are
    on standard error.
    """
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
    if as_json:
        _print_facts(lacking)
    elif lacking:
        sys.stdout.write(f"{skeleton(lacking)}\n")


def _print_facts(lacking: Mapping[str, ToolSpec]) -> None:
    facts: dict[str, dict[str, Any]] = {}
    for name, spec in lacking.items():
        facts[name] = {}
        for guess in guesses(spec, lacking.values()):
            if not guess.loosens:
                facts[name][guess.keyword] = guess.value
                continue
            # JSON has no comments, and what is pasted unread must loosen nothing
            left = f"{name}: left out, to be checked: {json.dumps({guess.keyword: guess.value})}"
            typer.echo(f"{clean(left)} ({guess.why})", err=True)
    print_json(facts)


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
        raise typer.Exit(EXIT_CODES["ungoverned"])


def _of_langchain(module: str) -> Iterator[ToolSpec]:
    """Yield the declarations of the LangChain tools in the module that are not governed yet.

    They stand in the module itself, alone, in a list or a dictionary (``TOOLS = [search, send_mail]``), or in a
    toolkit.
    """
    if "langchain_core" not in sys.modules:
        return
    from langchain_core.tools import BaseTool

    from agenttool_otel.integrations.langchain.govern import declare_langchain, is_governed

    name, _, _ = module.partition(":")
    # a copy: declaring a tool may import, which adds names to the module
    for value in list(vars(sys.modules[name]).values()):
        for tool in _members(value):
            if isinstance(tool, BaseTool) and not is_governed(tool):
                yield declare_langchain(tool, {})


def _members(value: Any) -> Iterable[Any]:
    from langchain_core.tools import BaseToolkit

    if isinstance(value, (list, tuple)):
        return value
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, BaseToolkit):
        return value.get_tools()
    return [value]
