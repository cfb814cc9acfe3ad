"""A tree as data, and a program that does file operations, plain or rehearsed."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

Tree = dict[str, tuple[Any, ...]]
# not the link of a virtual environment: a rehearsal has an empty /tmp, where the checkout may stand
PYTHON = os.path.realpath(sys.executable)
ENVIRONMENT = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"}


def tree_of(top: Path) -> Tree:
    """Return all below a directory: kind, mode, content or target, and which names share a file."""
    found: Tree = {}
    inodes: dict[int, str] = {}
    for folder, directories, files in os.walk(top):
        for name in sorted([*directories, *files]):
            path = Path(folder, name)
            status = path.lstat()
            key = os.fspath(path.relative_to(top))
            if stat.S_ISLNK(status.st_mode):
                found[key] = ("link", os.readlink(path))
            elif stat.S_ISDIR(status.st_mode):
                found[key] = ("directory", stat.S_IMODE(status.st_mode))
            else:
                first = inodes.setdefault(status.st_ino, key)
                found[key] = ("file", stat.S_IMODE(status.st_mode), path.read_bytes(), first)
    return found


def operator() -> list[str]:
    """Return the command that does operations: this file, which need not be seen where it runs."""
    return [PYTHON, "-S", "-E", "-s", "-c", Path(__file__).read_text("utf-8")]


def script(operations: list[list[Any]]) -> bytes:
    """Return what the operator reads."""
    return json.dumps(operations).encode()


def run_plain(operations: list[list[Any]], cwd: Path) -> str:
    """Do operations as they are, and return what came of each."""
    done = subprocess.run(
        operator(),
        input=script(operations),
        cwd=cwd,
        env=ENVIRONMENT,
        capture_output=True,
        check=True,
    )
    return done.stdout.decode()


def operate(word: str, path: str, *rest: Any) -> None:
    """Do one operation."""
    if word == "write":
        Path(path).write_text(rest[0])
    elif word == "append":
        with open(path, "a") as file:
            file.write(rest[0])
    elif word == "truncate":
        os.truncate(path, rest[0])
    elif word == "delete":
        os.unlink(path)
    elif word == "rename":
        # as mv does where rename(2) answers EXDEV, which it does for directories of a layer
        if os.path.lexists(rest[0]) and os.path.isdir(rest[0]):
            raise IsADirectoryError
        shutil.move(path, rest[0])
    elif word == "mkdir":
        os.mkdir(path)
    elif word == "rmtree":
        shutil.rmtree(path)
    elif word == "symlink":
        os.symlink(rest[0], path)
    elif word == "link":
        os.link(rest[0], path, follow_symlinks=False)
    elif word == "chmod":
        os.chmod(path, rest[0])


def main() -> None:
    """Do the operations of standard input, and print what came of each."""
    for operation in json.load(sys.stdin):
        try:
            operate(*operation)
            print("done")
        except (OSError, shutil.Error) as error:
            print(type(error).__name__)


if __name__ == "__main__":
    main()
