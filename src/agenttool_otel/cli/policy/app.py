"""The commands of ``agenttool policy`` for a project: init, check, test and build."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.markup import escape

from agenttool_otel.authoring.building import ALGORITHMS, SigningKey, build_bundle
from agenttool_otel.authoring.checking import (
    Check,
    CheckReport,
    check_load,
    check_project,
    problem_of,
)
from agenttool_otel.authoring.scaffold import init_project
from agenttool_otel.authoring.testing import ENGINES, TestReport, run_tests
from agenttool_otel.authoring.watching import changes
from agenttool_otel.cli.common import AsJson, group, print_json
from agenttool_otel.cli.policy.asking import decide, explain
from agenttool_otel.cli.policy.common import (
    EXIT_CODES,
    Folder,
    Standalone,
    console,
    fail,
    failures,
    key_text,
    open_project,
    raise_first,
    tool_specs,
)
from agenttool_otel.cli.policy.covering import coverage
from agenttool_otel.cli.policy.differing import diff
from agenttool_otel.cli.policy.documenting import reference, vendor
from agenttool_otel.cli.policy.exporting import export
from agenttool_otel.cli.policy.importing import import_log
from agenttool_otel.cli.policy.mutating import mutate
from agenttool_otel.cli.policy.replaying import replay
from agenttool_otel.cli.policy.running import push, status
from agenttool_otel.cli.policy.simulating import simulate
from agenttool_otel.cli.policy.suggesting import suggest
from agenttool_otel.cli.policy.views import show_checks, show_tests
from agenttool_otel.errors import ConfigurationError, PolicyError
from agenttool_otel.names import EngineName
from agenttool_otel.values.files import replace_file

_HERE: Final = Path()

app = group("policy", "Start, check, test, explain, build and ask a policy.")
app.command()(explain)
app.command()(decide)
app.command()(mutate)
app.command()(replay)
app.command()(diff)
app.command()(coverage)
app.command()(suggest)
app.command()(simulate)
app.command()(export)
app.command("import")(import_log)
app.command()(vendor)
app.command()(reference)
app.command()(push)
app.command()(status)


@app.command()
def init(
    folder: Folder = _HERE,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Use a folder with something in it; files that are there stay."
        ),
    ] = False,
) -> None:
    """Start a policy project: one rule, its data, its test, an input to try it on, and the schema
    for editors.
    """
    with failures():
        written = init_project(folder, force=force)
    out = console()
    for name in written.made:
        out.print(f"[green]made[/green] {escape(name)}")
    for name in written.kept:
        out.print(f"[yellow]kept[/yellow] {escape(name)}")
    command = "agenttool policy test"
    if written.root != _HERE:
        command += f" {escape(str(written.root))}"
    out.print(f"\nNext: [bold]{command}[/bold]")


@app.command("check")
def check_command(
    folder: Folder = _HERE,
    engine: Annotated[
        str, typer.Option("--engine", help="Engine it is for: embedded or opa_server.")
    ] = EngineName.EMBEDDED.value,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings fail too.")] = False,
    tools: Annotated[
        str,
        typer.Option(
            "--tools",
            metavar="MODULE",
            help="Compare with the tools of a module, or of module:governor.",
            show_default=False,
        ),
    ] = "",
    standalone: Standalone = None,
    as_json: AsJson = False,
) -> None:
    """Check that a policy loads, uses what its engine has, is documented, and reads what the input
    has.
    """
    if engine not in (EngineName.EMBEDDED, EngineName.OPA_SERVER):
        raise fail("There is no such engine: embedded or opa_server.")
    try:
        report = check_project(
            open_project(folder, standalone=standalone),
            engine=engine,
            strict=strict,
            tools=tool_specs(tools) if tools else None,
        )
    except PolicyError as error:
        # data.json with a comma too many: the project is not loaded, so that no check can run
        problem = problem_of(error)
        report = CheckReport([Check("load", "failed", "the files can't be read", [problem])])
    except ConfigurationError as error:
        raise fail(str(error)) from None
    if as_json:
        print_json(report.to_json_object())
    else:
        show_checks(console(), report)
    if not report.ok:
        raise typer.Exit(EXIT_CODES["failed"])


@app.command("test")
def run_command(
    folder: Folder = _HERE,
    engine: Annotated[
        str, typer.Option("--engine", help=f"What they run on: {', '.join(ENGINES)}.")
    ] = "auto",
    pattern: Annotated[
        str,
        typer.Option("--run", help="Run only tests whose name matches this regular expression."),
    ] = "",
    min_coverage: Annotated[
        float,
        typer.Option(
            "--min-coverage", min=0.0, max=100.0, help="Fail below so many percent of lines."
        ),
    ] = 0.0,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show every test and every missed line.")
    ] = False,
    watch: Annotated[
        bool,
        typer.Option("--watch", "-w", help="Run again at each change of a file, until Ctrl-C."),
    ] = False,
    standalone: Standalone = None,
    as_json: AsJson = False,
) -> None:
    """Run the tests of a policy (rules named test_ in _test.rego files), with coverage."""
    run = partial(
        _run_once,
        folder,
        engine=engine,
        pattern=pattern,
        min_coverage=min_coverage,
        verbose=verbose,
        standalone=standalone,
        as_json=as_json,
    )
    if not watch:
        run()
        return
    with suppress(KeyboardInterrupt):
        for _ in changes(folder):
            # a policy that is broken while it is edited is reported, and looked at again
            with suppress(typer.Exit):
                run()


def _run_once(
    folder: Path,
    *,
    engine: str,
    pattern: str,
    min_coverage: float,
    verbose: bool,
    standalone: bool | None,
    as_json: bool,
) -> None:
    with failures():
        project = open_project(folder, standalone=standalone)
        report = run_tests(project, engine=engine, pattern=pattern)
    if pattern and report.ran == 0:
        raise fail(f"No test's name matches {pattern}.", "failed")
    problem = _test_problem(report, min_coverage)
    if as_json:
        print_json({"ok": not problem, "problem": problem, **report.to_json_object()})
    else:
        show_tests(console(), report, verbose=verbose)
    if problem:
        raise typer.Exit(EXIT_CODES["failed"]) if as_json else fail(problem, "failed")


def _test_problem(report: TestReport, min_coverage: float) -> str:
    """What is wrong with a run of tests; empty when all is well."""
    # a misspelt file, deploy_tests.rego, must not look like a success
    if report.ran == 0:
        return "There are no tests: a rule named test_ in a _test.rego file is one."
    if report.failures:
        return f"{len(report.failures)} of {report.ran} tests failed."
    if min_coverage <= 0:
        return ""
    if report.percent is None:
        return f"Coverage is not known: {report.uncovered_because}."
    if report.percent < min_coverage:
        return f"Coverage is {report.percent:.1f} %, below {min_coverage:g} %."
    return ""


@app.command()
def build(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to write.", show_default=False)
    ],
    folder: Folder = _HERE,
    revision: Annotated[
        str,
        typer.Option(
            "--revision", "-r", help="Revision; by default the manifest's.", show_default=False
        ),
    ] = "",
    with_base: Annotated[
        bool,
        typer.Option(
            "--with-base", help="Put the stock bundle in too, for an OPA that has nothing else."
        ),
    ] = False,
    sign_key: Annotated[
        Path | None,
        typer.Option("--sign-key", help="File with the private key or secret.", show_default=False),
    ] = None,
    algorithm: Annotated[
        str, typer.Option("--algorithm", help=f"{', '.join(ALGORITHMS)}.")
    ] = ALGORITHMS[0],
    key_id: Annotated[
        str, typer.Option("--key-id", help="How the verifier calls the key.")
    ] = "default",
    scope: Annotated[
        str, typer.Option("--scope", help="Scope that the signature states.", show_default=False)
    ] = "",
    engine: Annotated[
        str, typer.Option("--engine", help="Engine it is for, as in check.")
    ] = EngineName.EMBEDDED.value,
    standalone: Standalone = None,
    as_json: AsJson = False,
) -> None:
    """Build a bundle: checked, without tests, the same bytes for the same files, signed on
    request.
    """
    with failures():
        signing = None
        if sign_key is not None:
            signing = SigningKey(key_text(sign_key, "the signing key"), algorithm, key_id, scope)
        project = open_project(folder, standalone=standalone)
        raise_first(check_load(project, engine))
        content = build_bundle(project, revision=revision, with_base=with_base, signing=signing)
        _write(output, content)
    built = {
        "file": str(output),
        "bytes": len(content),
        "revision": revision or str(project.own.manifest.get("revision")),
        "signed": algorithm if signing is not None else None,
    }
    if as_json:
        print_json(built)
    else:
        signature = f", signed with {algorithm}" if signing is not None else ""
        console().print(
            escape(f"{output}: revision {built['revision']}, {len(content)} bytes{signature}")
        )


def _write(path: Path, content: bytes) -> None:
    """Write a bundle beside its place and rename it, so that no engine loads half of one."""
    try:
        replace_file(path, content, mode=0o644)
    except OSError as error:
        raise ConfigurationError(f"{path} can't be written: {error.strerror or error}") from None
