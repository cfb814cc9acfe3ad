"""A headless Chromium that asks nothing of the network by itself."""

from __future__ import annotations

import shutil
from typing import Any, Final

import pytest

_SWITCHES: Final = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def launch(playwright: Any) -> Any:
    """Start the installed one and return what Playwright returns; skip the test where there is none.

    Args:
        playwright: Playwright, of its API with or without coroutines.
    """
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    return playwright.chromium.launch(executable_path=program, args=_SWITCHES)
