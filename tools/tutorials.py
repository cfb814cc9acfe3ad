"""Run a tutorial as its reader does: write its files, give its commands, compare what they print.

In a page, a block with ``title="name"`` is a file, and in a ``console`` block each ``$ command`` is
followed by what it prints: ``...`` on a line of its own stands for any lines, ``…`` for any text of
a line, ``# exit 3`` after a command for its exit code. ``python tools/tutorials.py`` runs all with
the interpreter that runs it, and prints the times.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = sorted((DOCS / "tutorials").glob("*.md"))
_BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'title="([^"]+)"')
_EXIT = re.compile(r"\s+# exit (\d+)$")


class Mismatch(AssertionError):
    """A tutorial shows what does not happen."""


class Command(NamedTuple):
    """One command and what the page says of it."""

    text: str
    status: int
    shown: list[str]


class File(NamedTuple):
    """A block that is a file, or a change of one."""

    name: str
    text: str
    language: str


def steps(page: str) -> Iterator[File | Command]:
    """Read a page: files and commands.

    Args:
        page: its Markdown.
    """
    for language, rest, body in _BLOCK.findall(page):
        title = _TITLE.search(rest)
        if title:
            yield File(title[1], body, language)
        elif language == "console":
            yield from _commands(body)


def _commands(body: str) -> Iterator[Command]:
    command: Command | None = None
    for line in body.splitlines():
        if line.startswith("$ "):
            if command is not None:
                yield command
            status = _EXIT.search(line)
            command = Command(_EXIT.sub("", line[2:]), int(status[1]) if status else 0, [])
        elif command is not None and line.strip():
            command.shown.append(line.rstrip())
    if command is not None:
        yield command


def fits(shown: list[str], printed: list[str]) -> bool:
    """Tell whether what was printed is what the page shows.

    Args:
        shown: lines of the page.
        printed: lines of the command, without empty ones.
    """
    pattern = ""
    for line in shown:
        exact = ".*".join(re.escape(part) for part in re.sub(r"\s+", " ", line).strip().split("…"))
        pattern += r"(?:[^\n]*\n)*?" if line.strip() == "..." else exact + r"\n"
    text = "".join(re.sub(r"\s+", " ", line).strip() + "\n" for line in printed if line.strip())
    return re.fullmatch(pattern, text) is not None


def run(page: Path, folder: Path) -> float:
    """Run one tutorial in an empty folder; return its seconds.

    Args:
        page: the page.
        folder: where its files go.

    Raises:
        Mismatch: a command ended or printed otherwise.
    """
    environment = {
        "HOME": str(folder), "LANG": "C.UTF-8", "COLUMNS": "150", "NO_COLOR": "1", "TERM": "dumb",
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))),
        **{name: os.environ[name] for name in ("PYTHONPATH", "TMPDIR", "AGENTTOOL_OPA") if name in os.environ},
    }  # fmt: skip
    started = time.monotonic()
    with _group() as group:
        exports = ""
        for step in steps(page.read_text(encoding="utf-8")):
            if not isinstance(step, Command):
                target = folder / step.name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(step.text, encoding="utf-8")
                continue
            if step.text.startswith(("pip install", "python -m venv")):
                continue  # the caller has done it
            if step.text.startswith("export "):  # a shell of its own runs each command
                exports += f"{step.text}; "
            words = ["bash", "-c", exports + step.text]
            done = subprocess.run(
                words,
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=200,
                process_group=group,
            )
            printed = (done.stdout + done.stderr).splitlines()
            if done.returncode != step.status or not fits(step.shown, printed):
                lines = "\n".join(printed)
                raise Mismatch(
                    f"{page.name}: $ {step.text}\nexit {done.returncode}, printed:\n{lines}"
                )
    return time.monotonic() - started


@contextmanager
def _group() -> Iterator[int]:
    """Give a group for processes, which are killed at the end.

    ``(python desk.py &)`` in a folder that is gone never finds the file that ends it.
    """
    with subprocess.Popen(["sleep", "infinity"], process_group=0) as first:
        try:
            yield first.pid
        finally:
            os.killpg(first.pid, signal.SIGKILL)


def main() -> int:
    """Run every tutorial."""
    for page in PAGES:
        with tempfile.TemporaryDirectory() as folder:
            print(f"{page.name}: {run(page, Path(folder)):.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
