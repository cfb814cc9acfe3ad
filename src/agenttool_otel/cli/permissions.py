"""``agenttool permissions``: what would the policy decide on a call, and on each tool? Runs no tool.

Importing ``--module`` runs that module's own top level, as every import does.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from agenttool_otel.cli.common import AsJson, failure, group, print_json
from agenttool_otel.cli.rendering import out
from agenttool_otel.context.context import agent_context
from agenttool_otel.errors import AgentToolError
from agenttool_otel.govern.default import default_governor
from agenttool_otel.govern.governor import Governor
from agenttool_otel.preflight.host_posture import host_fields, posture_document
from agenttool_otel.preflight.permission_tools import check_tool
from agenttool_otel.preflight.posture import planned_input, without_secrets
from agenttool_otel.preflight.posture_files import posture_markdown

EXIT_CODES: Final = {"allow": 0, "failed": 1, "usage": 2, "ask": 3, "deny": 4, "unknown_tool": 5}
"""What the exit codes of these commands mean; ``check`` reports its decision with them."""
_UNKNOWN_TOOL: Final = (
    "agenttool permissions describe has the names; a tool that only an agent's middleware governs has to be governed"
    " in the module, too: [govern(tool, **facts[tool.name]) for tool in tools]"
)
_COLOURS: Final = {
    "allow": "green",
    "ask": "yellow",
    "deny": "red",
}

_fail = partial(failure, EXIT_CODES)
app = group("permissions", "Ask the policy what it would decide, without running anything.")
Module = Annotated[
    str,
    typer.Option("--module", "-m", help="Module of tools, or module:governor.", show_default=False),
]
Actor = Annotated[str | None, typer.Option("--actor", help="Who would call.", show_default=False)]
Tenant = Annotated[
    str | None, typer.Option("--tenant", help="For which tenant.", show_default=False)
]
Roles = Annotated[
    list[str] | None, typer.Option("--role", help="A role of the actor; may be repeated.")
]
SessionId = Annotated[
    str | None, typer.Option("--session", help="In which session.", show_default=False)
]
Roots = Annotated[
    list[str] | None, typer.Option("--root", help="A directory of file tools; may be repeated.")
]
Evaluation = Annotated[
    str, typer.Option("--evaluation", help="Verdict of an evaluator as JSON.", show_default=False)
]


@app.command()
def check(
    tool: Annotated[str, typer.Argument(help="Id, name or alias of the tool.")],
    module: Module,
    args: Annotated[
        str, typer.Option("--args", "-a", help="Planned arguments as a JSON object.")
    ] = "",
    actor: Actor = None,
    tenant: Tenant = None,
    role: Roles = None,
    session: SessionId = None,
    root: Roots = None,
    evaluation: Evaluation = "",
    as_json: AsJson = False,
    show_input: Annotated[
        bool,
        typer.Option(
            "--show-input", help="Print what the policy is given, for agenttool policy explain."
        ),
    ] = False,
) -> None:
    """Report whether a call would be allowed (exit 0), asked about (3) or denied (4), by which rule,
    and what to call instead.
    """
    arguments = _object(args, "--args") if args else None
    with governor_in_context(
        module, evaluation, actor=actor, tenant=tenant, roles=role, session_id=session, roots=root
    ) as governor:
        decision = check_tool(governor, tool, arguments)
        exit_code = EXIT_CODES[decision["behavior"]]
        if governor.find(tool) is None:
            decision["next_step"] = _UNKNOWN_TOOL
            exit_code = EXIT_CODES["unknown_tool"]
        document = None
        if show_input:
            document = planned_input(governor, tool, arguments)
    if show_input:
        # arguments that don't fit the tool's schema are refused before a policy is asked
        if document is None:
            raise _fail(f"the call never gets to the policy: {decision['reason']}", "failed")
        print_json(document)
    elif as_json:
        print_json(decision)
    else:
        _show(decision)
    raise typer.Exit(exit_code)


@app.command()
def describe(
    module: Module,
    actor: Actor = None,
    tenant: Tenant = None,
    role: Roles = None,
    session: SessionId = None,
    root: Roots = None,
    evaluation: Evaluation = "",
    as_json: AsJson = False,
) -> None:
    """Show what waits, which tools are always asked about, gated or blocked, and what to do
    next.
    """
    with governor_in_context(
        module, evaluation, actor=actor, tenant=tenant, roles=role, session_id=session, roots=root
    ) as governor:
        posture = governor.describe()
        fields = without_secrets(governor, host_fields(governor, posture))
    if as_json:
        print_json(posture_document(posture, fields))
    else:
        out().print(Markdown(posture_markdown(posture, fields)))


@app.command()
def write(
    folder: Annotated[Path, typer.Argument(help="Where the files go.")],
    module: Module,
    actor: Actor = None,
    tenant: Tenant = None,
    role: Roles = None,
    session: SessionId = None,
    root: Roots = None,
    evaluation: Evaluation = "",
) -> None:
    """Write permission-posture.json, permission-posture.md and managed-tools.json for agents that
    read files.
    """
    with governor_in_context(
        module, evaluation, actor=actor, tenant=tenant, roles=role, session_id=session, roots=root
    ) as governor:
        files = governor.write_posture(folder)
    for file in files:
        typer.echo(str(file))


@contextmanager
def governor_in_context(module: str, evaluation: str, **who: Any) -> Iterator[Governor]:
    """Give the module's Governor in the context of the options, and turn errors into an exit code.

    Args:
        module: The module that governs the tools, as ``app.tools`` or ``app.tools:governor``.
        evaluation: An evaluator's verdict as JSON; empty without one.
        who: Actor, tenant, roles, session and roots by their name in ``agent_context``.
    """
    verdict = None
    if evaluation:
        verdict = _object(evaluation, "--evaluation")
    # --actor "" is an actor that was not given
    context = {name: value or None for name, value in who.items()}
    with agent_context(evaluation=verdict, **context):
        governor = governor_of(module)
        try:
            yield governor
        except (AgentToolError, OSError) as error:
            raise _fail(f"{type(error).__name__}: {error}", "failed") from None


def governor_of(module: str) -> Governor:
    """Import the module that governs the tools, and return its Governor.

    Args:
        module: ``app.tools`` for the default Governor, or ``app.tools:governor``.

    Raises:
        typer.Exit: There is no such module or attribute, or it is no Governor.
    """
    name, _, attribute = module.partition(":")
    # a script's own folder is first in sys.path; python -m has the folder where it is run
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        imported = importlib.import_module(name)
        governor = getattr(imported, attribute) if attribute else default_governor()
    except (ImportError, AttributeError, ValueError) as error:
        raise _fail(f"{module} can't be used: {error}", "usage") from None
    if not isinstance(governor, Governor):
        raise _fail(f"{module} is no Governor", "usage")
    return governor


def _object(text: str, option: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        raise _fail(f"{option} is not JSON", "usage") from None
    if not isinstance(value, dict):
        raise _fail(f"{option} is not a JSON object", "usage")
    return value


def _show(decision: dict[str, Any]) -> None:
    table = Table(show_header=False, box=None, pad_edge=False)
    behavior = decision["behavior"]
    style = f"bold {_COLOURS.get(behavior, '')}"
    table.add_row("tool", Text(str(decision["tool"])))
    table.add_row("behavior", Text(behavior, style=style))
    for name in ("rule", "reason", "permission_policy"):
        if decision.get(name):
            title = name.replace("_", " ")
            table.add_row(title, Text(str(decision[name])))
    if decision.get("evaluator_gated"):
        effect = "lets it pass now"
        if decision["evaluator_blocked"]:
            effect = "stops it now"
        table.add_row("evaluator", Text(effect))
    for alternative in decision.get("alternatives", ()):
        arguments = json.dumps(alternative.get("arguments"), ensure_ascii=True)
        call = f"{alternative.get('tool')} {arguments}"
        table.add_row("instead", Text(f"{call}: {alternative.get('reason', '')}"))
    table.add_row("next step", Text(str(decision["next_step"])))
    out().print(table)
