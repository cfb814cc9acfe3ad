"""A command's words are given in every way in which a list may name it."""

from __future__ import annotations

import shlex
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenttool_otel.facts.types import FactEnvironment
from agenttool_otel.readers.shell import shell_fact
from agenttool_otel.readers.shell.spellings import MAX_ENTRY_WORDS, plain_words, spellings


def commands_of(line: str) -> list[dict[str, object]]:
    env = FactEnvironment(cwd="/proj", roots=("/proj",), read_file_system=False)
    return [
        dict(row) for row in shell_fact(line, argument="/command", surroundings=env)["commands"]
    ]


def is_listed(line: str, words: str) -> bool:
    """Whether an entry that restricts fits one of the line's commands."""
    entry = words.split()
    return any(
        reading[: len(entry)] == entry
        for row in commands_of(line)
        for reading in row["spellings"]  # type: ignore[attr-defined]
    )


WRAPPERS = [
    "time -p",
    "timeout --signal=KILL 5",
    "timeout --signal KILL 5",
    "gtimeout 5",
    "nice -n 5",
    "ionice -c 2 -n 7",
    "nohup",
    "setsid -w",
    "stdbuf -oL",
    "command -p",
    "builtin",
    "exec -a other",
    "env",
    "env -i A=b",
    "env -u HOME",
    "/usr/bin/env",
    "sudo -u bob",
    "sudo --user bob A=b",
    "doas",
    "busybox",
    "chrt 5",
    "taskset 0x1",
    "flock /tmp/lock",
    "strace -f -o log",
    "unbuffer",
    "xvfb-run -a",
    "proxychains4 -q",
    "systemd-run --user --scope",
    "caffeinate -i",
    "ld-linux-x86-64.so.2",
    "/lib64/ld-linux-x86-64.so.2 --library-path /lib",
    "xargs -0 -n 1",
    "parallel -j 4",
    "find . -name a -exec",
    "find . -ok",
    "fd -e py -x",
    "uv run --with x",
    "uvx",
    "poetry run",
    "pdm run",
    "pipenv run",
    "hatch run",
    "conda run -n env",
    "npx -y",
    "npm exec --",
    "pnpm dlx",
    "yarn exec",
    "bunx",
    "bundle exec",
    "direnv exec .",
    "mise exec --",
    "dotenv -f .env --",
    "unheard-of --flag x --",
    "docker run --rm -it image",
    "docker compose exec web",
    "kubectl exec -n ns pod --",
    "ssh -p 22 host",
    "git bisect run",
    "git submodule foreach",
    "A=b B=c",
    "timeout 5 nice env A=b",
]


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_command_is_seen_behind_what_runs_it(wrapper: str) -> None:
    assert is_listed(f"{wrapper} prog sub x", "prog sub")
    assert is_listed(f"{wrapper} /opt/bin/prog sub x", "prog sub")
    assert not is_listed(f"{wrapper} other sub x", "prog sub")


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        ("bash -lc 'prog sub x'", "prog sub"),
        ("sudo sh -c 'cd a && prog sub'", "prog sub"),
        ("su - bob -c 'prog sub'", "prog sub"),
        ("script -c 'prog sub' out", "prog sub"),
        ("watch 'prog sub'", "prog sub"),
        ("hyperfine --runs 3 'prog sub'", "prog sub"),
        ("nix-shell --run 'prog sub'", "prog sub"),
        ("tmux new-session -d 'prog sub'", "prog sub"),
        ("env -S 'prog sub'", "prog sub"),
        ("ssh host 'cd x; prog sub'", "prog sub"),
        ("eval 'prog sub'", "prog sub"),
        ("trap 'prog sub' EXIT", "prog sub"),
        ("alias p='prog sub'", "prog sub"),
        ("git -c alias.p='!prog sub' p", "prog sub"),
        ("git -c alias.p='push -f' p", "git push"),
        ("git rebase --exec 'prog sub' main", "prog sub"),
        ("git rebase -x 'prog sub' main", "prog sub"),
        ("python -m prog sub", "prog sub"),
        ("python3.12 -W ignore -mprog sub", "prog sub"),
        ("python -um prog.__main__ sub", "prog sub"),
        ("coverage run -m prog sub", "prog sub"),
        ("uv run python -m cProfile -m prog sub", "prog sub"),
        ("python tools/prog sub", "prog sub"),
        ("node node_modules/.bin/prog sub", "prog sub"),
        ("sh ./prog sub", "prog sub"),
        (". ./prog sub", "prog sub"),
        ("pip3.11 install x", "pip install"),
        ("npx prog@latest sub", "prog sub"),
        ("PROG.exe sub", "prog sub"),
    ],
)
def test_a_command_is_seen_within_a_text_or_another_name(line: str, entry: str) -> None:
    assert is_listed(line, entry)


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        ("git --no-pager -C dir push", "git push"),
        ("git -c a.b=c -p push", "git push"),
        ("git --git-dir x --work-tree=y push", "git push"),
        ("git --unheard-of x push", "git push"),
        ("docker -H tcp://h run x", "docker run"),
        ("docker --context a compose -f b.yml up", "docker compose up"),
        ("docker container run x", "docker run"),
        ("kubectl -n ns --context=c delete pod x", "kubectl delete pod"),
        ("kubectl delete --wait=false -n ns pod x", "kubectl delete pod"),
        ("npm --prefix web --silent publish", "npm publish"),
        ("npm run --if-present deploy", "npm run deploy"),
        ("npm i x", "npm install"),
        ("npm run test", "npm test"),
        ("cargo +nightly --locked publish", "cargo publish"),
        ("pip --proxy p install x", "pip install"),
        ("apt-get -y -o A::b=c install x", "apt-get install"),
        ("make -C dir -j 4 A=b deploy", "make deploy"),
        ("make build deploy", "make deploy"),
        ("gh --repo a/b pr merge 3", "gh pr merge"),
        ("aws --profile p s3 --debug rm x", "aws s3 rm"),
        ("terraform -chdir=x apply", "terraform apply"),
    ],
)
def test_options_before_a_sub_command_hide_nothing(line: str, entry: str) -> None:
    assert is_listed(line, entry)


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        ("git commit -m push", "git push"),
        ("git -C push status", "git push"),
        ("git log push", "git push"),
        ("git --no-pager log push", "git push"),
        ("git rm x", "rm"),
        ("git checkout -- rm", "rm"),
        ("echo rm x", "rm"),
        ("grep -e rm -- file", "rm"),
        ("grep -rn 'rm x' .", "rm"),
        ("git commit -m 'rm x'", "rm"),
        ("apt install git", "git"),
        ("find . -name rm", "rm"),
        ("timeout --signal KILL 5 ls", "kill"),
        ("kubectl -n delete get pods", "kubectl delete"),
        ("rg -c rm src", "rm"),
    ],
)
def test_words_that_run_nothing_are_no_command(line: str, entry: str) -> None:
    assert not is_listed(line, entry)


