"""``agenttool policy explain`` and ``decide``: what does the policy decide on one call, and why?"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from agenttool_otel.authoring.building import ALGORITHMS
from agenttool_otel.authoring.completing import complete_input
from agenttool_otel.authoring.explaining import explain as explained
from agenttool_otel.authoring.explaining import verdict_object
from agenttool_otel.cli.common import AsJson, print_json
from agenttool_otel.cli.policy.common import (
    EXIT_CODES,
    Algorithm,
    Data,
    Standalone,
    VerificationKeyFile,
    console,
    fail,
    failures,
    open_project,
    read_json,
    verification_of,
)
from agenttool_otel.cli.policy.views import show_explanation
from agenttool_otel.errors import ConfigurationError, PolicyError
from agenttool_otel.names import Behavior
from agenttool_otel.policy.decider import Decider
from agenttool_otel.policy.engines.embedded import EmbeddedEngine
from agenttool_otel.policy.types import Verdict
from agenttool_otel.redaction import default_redactor

_EXIT_CODES = {
    Behavior.ALLOW: EXIT_CODES["ok"],
    Behavior.ASK: EXIT_CODES["ask"],
    Behavior.DENY: EXIT_CODES["deny"],
}


def explain(
    places: Annotated[
        list[Path],
        typer.Argument(
            metavar="[DIR] INPUT",
            help="The project (default: here), and a JSON file with the input, or -.",
        ),
    ],
    stock: Annotated[
        bool, typer.Option("--stock", help="Explain what the stock bundle alone decides.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Show the rules that did not come near, too.")
    ] = False,
    data: Data = None,
    standalone: Standalone = None,
    verification_key: VerificationKeyFile = None,
    algorithm: Algorithm = ALGORITHMS[0],
    as_json: AsJson = False,
) -> None:
    """Explain one decision: which rules fired, which nearly did and what stopped them, with file
    and line.

    The input is a policy input or a part of one, such as {"tool": {"name": "deploy"}, "input": {}}.
    What is missing is filled in with values that permit nothing.
    """
    if len(places) > 2 or (stock and len(places) > 1):
        raise fail("Give the project's folder and one input.")
    with failures():
        document, filled = complete_input(read_json(places[-1], "the input"))
        root: Path | None = Path()
        if stock:
            root = None
        elif len(places) == 2:
            root = places[0]
        # {"input": {"header": "Bearer eyJhbGci..."}}: secrets of the arguments are not printed
        redactor = default_redactor()
        project = open_project(root, data, standalone, verification_of(verification_key, algorithm))
        redacted = redactor.redact(document).value
        explanation = explained(project, document, shown=redacted, filled_in=tuple(filled))
        printed = redactor.redact(explanation.to_json_object()).value
    if as_json:
        print_json(printed)
    else:
        show_explanation(console(), printed, every=every)
    if explanation.verdict.fail_closed is not None:
        raise typer.Exit(EXIT_CODES["error"])


def decide(
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="[INPUT]", help="JSON file with the input; by default standard input."
        ),
    ] = None,
    bundle: Annotated[
        Path | None,
        typer.Option(
            "--bundle",
            "-b",
            help="Project folder or bundle; by default the stock one.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.001, help="Seconds that it may take.")
    ] = 2.0,
    data: Data = None,
    standalone: Standalone = None,
    verification_key: VerificationKeyFile = None,
    algorithm: Algorithm = ALGORITHMS[0],
) -> None:
    """Decide one call and print the decision as JSON. Exits with 0 allow, 10 ask, 11 deny, 2 error.

    The input has to be complete: whatever is missing or of the wrong type is an error, never an
    allow.
    """
    try:
        document = read_json(source, "the input")
        project = open_project(
            bundle, data, standalone, verification_of(verification_key, algorithm)
        )
        with closing(
            Decider([EmbeddedEngine(project.whole, fast=False)], timeout=timeout)
        ) as decider:
            verdict = decider.decide(document)
    except (PolicyError, ConfigurationError) as error:
        _print_error(str(error))
        raise typer.Exit(EXIT_CODES["error"]) from None
    print_json(verdict_object(verdict))
    raise typer.Exit(_exit_code(verdict))


def _exit_code(verdict: Verdict) -> int:
    if verdict.fail_closed is not None:
        return EXIT_CODES["error"]
    return _EXIT_CODES.get(verdict.behavior, EXIT_CODES["error"])


def _print_error(message: str) -> None:
    """Print an error as a deny, for programs that read the document and not the exit code."""
    print_json(
        {
            "behavior": Behavior.DENY.value,
            "reason": {"type": "policy", "rule_ref": "", "message": f"no decision: {message}"},
            "error": message,
        }
    )
