"""Whether a repository's own configuration leaves git's reading commands what they are: commands
that only read.

A repository can name programs that git runs even for ``status`` and ``diff``: a file system
monitor, pagers, diff and text converters, filters, signature checks, hooks. So the configuration
may hold nothing but keys that are known to run nothing. The user's own configuration is taken as
given: no call inside the roots can change it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from agenttool_otel.readers.shell.directories import WorkingDirectory
from agenttool_otel.readers.shell.git.config import judge_config
from agenttool_otel.readers.shell.git.layout import MAX_BYTES, Layout, Odd, content_of, layout_of
from agenttool_otel.readers.shell.syntax import Word

_MODE = b"\0\0\xe0\0"  # of an entry of the index that is a repository
_GITLINK = re.compile(b"(?=" + re.escape(_MODE) + b")")
_TO_NAME = 38  # bytes: mode, owner, group, size, hash of 20 and flags
_MAX_INNER = 3  # submodules within each other
_HEAD = re.compile(rb"(?:ref: refs/(?!(?:\S*/)?-)[^\s{(\\]+|[0-9a-f]{40}|[0-9a-f]{64})\n?")
"""What a reference leads to: a plain name of another one, or an object."""

_NAMING = frozenset(("-C", "--git-dir", "--work-tree", "--namespace", "--super-prefix"))
_NOT_WALKED = {"objects", "refs", "hooks", "logs", "lfs"}


def unsafe_repository(current: WorkingDirectory, category: str = "") -> str:
    """Return why git may do more than read in the repository of these directories, or ``""``."""
    if not current.known:
        return "repository that is not known"
    for name in ("GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE"):
        if name in os.environ:
            return "repository that the environment names"
    for directory in current.paths:
        repository = _repository(Path(directory))
        if repository is None:
            continue
        reason = _judge(repository, category)
        if reason:
            return reason
    return ""


def names_of_repository(words: list[str]) -> list[str]:
    """Return the options in front of git's sub-command that name its repository or its files."""
    found: list[str] = []
    index = 1
    while index < len(words) and words[index].startswith("-"):
        option, equals, _ = words[index].partition("=")
        is_place = option in _NAMING
        if is_place:
            found.append(option)
        index += 1
        # git -c core.pager=cat log
        takes_value = is_place or option in ("-c", "--config-env")
        if takes_value and not equals:
            index += 1
    return found


def compares_files(current: WorkingDirectory, words: list[Word]) -> bool:
    """Whether ``git diff`` takes its two operands for files or directories, as it does where there
    is no repository.
    """
    names = [word for word in words if not word.text.startswith("-")]
    for place in current.paths:
        if _repository(Path(place)) is not None:
            continue
        files = 0
        for name in names:
            # git diff *.py may name any number of them
            if name.glob:
                files += 2
            if os.path.lexists(os.path.join(place, name.text)):
                files += 1
        if files > 1:
            return True
    return False


def _repository(directory: Path) -> Path | None:
    """The repository that git finds from a directory: ``.git`` there or above, or a bare one."""
    for place in map(str, (directory, *directory.parents)):
        if os.path.lexists(f"{place}/.git"):
            return Path(place, ".git")
        if os.path.lexists(f"{place}/HEAD"):
            return Path(place)  # may be a bare one, whose files are those of the checkout around it
    return None


def _has_links(repository: Path) -> bool:
    """Whether a file that git may print is a link; reading commands run no hooks but one, which is
    looked for.
    """
    if any(map(os.path.islink, (repository / "objects").iterdir())):
        return True
    for folder, folders, files in os.walk(repository):
        for name in (*folders, *files):
            if name != "hooks" and os.path.islink(f"{folder}/{name}"):
                return True
        folders[:] = [name for name in folders if name not in _NOT_WALKED]
    return False


def _judge(repository: Path, category: str = "", depth: int = 0) -> str:
    """Return why git may do more than read in a repository, or ``""``; ``depth`` counts submodules
    within each other.
    """
    if depth > _MAX_INNER:
        return "repository with others in it"
    try:
        layout = layout_of(repository)
        return (
            _judge_common(layout)
            or _judge_private(layout)
            or _judge_around(layout, category)
            or _judge_inner(layout, category, depth)
            or _judge_settings(layout, category)
        )
    except Odd as odd:
        return str(odd)
    except OSError:
        return "repository that can't be read"


