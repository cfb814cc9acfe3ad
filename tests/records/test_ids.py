"""Ids in forked children, and where there is no fork."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from agenttool_otel.values import ids


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_that_was_forked_while_an_id_was_made_makes_ids() -> None:
    # in a process of its own: a fork with threads running is what Python itself warns about
    script = """
import os, signal, threading
from agenttool_otel.values import ids
held, go = threading.Event(), threading.Event()
def hold():
    with ids._lock:
        held.set()
        go.wait(60)
thread = threading.Thread(target=hold)
thread.start()
held.wait()
child = os.fork()
if child == 0:
    signal.alarm(5)
    ids.new_id("inv")
    os._exit(0)
go.set()
thread.join()
raise SystemExit(os.waitpid(child, 0)[1])
"""
    assert (
        subprocess.run([sys.executable, "-W", "ignore", "-c", script], timeout=60).returncode == 0
    )


def test_ids_can_be_made_where_nothing_can_fork() -> None:
    script = """
import os
if hasattr(os, "register_at_fork"):
    del os.register_at_fork
from importlib import util
import agenttool_otel.values.ids as ids
spec = util.spec_from_file_location("ids_again", ids.__file__)
again = util.module_from_spec(spec)
spec.loader.exec_module(again)
print(again.new_id("inv"))
"""
    # other modules may register: only this one is loaded without
    script = "import agenttool_otel.values.ids\n" + script
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.startswith("inv_"), done.stderr


def test_ids_of_many_threads_are_different() -> None:
    made: list[str] = []
    threads = [
        threading.Thread(target=lambda: made.extend(ids.new_id("x") for _ in range(500)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 4000
