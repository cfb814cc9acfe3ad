"""The ``agenttool`` command line; needs the ``cli`` extra."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command; says which extra is missing where it can't."""
    try:
        from agenttool_otel.cli.main import app
    except ModuleNotFoundError as error:
        sys.exit(
            f"agenttool needs the package {error.name}: pip install 'agenttool-otel[cli]' (the demo: [cli,langchain])"
        )
    app()
