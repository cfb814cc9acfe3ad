"""``agenttool mcp``: a governed proxy in front of an MCP server, clients that are put behind it, and
the pins of its tools.

agenttool mcp proxy --reviewed git -- uvx mcp-server-git
agenttool mcp wrap .mcp.json
agenttool mcp pins accept -- uvx mcp-server-git
"""

from __future__ import annotations

import difflib
import json
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import anyio
import typer
from mcp import StdioServerParameters
from mcp_types import Tool

from agenttool_otel.approvals.display import visible
from agenttool_otel.catalog import GovernOptions
from agenttool_otel.cli.common import AsJson, failure, group, print_json, use_own_profiles
from agenttool_otel.errors import AgentToolError, ConfigurationError, SandboxUnavailable
from agenttool_otel.integrations.facts import read_facts, server_facts
from agenttool_otel.integrations.mcp.client import list_all
from agenttool_otel.integrations.mcp.held import HeldServer, ServerProcess, held_server
from agenttool_otel.integrations.mcp.http import PATH, HttpProxy, read_clients, serve_http
from agenttool_otel.integrations.mcp.pins import PinChange, Pins
from agenttool_otel.integrations.mcp.proxy import DEFAULT_TIMEOUT, run_proxy
from agenttool_otel.integrations.mcp.upstream import Upstream, server_process
from agenttool_otel.integrations.mcp.wrapping import ClientConfig
from agenttool_otel.names import PinState

EXIT_CODES: Final = {"stopped": 0, "changed": 1, "failed": 1, "usage": 2, "unavailable": 125}
"""What the exit codes of these commands mean."""
_LOCK: Final = Path("mcp.lock.json")

app = group("mcp", "A governed proxy in front of an MCP server, and the pins of its tools.")
pins_app = group("pins", "What was accepted of a server's tools: descriptions and schemas.")
app.add_typer(pins_app)

Command = Annotated[list[str] | None, typer.Argument(help="The server's command, after --.")]
Url = Annotated[str, typer.Option("--http", help="The server's URL, in place of a command.")]
ServerName = Annotated[
    str, typer.Option("--server", help="Your name for the server; its program's where not given.")
]
Lock = Annotated[Path, typer.Option("--pins", help="The lock file.")]
Profile = Annotated[
    str,
    typer.Option(
        "--profile", help="Run the server's process under this profile: read, or one of your own."
    ),
]
Roots = Annotated[
    list[Path] | None,
    typer.Option(
        "--root",
        help="With --profile: a directory whose keys and credentials are masked; may be repeated."
        " [default: .]",
        show_default=False,
    ),
]
Timeout = Annotated[float, typer.Option("--timeout", help="Seconds that one request may take.")]


@app.command()
def proxy(
    command: Command = None,
    http: Url = "",
    server: ServerName = "",
    facts: Annotated[
        Path | None, typer.Option("--facts", help="JSON file of facts by tool name or glob.")
    ] = None,
    reviewed: Annotated[
        str, typer.Option("--reviewed", help="Take the reviewed facts of this server (git ...).")
    ] = "",
    pins: Annotated[
        Path | None, typer.Option("--pins", help="Refuse tools that are not as in this lock file.")
    ] = None,
    profile: Profile = "",
    root: Roots = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    listen: Annotated[
        int | None,
        typer.Option("--listen", help="Serve HTTP clients on this port of 127.0.0.1 (0: any)."),
    ] = None,
    clients: Annotated[
        Path | None, typer.Option("--clients", help="JSON file of their tokens, by actor.")
    ] = None,
) -> None:
    """Serve an MCP server's tools over standard input and output, each call decided first.

    With --listen they are served to several clients over HTTP, which share nothing.
    """
    from agenttool_otel.cli.serve import exported
    from agenttool_otel.govern.governor import Governor

    with exported("agenttool-mcp-proxy"):
        try:
            stated = _facts(facts, reviewed)
            pinned = None if pins is None else _existing(pins)
            upstream = _upstream(command, http, profile, root)
            tokens = _clients(clients, listen)
            governor = Governor()
        except AgentToolError as error:
            raise _refused(error) from None
        name = server or _name(command, http)
        try:
            if listen is None:
                anyio.run(_serve, upstream, governor, name, stated, pinned, timeout)
                return
            app = HttpProxy(
                upstream,
                tokens,
                governor,
                server=name,
                facts=stated,
                pins=pinned,
                timeout=timeout,
            )
            anyio.run(_serve_http, app, listen)
        finally:
            governor.close()


async def _serve(
    upstream: ServerProcess | str,
    governor: Any,
    server: str,
    facts: Mapping[str, GovernOptions],
    pins: Pins | None,
    timeout: float,
) -> None:
    await run_proxy(upstream, governor, server=server, facts=facts, pins=pins, timeout=timeout)


def _clients(path: Path | None, listen: int | None) -> Mapping[str, str]:
    if (path is None) != (listen is None):
        raise ConfigurationError("--listen PORT and --clients FILE go together")
    return {} if path is None else read_clients(path)


async def _serve_http(app: HttpProxy, port: int) -> None:
    try:
        listening = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise failure(EXIT_CODES, f"port {port}: {error.strerror}", "failed") from None
    with listening:
        typer.echo(f"http://127.0.0.1:{listening.getsockname()[1]}{PATH}", err=True)
        await serve_http(app, listening)


