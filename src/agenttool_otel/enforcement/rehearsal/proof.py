"""Whether this host can have a rehearsal: a canary tries what one must not let through."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from agenttool_otel.enforcement.rehearsal.failures import RehearsalError
from agenttool_otel.enforcement.rehearsal.rehearsals import Rehearsals, SealedLayer
from agenttool_otel.enforcement.rehearsal.types import Operation
from agenttool_otel.values.forks import in_child, new_lock

_SECONDS: Final = 30.0
_CANARY: Final = """
import json, os, socket, sys
inside, outside, secret, port, *masked = sys.argv[1:]
tried = {}
def attempt(name, action):
    try:
        action()
        tried[name] = True
    except OSError:
        tried[name] = False
def write(path):
    with open(path, "x") as file:
        file.write("canary")
def read(path):
    with open(path) as file:
        if file.read() != "canary":
            raise OSError
attempt("inside", lambda: write(inside))
attempt("outside", lambda: write(outside))
attempt("secret", lambda: read(secret))
def can_read(path):
    try:
        with open(path, "rb") as file:
            return bool(file.read(1))
    except OSError:
        return False
places = [*masked, *(os.path.join(folder, name)
    for place in masked for folder, _, names in os.walk(place) for name in names)]
tried["masked"] = any(can_read(path) for path in places if os.path.isfile(path))
attempt("connection", lambda: socket.create_connection(("127.0.0.1", int(port)), 5).close())
print(json.dumps(tried))
"""

_failures: dict[tuple[str, tuple[Path, ...]], str] = {}
_lock: Final = new_lock()


def rehearsal_failure(directory: Path, masked: tuple[Path, ...] = ()) -> str:
    """Return why layers can't be had in a state directory; empty where they can.

    It is tried once in a process for each directory: a write outside of the layer, a read of a masked
    file and a connection must fail, a write inside must be in the effects and nowhere else, and where
    it was written once that is committed.

    Args:
        directory: the state directory.
        masked: places that a profile of one's own masks; what can be read of them must not be.
    """
    tried = os.fspath(directory), masked
    with _lock:
        if tried not in _failures:
            _failures[tried] = _try(directory, masked)
        return _failures[tried]


def _try(directory: Path, masked: tuple[Path, ...]) -> str:
    try:
        rehearsals = Rehearsals(directory)
        # where commands have a /tmp of their own, a write beside the layer would prove nothing
        beside = directory.parent if os.access(directory.parent, os.W_OK) else None
        stage = tempfile.mkdtemp(prefix="canary-", dir=beside)
    except (RehearsalError, OSError) as error:
        return str(error)
    try:
        return _rehearse(rehearsals, Path(stage).resolve(), masked)
    except (RehearsalError, OSError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _rehearse(rehearsals: Rehearsals, stage: Path, masked: tuple[Path, ...]) -> str:
    root, secret, outside = stage / "root", stage / "root" / "secret", stage / "outside"
    root.mkdir()
    secret.write_text("canary", "ascii")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        with rehearsals.open([root], masked=[secret, *masked], places=()) as layer:
            inside = root / "inside"
            words = [sys.executable, "-I", "-S", "-c", _CANARY]
            words += [os.fspath(path) for path in (inside, outside, secret)]
            run = layer.run([*words, port, *map(os.fspath, masked)], cwd=root, timeout=_SECONDS)
            sealed = layer.finish()
    try:
        tried = json.loads(run.stdout or b"null")
        return _judge(tried, sealed, inside, outside) or _commit(sealed, inside, outside)
    finally:
        sealed.discard()


def _judge(tried: Any, sealed: SealedLayer, inside: Path, outside: Path) -> str:
    if not isinstance(tried, dict) or tried.get("inside") is not True:
        return "the canary could not run on a layer"
    for name in ("secret", "masked", "connection"):
        if tried.get(name) is not False:
            return f"a layer did not hold the canary: {name}"
    if outside.exists() or inside.exists():
        return "a layer let a write through"
    found = {(change.operation, change.path) for change in sealed.effects.changes}
    if found != {(Operation.CREATED, os.fspath(inside))}:
        return "the effects of the canary are not what it did"
    return ""


def _commit(sealed: SealedLayer, inside: Path, outside: Path) -> str:
    sealed.commit(sealed.digest)
    is_there = inside.is_file() and inside.read_text("ascii") == "canary"
    return "" if is_there and not outside.exists() else "a layer could not be committed"


def _forget() -> None:
    _failures.clear()


in_child(_forget)
