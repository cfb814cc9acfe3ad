"""A container that lets nobody make a user namespace: what needs one is denied, ``read`` holds."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# within a user namespace its limit can be set, as the runtime of a container does
CONTAINER = """
echo 0 > /proc/sys/user/max_user_namespaces || exit 77
unshare --user true 2>/dev/null && exit 77
exec setpriv --inh-caps=-all --ambient-caps=-all -- "$@"
"""
INSIDE = """
import json, os, sys
from pathlib import Path
from agenttool_otel import agent_context, run_command
from agenttool_otel.enforcement import available
from agenttool_otel.testing import StaticEngine, capture, decision

folder, profile = Path(sys.argv[1]), sys.argv[2]
root = folder / "root"
root.mkdir()

def shell(command: str) -> str:
    return run_command(command, cwd=root).text

policy = StaticEngine(decision("allow", obligations={"sandbox": {"profile": profile}}))
with capture(policy=policy, rehearsals_dir=str(folder / "state")) as captured:
    tool = captured.governor.govern(shell, name="shell", command_args=["command"], runs_commands=True)
    with agent_context(actor="agent:a", session_id="s", roots=[str(root)], cwd=str(root)):
        result = tool.tool.invoke({"command": "echo hello; touch made"})
    shown = {
        "user": os.geteuid(),
        "read": available()["read"].proven,
        "status": str(result.status),
        "message": result.error.message if result.error else "",
        "cause": captured.span.attributes.get("agenttool.permission.fail_closed.cause"),
        "made": (root / "made").exists(),
    }
print(json.dumps(shown))
"""


def call_in_a_container(folder: Path, profile: str) -> dict[str, Any]:
    """Make a call whose decision obliges a profile, and return what became of it."""
    programs = ("unshare", "setpriv")
    if not all(map(shutil.which, programs)):
        pytest.skip(f"one of {programs} is not here")
    user = ["--user", "--map-user=1000", "--map-group=1000", "--keep-caps"]
    inside = [sys.executable, "-c", INSIDE, str(folder), profile]
    words = ["unshare", *user, "sh", "-c", CONTAINER, "sh", *inside]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode == 77 or "unshare: " in done.stderr:
        pytest.skip(f"no such container can be made here: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stderr[-3000:]
    shown: dict[str, Any] = json.loads(done.stdout)
    assert shown["user"] == 1000
    return shown


@pytest.mark.parametrize("profile", ["rehearse", "write"])
def test_what_needs_a_layer_is_denied(tmp_path: Path, profile: str) -> None:
    shown = call_in_a_container(tmp_path, profile)
    assert shown["status"] == "denied"
    assert shown["cause"] == "sandbox_unavailable"
    assert not shown["made"]


def test_reading_needs_no_namespace(tmp_path: Path) -> None:
    shown = call_in_a_container(tmp_path, "read")
    if not shown["read"]:
        pytest.skip("this kernel can't hold the profile read")
    assert shown["status"] == "succeeded"
    assert not shown["made"]