def _facts(path: Path | None, reviewed: str) -> Mapping[str, GovernOptions]:
    stated: dict[str, GovernOptions] = {}
    if path is not None:
        stated.update(read_facts(str(path)))
    if reviewed:
        # by their whole names, they would go before a glob of the file
        for name, facts in server_facts(reviewed).items():
            stated.setdefault(name, facts)
    return stated


def _existing(path: Path) -> Pins:
    # a misspelt path would quarantine every tool, and nobody would know why
    if not path.is_file():
        raise ConfigurationError(f"there is no lock file {path}: agenttool mcp pins accept")
    return Pins.read(path)


def _upstream(
    command: list[str] | None, http: str, profile: str, roots: list[Path] | None
) -> ServerProcess | str:
    """Return where the server is.

    Raises:
        ConfigurationError: There is no command and no URL, or both, or a profile for a URL.
        SandboxUnavailable: The profile can't be held here.
    """
    if roots and not profile:
        raise ConfigurationError("--root is for --profile")
    if profile and http:
        raise ConfigurationError("no profile holds a server behind a URL")
    if http and not command and urlsplit(http).scheme in {"http", "https"}:
        return http
    if command and not http:
        server = server_process(command)
        return _held(server, profile, roots or []) if profile else server
    raise ConfigurationError("give the server's command after --, or its URL with --http")


def _held(server: StdioServerParameters, profile: str, roots: list[Path]) -> HeldServer:
    use_own_profiles()
    return held_server(server, profile, roots)


def _refused(error: AgentToolError) -> typer.Exit:
    """Print why nothing is served, and return the exception that ends the command."""
    if isinstance(error, SandboxUnavailable):
        return failure(EXIT_CODES, f"nothing ran: {error}", "unavailable")
    return failure(EXIT_CODES, str(error), "failed")


def _name(command: list[str] | None, http: str) -> str:
    if command:
        return Path(command[0]).stem
    return urlsplit(http).hostname or "server"


# --- wrap -----------------------------------------------------------------------------------------


@app.command()
def wrap(
    config: Annotated[Path, typer.Argument(help="A client's configuration: .mcp.json ...")],
    profile: Annotated[
        str, typer.Option("--profile", help="The profile of each server's process.")
    ] = "",
    undo: Annotated[bool, typer.Option("--undo", help="Put the file back as it was.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")
    ] = False,
) -> None:
    """Run each server of a client's configuration behind the proxy, and show what changes."""
    file = ClientConfig(config)
    try:
        if undo:
            diff = file.undo(write=not dry_run)
        else:
            _check_profile(profile)
            diff = file.wrap(profile=profile, write=not dry_run)
    except AgentToolError as error:
        raise _refused(error) from None
    typer.echo(diff, nl=False)


def _check_profile(profile: str) -> None:
    """Look whether a profile can be held, before a client would find each of its servers gone."""
    from agenttool_otel.enforcement.programs import check_holds_programs

    if profile:
        use_own_profiles()
        check_holds_programs(profile)


# --- pins -----------------------------------------------------------------------------------------


@pins_app.command()
def diff(
    command: Command = None,
    http: Url = "",
    server: ServerName = "",
    pins: Lock = _LOCK,
    profile: Profile = "",
    root: Roots = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Show what of a server's tools is not as it was accepted; exit with 1 where anything is."""
    name = server or _name(command, http)
    try:
        tools = _listed(_upstream(command, http, profile, root), timeout)
        changes = Pins.read(pins).compare(name, tools)
    except AgentToolError as error:
        raise _refused(error) from None
    differing = [change for change in changes if change.state is not PinState.SAME]
    if as_json:
        print_json([_as_json(change) for change in differing])
    else:
        for change in differing:
            sys.stdout.write("".join(f"{line}\n" for line in _shown(change)))
    if differing:
        raise typer.Exit(EXIT_CODES["changed"])


@pins_app.command()
def accept(
    command: Command = None,
    http: Url = "",
    server: ServerName = "",
    pins: Lock = _LOCK,
    profile: Profile = "",
    root: Roots = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Accept a server's tools as they are now; look at the diff before."""
    name = server or _name(command, http)
    try:
        pinned = Pins.read(pins)
        tools = _listed(_upstream(command, http, profile, root), timeout)
        changes = pinned.compare(name, tools)
        pinned.accept(name, tools)
        pinned.write(pins)
    except AgentToolError as error:
        raise _refused(error) from None
    for change in changes:
        if change.state is not PinState.SAME:
            typer.echo(f"{change.state.value} {visible(change.name)}")
    typer.echo(f"{len(tools)} tools of {name} accepted in {pins}")


def _listed(server: ServerProcess | str, timeout: float) -> list[Tool]:
    async def listed() -> list[Tool]:
        async with Upstream(server, timeout=timeout) as upstream:
            return await upstream.request(list_all)

    try:
        return anyio.run(listed)
    except BaseExceptionGroup as error:
        raise ConfigurationError(f"the server's tools can't be listed: {error.message}") from None


def _as_json(change: PinChange) -> dict[str, Any]:
    return {
        "tool": change.name,
        "state": change.state.value,
        "members": change.members,
        "before": change.before,
        "after": change.after,
    }


def _shown(change: PinChange) -> Iterator[str]:
    yield f"{change.state.value} {visible(change.name)}"
    for member in change.members:
        before = _lines((change.before or {}).get(member))
        after = _lines((change.after or {}).get(member))
        for line in difflib.ndiff(before, after):
            if not line.startswith("?"):
                # a description may hold letters that a terminal does not show
                yield f"  {member}: {visible(line)}"


def _lines(value: Any) -> list[str]:
    if value is None:
        return []
    text = value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False)
    return text.splitlines()