def _judge_common(layout: Layout) -> str:
    """Judge what all worktrees of a repository share."""
    common = layout.common
    files = [common / name for name in ("config", "packed-refs") if os.path.lexists(common / name)]
    usable = all(file.is_file() and os.access(file, os.R_OK) for file in files) and all(
        os.access(common / name, os.R_OK | os.X_OK) for name in ("objects", "refs")
    )
    if not (usable and _is_plain_head(common)):
        return "repository that is none"  # git looks for another one above
    if _has_links(common):
        return "repository with links"
    if (common / "commondir").exists() or (common / "objects" / "info" / "alternates").exists():
        return "repository with objects elsewhere"
    return "repository with a hook" if (common / "hooks" / "post-index-change").exists() else ""


def _judge_private(layout: Layout) -> str:
    """Judge what belongs to one worktree alone."""
    private = layout.private
    index = private / "index"
    if os.path.lexists(index) and not (index.is_file() and os.access(index, os.R_OK)):
        return "repository that is none"
    if layout.kind != "worktree":
        if (private / "config.worktree").exists():
            return "repository with worktrees"
        return ""
    if not _is_plain_head(private):
        return "repository that is none"
    if _holds_link(private):
        return "repository with links"
    for name in ("hooks", "objects", "config", "modules", "packed-refs"):
        if os.path.lexists(private / name):
            return "worktree that is none"
    return ""


def _holds_link(directory: Path) -> bool:
    """Whether anything below a directory is a link."""
    for folder, folders, files in os.walk(directory):
        for name in (*folders, *files):
            if os.path.islink(f"{folder}/{name}"):
                return True
    return False


def _judge_around(layout: Layout, category: str) -> str:
    """Judge the checkout that a submodule belongs to."""
    if layout.outer is None:
        return ""
    outer = layout_of(layout.outer)
    return _judge_common(outer) or _judge_settings(outer, category)


def _judge_inner(layout: Layout, category: str, depth: int) -> str:
    """Judge the repositories that git's index names, which git looks into: submodules of this very
    checkout.
    """
    inner = _inner(layout)
    if inner is None:
        return "repository with others in it"
    for place in inner:
        found = layout_of(place)
        if (
            found.kind != "submodule"
            or found.outer is None
            or not found.outer.samefile(_main(layout))
        ):
            return "repository with others in it"
        if reason := _judge(place, category, depth + 1):
            return reason
    return ""


def _main(layout: Layout) -> Path:
    """Return the ``.git`` in which the submodules of a checkout lie."""
    return layout.common if layout.outer is None else layout.outer


def _judge_settings(layout: Layout, category: str) -> str:
    """Judge the files of settings, whose relative paths start from the top of the worktree."""
    files = [layout.common / "config"]
    if layout.kind == "worktree" and os.path.lexists(layout.private / "config.worktree"):
        files.append(layout.private / "config.worktree")
    for file in files:
        content = content_of(file)
        if len(content) >= MAX_BYTES:
            return "configuration that is too long"
        if reason := judge_config(content, layout, category):
            return reason
    return ""


def _is_plain_head(repository: Path) -> bool:
    head = repository / "HEAD"
    return not head.is_symlink() and _HEAD.fullmatch(content_of(head)) is not None


def _inner(layout: Layout) -> list[Path] | None:
    """Return the repositories that git's index names; ``None`` where they can't be read."""
    private = layout.private
    if not (private / "index").is_file():
        return []
    content = (private / "index").read_bytes()
    if any(name.startswith("sharedindex") for name in os.listdir(private)):
        return None  # it is in parts
    found: dict[Path, None] = {}
    for match in _GITLINK.finditer(content) if _MODE in content else ():
        if content[4:8] == b"\0\0\0\4":
            return None  # names stand in it in parts
        # with more flags in between
        for start in (match.start() + _TO_NAME, match.start() + _TO_NAME + 2):
            name = os.fsdecode(content[start:].partition(b"\0")[0][:4096])
            if name and os.path.lexists(layout.top / name / ".git"):
                found[layout.top / name / ".git"] = None
    return list(found)