WORD = st.text(alphabet=string.ascii_lowercase + string.digits + "-=./@ ", min_size=1, max_size=8)


@given(st.lists(st.sampled_from(WRAPPERS[:24]), max_size=4), st.lists(WORD, max_size=4))
def test_any_row_of_wrappers_is_seen_through(wrappers: list[str], rest: list[str]) -> None:
    line = " ".join([*wrappers, shlex.join(["prog", "sub", *rest])])
    assert any(reading[:2] == ["prog", "sub"] for reading in spellings(shlex.split(line)) or [])


@given(st.lists(WORD, max_size=30))
def test_readings_are_bounded_and_begin_as_written(words: list[str]) -> None:
    readings = spellings(words)
    if not words or readings is None:
        return
    assert readings[0] == words
    assert all(0 < len(reading) <= MAX_ENTRY_WORDS for reading in readings[1:])


def test_a_command_of_too_many_readings_is_not_proven() -> None:
    line = "docker " + " ".join(f"-x{index} {index}" for index in range(300))
    fact = shell_fact(
        line,
        argument="/command",
        surroundings=FactEnvironment(cwd="/proj", read_file_system=False),
    )
    assert fact["unparsed"] == "too_many_readings"
    assert not fact["read_only"]


def test_scripts_nested_too_deep_are_not_proven() -> None:
    line = "prog"
    for _ in range(7):
        line = f"sh -c {shlex.quote(line)}"
    fact = shell_fact(
        line,
        argument="/command",
        surroundings=FactEnvironment(cwd="/proj", read_file_system=False),
    )
    assert fact["unparsed"] == "nested_too_deep"


