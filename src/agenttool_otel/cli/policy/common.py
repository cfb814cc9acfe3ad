"""What the commands of ``agenttool policy`` share: exit codes, output, and how a project and an
input are read.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from agenttool_otel.authoring.building import ALGORITHMS
from agenttool_otel.authoring.checking import Check
from agenttool_otel.authoring.project import Project, load_project
from agenttool_otel.catalog import ToolSpec
from agenttool_otel.cli.common import failure
from agenttool_otel.errors import ConfigurationError, PolicyError
from agenttool_otel.policy.bundles.bundle_signature import BundleVerification, VerificationKey
from agenttool_otel.values.conversion import loads_unique

EXIT_CODES: Final = {"ok": 0, "failed": 1, "error": 2, "ask": 10, "deny": 11}
"""What the exit codes of these commands mean: ``failed`` is a check or a test that fails, ``error``
everything that prevents one.
"""

_MAX_INPUT: Final = 8 * 1024 * 1024

Folder = Annotated[
    Path, typer.Argument(metavar="DIR", help="Folder of the policy project.", show_default=True)
]
Standalone = Annotated[
    bool | None,
    typer.Option(
        "--standalone/--extension",
        help="A whole bundle, or rules on top of the stock bundle; by default, whole if it defines the decision.",
        show_default=False,
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data", help="JSON file that is merged over the policy's data.", show_default=False
    ),
]


VerificationKeyFile = Annotated[
    Path | None,
    typer.Option(
        "--verification-key",
        help="File with the public key or secret; the bundle must be signed with it.",
        show_default=False,
    ),
]
Algorithm = Annotated[
    str, typer.Option("--algorithm", help=f"Of the signature: {', '.join(ALGORITHMS)}.")
]


def console() -> Console:
    """Return a console for standard output; without a terminal it is 160 columns wide."""
    out = Console()
    if out.is_terminal:
        return out
    return Console(width=160, soft_wrap=True)


def fail(message: str, code: str = "error") -> typer.Exit:
    """Print an error message, and return the exception that ends the command."""
    return failure(EXIT_CODES, message, code)


@contextlib.contextmanager
def failures() -> Iterator[None]:
    """Turn the package's errors into an error message and an exit code."""
    try:
        yield
    except (PolicyError, ConfigurationError) as error:
        raise fail(str(error)) from None


def read_json(source: Path | None, what: str) -> Any:
    """Read a JSON document strictly: no doubled keys, no NaN, at most 8 MB.

    Args:
        source: A file; standard input for ``None`` and for ``-``.
        what: What it is, for error messages: "the input".

    Raises:
        ConfigurationError: It can't be read, or is no such document.
    """
    name = "standard input"
    if source is not None and str(source) != "-":
        name = str(source)
    try:
        content = _read_bytes(source)
        if len(content) > _MAX_INPUT:
            raise ConfigurationError(f"{what} from {name} is larger than {_MAX_INPUT} bytes")
        return loads_unique(content.decode("utf-8"))
    except OSError as error:
        raise ConfigurationError(
            f"{what} can't be read from {name}: {error.strerror or error}"
        ) from None
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"{what}, {name}:{error.lineno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise ConfigurationError(f"{what}, {name}: nested too deeply") from None
    except ValueError as error:
        raise ConfigurationError(f"{what}, {name}: not JSON: {error}") from None


def _read_bytes(source: Path | None) -> bytes:
    # one byte more than is allowed shows that there is more
    if source is None or str(source) == "-":
        return sys.stdin.buffer.read(_MAX_INPUT + 1)
    with source.open("rb") as stream:
        return stream.read(_MAX_INPUT + 1)


def key_text(path: Path, what: str) -> str:
    """Return the text of a key's file."""
    try:
        return path.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{what} can't be read from {path}: {type(error).__name__}"
        ) from None


def verification_of(key: Path | None, algorithm: str) -> BundleVerification | None:
    """Return how a signature is checked; ``None`` without a key."""
    if algorithm not in ALGORITHMS:
        raise ConfigurationError(f"there is no such algorithm: {', '.join(ALGORITHMS)}")
    if key is None:
        return None
    # the "kid" of the signature's header is not asked: the person has named the key
    known = VerificationKey(key_text(key, "the verification key"), algorithm)
    return BundleVerification({"given": known}, key_id="given")


def open_project(
    root: Path | None,
    data: Path | None = None,
    standalone: bool | None = None,
    verification: BundleVerification | None = None,
) -> Project:
    """Load a project as the options state it."""
    document = None
    if data is not None:
        document = read_json(data, "the data")
        if not isinstance(document, dict):
            raise ConfigurationError(f"{data}: the data is not an object")
    return load_project(root, data=document, standalone=standalone, verification=verification)


def raise_first(check: Check) -> None:
    """Raise the first problem of a check."""
    if not check.problems:
        return
    problem = check.problems[0]
    if problem.file:
        raise ConfigurationError(f"{problem.place}: {problem.message}")
    raise ConfigurationError(problem.message)


def tool_specs(module: str) -> list[ToolSpec]:
    """Import a program and return the declarations of its tools.

    Args:
        module: ``app.tools`` for the default Governor, or ``app.tools:governor``.
    """
    from agenttool_otel.cli.permissions import governor_of
    from agenttool_otel.preflight.posture import described_tools

    return [tool.spec for tool in described_tools(governor_of(module))]
