"""The ``agenttool`` command line; needs the ``cli`` extra."""

from __future__ import annotations

import sys
from typing import Final

__all__ = ["main"]

_EXTRAS: Final = {
    "typer": "cli",
    "rich": "cli",
    "opentelemetry": "cli",
    "langchain": "langchain",
    "mcp": "mcp",
    "mcp_types": "mcp",
    "langchain_core": "langchain",
    "langgraph": "langchain",
    "starlette": "web",
    "jinja2": "web",
    "uvicorn": "web",
}
"""The extra that brings a package, by the package's name in an import."""


def main() -> None:
    """Run the command; a missing package ends it with the name of the extra that has it."""
    try:
        from agenttool_otel.cli.main import app

        app()
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        extra = _EXTRAS.get(package)
        # agenttool tools suggest --module shop: an import inside of shop, which is no matter of extras
        if extra is None:
            raise
        extras = "cli"
        if extra != "cli":
            extras = f"cli,{extra}"
        install = f"pip install 'agenttool-otel[{extras}]'"
        sys.exit(f"agenttool needs the package {package} here: {install}")