@pytest.mark.parametrize(
    "line",
    [
        "npm test",
        "/usr/bin/npm test",
        "time npm test",
        "time -p npm test",
        "timeout 60 npm test",
        "timeout -k 5 -s KILL 60s npm test",
        "nice -n 10 npm test",
        "nice -5 npm test",
        "ionice -c 3 npm test",
        "stdbuf -oL -eL npm test",
        "command npm test",
        "env CI=1 NO_COLOR=1 npm test",
        "CI=true FORCE_COLOR=0 npm test",
        "NODE_ENV=test timeout 60 nice npm test",
        "LC_ALL=C TZ=UTC time npm test",
    ],
)
def test_a_permission_sees_through_harmless_wrappers(line: str) -> None:
    assert commands_of(line)[0]["plain"] == ["npm", "test"]


@pytest.mark.parametrize(
    "line",
    [
        "LD_PRELOAD=x npm test",
        "PATH=. npm test",
        "NODE_OPTIONS=--require=x npm test",
        "CI=$(id) npm test",
        "CI=../x npm test",
        "CI=1 PATH=. npm test",
        "env PATH=. npm test",
        "env -i npm test",
        "env -S 'npm test'",
        "sudo npm test",
        "time -o out npm test",
        "time -f x npm test",
        "timeout npm test",
        "timeout '-k 5' 60 npm test",
        "uv run npm test",
        "npx npm test",
        "xargs npm test",
        "find . -exec npm test ;",
        "nohup npm test",
        "strace npm test",
        "./npm test",
        "./timeout 5 npm test",
        "/tmp/env npm test",
        "exec -a x npm test",
        "command -p npm test",
        "busybox npm test",
        "chroot . npm test",
    ],
)
def test_a_permission_sees_through_nothing_else(line: str) -> None:
    assert commands_of(line)[0]["plain"] != ["npm", "test"]


@pytest.mark.parametrize(
    "line",
    [
        "bash -c 'npm test'",
        "bash -lc 'npm test'",
        "sh -euxc 'npm test'",
        "time bash -l -c 'npm test'",
        "bash -o pipefail -c 'npm test'",
    ],
)
def test_a_shell_that_runs_one_text_carries_its_commands(line: str) -> None:
    shell, *inner = commands_of(line)
    assert shell["carries"]
    assert [row["plain"] for row in inner] == [["npm", "test"]]


@pytest.mark.parametrize(
    "line",
    [
        "bash script.sh",
        "bash -c 'npm test' name",
        "bash --rcfile x -c 'npm test'",
        "bash --init-file x -ic 'npm test'",
        "BASH_ENV=x bash -c 'npm test'",
        "./bash -c 'npm test'",
        "bash",
        "sudo bash -c 'npm test'",
        "bash -O extdebug -c 'npm test'",
        "python -c 'npm test'",
    ],
)
def test_a_shell_with_more_words_carries_nothing(line: str) -> None:
    assert not commands_of(line)[0]["carries"]


@given(
    st.lists(WORD, min_size=1, max_size=6),
    st.lists(st.sampled_from(["PATH=.", "CI=1", "LD_PRELOAD=x"]), max_size=2),
)
def test_plain_words_are_the_end_of_the_command(words: list[str], assignments: list[str]) -> None:
    plain = plain_words(words, assignments)
    assert not plain or plain[1:] == words[len(words) - len(plain) + 1 :]
    assert not plain or set(assignments) <= {"CI=1"}
