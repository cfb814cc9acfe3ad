"""What a program pays once: a further Governor is cheap, and ``warm`` leaves nothing for first
calls to load.
"""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from agenttool_otel import Governor
from agenttool_otel.policy.bundles.bundle import default_bundle_path
from agenttool_otel.policy.bundles.load import load_bundle
from agenttool_otel.policy.engines.evaluation import CompiledBundle

_FIRST_CALLS = """
import os, sys
from agenttool_otel import Governor, agent_context
governor = Governor()
ran = []
def body(value: str) -> str:
    ran.append(value)
    return value
facts = dict(namespace="t", read_only=True, destructive=False, concurrency_safe=True, write_effects=["none"])
calls = [
    (governor.govern(body, name="file", path_args=["value"], access_kinds=["file_read"], **facts), "a.txt"),
    (governor.govern(body, name="shell", command_args=["value"], access_kinds=["code_execution"], **facts), "rm a.txt"),
    (governor.govern(body, name="sql", sql_args=["value"], access_kinds=["network"], **facts), "select 1 from t"),
    (governor.govern(body, name="url", url_args=["value"], access_kinds=["network"], **facts), "https://example.com/a"),
]
with agent_context(actor="a", session_id="s", roots=[os.getcwd()]):
    if sys.argv[1] == "warm":
        governor.warm()
    assert not ran
    before = {name.partition(".")[0] for name in sys.modules}
    for call, value in calls:
        call.tool.invoke(value=value)
assert ran
print(*{name.partition(".")[0] for name in sys.modules} - before)
"""


def _packages_of_first_calls(word: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", _FIRST_CALLS, word], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.slow
def test_warm_leaves_no_package_for_the_first_calls() -> None:
    assert "sqlalchemy" in _packages_of_first_calls("cold")
    assert _packages_of_first_calls("warm") == []


def test_a_further_governor_costs_little_of_the_first() -> None:
    def seconds(make: object) -> float:
        started = time.thread_time()
        assert callable(make)
        make()
        return time.thread_time() - started

    Governor()
    bundle = load_bundle(default_bundle_path())
    compiling = seconds(lambda: CompiledBundle(bundle, ["data.agenttool.permission.decision"]))
    assert min(seconds(Governor) for _ in range(5)) < compiling / 6
