"""Whether a repository's own configuration leaves git's reading commands what they are: commands that only read.

A repository can name programs that git runs even for ``status`` and ``diff``: a file system monitor, pagers, diff and
text converters, filters, signature checks, hooks. So the configuration may hold nothing but keys that are known to run
nothing. The user's own configuration is taken as given: no call inside the roots can change it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from agenttool_otel.facts.shell.directories import Where
from agenttool_otel.facts.shell.tables import TEXT, programs
from agenttool_otel.facts.shell.words import Word

_MODE = b"\0\0\xe0\0"  # of an entry of the index that is a repository
_GITLINK = re.compile(b"(?=" + re.escape(_MODE) + b")")
_TO_NAME = 38  # bytes: mode, owner, group, size, hash of 20 and flags
_MAX_CONFIG_BYTES = 65536
_SECTION = re.compile(r'\[[ \t]*([A-Za-z0-9.-]+)([ \t]+"(?:[^"\\]|\\.)*")?[ \t]*\]')
_HEAD = re.compile(rb"(?:ref: refs/(?!(?:\S*/)?-)[^\s{(\\]+|[0-9a-f]{40}|[0-9a-f]{64})\n?")
"""What a reference leads to: a plain name of another one, or an object."""

_PACKED = re.compile(rb"#.*|\^[0-9a-f]+|[0-9a-f]{40,64} refs/(?!(?:\S*/)?-)[^\s{(\\]+|")
_NOT_WALKED = {"objects", "refs", "hooks", "logs", "lfs"}
_PATHS = {  # settings that name files, and what these may be called
    "core.hookspath": r"[\w./~-]+",
    "blame.ignorerevsfile": r"[\w./-]*ignore[\w.-]*",
    "mailmap.file": r"[\w./-]*mailmap[\w.-]*",
}
_CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_CREDENTIAL_IN_URL = re.compile(r"://[^/@\s]+@")


def unsafe_repository(where: Where, named: bool) -> str:
    """Why git may do more than read in the repository of these directories, or be given odd names by it, or ``""``."""
    if not where.known:
        return "repository that is not known"
    if any(name in os.environ for name in ("GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE")):
        return "repository that the environment names"
    found = list(filter(None, (_repository(Path(directory)) for directory in where.paths)))
    if named and any(map(_has_odd_references, found)):
        return "repository with odd references"
    return next(filter(None, map(_judge, found)), "")


def is_top(where: Where) -> bool:
    """Whether the one directory is the top of its repository, so that going there leads nowhere, even if git fails."""
    top = where.known and len(where.paths) == 1 and os.path.realpath(where.paths[0]) == where.paths[0]
    return top and os.path.isdir(f"{where.paths[0]}/.git") and not unsafe_repository(where, named=False)


def _has_odd_references(repository: Path) -> bool:
    """Whether there may be references whose names a program, or a shell, takes for more than names."""
    listed = repository / "packed-refs"
    if os.path.lexists(listed) and not listed.is_file():
        return True
    try:
        packed = listed.read_bytes() if listed.exists() else b""
        walked = os.walk(repository / "refs")
        loose = [Path(folder, name) for folder, folders, files in walked for name in (*folders, *files)]
        if any(file.is_symlink() or not (file.is_dir() or file.is_file()) for file in loose):
            return True
        aims = [file.read_bytes() for file in loose if file.is_file()]
        aims += [text for text in map(_content, repository.iterdir()) if text[:4] == b"ref:"]  # FOO, as HEAD is
    except OSError:
        return True
    odd = any(file.name[0] == "-" or {"{", "("} & {*file.name} for file in loose)
    plain = all(map(_HEAD.fullmatch, aims)) and all(map(_PACKED.fullmatch, packed.split(b"\n")))
    return odd or not plain


def compares_files(where: Where, words: list[Word]) -> bool:
    """Whether ``git diff`` takes its two operands for files or directories, as it does where there is no repository."""
    names = [word for word in words if word.text[:1] != "-"]
    return any(
        _repository(Path(place)) is None
        and sum(2 * n.glob or TEXT in n.text or os.path.lexists(os.path.join(place, n.text)) for n in names) > 1
        for place in where.paths
    )


def _repository(directory: Path) -> Path | None:
    """The repository that git finds from a directory: ``.git`` there or above, or a bare one."""
    for place in map(str, (directory, *directory.parents)):
        if os.path.lexists(f"{place}/.git"):
            return Path(place, ".git")
        if os.path.lexists(f"{place}/HEAD"):
            return Path(place)  # may be a bare one, whose files are those of the checkout around it
    return None


def _content(file: Path) -> bytes:
    if not file.is_file():
        return b""
    with file.open("rb") as opened:
        return opened.read(_MAX_CONFIG_BYTES)


def _has_links(repository: Path) -> bool:
    """Whether a file that git may print is a link; reading commands run no hooks but one, which is looked for."""
    if any(map(os.path.islink, (repository / "objects").iterdir())):
        return True
    for folder, folders, files in os.walk(repository):
        if any(os.path.islink(f"{folder}/{name}") and name != "hooks" for name in (*folders, *files)):
            return True
        folders[:] = [name for name in folders if name not in _NOT_WALKED]
    return False


def _judge(repository: Path) -> str:
    if repository.name != ".git" or repository.is_symlink() or not repository.is_dir():
        return "repository that lies elsewhere"  # a bare one, a worktree's or submodule's file
    files = [repository / name for name in ("config", "index", "packed-refs") if os.path.lexists(repository / name)]
    usable = all(file.is_file() and os.access(file, os.R_OK) for file in files) and all(
        os.access(repository / name, os.R_OK | os.X_OK) for name in ("objects", "refs")
    )
    if not (usable and _is_plain_head(repository)):
        return "repository that is none"  # git looks for another one above
    if _has_links(repository):
        return "repository with links"
    if _has_inner(repository):
        return "repository with others in it"
    if (repository / "commondir").exists() or (repository / "objects" / "info" / "alternates").exists():
        return "repository with objects elsewhere"
    if (repository / "modules").exists() or (repository / "config.worktree").exists():
        return "repository with submodules or worktrees"
    if (repository / "hooks" / "post-index-change").exists():
        return "repository with a hook"
    content = _content(repository / "config")
    return _judge_config(content, repository) if len(content) < _MAX_CONFIG_BYTES else "configuration that is too long"


def _is_plain_head(repository: Path) -> bool:
    head = repository / "HEAD"
    return not head.is_symlink() and _HEAD.fullmatch(_content(head)) is not None


def _has_inner(repository: Path) -> bool:
    """Whether git's index names a directory that is a repository of its own, which git looks into."""
    if not (repository / "index").is_file():
        return False
    content = (repository / "index").read_bytes()
    if any(name.startswith("sharedindex") for name in os.listdir(repository)):
        return True  # it is in parts
    for match in _GITLINK.finditer(content) if _MODE in content else ():
        for start in (match.start() + _TO_NAME, match.start() + _TO_NAME + 2):  # with more flags in between
            name = os.fsdecode(content[start:].partition(b"\0")[0][:4096])
            if content[4:8] == b"\0\0\0\4" or (name and os.path.lexists(repository.parent / name / ".git")):
                return True
    return False


