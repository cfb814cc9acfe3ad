"""The command line of a proxy, for tests: the SDK's own client on its standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

SERVER = Path(__file__).with_name("file_server.py")
PROGRAM = [sys.executable, "-c", "from agenttool_otel.cli.main import app; app()"]
FACTS = {
    "read": {"read_only": True, "concurrency_safe": True},
    "fail": {"read_only": True},
    "variables": {"read_only": True},
    "process": {"read_only": True},
    "steps": {"read_only": True},
}
PATIENCE = 240.0


class Proxy:
    """The command line of a proxy, in a directory of its own.

    Args:
        folder: The directory.
        facts: Facts of the server's tools.
    """

    def __init__(self, folder: Path, facts: Any = FACTS) -> None:
        self.folder = folder
        (folder / "facts.json").write_text(json.dumps(facts))
        self.env = dict(os.environ)

    def run(
        self,
        use: Callable[[Client], Awaitable[Any]],
        *options: str,
        command: Sequence[str] = (sys.executable, str(SERVER)),
        **client: Any,
    ) -> Any:
        """Use a client that is connected to the proxy."""
        program, *arguments = PROGRAM
        arguments += ["mcp", "proxy", "--server", "files", "--facts", "facts.json", *options]
        parameters = StdioServerParameters(
            command=program,
            args=[*arguments, *(["--", *command] if command else [])],
            env=self.env,
            cwd=self.folder,
        )

        async def connected() -> Any:
            async with Client(parameters, read_timeout_seconds=PATIENCE, **client) as connection:
                return await use(connection)

        return asyncio.run(connected())

    def pins(self, word: str, *server: str) -> subprocess.CompletedProcess[str]:
        """Run a command of pins to its end; ``server`` is the server's command."""
        return self.agenttool("mcp", "pins", word, "--server", "files", "--", *server)

    def agenttool(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of ``agenttool`` to its end."""
        return subprocess.run(
            [*PROGRAM, *words],
            env=self.env,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )


def meta(result: Any) -> dict[str, Any]:
    """Return why a call has not run."""
    found: dict[str, Any] = (result.meta or {})["agenttool/result"]
    return found
