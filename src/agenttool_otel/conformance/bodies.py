"""The functions that the scenarios' tools stand for."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any


class Bodies:
    """The bodies of the tools of one scenario, and the order in which they ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        # three reads that wait for each other end only where they run at the same time
        self._together = threading.Barrier(3)
        self._now: list[str] = []

    def echo(self, text: str) -> str:
        """Give back a text."""
        return text

    def weather(self, town: str) -> str:
        """Return the weather forecast of a town."""
        return f"sunny in {town}"

    def double(self, number: int) -> int:
        """Double a number."""
        self.ran.append(str(number))
        return 2 * number

    def remove(self, path: str) -> None:
        """Remove a file."""
        self.ran.append(path)

    def inside(self, arguments: Mapping[str, Any]) -> None:
        """A validator: refuse ../etc/passwd."""
        if ".." in arguments["path"]:
            raise ValueError("leaves the folder")

    def login(self, user: str, pin: str) -> str:
        """Log in."""
        return "welcome"

    def send(self, text: str, copies: int = 1) -> str:
        """Send a text."""
        return f"{text} x{copies}"

    def shorten(self, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """A hook: change the text "long" to "short"."""
        if arguments["text"] != "long":
            return None
        return {**arguments, "text": "short"}

    def pay(self, to: str) -> str:
        """Pay a person."""
        self.ran.append(to)
        return "paid"

    def copy(self, call: Any) -> str:
        """Copy many files."""
        for percent in range(0, 50, 10):
            call.progress(percent, f"{percent} files")
        # a subject that can't cancel ends here, and fails the scenario
        until = time.monotonic() + 20
        while not call.canceled and time.monotonic() < until:
            time.sleep(0.01)
        return "stopped early"

    def burn(self) -> str:
        """Work without looking up."""
        time.sleep(1.0)
        return "done"

    def read(self, name: str) -> str:
        """Read something."""
        self._together.wait(10)
        return name

    def write(self, name: str) -> str:
        """Write something."""
        self._now.append(name)
        # two writes at the same time are what the scheduler has to prevent
        note = name
        if len(self._now) > 1:
            note = f"{name} beside another"
        self.ran.append(note)
        time.sleep(0.05)
        self._now.remove(name)
        return name

    def fail(self) -> None:
        """Fail."""
        raise OSError("no disk")

    def follow(self, name: str) -> str:
        """Go on with what came before."""
        self.ran.append(name)
        return name

    def dump(self) -> str:
        """Give a long text."""
        return "line of text\n" * 5_000

    def quiet(self) -> None:
        """Do something and return nothing."""

    def draw(self) -> list[dict[str, Any]]:
        """Make an image."""
        return [
            {
                "type": "artifact_ref",
                "artifact_id": "img-1",
                "uri": "artifact://img-1",
                "media_type": "image/png",
            }
        ]
