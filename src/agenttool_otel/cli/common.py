"""What all commands share: the option ``--json``, JSON output, and errors with an exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def print_json(value: Any) -> None:
    """Print a value as JSON on standard output."""
    # "Müller" as "M\u00fcller": the terminal of a container is often no more than ASCII
    text = json.dumps(value, indent=2, ensure_ascii=True)
    sys.stdout.write(f"{text}\n")


def failure(codes: Mapping[str, int], message: str, code: str) -> typer.Exit:
    """Print an error message, and return the exception that ends the command.

    Args:
        codes: The exit codes of the group of commands, by name.
        message: One line for standard error.
        code: The name of the exit code.
    """
    console = Console(stderr=True, soft_wrap=True)
    # a Text, as a path such as /srv/[prod]/x would be read as markup
    console.print(Text(message, style="red"))
    return typer.Exit(codes[code])


def group(name: str, about: str) -> typer.Typer:
    """Return a group of commands.

    Args:
        name: Its name on the command line.
        about: Its help text.
    """
    return typer.Typer(
        name=name,
        help=about,
        no_args_is_help=True,
        # a traceback with local variables would print arguments and keys
        pretty_exceptions_show_locals=False,
    )


def use_own_profiles() -> None:
    """Make the sandbox profiles of the settings known to this process.

    Raises:
        ConfigurationError: Their file can't be read, or a profile in it is none.
    """
    from agenttool_otel.context.settings import Settings
    from agenttool_otel.enforcement.profile_file import use_profile_file

    file = Settings.load().sandbox_profiles
    if file:
        use_profile_file(file)
