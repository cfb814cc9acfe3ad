"""What all commands share: an option, JSON for programs, a line and an exit code for people."""

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
    """Print JSON that any terminal can show."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=True) + "\n")


def failure(codes: Mapping[str, int], message: str, code: str) -> typer.Exit:
    """Print a message for people, and return what ends the command with the exit code of
    that name.
    """
    Console(stderr=True, soft_wrap=True).print(Text(message, style="red"))
    return typer.Exit(codes[code])


def group(name: str, about: str) -> typer.Typer:
    """Return a group of commands."""
    return typer.Typer(
        name=name, help=about, no_args_is_help=True, pretty_exceptions_show_locals=False
    )
