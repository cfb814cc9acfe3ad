"""A forked child works whatever the threads of its parent held at the fork."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from agenttool_otel.values import forks
from sources import trees

MODULES = {"threading", "functools", "multiprocessing"}
MAKERS = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "cached_property"}

HELD = '''
"""Holds every lock of the package in another thread, forks, and lets the child use each part."""
import asyncio, faulthandler, os, sys, tempfile, threading
from agenttool_otel import BatchCall, Governor, agent_context
from agenttool_otel.values import forks

where = tempfile.mkdtemp()
governor = Governor(
    approvals_url=f"sqlite:///{where}/approvals.sqlite3", sessions_url=f"sqlite:///{where}/sessions.sqlite3",
    results_dir=where, sink=f"file:{where}/records.jsonl",
)
FACTS = {"read_only": True, "access_kinds": [], "write_effects": ["none"], "risk_level": "low"}

@governor.govern(**FACTS)
def add(a: int, b: int) -> int:
    return a + b

@governor.govern(**FACTS, resource_locks=["db"])
async def aadd(a: int, b: int) -> int:
    return a + b

@governor.govern(read_only=False, destructive=True, path_args=["path"])
def wipe(path: str) -> str:
    return path

def use():
    with agent_context(actor="agent:a", session_id="s", roots=[where], user_text="add a and b"):
        assert add(1, 2) == 3
        assert asyncio.run(aadd(1, 2)) == 3
        assert wipe.tool.invoke(path=f"{where}/x").status.value in {"pending", "denied"}
        assert [one.value for one in governor.batch([BatchCall(add, {"a": 1, "b": n}) for n in range(3)])] == [1, 2, 3]

use()
held, go_on = threading.Event(), threading.Event()

@governor.govern(**FACTS, resource_locks=["db"])
def long() -> None:
    hold()

def hold():
    for lock in list(forks._locks):
        lock.acquire(timeout=0.5)  # the thread of a sink may hold one and wait for another
    held.set()
    go_on.wait()

def in_context():
    with agent_context(actor="agent:a", session_id="s"):
        long()

threading.Thread(target=in_context, daemon=True).start()
assert held.wait(30)
print("locks held:", len(list(forks._locks)), flush=True)
if (child := FORK()) == 0:
    faulthandler.dump_traceback_later(30, exit=True)
    use()
    os._exit(0)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
'''


@pytest.mark.slow
def test_every_lock_of_the_package_is_made_by_one_helper() -> None:
    elsewhere = []
    for path, tree in trees().items():
        # scenarios wait for each other
        if path == Path(forks.__file__) or path.parent.name == "conformance":
            continue
        for node in ast.walk(tree):
            elsewhere += [
                f"{path.name}:{node.lineno} {name}" for name in made_by(node) if name in MAKERS
            ]
    assert elsewhere == []


def made_by(node: ast.AST) -> list[str]:
    """The names that a call calls, or hands on as a factory, and those that an import brings from
    their modules.
    """
    if isinstance(node, ast.Call):
        named = [node.func, *(keyword.value for keyword in node.keywords)]
        return [
            one.attr
            for one in named
            if isinstance(one, ast.Attribute) and ast.unparse(one.value) in MODULES
        ]
    if isinstance(node, ast.ImportFrom) and node.module in MODULES:
        return [alias.name for alias in node.names]
    return []


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(sys, "getswitchinterval"), reason="CPython")
def test_a_child_forked_while_every_lock_is_held_works() -> None:
    script = HELD.replace("FORK()", "os.fork()")
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split("locks held:")[1].split()[0]) > 20
