"""``agenttool policy push`` and ``status``: a running OPA."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.markup import escape

from agenttool_otel.authoring.checking import check_load
from agenttool_otel.authoring.running_opa import push as pushed_to
from agenttool_otel.authoring.running_opa import server_status
from agenttool_otel.cli.common import AsJson, print_json
from agenttool_otel.cli.policy.common import (
    EXIT_CODES,
    Folder,
    Standalone,
    console,
    failures,
    open_project,
    raise_first,
)
from agenttool_otel.names import EngineName
from agenttool_otel.policy.engines.opa_server import OpaServerEngine

_HERE: Final = Path()
Url = Annotated[
    str,
    typer.Option(
        "--url", envvar="AGENTTOOL_OPA_URL", help="Base URL of the OPA.", show_default=False
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        envvar="AGENTTOOL_OPA_TOKEN_FILE",
        help="File with its token.",
        show_default=False,
    ),
]
CaFile = Annotated[
    Path | None,
    typer.Option(
        "--ca-file",
        envvar="AGENTTOOL_OPA_CA_FILE",
        help="Certificates to trust.",
        show_default=False,
    ),
]


def push(
    url: Url,
    folder: Folder = _HERE,
    with_base: Annotated[
        bool,
        typer.Option(
            "--with-base", help="Put the stock bundle in too, for an OPA that has nothing else."
        ),
    ] = False,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    standalone: Standalone = None,
    as_json: AsJson = False,
) -> None:
    """Put the policies and data of a project into a running OPA, and take out those of an earlier
    push.

    Checked first. The data is put before the policies; when OPA refuses a policy, it keeps those of
    before.
    """
    with failures():
        project = open_project(folder, standalone=standalone)
        raise_first(check_load(project, EngineName.OPA_SERVER))
        with closing(OpaServerEngine(url, token_file=token_file, ca_file=ca_file)) as engine:
            done = pushed_to(engine, project, with_base=with_base)
    if as_json:
        print_json({"policies": done.policies, "removed": done.removed, "data": done.data})
        return
    places = ", ".join(done.data) or "no place"
    console().print(escape(f"{url}: {len(done.policies)} policies, data at {places}"))
    for name in done.removed:
        console().print(f"[yellow]removed[/yellow] {escape(name)}")


def status(
    url: Url,
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="[DIR]", help="Project to compare with.", show_default=False),
    ] = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    standalone: Standalone = None,
    as_json: AsJson = False,
) -> None:
    """Report whether a running OPA is healthy and decides, and whether it has a project's policies
    unchanged.

    Exits with 1 when one of these is not so.
    """
    with failures():
        project = None if folder is None else open_project(folder, standalone=standalone)
        with closing(OpaServerEngine(url, token_file=token_file, ca_file=ca_file)) as engine:
            found = server_status(engine, project)
    if as_json:
        print_json(found.to_json_object())
    else:
        out = console()
        health = "healthy" if found.healthy else "not healthy"
        out.print(escape(f"{url}: {health}, {len(found.policies)} policies"))
        decides = f"does not decide: {found.problem}"
        if found.decides:
            decides = "decides"
            if found.revision:
                decides += f" at revision {found.revision}"
        out.print(escape(decides))
        for name in found.differs:
            out.print(f"[yellow]differs[/yellow] {escape(name)}")
    if not (found.healthy and found.decides) or found.differs:
        raise typer.Exit(EXIT_CODES["failed"])
