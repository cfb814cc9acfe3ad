"""Where the command prints: a terminal as wide as it is, and a pipe or file wide enough for whole lines."""

from __future__ import annotations

import os
from typing import Final

from rich.console import Console

__all__ = ["out"]

_PIPE_WIDTH: Final = 200


def out() -> Console:
    """Return a console for standard output; ``COLUMNS`` says how wide where there is no terminal."""
    console = Console()
    if not console.is_terminal and not os.environ.get("COLUMNS"):
        return Console(width=_PIPE_WIDTH)
    return console