def _judge_config(content: bytes, repository: Path) -> str:
    section = name = ""
    content = content.replace(b"\r\n", b"\n")
    if _CONTROL.search(content):
        return "configuration that is not plain"
    for raw in content.decode("utf-8", "replace").split("\n"):
        line = raw.strip(" \t")
        if not line or line[0] in "#;":
            continue
        if line[0] == "[":
            if (match := _SECTION.fullmatch(line)) is None:
                return "configuration that is not plain"
            name = match[2] or ""
            section = match[1].lower() + ".*" * bool(name)
            continue
        key, _, value = (part.strip(" \t") for part in line.partition("="))
        if (
            line.endswith("\\")
            or not _KEY.fullmatch(key)
            or not _runs_nothing(section, key.lower(), value, repository.parent)
        ):
            return f"configuration with {section[:40]}.{key[:40]}"
        if section in ("remote.*", "url.*") and (_CREDENTIAL_IN_URL.search(name + value) or "::" in name + value):
            return "address with a credential or a helper"
    return ""


def _runs_nothing(section: str, key: str, value: str, top: Path) -> bool:
    """Whether no reading command of git runs a program, or reads elsewhere, for a setting."""
    settings, values = programs()["git_config"], programs()["git_values"]
    forms = values.get(f"{section}.{key}", values.get(f"{section}.*", ()))
    if any(re.fullmatch(form, value) for form in forms):
        return True
    if f"{section}.{key}" in _PATHS:
        place = top / os.path.expanduser(value)
        within = place.resolve().is_relative_to(top.resolve()) and (place.is_file() or not place.exists())
        # the one hook that a reading command runs, when it writes down what it saw
        calm = not (place / "post-index-change").exists() if key == "hookspath" else within
        return calm and re.fullmatch(_PATHS[f"{section}.{key}"], value, re.ASCII) is not None
    # git 2.51 lets an alias stand in for a command that it means to drop
    return bool(settings.get(section, frozenset()) & {key, "*"}) and (section, key) != ("alias", "whatchanged")
