"""Repositories beside the plain ``.git``: worktrees and submodules are read like it, bare ones are
in doubt.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agenttool_otel.facts.types import FactEnvironment
from agenttool_otel.readers.paths.fact import path_fact
from agenttool_otel.readers.shell import shell_fact
from agenttool_otel.readers.types import ShellFact

_ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
}
_IDENTITY = (
    "-c",
    "user.name=dev",
    "-c",
    "user.email=dev@example.org",
    "-c",
    "protocol.file.allow=always",
)
READING = [
    "git status",
    "git log -3",
    "git diff",
    "git show",
    "git -C . branch --list",
    "timeout 5 git ls-files",
]
WRITING = ["git add .", "git -C . commit -m x", "git stash", "git checkout main", "nice git tag v1"]


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *_IDENTITY, *words],
        cwd=folder,
        env=_ENVIRONMENT,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def fact_of(line: str, folder: Path) -> ShellFact:
    env = FactEnvironment(roots=(str(folder),), cwd=str(folder))
    return shell_fact(line, argument="/command", surroundings=env)


def doubts_of(line: str, folder: Path) -> list[str]:
    return [
        row["repository"]
        for row in fact_of(line, folder)["commands"]
        if row["repository"] is not None
    ]


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "clone"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("a\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


@pytest.fixture
def worktree(clone: Path) -> Path:
    git(clone, "worktree", "add", "-q", str(clone.parent / "tree"), "-b", "other")
    return clone.parent / "tree"


@pytest.fixture
def submodule(clone: Path) -> Path:
    library = clone.parent / "library"
    library.mkdir()
    git(library, "init", "-q", "-b", "main")
    (library / "b.txt").write_text("b\n")
    git(library, "add", ".")
    git(library, "commit", "-qm", "first")
    git(clone, "submodule", "--quiet", "add", str(library), "lib/inner")
    git(clone, "commit", "-qm", "library")
    return clone / "lib" / "inner"


@pytest.mark.parametrize("line", READING)
def test_a_worktree_is_read_like_a_clone(line: str, worktree: Path) -> None:
    (worktree / "sub").mkdir()
    for folder in (worktree, worktree / "sub"):
        fact = fact_of(line, folder)
        assert fact["read_only"], [row["reason"] for row in fact["commands"]]
        assert not doubts_of(line, folder)


@pytest.mark.parametrize("line", READING)
def test_a_submodule_and_its_checkout_are_read(line: str, submodule: Path, clone: Path) -> None:
    for folder in (submodule, clone):
        fact = fact_of(line, folder)
        assert fact["read_only"], [row["reason"] for row in fact["commands"]]


@pytest.mark.parametrize("line", WRITING)
def test_a_change_in_an_ordinary_repository_is_in_no_doubt(
    line: str, clone: Path, worktree: Path
) -> None:
    assert not doubts_of(line, clone)
    assert not doubts_of(line, worktree)


def test_a_worktree_with_relative_paths_is_read(worktree: Path) -> None:
    private = Path((worktree / ".git").read_text().removeprefix("gitdir: ").strip())
    (worktree / ".git").write_text(f"gitdir: {os.path.relpath(private, worktree)}\n")
    (private / "gitdir").write_text(f"{os.path.relpath(worktree / '.git', private)}\n")
    assert fact_of("git status", worktree)["read_only"]


def _private(worktree: Path) -> Path:
    return Path((worktree / ".git").read_text().removeprefix("gitdir: ").strip())


def _hooked(worktree: Path) -> None:
    folder = worktree / ".hooks"
    folder.mkdir()
    (folder / "post-index-change").write_text("#!/bin/sh\ntouch ran\n")
    git(worktree, "config", "core.hooksPath", ".hooks")


def _own_setting(worktree: Path) -> None:
    git(worktree, "config", "extensions.worktreeConfig", "true")
    git(worktree, "config", "--worktree", "core.fsmonitor", "touch ran")


def _moved_repository(worktree: Path) -> None:
    elsewhere = worktree / "notes"
    git(worktree, "init", "-q", "--bare", str(elsewhere))
    (_private(worktree) / "commondir").write_text(f"{elsewhere}\n")


def _own_folder(worktree: Path) -> None:
    private = _private(worktree)
    copy = worktree / "notes" / "worktrees" / "x"
    copy.mkdir(parents=True)
    for name in ("HEAD", "commondir", "gitdir"):
        (copy / name).write_bytes((private / name).read_bytes())
    (worktree / ".git").write_text(f"gitdir: {copy}\n")


def _linked_folder(worktree: Path) -> None:
    private = _private(worktree)
    away = worktree / "away"
    private.rename(away)
    private.symlink_to(away)


def _write(name: str, text: str) -> Callable[[Path], None]:
    def change(worktree: Path) -> None:
        place = _private(worktree) / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    return change


def _link(name: str) -> Callable[[Path], None]:
    def change(worktree: Path) -> None:
        place = _private(worktree) / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        place.symlink_to("/etc/hostname")

    return change


CHANGES: dict[str, Callable[[Path], object]] = {
    "a hook below the worktree": _hooked,
    "a setting of the worktree": _own_setting,
    "a common directory elsewhere": _moved_repository,
    "a private folder of its own": _own_folder,
    "a private folder behind a link": _linked_folder,
    "a link that git prints": _link("rebase-merge/done"),
    "a linked bisect log": _link("BISECT_LOG"),
    "a linked index": _link("index"),
    "linked logs": _link("logs/HEAD"),
    "linked references": _link("refs/worktree/x"),
    "a hook in the private folder": _write("hooks/post-index-change", "#!/bin/sh\n"),
    "a config in the private folder": _write("config", "[core]\n\tfsmonitor = x\n"),
    "an odd head": _write("HEAD", "ref: refs/heads/--output=x\n"),
    "a way back that leads elsewhere": _write("gitdir", "/elsewhere/.git\n"),
    "a common directory with two lines": _write("commondir", "../..\nx\n"),
    "a common directory by another way": _write("commondir", "../../../.git\n"),
    "a gitfile with two lines": lambda tree: (tree / ".git").write_text(
        (tree / ".git").read_text() + "x\n"
    ),
    "a setting that names a program": lambda tree: git(
        tree, "config", "core.fsmonitor", "touch ran"
    ),
    "a filter": lambda tree: git(tree, "config", "filter.x.clean", "touch ran"),
    "a common hook": lambda tree: (
        _private(tree).parents[1] / "hooks" / "post-index-change"
    ).write_text("#!/bin/sh\n"),
    "a gitfile that anybody may write": lambda tree: (tree / ".git").chmod(0o666),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_worktree_that_is_not_as_git_made_it_is_in_doubt(name: str, worktree: Path) -> None:
    assert not doubts_of("git status", worktree)
    CHANGES[name](worktree)
    for line in (*READING, *WRITING):
        assert not fact_of(line, worktree)["read_only"], line
        assert doubts_of(line, worktree), line


def test_a_worktree_of_another_owner_is_in_doubt(worktree: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to somebody")
    os.chown(worktree / ".git", 12345, -1)
    assert doubts_of("git status", worktree)


SUBMODULE_CHANGES: dict[str, Callable[[Path, Path], object]] = {
    "a program": lambda inner, _: git(inner, "config", "core.fsmonitor", "touch ran"),
    "a filter": lambda inner, _: git(inner, "config", "filter.x.smudge", "touch ran"),
    "other files": lambda inner, _: git(inner, "config", "core.worktree", "/elsewhere"),
    "a hook": lambda _, home: (home / "hooks" / "post-index-change").write_text("#!/bin/sh\n"),
    "a link": lambda _, home: (home / "BISECT_LOG").symlink_to("/etc/hostname"),
    "a gitfile elsewhere": lambda inner, _: (inner / ".git").write_text(
        "gitdir: ../../notes/.git/modules/x\n"
    ),
    "a common directory": lambda _, home: (home / "commondir").write_text("../..\n"),
}


@pytest.mark.parametrize("name", SUBMODULE_CHANGES)
def test_a_changed_submodule_is_in_doubt_from_both_sides(
    name: str, submodule: Path, clone: Path
) -> None:
    SUBMODULE_CHANGES[name](submodule, clone / ".git" / "modules" / "lib" / "inner")
    for folder in (submodule, clone):
        assert not fact_of("git status", folder)["read_only"]
        assert doubts_of("git add .", folder)


def test_the_checkout_around_a_submodule_is_judged_too(submodule: Path, clone: Path) -> None:
    git(clone, "config", "core.fsmonitor", "touch ran")
    assert doubts_of("git status", submodule)


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        ("core.sshCommand", "git fetch"),
        ("core.askPass", "git push"),
        ("credential.helper", "git pull"),
        ("credential.https://example.org.helper", "git ls-remote"),
        ("core.editor", "git commit"),
        ("core.editor", "git rebase main"),
    ],
)
def test_a_program_is_in_doubt_for_commands_that_run_it(
    setting: str, line: str, clone: Path
) -> None:
    assert not doubts_of(line, clone)
    git(clone, "config", setting, "!touch ran")
    assert doubts_of(line, clone)
    assert not doubts_of("git status", clone)
    git(clone, "config", setting, "store")
    assert not doubts_of(line, clone)


@pytest.fixture
def bare(clone: Path) -> Path:
    """Four ordinary steps make it: two folders and two text files."""
    notes = clone / "notes"
    (notes / "objects").mkdir(parents=True)
    (notes / "refs").mkdir()
    (notes / "HEAD").write_text("ref: refs/heads/main\n")
    (notes / "config").write_text('[core]\n\tworktree = .\n\tfsmonitor = "touch ran; false"\n')
    return notes


@pytest.mark.parametrize(
    "line",
    [
        "git -C notes status",
        "git -C notes add .",
        "cd notes && git diff",
        "cd notes && timeout 5 git commit -m x",
        "(cd notes; git stash)",
        "pushd notes && git tag v1",
        "sh -c 'cd notes && git add .'",
        "env -C notes git add .",
        "env -C notes sh -c 'git add .'",
        "find notes -execdir git add . ';'",
        "find notes -execdir sh -c 'git add .' ';'",
        "git --git-dir=notes status",
        "git --git-dir notes add .",
        "git --no-pager -C notes add .",
        "git -C . -C notes add .",
        "uv run --directory notes git add .",
        "cd notes && /usr/bin/git add .",
        "cd notes/objects && git add .",
    ],
)
def test_git_in_a_repository_made_of_files_is_in_doubt(line: str, bare: Path) -> None:
    assert doubts_of(line, bare.parent), line
    assert not fact_of(line, bare.parent)["read_only"]


@pytest.mark.parametrize(
    "line", ["cat notes/HEAD", "ls notes", "npm test", "echo git", "grep -rn git notes"]
)
def test_a_command_that_runs_no_git_is_in_no_doubt(line: str, bare: Path) -> None:
    assert not doubts_of(line, bare.parent)


@pytest.mark.parametrize(
    "name",
    [
        "config",
        "HEAD",
        "hooks/post-index-change",
        "info/attributes",
        "refs/heads/main",
        "objects/x",
        "Config",
    ],
)
def test_a_bare_repository_is_written_like_a_git_directory(name: str, bare: Path) -> None:
    env = FactEnvironment(roots=(str(bare.parent),), cwd=str(bare.parent))
    fact = path_fact(f"notes/{name}", argument="/path", access="write", surroundings=env)
    assert fact["sensitive"] == "vcs"
    assert (
        path_fact("notes/HEAD", argument="/path", access="read", surroundings=env)["sensitive"]
        is None
    )


@pytest.mark.parametrize("last", ["HEAD", "objects", "refs"])
def test_the_last_part_of_a_bare_repository_is_protected(last: str, bare: Path) -> None:
    place = bare / last
    place.unlink() if last == "HEAD" else place.rmdir()
    env = FactEnvironment(roots=(str(bare.parent),), cwd=str(bare.parent))
    assert (
        path_fact(f"notes/{last}", argument="/path", access="write", surroundings=env)["sensitive"]
        == "vcs"
    )
    assert (
        path_fact("notes/config", argument="/path", access="write", surroundings=env)["sensitive"]
        is None
    )


def test_a_checkout_within_a_bare_repository_is_written(bare: Path) -> None:
    env = FactEnvironment(roots=(str(bare.parent),), cwd=str(bare.parent))
    for name in ("main/a.py", "README.md", "src/config/x.py"):
        assert (
            path_fact(f"notes/{name}", argument="/path", access="write", surroundings=env)[
                "sensitive"
            ]
            is None
        )
