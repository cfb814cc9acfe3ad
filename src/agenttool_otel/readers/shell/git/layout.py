"""Where the parts of a repository lie, and whether they are those of an ordinary checkout.

A linked worktree and a submodule have a file ``.git`` that names their repository. It is
believed only where the repository lies in the ``.git`` of a checkout, at the place that git gives
it, and names it in turn.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import NamedTuple

MAX_BYTES = 65536
"""So much of a repository's small files is read."""

_GITFILE = re.compile(rb"gitdir: ([^\x00-\x1f\x7f]+)\n?")
_LINE = re.compile(rb"([^\x00-\x1f\x7f]+)\n?")
_NAME = re.compile(r"\w[\w.-]*", re.ASCII)


class Layout(NamedTuple):
    """Where the parts of one repository lie."""

    private: Path  # HEAD and index
    # configuration, objects, references and hooks: the same directory, but for a linked worktree
    common: Path
    top: Path  # of the files
    kind: str = ""  # "", "worktree" or "submodule"
    outer: Path | None = None  # the checkout that a submodule belongs to

    def is_worktree_setting(self, value: str) -> bool:
        """Whether ``core.worktree`` names the checkout itself, as it does in every submodule."""
        return self.kind == "submodule" and leads_to(self.private, value, self.top)


class Odd(Exception):
    """The repository lies where no ordinary one does; the message holds the reason."""


def content_of(file: Path) -> bytes:
    """Return the beginning of a regular file, and nothing of anything else."""
    if not file.is_file():
        return b""
    with file.open("rb") as opened:
        return opened.read(MAX_BYTES)


def leads_to(start: Path, value: str, place: Path) -> bool:
    """Return whether a path, as a file in ``start`` has it, is a place."""
    return os.path.realpath(start / value) == os.path.realpath(place)


def layout_of(repository: Path) -> Layout:
    """Return where the parts lie of what git found: ``.git``, or a bare repository.

    Raises:
        Odd: it is neither a plain ``.git`` directory, nor a linked worktree or submodule of an
          ordinary checkout.
    """
    if repository.name != ".git" or repository.is_symlink():
        raise Odd("repository that lies elsewhere")
    if repository.is_dir():
        return Layout(repository, repository, repository.parent)
    match = _GITFILE.fullmatch(content_of(repository))
    if match is None:
        raise Odd("repository that lies elsewhere")
    target = repository.parent / os.fsdecode(match[1])
    private = Path(os.path.normpath(target))
    # behind a link, ".." leads elsewhere than in the text
    if os.path.realpath(private) != os.path.realpath(target):
        raise Odd("repository that lies elsewhere")
    parts = private.parts
    if ".git" not in parts:
        raise Odd("repository that lies elsewhere")
    split = parts.index(".git") + 1
    main = Path(*parts[:split])
    inner = parts[split:]
    _check_directories(main, inner)
    if inner[:1] == ("worktrees",) and len(inner) == 2:
        layout = _worktree(repository, private, main)
    elif inner[:1] == ("modules",) and len(inner) > 1:
        layout = _submodule(repository, private, main)
    else:
        raise Odd("repository that lies elsewhere")
    _check_owner(repository, layout, main)
    return layout


def _check_directories(main: Path, inner: tuple[str, ...]) -> None:
    """Refuse where a directory from ``.git`` on is a link or has an odd name."""
    place = main
    for name in ("", *inner):
        place = place / name
        if place.is_symlink() or not place.is_dir():
            raise Odd("repository that lies elsewhere")
        if name and _NAME.fullmatch(name) is None:
            raise Odd("repository that lies elsewhere")


def _worktree(repository: Path, private: Path, main: Path) -> Layout:
    link = private / "gitdir"
    back = _LINE.fullmatch(content_of(link))
    if content_of(private / "commondir") != b"../..\n":
        raise Odd("worktree with a repository elsewhere")
    if back is None or link.is_symlink():
        raise Odd("worktree that its repository does not list")
    checkout = os.fsdecode(back[1])
    if not leads_to(private, checkout, repository):
        raise Odd("worktree that its repository does not list")
    return Layout(private, main, repository.parent, "worktree")


def _submodule(repository: Path, private: Path, main: Path) -> Layout:
    outer = os.path.realpath(main.parent)
    top = os.path.realpath(repository.parent)
    if os.path.lexists(private / "commondir") or not top.startswith(f"{outer}/"):
        raise Odd("submodule of no checkout around it")
    return Layout(private, private, repository.parent, "submodule", main)


def _check_owner(repository: Path, layout: Layout, main: Path) -> None:
    """Refuse where the parts belong to several users: each owner decides what git does in the
    other.
    """
    places = (
        repository,
        layout.top,
        layout.private,
        main,
        layout.private / "HEAD",
        layout.common / "config",
    )
    owners = set()
    modes = []
    for place in places:
        status = os.lstat(place)
        owners.add(status.st_uid)
        modes.append(status.st_mode)
    if len(owners) > 1:
        raise Odd("repository of another owner")
    if any(mode & stat.S_IWOTH for mode in modes):
        raise Odd("repository that anybody may write")
