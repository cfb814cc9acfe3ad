"""What shell facts say of reads that touch credentials: also behind globs, filters of
names, and a cd.
"""

from __future__ import annotations

import time

import pytest
from shell_samples import samples_of

from agenttool_otel.readers.shell import shell_fact
from agenttool_otel.readers.shell.secret_patterns import secret_patterns
from agenttool_otel.values.tables import load_table

_DATA = load_table("agenttool_otel.readers.shell", "data/sensitive.toml")


def flagged(command: str) -> bool:
    return shell_fact(command, argument="/command")["sensitive_read"]


@pytest.mark.parametrize("pattern", secret_patterns(_DATA["words"]).values())
def test_a_glob_for_any_name_of_a_secret_is_seen(pattern: str) -> None:
    names = {name.lower() for name in samples_of(pattern) if name[-1] not in ".~-"}
    assert names
    # elsewhere it is a common name
    names = {"/" + name if name in ("root", "var/root") else name for name in names}
    missed = []
    for name in names:
        head, slash, last = name.rpartition("/")
        # Its last letter left to a glob, and its second one, as the red team did.
        for glob in (last[:-1] + "?", last[0] + "?" + last[2:] if len(last) > 2 else last):
            place = f"{head}{slash}{glob}".replace(" ", "\\ ")
            if not flagged(f"cat {place}"):
                missed.append(place)
    assert missed == []


@pytest.mark.parametrize(
    "command",
    [
        "cat ~/.{ssh,{aws,x}}/config",
        "cat ~/.s{s,{x,y}}h/id",
        "cat \"$HOME\"/.s's'h/config",
        'cat ${HOME}/.a"w"s/config',
        "cat $'/etc/\\x73hadow'",
        "cat $'/etc/\\163hadow'",
        "cat ~/.s\\sh/config",
        "ps auxe",
        "ps eww",
        "for f in ~/.ssh/*; do cat $f; done",
    ],
)
def test_unreadable_commands_still_warn_of_secrets_in_words(command: str) -> None:
    assert flagged(command)
    assert not shell_fact(command, argument="")["read_only"]


@pytest.mark.parametrize(
    "command",
    [
        "cat *",
        "cat src/*",
        "grep foo *",
        "cat *.json",
        "find . -name '*.json'",
        "find . -regex '.*\\.\\(c\\|h\\)'",
        "ls -l /proc/self/fd",
        "cat [[:digit:]]*.md",
        "cat test*",
        "rg -g '*.py' foo",
        "grep -r --include='*.ts' foo src",
        "du -sh ~",
        "jq .usage.total_tokens f",
        "rg task-list",
        "cat ../*/package.json",
        "cd src && grep -rn foo .",
        "cd src && bash -c 'rg foo .'",
        "fd -e py foo",
        "ps -o pid,comm",
    ],
)
def test_everyday_reads_do_not_warn(command: str) -> None:
    assert not flagged(command)


@pytest.mark.speed
def test_what_looks_like_a_pathspec_is_read_in_little_time() -> None:
    started = time.thread_time()
    flagged("cat '(" + "attr:" * 3000 + "'")
    assert time.thread_time() - started < 1
