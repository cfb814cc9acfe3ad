"""All of it holds for a user who is not root, in a user namespace."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
FOLDER = Path(__file__).parent
PROJECT = FOLDER.parents[2]
FILES = ("test_effects.py", "test_commits.py", "test_isolation.py", "test_equal_trees.py")
PROGRAMS = ("unshare", "mount", "setpriv")
# Python may lie in the home of root, which is closed: the test's own mounts show it alone
AS_NOBODY = """
set -e
stash=$1 python=$2 closed=$3
if [ -n "$closed" ]; then
    mkdir "$stash"
    mount --bind "$python" "$stash"
    mount -t tmpfs -o mode=755 none "$closed"
    mkdir -p "$python"
    mount --bind "$stash" "$python"
fi
shift 3
exec setpriv --reuid "$1" --regid "$2" --clear-groups -- "$3" -m pytest -m "not slow" -rs \
    --basetemp="$4/base" "$5"
"""


def closed_above(path: str) -> str:
    """Return the outermost directory above a path that others can't enter; empty if none is."""
    for folder in reversed(Path(path).parents):
        if not folder.stat().st_mode & 0o001:
            return os.fspath(folder)
    return ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("name", FILES)
def test_the_same_tests_pass_for_an_ordinary_user(host: None, name: str) -> None:
    if not all(map(shutil.which, PROGRAMS)):
        pytest.skip(f"one of {PROGRAMS} is not here")
    try:
        user = pwd.getpwnam("nobody")
    except KeyError:
        pytest.skip("there is no user nobody")
    # below /tmp itself: the folders of pytest are root's alone
    home = Path(tempfile.mkdtemp(prefix="rehearsal-nobody-"))
    os.chown(home, user.pw_uid, user.pw_gid)
    environment = {
        **os.environ,
        "HOME": os.fspath(home),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": os.fspath(home / "hypothesis"),
    }
    python = sys.base_prefix
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", AS_NOBODY, "sh"]
    words += [f"{home}-python", python, closed_above(python), str(user.pw_uid), str(user.pw_gid)]
    words += [sys.executable, os.fspath(home), os.fspath(FOLDER / name)]
    try:
        done = subprocess.run(
            words, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=280
        )
    finally:
        shutil.rmtree(home, ignore_errors=True)
        stash = Path(f"{home}-python")
        if stash.exists():
            stash.rmdir()
    if "Permission denied" in done.stderr and not done.stdout:
        pytest.skip(f"an ordinary user can't run this checkout: {done.stderr[-200:]}")
    if "no rehearsal on this host" in done.stdout:
        pytest.skip(done.stdout[-300:])
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr
