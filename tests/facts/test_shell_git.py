"""Git's reading commands are proven only where the repository's own configuration runs nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from agenttool_otel.facts.types import FactEnvironment
from agenttool_otel.readers.shell import shell_fact
from agenttool_otel.readers.types import ShellFact, ShellPlace

_ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
}
READING = [
    "git status",
    "git status --porcelain=v1 -uno",
    "git --no-pager status --short",
    "git diff HEAD~1 a.txt | head -20",
    "git log --oneline -5",
    "git show HEAD:a.txt",
    "git blame a.txt",
    "git branch --list",
    "git stash list",
    "git ls-files | xargs wc -l",
    "timeout 5 git diff --stat",
    "find . -name a.txt && git rev-parse HEAD",
    "git show HEAD^",
    "git cat-file -p HEAD^{tree}",
    "git diff HEAD^^ HEAD^2",
    "git show stash@{0} HEAD^:a.txt",
    "git log HEAD@{upstream}..HEAD",
    "git log --grep='#1321' --oneline",
    "git config --get user.name",
    "git for-each-ref --format='%(refname:short) %(objectname:short)' --sort=-committerdate refs/heads",
    "git grep -n -e TODO --and -e later -- a.txt",
    "git config --get-all remote.origin.url",
]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "a.txt").write_text("a\n")
    for words in (
        ["init", "-q"],
        ["config", "user.email", "dev@example.org"],
        ["config", "user.name", "dev"],
        ["add", "a.txt"],
        ["commit", "-qm", "first"],
    ):
        subprocess.run(["git", *words], cwd=tmp_path, env=_ENVIRONMENT, check=True)
    return tmp_path


def fact_of(line: str, folder: Path) -> ShellFact:
    return shell_fact(
        line,
        argument="/command",
        surroundings=FactEnvironment(roots=(str(folder),), cwd=str(folder)),
    )


@pytest.mark.parametrize("line", READING)
def test_reading_git_commands_are_proven(line: str, repository: Path) -> None:
    fact = fact_of(line, repository)
    assert fact["read_only"], [row["reason"] for row in fact["commands"]]
    assert fact["complete"]


@pytest.mark.parametrize(
    "setting",
    [
        "core.fsmonitor",
        "core.pager",
        "pager.log",
        "diff.external",
        "diff.txt.textconv",
        "filter.x.clean",
        "include.path",
        "core.worktree",
        "remote.origin.promisor",
        "remote.origin.uploadpack",
        "log.showSignature",
        "gpg.program",
        "format.pretty",
        "branch.sort",
        "unheard.of",
    ],
)
def test_a_setting_that_may_run_something_ends_the_proof(setting: str, repository: Path) -> None:
    subprocess.run(
        ["git", "config", setting, "touch pwned"], cwd=repository, env=_ENVIRONMENT, check=True
    )
    for line in READING:
        assert not fact_of(line, repository)["read_only"], line
    assert not fact_of("git status", repository / "sub" / "below")["read_only"]


@pytest.mark.parametrize(
    "setting",
    [
        "alias.status",
        "alias.recent",
        "commit.gpgsign",
        "core.editor",
        "branch.main.pushRemote",
        "color.diff.meta",
    ],
)
def test_a_setting_that_no_reading_command_obeys_runs_nothing(
    setting: str, repository: Path
) -> None:
    ran = repository / "ran"
    subprocess.run(
        ["git", "config", setting, f"!touch {ran}"], cwd=repository, env=_ENVIRONMENT, check=True
    )
    for line in READING:
        assert fact_of(line, repository)["read_only"], line
        subprocess.run(
            line, shell=True, cwd=repository, env=_ENVIRONMENT, capture_output=True, check=False
        )
    assert not ran.exists()


def test_a_path_of_hooks_is_looked_at(repository: Path) -> None:
    hook = repository / ".husky" / "_" / "post-index-change"
    hook.parent.mkdir(parents=True)
    (hook.parent / "pre-commit").write_text("#!/bin/sh\n")
    for value in (".husky/_", str(hook.parent)):
        _git(repository, "config", "core.hooksPath", value)
        assert fact_of("git status", repository)["read_only"]
        hook.write_text("#!/bin/sh\ntouch ran\n")
        assert not fact_of("git status", repository)["read_only"]
        hook.unlink()
    _git(repository, "config", "core.hooksPath", '.husky/_ ;"')
    assert not fact_of("git status", repository)["read_only"]


@pytest.mark.parametrize(
    ("setting", "harmless", "harmful"),
    [
        ("core.pager", "less -FRX", "less -o out"),
        ("pager.log", "false", "touch ran"),
        ("core.fsmonitor", "false", "true"),
        ("tag.sort", "-version:refname", "signature:grade"),
        ("format.pretty", "oneline", "%GG"),
        ("log.date", "format:%Y-%m", "format:%2000000000d"),
        ("diff.x.xfuncname", "^def", "((x{1,255}){1,255}){1,255}"),
        ("log.diffMerges", None, "remerge"),
        ("blame.ignoreRevsFile", ".git-blame-ignore-revs", "../elsewhere"),
        ("mailmap.file", ".mailmap", "/etc/hostname"),
        ("url.https://example.org/.insteadOf", "gh:", "a::b"),
    ],
)
def test_a_setting_is_harmless_by_its_value(
    setting: str, harmless: str | None, harmful: str, repository: Path
) -> None:
    if harmless is not None:
        _git(repository, "config", setting, harmless)
    assert fact_of("git status", repository)["read_only"]
    _git(repository, "config", setting, harmful)
    assert not fact_of("git status", repository)["read_only"]


def test_a_credential_in_an_address_ends_the_proof(repository: Path) -> None:
    _git(repository, "config", "url.https://user:x@example.org/.insteadOf", "gh:")
    assert not fact_of("git remote -v", repository)["read_only"]


@pytest.mark.parametrize("setting", ["core.hooksPath", "mailmap.file", "blame.ignoreRevsFile"])
def test_a_setting_that_names_a_loop_of_links_is_read(setting: str, repository: Path) -> None:
    (repository / "ignore-mailmap").symlink_to("ignore-mailmap")
    _git(repository, "config", setting, "ignore-mailmap")
    assert fact_of("git status", repository)["unparsed"] != "internal"


@pytest.mark.parametrize("end", ["\x0c", "\r", "\x0b", "\x1c"])
def test_lines_of_the_configuration_end_as_git_ends_them(end: str, repository: Path) -> None:
    config = repository / ".git" / "config"
    config.write_text(
        config.read_text() + f'[core]\n\t# a{end}[alias]\n\tfsmonitor = "touch ran; false"\n',
        newline="",
    )
    assert not fact_of("git status", repository)["read_only"]


def test_a_configuration_with_the_line_ends_of_windows_is_read(repository: Path) -> None:
    config = repository / ".git" / "config"
    config.write_text(config.read_text().replace("\n", "\r\n"), newline="")
    assert fact_of("git status", repository)["read_only"]


@pytest.mark.parametrize("value", ["a\tb", "hooks\u00a0", '"a b"', "a\\nb"])
def test_a_path_of_hooks_is_a_plain_one(value: str, repository: Path) -> None:
    config = repository / ".git" / "config"
    config.write_text(config.read_text() + f"[core]\n\thooksPath = {value}\n", encoding="utf-8")
    assert not fact_of("git status", repository)["read_only"]


@pytest.mark.parametrize(
    "setting", ["lfs.extension.foo.clean", "lfs.customtransfer.x.path", "core.excludesFile"]
)
def test_a_setting_that_names_a_program_or_a_file_ends_the_proof(
    setting: str, repository: Path
) -> None:
    _git(repository, "config", setting, "./x")
    assert not fact_of("git status", repository)["read_only"]


def test_a_repository_among_what_git_tracks_ends_the_proof(repository: Path) -> None:
    inner = repository / "inner"
    inner.mkdir()
    _git(inner, "init", "-q")
    assert fact_of("git status", repository)["read_only"]
    _git(
        repository,
        "update-index",
        "--add",
        "--cacheinfo",
        f"160000,{_git(repository, 'rev-parse', 'HEAD')},inner",
    )
    assert not fact_of("git status", repository)["read_only"]
    (inner / ".git").rename(inner / "git")  # a submodule that was not fetched
    assert fact_of("git status", repository)["read_only"]


@pytest.mark.parametrize(
    "head", ["garbage\n", "ref:refs/heads/--output=pwn\n", "ref: refs/heads/x/-y\n", "ref: x\n"]
)
def test_a_head_that_is_none_ends_the_proof(head: str, repository: Path) -> None:
    (repository / ".git" / "HEAD").write_text(head)
    assert not fact_of("git status", repository)["read_only"]
    assert not fact_of('cd "$(git rev-parse --show-toplevel)" && cat a.txt', repository)[
        "read_only"
    ]


def test_names_behind_a_link_that_was_a_folder_are_elsewhere(repository: Path) -> None:
    (repository / "a").mkdir()
    (repository / "a" / "x.py").write_text("x\n")
    _git(repository, "add", "a")
    line = "git ls-files '*.py' | xargs cat"
    assert _clear(line, repository)
    (repository / "a" / "x.py").unlink()
    (repository / "a").rmdir()
    (repository / "a").symlink_to("/usr")
    assert not _clear(line, repository)


@pytest.mark.parametrize("branch", ["feature-x", "feature/a-b", "fix#1", "caf\u00e9"])
def test_any_ordinary_branch_is_read(branch: str, repository: Path) -> None:
    _git(repository, "checkout", "-q", "-b", branch)
    assert fact_of("git status", repository)["read_only"]


@pytest.mark.parametrize("name", ["objects/pack", "objects/ab", "info/exclude", "index"])
def test_links_within_a_repository_end_the_proof(
    name: str, repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place, away = repository / ".git" / name, tmp_path_factory.mktemp("away") / "x"
    if place.exists():
        place.rename(away)
    place.symlink_to(away)
    assert not fact_of("git status", repository)["read_only"]


def test_what_is_tracked_is_asked_by_the_name_that_git_has(repository: Path) -> None:
    (repository / "sub").mkdir()
    (repository / "sub" / "h.py").symlink_to("/etc/hostname")
    _git(repository, "add", "sub")
    (repository / "lnk").symlink_to("sub")
    for line in (
        "cd lnk && git ls-files | xargs cat",
        "cd lnk && git grep -l vm | xargs cat",
        "cd sub && cat $(git ls-files)",
    ):
        assert not _clear(line, repository), line


def test_an_index_in_parts_ends_the_proof(repository: Path) -> None:
    _git(repository, "update-index", "--split-index")
    assert not fact_of("git status", repository)["read_only"]


@pytest.mark.parametrize(("version", "known"), [("0", True), ("1", True), ("9", False)])
def test_a_format_of_a_repository_is_one_that_git_knows(
    version: str, known: bool, repository: Path
) -> None:
    config = repository / ".git" / "config"
    config.write_text(
        config.read_text().replace(
            "repositoryformatversion = 0", f"repositoryformatversion = {version}"
        )
    )
    assert fact_of("git status", repository)["read_only"] is known


def test_names_of_changed_files_are_those_of_the_top(repository: Path) -> None:
    (repository / "sub").mkdir()
    (repository / "sub" / ".env").write_text("x\n")
    assert not _clear("cd sub && git diff --name-only | xargs cat", repository)


@pytest.mark.parametrize("name", ["config", "index", "packed-refs", "refs/heads/x"])
def test_a_pipe_within_a_repository_is_not_waited_for(name: str, repository: Path) -> None:
    (repository / ".git" / name).unlink(missing_ok=True)
    os.mkfifo(repository / ".git" / name)
    assert not fact_of('git log -1 "$(git branch --show-current)"', repository)["read_only"]
    if not name.startswith("refs/"):
        assert not fact_of("git status", repository)["read_only"]


def test_an_alias_of_a_command_that_git_may_drop_ends_the_proof(repository: Path) -> None:
    assert fact_of("git whatchanged -1", repository)["read_only"]
    subprocess.run(
        ["git", "config", "alias.whatchanged", "!x"], cwd=repository, env=_ENVIRONMENT, check=True
    )
    assert not fact_of("git whatchanged -1", repository)["read_only"]


def test_a_repository_that_is_not_plain_ends_the_proof(repository: Path) -> None:
    (repository / ".git" / "hooks" / "post-index-change").write_text("#!/bin/sh\n")
    assert not fact_of("git status", repository)["read_only"]
    (repository / ".git" / "hooks" / "post-index-change").unlink()
    assert fact_of("git status", repository)["read_only"]
    bare = repository / "bare"
    subprocess.run(["git", "init", "-q", "--bare", str(bare)], env=_ENVIRONMENT, check=True)
    subprocess.run(["git", "config", "core.fsmonitor", "x"], cwd=bare, env=_ENVIRONMENT, check=True)
    assert not fact_of("cd bare && git status", repository)["read_only"]
    (repository / "linked").mkdir()
    (repository / "linked" / ".git").write_text(f"gitdir: {bare}\n")
    assert not fact_of("cd linked && git status", repository)["read_only"]
    assert not fact_of("cd - && git status", repository)["read_only"]


@pytest.mark.parametrize(
    "line",
    [
        "git branch new",
        "git branch -D old",
        "git tag v1",
        "git diff --output=x",
        "git diff --no-index a b",
        "git diff --ext-diff",
        "git -c core.fsmonitor=x status",
        "git --git-dir=x status",
        "git grep -O a",
        "git log --format=%GG",
        "git for-each-ref --format='%(refname) %(signature:grade)'",
        "git tag -l --sort=-signature",
        "git branch --sort signature",
        "git log --show-signature",
        "git stash",
        "git stash drop",
        "git remote add x y",
        "git status -uno --unheard",
        "GIT_EXTERNAL_DIFF=x git diff",
        "git frobnicate",
    ],
)
def test_other_git_commands_are_not_proven(line: str, repository: Path) -> None:
    assert not fact_of(line, repository)["read_only"]


@pytest.mark.parametrize(
    "spec", [".env*", ":(glob).env*", ":(top,icase).ENV", ":/.env", ":(glob)**/.env", ":!a"]
)
def test_a_pathspec_names_a_secret_whatever_stands_before_it(repository: Path, spec: str) -> None:
    assert fact_of(f"git log -p --all -- '{spec}'", repository)["sensitive_read"] is (spec != ":!a")


def test_what_git_reads_outside_or_in_secret_is_seen(repository: Path) -> None:
    assert fact_of("git show HEAD:.env", repository)["sensitive_read"]
    outside = fact_of("git diff ../other/a.txt a.txt", repository)["commands"][0]["places"]
    assert [place["path"]["inside"] for place in outside] == [True, False]


@pytest.mark.parametrize("line", [line for line in READING if not line.startswith("timeout")])
def test_proven_git_commands_change_nothing(line: str, repository: Path) -> None:
    """Their true effects: every file is as before, but for the index that git may refresh."""

    def state() -> dict[str, bytes]:
        files = (path for path in repository.rglob("*") if path.is_file() and path.name != "index")
        return {str(path): path.read_bytes() for path in files}

    before = state()
    subprocess.run(
        ["sh", "-c", line],
        cwd=repository,
        env=_ENVIRONMENT,
        capture_output=True,
        check=False,
        timeout=30,
    )
    assert state() == before


def test_going_to_the_top_by_a_substitution_is_not_proven(repository: Path) -> None:
    for line in (
        'cd "$(git rev-parse --show-toplevel)" && cat a.txt',
        "cd $(git rev-parse --show-toplevel); ls",
    ):
        assert not fact_of(line, repository)["read_only"]


@pytest.mark.parametrize("name", [".env", "config/credentials.json", "outside.txt"])
def test_only_what_git_tracks_is_among_the_names_that_it_lists(name: str, repository: Path) -> None:
    lines = [
        "git ls-files | xargs cat",
        "git ls-files | head -5 | xargs cat",
        "git grep -l x | xargs cat",
    ]
    path = repository / name
    path.parent.mkdir(exist_ok=True)
    if name == "outside.txt":
        path.symlink_to("/etc/hostname")
    else:
        path.write_text("x\n")
    for line in lines:
        assert _clear(line, repository), line
    assert not _clear("git ls-files -o | xargs cat", repository)
    assert not _clear("find . -type f -o -type l | xargs cat", repository)
    _git(repository, "add", "-f", name)
    for line in lines:
        assert not _clear(line, repository), line
    _git(repository, "rm", "-q", "--cached", name)
    assert _clear(lines[0], repository)
    _git(repository, "update-index", "--index-version", "4")  # names stand in it in parts
    assert not _clear(lines[0], repository)
    _git(repository, "update-index", "--index-version", "2")
    assert _clear(lines[0], repository)
    _git(repository, "update-index", "--split-index")
    assert not _clear(lines[0], repository)


def _clear(line: str, repository: Path) -> bool:
    fact = fact_of(line, repository)
    inside = all(
        place["path"]["inside"] and not place["path"]["sensitive"]
        for place in _places(fact)
        if place["word"] != "."
    )
    return fact["read_only"] and fact["complete"] and inside and not fact["sensitive_read"]


def _git(repository: Path, *words: str, given: str = "") -> str:
    done = subprocess.run(
        ["git", *words],
        cwd=repository,
        env=_ENVIRONMENT,
        check=True,
        input=given,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def test_what_a_tag_says_that_it_is_called_is_no_revision(repository: Path) -> None:
    line = 'git log -1 "$(git describe --tags --abbrev=0)"'
    head = _git(repository, "rev-parse", "HEAD")
    tag = f"object {head}\ntype commit\ntag --output=pwned\ntagger a <a@b> 1 +0000\n\nx\n"
    made = _git(repository, "hash-object", "-t", "tag", "-w", "--literally", "--stdin", given=tag)
    _git(repository, "update-ref", "refs/tags/v1", made)
    subprocess.run(
        ["sh", "-c", line], cwd=repository, env=_ENVIRONMENT, capture_output=True, check=False
    )
    # so it must not be proven, whatever the reference is called
    assert list(repository.glob("pwned*"))
    assert not fact_of(line, repository)["read_only"]


@pytest.mark.parametrize(
    "line", ["awk -v t={} '{{print t}}' a.txt", 't={}; awk -v t=$t "{{print t}}" a.txt', "echo {}"]
)
def test_names_of_references_may_be_words_of_any_program(line: str, repository: Path) -> None:
    _git(repository, "tag", 'BEGIN{system("id>pwned")}')
    assert not fact_of(line.format("$(git tag)"), repository)["read_only"]


@pytest.mark.parametrize(
    "line",
    [
        "cd {0} && git status",
        "git -C {0} log -1",
        'cd {0} && t=$(git tag -l) && cd .. && git log -1 "$t"',
    ],
)
def test_a_repository_among_the_files_of_another_ends_the_proof(
    line: str, repository: Path
) -> None:
    bare = repository / "bare"
    _git(repository, "init", "-q", "--bare", str(bare))
    assert not fact_of(line.format("bare"), repository)["read_only"]
    (repository / "link").mkdir()
    (repository / "link" / "HEAD").symlink_to("refs/heads/m")
    assert not fact_of(line.format("link"), repository)["read_only"]


def test_a_repository_with_objects_elsewhere_ends_the_proof(repository: Path) -> None:
    assert fact_of("git status", repository)["read_only"]
    alternates = repository / ".git" / "objects" / "info" / "alternates"
    alternates.parent.mkdir(exist_ok=True)
    alternates.write_text("/elsewhere\n")
    assert not fact_of("git status", repository)["read_only"]
    alternates.unlink()
    (repository / "sub" / ".git").mkdir(parents=True)
    # git goes on to the one above
    assert not fact_of("cd sub && git status", repository)["read_only"]
    (repository / ".git" / "commondir").write_text("../elsewhere\n")
    assert not fact_of("git status", repository)["read_only"]


def test_a_file_of_revisions_to_ignore_is_a_place(repository: Path) -> None:
    (repository / "outside").symlink_to("/etc/hostname")
    (repository / "ignored").write_text("")
    for line in ("git blame --ignore-revs-file={} a.txt", "git blame --ignore-revs-file {} a.txt"):
        assert all(
            place["path"]["inside"]
            for place in _places(fact_of(line.format("ignored"), repository))
        )
        assert not all(
            place["path"]["inside"]
            for place in _places(fact_of(line.format("outside"), repository))
        )


def _places(fact: ShellFact) -> list[ShellPlace]:
    return [place for command in fact["commands"] for place in command["places"]]


@pytest.mark.parametrize(
    "name", ["rebase-merge/done", "worktrees/x/locked", "BISECT_LOG", "info/sparse-checkout"]
)
def test_what_git_prints_of_its_own_folder_is_no_link(name: str, repository: Path) -> None:
    assert fact_of("git status", repository)["read_only"]
    (repository / ".git" / name).parent.mkdir(parents=True, exist_ok=True)
    (repository / ".git" / name).symlink_to("/etc/hostname")
    assert not fact_of("git status", repository)["read_only"]
