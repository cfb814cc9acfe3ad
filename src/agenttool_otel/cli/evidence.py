"""``agenttool evidence``: signed statements of decision records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from agenttool_otel.cli.common import AsJson, group, print_json
from agenttool_otel.cli.policy.common import EXIT_CODES as POLICY_CODES
from agenttool_otel.cli.policy.common import console, failures
from agenttool_otel.cli.policy.recorded import Sources, open_records
from agenttool_otel.errors import ConfigurationError

EXIT_CODES: Final = {name: POLICY_CODES[name] for name in ("ok", "error")}
"""What the exit codes of these commands mean."""

app = group("evidence", "Sign what files of decision records hold, and check it.")


@app.command()
def attest(
    sources: Sources,
    key: Annotated[Path, typer.Option("--key", help="Ed25519 private key, as PEM.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.")],
) -> None:
    """Check the chain of records, and write a signed statement of them: in-toto in a DSSE envelope."""
    with failures():
        from agenttool_otel.evidence.attestation import sign, statement

        records = open_records(sources)
        envelope = sign(statement(sources, records.key), _read(key))
        try:
            output.write_text(json.dumps(envelope, indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise ConfigurationError(f"{output} can't be written: {error.strerror}") from None


@app.command()
def verify(
    envelope: Annotated[Path, typer.Argument(help="File with the signed statement.")],
    sources: Sources,
    public_key: Annotated[Path, typer.Option("--key", help="Ed25519 public key, as PEM.")],
    as_json: AsJson = False,
) -> None:
    """Check that records are those of a signed statement, to the byte.

    Exits with 2 where they are not.
    """
    with failures():
        from agenttool_otel.evidence.attestation import check

        records = open_records(sources)
        found = check(_json(envelope), _read(public_key), sources, records.key)
    if as_json:
        print_json(found)
    else:
        _show(found["predicate"])


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read: {error.strerror}") from None


def _json(path: Path) -> Any:
    try:
        return json.loads(_read(path))
    except ValueError:
        raise ConfigurationError(f"{path} is no JSON") from None


def _show(predicate: dict[str, Any]) -> None:
    out = console()
    out.print(f"{predicate['lines']} lines from {predicate['from']} until {predicate['until']}")
    for name in ("decisions", "answers"):
        counts = ", ".join(f"{count} {word}" for word, count in predicate[name].items())
        out.print(f"{name}: {counts or 'none'}")
    if predicate["lost"]:
        out.print(f"[yellow]{predicate['lost']} were lost before they were written[/yellow]")
