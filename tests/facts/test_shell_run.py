"""Commands called read-only are really run with bash in a scratch folder: they change
nothing there.
"""

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

from agenttool_otel.readers.shell import shell_fact

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
_REDIRECTS = st.sampled_from(
    ["", "", "", "", "2>/dev/null", "> new", "< a.txt", "<<< x", ">> a.txt", "2>&1", "&> new"]
)
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
    lambda parts, joints: "".join(
        part + (joints[i] if i < len(parts) - 1 else "") for i, part in enumerate(parts)
    ),
    st.lists(_SIMPLE | _READERS, min_size=1, max_size=3),
    st.lists(st.sampled_from([" | ", " && ", " ; ", " || ", "\n", " & "]), min_size=3, max_size=3),
)
_COMPOUND_TEXT = r"""
    for x in W W; do C "$x"; done|for x in W; do C $x W; done|for x in *; do C "$x"; done|for x in *; do C $x; done
    for x in W; do C; done < a.txt|for x in W; do C; done > new|if C W; then C W; fi|if [ -e W ]; then C; else C W; fi
    x=W; C "$x"|x=W; C $x W|x=W && C "$x"; C $x|x=$(C W); echo "$x"|x=$(C W); C $x|C $(find W -type f)|C "$(C W)"
    find W | while read -r x; do C "$x"; done|while IFS= read -r x; do C "$x"; done < a.txt
    C W | while read x; do C; done
    echo "$(C W)" ${x}|C "$(pwd)/W"|C $PWD/W|[ "$(C W)" = W ] && C|x=W; for x in W; do C; done; C "$x"|x=W; (C "$x")
    x=(W W); C "${x[@]}"|x=(W *); C ${x[@]} W|x=(W); C W "${x[0]}"|x=($(C W)); C "${x[@]}" W|x=(W C); "${x[@]}"
    case W in W) C W;; *) C;; esac|case "$(C W)" in a*|W) C W W;; esac|C {W,W} W|C W{1..3} W|C {a.txt,W} W|C W -{n,o}
    for x in {W,W}; do C $x W; done|for x in {1..3}; do C "${x}W" W; done|for x in {1..99}; do C -n "${x}p" W; done
    { C W; C; } @ C W|{ C W; } > new|{ C; } 2>&1 @ C W|(C W) 2> /dev/null|(cd sub; C W)|(C W; C) @ C
    x=$((1+2)); C $x W|x=$(C W); echo $((x))|echo $(( $(C W) + 1 ))|x=W; C $((x + 1))|N=W; C "$N" W|F=W; C $F W
    while read -r x; do C "$x"; done < <(C W)|C < <(C W)|x=$(grep -c W a.txt); C $x W W|x=$(wc -l < W); C W "${x}W" W
    for x in $(seq 3); do C "${x}W" W; done|seq 3 @ while read x; do C $x W W; done|ls @ xargs -n1 C W|set -e; C W
    f() { C W "$1"; }; f W|f() { C "$@"; }; f W W|f() { C $1 W; }; f W; f W|f() { C "$1" @ C $2; }; f W W
    f() { C "$1"; }; C W @ f W
    f() { x=$(C "$1"); echo "$x"; }; for y in W *; do f "$y"; done|f() { g "$1" W; }; g() { C "$2" "$1"; }; f W
    f() { C < "$1"; }; f W
    n=0; for x in W *; do C W; n=$((n+1)); done; C $n|n=0; if C W; then n=1; fi; C -n $n W
    n=1; [ -f W ] && n=2; C "${n}W" W
    n=0; while read -r x; do n=$((n+1)); C "$n" W; done < a.txt
    n=$(grep -n W a.txt @ head -1 @ cut -d: -f1); C "${n}W" W
    read -r x < W; C "$x" W|read -r x y <<< W; C W "$y"|read -r x < W; C W <<< "$x"|mapfile -t x < <(C W); C "${x[@]}" W
    mapfile -t x < <(find W -type f); C W "${x[@]}"|mapfile -t x < <(C W); C "${x[0]}"
    mapfile -t x < <(find . -type f); C ${x[@]}
    pushd sub; C W; popd|pushd W && C W|C W$'\t' W|C -d$'\t' W|C $'\t'W W|printf '%d W' W "$(wc -l < W)"
    for x in sub/ W/; do x=${x%/}; C "$x" W; done
    x=W; C "${x//\/W/}" W|f() { return 1; }; f; C W|n=W; for x in W; do C $n; for n in W; do C; done; done
    x=W; C "${x%.txt}" ${#x}|C W; C $?|x=W; C W"$x"|x=W; C -n"$x" a.txt|x=W; C < "$x"|x=W; C > "$x"
"""
_COMPOUNDS = st.builds(
    lambda shape, names, words: _filled(shape, names, words),
    st.sampled_from(
        _COMPOUND_TEXT.strip().replace("\n    ", "|").replace(" | while", " @ while").split("|")
    ),
    st.lists(_COMMANDS, min_size=3, max_size=3),
    st.lists(_WORDS, min_size=4, max_size=4),
)


def _filled(shape: str, names: list[str], words: list[str]) -> str:
    """A shape with programs for each C and words for each W."""
    programs, rest = iter(names), iter(words)
    filled = "".join(
        next(programs) if c == "C" else next(rest) if c == "W" else c
        for c in shape.replace("PWD", "\0")
    )
    return filled.replace("@", "|").replace("\0", "PWD")


def _fill(folder: Path) -> None:
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text("b a needle\na b c\n1 2 3\n")
    (folder / "b.txt").write_text("x,y\n")
    (folder / "sub" / "c.txt").write_text("needle\n")
    (folder / "a b").write_text("blank\n")
    (folder / "-o").write_text("option\n")
    (folder / "--output=pwned").write_text("option\n")


def _state(folder: Path) -> list[tuple[str, int, str]]:
    rows = []
    for path in sorted(folder.rglob("*")):
        info = path.lstat()
        digest = (
            hashlib.sha256(path.read_bytes()).hexdigest()
            if path.is_file() and not path.is_symlink()
            else ""
        )
        rows.append(
            (
                str(path.relative_to(folder)),
                info.st_mode,
                f"{digest}:{info.st_mtime_ns if digest else ''}",
            )
        )
    return rows


def _run(command: str, folder: Path) -> None:
    """Runs a command with a small environment, no input, bounded time, and compares folder and
    environment.
    """
    for shell in filter(None, (_BASH, shutil.which("dash"))):
        _run_in(shell, command, folder)


def _run_in(shell: str, command: str, folder: Path) -> None:
    before = _state(folder)
    home = folder / "sub"
    script = command + "\n__status=$?\nexport -p > /dev/null\ntrue\n"
    subprocess.run(
        [shell, "-c", script],
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


@pytest.mark.slow
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


@pytest.mark.slow
@settings(
    max_examples=700,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(command=_LINES | _COMPOUNDS)
def test_a_generated_read_only_command_changes_nothing(scratch: Path, command: str) -> None:
    if shell_fact(command, argument="")["read_only"]:
        _run(command, scratch)


@pytest.mark.slow
@settings(max_examples=6000, deadline=None, suppress_health_check=list(HealthCheck))
@given(command=_LINES | _COMPOUNDS)
def test_many_generated_read_only_commands_change_nothing(scratch: Path, command: str) -> None:
    if shell_fact(command, argument="")["read_only"]:
        _run(command, scratch)
