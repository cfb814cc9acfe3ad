"""The ``agenttool`` command line; needs the ``cli`` extra."""

from __future__ import annotations

import sys
from typing import Final

__all__ = ["main"]

_EXTRAS: Final = {
    **dict.fromkeys(("typer", "rich", "opentelemetry"), "cli"),
    **dict.fromkeys(("langchain", "langchain_core", "langgraph"), "langchain"),
    **dict.fromkeys(("starlette", "jinja2", "uvicorn"), "web"),
}


def main() -> None:
    """Run the command; says which extra is missing where it can't."""
    try:
        from agenttool_otel.cli.main import app

        app()
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        extra = _EXTRAS.get(package)
        if extra is None:  # a module of the program that the command was pointed at
            raise
        wanted = extra if extra == "cli" else f"cli,{extra}"
        sys.exit(
            f"agenttool needs the package {package} here: pip install 'agenttool-otel[{wanted}]'"
        )
