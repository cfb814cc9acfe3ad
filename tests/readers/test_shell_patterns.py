"""The patterns of the shell reader: those in its tables, and long ones part by part."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agenttool_otel.readers.shell import harmless, listing, shell_fact
from agenttool_otel.readers.shell.effects import is_harmless_variable
from agenttool_otel.readers.shell.git.config import judge_config
from agenttool_otel.readers.shell.git.layout import Layout
from agenttool_otel.readers.shell.reviewed.words import rows
from agenttool_otel.readers.shell.secret_patterns import secret_patterns
from agenttool_otel.readers.shell.tables import effects, programs, read_only, sensitive
from agenttool_otel.values.tables import load_table

WORDS = load_table("agenttool_otel.readers.shell", "data/sensitive.toml")["words"]
SECRETS = secret_patterns(WORDS)
NOWHERE = Layout(Path("/nowhere/.git"), Path("/nowhere/.git"), Path("/nowhere"))

# what each pattern of paths finds, and what it leaves alone
SECRET_PATHS = {
    "home_directories": ("~/.ssh/config", "ssh/config"),
    "config_directories": ("~/.config/gh/hosts.yml", "~/.config/htop/htoprc"),
    "dot_env": ("app/.env.local", "env/app"),
    "ssh_keys": ("id_ed25519.pub", "id_card"),
    "home_files": ("~/.netrc.bak", "netrc"),
    "histories": ("~/.bash_history", "docs/history"),
    "home_places": ("~/.m2/settings.xml", "~/.m2/repository"),
    "system_places": ("/var/lib/mysql/db", "/var/lib/apt"),
    "netrc_and_git": ("src/.git/config", "src/.git/HEAD"),
    "keys": ("server.pem", "server.crt"),
    "secrets": ("client_secrets.json", "secrets.py"),
    "secret_endings": ("db.password", "db_password.go"),
    "cloud_files": ("credentials.json", "credentials.d/x"),
    "system_files": ("/etc/shadow", "/etc/hosts"),
    "accounts": ("backup/shadow-", "shadow.css"),
    "root_home": ("/root/x", "/rootfs/x"),
    "processes": ("/proc/1/task/2/environ", "/proc/1/status"),
    "kernel": ("/proc/kcore", "/proc/cpuinfo"),
    "environment": ("/etc/environment", "/etc/environment.d"),
    "runtime_secrets": ("/run/secrets/db", "/run/lock"),
    "devices": ("/dev/sda1", "/dev/null"),
    "state": ("/var/lib/docker/x", "/var/lib/dpkg"),
    "program_files": ("wp-config.php", "config.php"),
}


def found(name: str, path: str) -> bool:
    return re.search(f"(?i){SECRETS[name]}", path) is not None


@pytest.mark.parametrize("name", SECRETS)
def test_a_pattern_of_secret_paths(name: str) -> None:
    secret, other = SECRET_PATHS[name]
    assert found(name, secret)
    assert not found(name, other)
    assert sensitive().path.search(secret)


def alternatives(pattern: str) -> list[str]:
    """The alternatives of a pattern that stand in no brackets."""
    parts, depth = [""], 0
    for piece in re.findall(r"\\.|\[[^\]]*\]|.", pattern):
        depth += (piece == "(") - (piece == ")")
        if piece == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
    return parts


@pytest.mark.parametrize("name", SECRETS)
def test_a_pattern_of_secret_paths_starts_at_a_component(name: str) -> None:
    assert all(part.startswith("(^|/)") for part in alternatives(SECRETS[name]))
    assert not any("(^|/)" in part.removeprefix("(^|/)") for part in alternatives(SECRETS[name]))


def test_all_patterns_of_secret_paths_find_what_each_finds() -> None:
    paths = [path for pair in SECRET_PATHS.values() for path in pair]
    for path in [*paths, *(f"/a{path}" for path in paths), *(f"{path}x/b" for path in paths)]:
        apart = any(found(name, path) for name in SECRETS)
        assert (sensitive().path.search(path) is not None) is apart, path


@pytest.mark.parametrize("name", WORDS)
def test_every_word_of_secret_paths_is_in_a_pattern(name: str) -> None:
    patterns = "".join(SECRETS.values())
    assert all(word in patterns for word in WORDS[name])


@pytest.mark.parametrize(
    ("part", "sample", "other"),
    [
        (harmless._KILL_AFTER, "-k 5s", "-k"),
        (harmless._KILL_AFTER, "--kill-after=2.5", "--kill"),
        (harmless._SIGNAL, "-s TERM", "-s term"),
        (harmless._SIGNAL, "--signal=9", "--signal"),
        (harmless._TIMEOUT_FLAGS, "--foreground", "--help"),
        (harmless._TIMEOUT_OPTIONS, "-v -s KILL ", "-v -i "),
        (harmless._GTIMEOUT_OPTIONS, "-k5 --foreground ", "--verbose "),
        (harmless._DURATION, "2.5m ", "make "),
        (harmless._WRAPPERS["time"].pattern, "-p ", "-o x "),
        (harmless._WRAPPERS["nice"].pattern, "-n 10 ", "-n x "),
        (harmless._WRAPPERS["ionice"].pattern, "-c2 -n 7 ", "-p 1 "),
        (harmless._WRAPPERS["stdbuf"].pattern, "-oL -e0 ", "-x "),
        (harmless._WRAPPERS["command"].pattern, "-- ", "-v "),
        (harmless._WRAPPERS["env"].pattern, "-- ", "-i "),
        (listing._CUTS, "head -n", "head x"),
        (listing._SORTS, "sort -u -r", "sort -o x"),
        (listing._GREPS, "grep -v", "grep -f"),
        (listing._RG_LONG, "--glob=*.py", "--pre=x"),
        (listing._GIT_GREP_OPTIONS, "-in", "-O"),
        (listing._GIT_GREP_LISTS, "-il", "-i"),
        (listing._GIT_GREP_PATHS, " -- *.py src", " -- ../x"),
        (listing._FOLDER, "src/deep", "../src"),
    ],
)
def test_a_part_of_a_pattern_of_commands(part: str, sample: str, other: str) -> None:
    assert re.fullmatch(part, sample)
    assert not re.fullmatch(part, other)


@pytest.mark.parametrize("name", harmless._WRAPPERS)
def test_a_wrapper_that_changes_nothing(name: str) -> None:
    options = {"timeout": ["5"], "gtimeout": ["5"], "stdbuf": ["-oL"]}.get(name, [])
    assert harmless.behind_harmless([name, *options, "make", "x"]) == ["make", "x"]
    assert harmless.behind_harmless([name, *options, "-x", "make"]) is None


@pytest.mark.parametrize(
    "name",
    ["LD_PRELOAD", "GIT_SSH_COMMAND", "GIT_DIR", "GIT_PAGER", "EDITOR", "PATH", "PERL5LIB"],
)
def test_a_variable_that_names_a_program(name: str) -> None:
    assert effects().program_variables.fullmatch(name)
    assert not is_harmless_variable(name)


@pytest.mark.parametrize("name", ["LANG", "GIT_AUTHOR_NAME", "MY_PATH", "PATHS"])
def test_a_variable_that_names_no_program(name: str) -> None:
    assert not effects().program_variables.fullmatch(name)


# a value of each setting of git that runs nothing, and one that is refused
GIT_VALUES = {
    "core.pager": ("less -F -X", "less -R | sh"),
    "core.fsmonitor": ("false", "true"),
    "pager.*": ("cat", "sh"),
    "log.showsignature": ("no", "yes"),
    "submodule.recurse": ("0", "1"),
    "branch.sort": ("-committerdate", "-signature"),
    "tag.sort": ("v:refname", "contents"),
    "format.pretty": ("fuller", "%GK"),
    "core.repositoryformatversion": ("1", "2"),
    "protocol.version": ("2", "3"),
    "log.date": ("format:%Y-%m", "format:%"),
    "blame.date": ("iso-strict", "format:%Y"),
    "diff.wordregex": ("[a-z]+", "a{3}"),
    "diff.*.xfuncname": ("^def ", "a{3}"),
    "diff.*.funcname": ("^def ", "a{3}"),
    "diff.*.wordregex": ("[a-z]+", "a{3}"),
}


@pytest.mark.parametrize("setting", programs()["git_values"])
def test_a_setting_of_git(setting: str) -> None:
    allowed, refused = GIT_VALUES[setting]
    section, _, key = setting.rpartition(".")
    if setting == "pager.*":
        section, key = "pager", "log"
    header = f'[{section.removesuffix(".*")} "x"]' if section.endswith(".*") else f"[{section}]"
    for value, harmless_value in ((allowed, True), (refused, False)):
        reason = judge_config(f"{header}\n\t{key} = {value}\n".encode(), NOWHERE)
        assert (reason == "") is harmless_value, value


# a word that each pattern of operands allows, and one that it refuses
OPERANDS = {
    "tail": ("+20", "+f"),
    "git config": ("remote.origin.url", "credential.helper"),
    "git reflog": ("HEAD@{1}", "expire"),
    "git var": ("GIT_EDITOR", "GIT_SSH"),
    "date": ("+%F", "12:00"),
    "sleep": ("0.5s", "infinity"),
    "tput": ("cols", "reset"),
    "stty": ("size", "sane"),
    "ps": ("aux", "e"),
    "shopt": ("globstar", "expand_aliases"),
    "lsof -nP": ("TCP:80", "+d"),
    "tar -tf": ("a.tar", "host:a.tar"),
    "tar -xOf": ("a.tar", "host:a.tar"),
    "zgrep": ("a b", "a\nb"),
    "pushd": ("src", "+1"),
    "exit": ("1", "x"),
    "seq": ("10", "1e9"),
    "factor": ("12", "x"),
    "cal": ("2026", "-s"),
    "last": ("root", "-f"),
    "git symbolic-ref": ("HEAD", "refs/x"),
    "git remote get-url": ("origin", "--all"),
    "xmllint": ("a.xml", "http://x/a.xml"),
}


def test_every_pattern_of_operands_has_samples() -> None:
    tested = {read_only()[name].operand_pattern for name in OPERANDS}
    patterns = {row.operand_pattern for row in read_only().values()}
    assert patterns - {None} == tested


@pytest.mark.parametrize("name", OPERANDS)
def test_a_pattern_of_operands(name: str) -> None:
    pattern = read_only()[name].operand_pattern
    assert pattern is not None
    allowed, refused = OPERANDS[name]
    assert pattern.fullmatch(allowed)
    assert not pattern.fullmatch(refused)


@pytest.mark.parametrize(
    ("name", "narrows", "reads"),
    [("git grep", ":!docs/*.md", ":(glob)src"), ("git grep", ":^docs", "docs")],
)
def test_a_pattern_of_operands_that_leave_out(name: str, narrows: str, reads: str) -> None:
    pattern = read_only()[name].narrows
    assert pattern is not None
    assert pattern.fullmatch(narrows)
    assert not pattern.fullmatch(reads)


@pytest.mark.parametrize(
    ("name", "sensitive_value", "other"),
    [
        ("date", "TZ=/etc/x", "today"),
        ("ps", "pid,environ", "pid,args"),
        ("iconv", "/etc/table", "ASCII//TRANSLIT"),
        ("lsof -nP", "@host", ":80"),
    ],
)
def test_a_pattern_of_sensitive_values(name: str, sensitive_value: str, other: str) -> None:
    pattern = read_only()[name].sensitive_value
    assert pattern is not None
    assert pattern.search(sensitive_value)
    assert not pattern.search(other)


def test_a_refused_operand_is_not_proven() -> None:
    assert shell_fact("git config remote.origin.url")["read_only"]
    assert not shell_fact("git config credential.helper")["read_only"]


@pytest.mark.parametrize("word", ["-Wall", "-O2", "-std=c++20", "-DX=1", "-lm", "-flto"])
def test_a_word_that_is_inert_to_a_compiler(word: str) -> None:
    pattern = rows()["gcc"].pattern
    assert pattern is not None
    assert pattern.fullmatch(word)
    assert not pattern.fullmatch(f"{word};")


def test_a_word_behind_the_dashes_of_cargo_test() -> None:
    behind = rows()["cargo test"].behind
    assert behind is not None
    assert behind.fullmatch("--test-threads=1")
    assert behind.fullmatch("module::test")
    assert not behind.fullmatch("--logfile=x")
