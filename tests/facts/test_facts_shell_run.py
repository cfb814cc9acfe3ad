"""Commands called read-only are really run with bash in a scratch folder: they change nothing there."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agenttool_otel.facts.shell import shell_fact

_OWN = Path(__file__).parent / "corpus" / "shell.jsonl"
_BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(_BASH is None, reason="bash is not installed")

# Words that a reader and a writer could both hold, so that combinations cross the line often.
_COMMAND_TEXT = """
    ls cat head tail wc sort uniq cut tr grep find sed awk diff stat file du basename od nl tac rev paste join comm echo
    printf test [ [[ env timeout nice command bash sh cd pwd true date id uname which type tee touch cp mv rm mkdir ln
    truncate dd split xargs tree xxd base64 md5sum column fold expand strings readlink realpath seq
"""
_COMMANDS = st.sampled_from(_COMMAND_TEXT.split())
_WORD_TEXT = r"""
    -a|-n|-l|-i|-r|-o|-c|-e|-f|-v|-w|-u|-k1|-t,|-5|-la|-no|-ri|-exec|-delete|-name|-type|-print|-fprint|-maxdepth|-z
    --output=x|--out=x|--in-place|-i.bak|--help|--|-|a.txt|b.txt|sub|new|sub/c.txt|.|*.txt|./*|*|1|2|5|f|d|1p|1,2p
    s/a/b/|'s/a/b/w new'|'w new'|'s/a/b/e'|'1w new'|'{print $1}'|'{print>"new"}'|'BEGIN{system("touch new")}'|\;|{}|+
    =|==|-eq|0|]|]]|'ls'|'touch new'|"a b"|'$(touch new)'|$(touch new)|`touch new`|$HOME|~|a=b|'a[$(touch new)]'|<(ls)
    <(touch new)|>(cat)|3|'%s'|%d|%n|-A1|needle
"""
_WORDS = st.sampled_from(_WORD_TEXT.strip().replace("\n    ", "|").split("|"))
_REDIRECTS = st.sampled_from(["", "", "", "", "2>/dev/null", "> new", "< a.txt", "<<< x", ">> a.txt", "2>&1", "&> new"])
_SIMPLE = st.builds(
    lambda name, words, redirect: " ".join([name, *words, redirect]).strip(),
    _COMMANDS,
    st.lists(_WORDS, max_size=4),
    _REDIRECTS,
)
_READING = st.sampled_from(
    [row for row in map(json.loads, _OWN.read_text().splitlines()) if row["class"] == "controls"]
)
_READERS = st.builds(
    lambda row, words, redirect: " ".join([row["input"], *words, redirect]).strip(),
    _READING,
    st.lists(_WORDS, max_size=2),
    _REDIRECTS,
)
_LINES = st.builds(
    lambda parts, joints: "".join(part + (joints[i] if i < len(parts) - 1 else "") for i, part in enumerate(parts)),
    st.lists(_SIMPLE | _READERS, min_size=1, max_size=3),
    st.lists(st.sampled_from([" | ", " && ", " ; ", " || ", "\n", " & "]), min_size=3, max_size=3),
)


def _fill(folder: Path) -> None:
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text("b a needle\na b c\n1 2 3\n")
    (folder / "b.txt").write_text("x,y\n")
    (folder / "sub" / "c.txt").write_text("needle\n")
    (folder / "-o").write_text("option\n")
    (folder / "--output=pwned").write_text("option\n")


def _state(folder: Path) -> list[tuple[str, int, str]]:
    rows = []
    for path in sorted(folder.rglob("*")):
        info = path.lstat()
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else ""
        rows.append((str(path.relative_to(folder)), info.st_mode, f"{digest}:{info.st_mtime_ns if digest else ''}"))
    return rows


def _run(command: str, folder: Path) -> None:
    """Runs a command with a small environment, no input, bounded time, and compares folder and environment."""
    before = _state(folder)
    home = folder / "sub"
    script = command + "\n__status=$?\nexport -p > /dev/null\ntrue\n"
    subprocess.run(
        [str(_BASH), "--noprofile", "--norc", "-c", script],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(folder), "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=10,
        check=False,
    )
    assert _state(folder) == before, command


def _exported(command: str, folder: Path) -> tuple[str, str]:
    """The shell's variables before and after a command, in the same shell."""
    probe = "set -o posix; set | grep -v '^_=\\|^BASH_\\|^LINENO\\|^PIPESTATUS\\|^PWD=\\|^OLDPWD='"
    output = subprocess.run(
        [
            str(_BASH),
            "--noprofile",
            "--norc",
            "-c",
            f"{probe}\nprintf '\\001\\n'\n{command}\nprintf '\\001\\n'\n{probe}\n",
        ],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder / "sub"), "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=10,
        check=False,
    ).stdout.decode("utf-8", "replace")
    parts = output.split("\x01\n")
    return parts[0], parts[-1]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scratch")
    _fill(folder)
    return folder


def test_the_comparison_notices_a_change(scratch: Path, tmp_path: Path) -> None:
    _fill(tmp_path / "x")
    with pytest.raises(AssertionError):
        _run("touch new", tmp_path / "x")
    before, after = _exported("A=1", scratch)
    assert before != after


def test_every_proven_command_of_the_corpus_changes_nothing(scratch: Path) -> None:
    rows = [json.loads(line) for line in _OWN.read_text(encoding="utf-8").splitlines()]
    ran = 0
    for row in rows:
        result = shell_fact(row["input"], argument="")
        # Reading the whole machine is slow, not wrong.
        words = [word for command in result["commands"] for word in command["argv"]]
        wide = any(word in ("/", "/etc", "/root", "/dev/zero") for word in words)
        if result["read_only"] and not wide:
            _run(row["input"], scratch)
            before, after = _exported(row["input"], scratch)
            assert before == after, row["input"]
            ran += 1
    assert ran > 90


@settings(
    max_examples=700, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(command=_LINES)
def test_a_generated_read_only_command_changes_nothing(scratch: Path, command: str) -> None:
    if shell_fact(command, argument="")["read_only"]:
        _run(command, scratch)


@pytest.mark.slow
@settings(max_examples=6000, deadline=None, suppress_health_check=list(HealthCheck))
@given(command=_LINES)
def test_many_generated_read_only_commands_change_nothing(scratch: Path, command: str) -> None:
    if shell_fact(command, argument="")["read_only"]:
        _run(command, scratch)
