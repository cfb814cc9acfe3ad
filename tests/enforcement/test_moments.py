"""Which processes were started since a moment."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from agenttool_otel.enforcement import processes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc")


def is_found() -> bool:
    since = processes.now()
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as started:
        return started.pid in processes.pids_since(since)


def test_a_process_is_found_after_its_file_was_closed() -> None:
    assert is_found()
    os.close(processes._kept().descriptor)
    assert is_found()


def test_a_process_is_found_where_another_file_has_the_number() -> None:
    assert is_found()
    number = processes._kept().descriptor
    other = os.open(__file__, os.O_RDONLY)
    os.dup2(other, number)
    os.close(other)
    assert is_found()
    os.close(number)


def test_a_forked_child_finds_its_own_processes() -> None:
    assert is_found()
    child = os.fork()
    if child == 0:
        os._exit(0 if is_found() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
