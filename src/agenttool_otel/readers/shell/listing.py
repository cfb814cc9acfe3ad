"""Which names of files the commands of a pipeline print."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agenttool_otel.readers.shell.effects import base_name
from agenttool_otel.readers.shell.find import find_words
from agenttool_otel.readers.shell.syntax import Simple
from agenttool_otel.readers.shell.verdict import FileAccess, Tree, Verdict

Pipeline = Sequence[tuple[Simple, Verdict]]
"""The commands that feed a command, in their order, with what is known of them."""

# what leaves out names, or sorts them, and the options with which it does no more than that
_CUTS = r"(?:head|tail)(?: -n?[0-9]*)*"
_SORTS = r"(?:sort|uniq)(?: -[ufrnz]+)*"
_GREPS = r"[ef]?grep(?: -[viEFwxez]+)*"
_FILTERS = re.compile(f"{_CUTS}|{_SORTS}|{_GREPS}")

_GREP_NAMES = ("grep", "egrep", "fgrep")
_GREP_LISTS = re.compile(r"-[EFGPiyvwxcqsbHhnoTUzRraIZ]*[lL]|--files-with(?:out)?-match")
_RG_LISTS = re.compile(r"-[SiwFnsvu0]*l[lSiwFnsvu0]*|--files(?:-with(?:out)?-match(?:es)?)?")
_RG_LONG = r"--(?:hidden|no-ignore|null|i?glob(?:=.*)?|type(?:=.*)?|sort=\w+)"
_RG_CHOOSES = re.compile(rf"-[SiwFnsvu0]+|-[gt]\S*|{_RG_LONG}")
_LS_SORTS = re.compile("-[1trdS]+")

# git grep -il x -- '*.py' src
_GIT_GREP_OPTIONS = r"-[iwEFPn]+"
_GIT_GREP_LISTS = r"(?:-[iwEFPn]*l[iwEFPn]*|--files-with-matches|--name-only)"
_GIT_GREP_PATHS = r"(?: --(?: [\w*][\w*/-]*(?:\.[\w*/-]+)*)+)?"
_GIT_GREP = re.compile(
    rf"(?:{_GIT_GREP_OPTIONS} )*{_GIT_GREP_LISTS}(?: {_GIT_GREP_OPTIONS})* [^- ][^ ]*"
    rf"{_GIT_GREP_PATHS}"
)
_LS_FILES_OPTIONS = frozenset(
    ("-c", "-m", "-o", "-z", "--cached", "--modified", "--others", "--exclude-standard", "--")
)
_FOLDER = r"\w[\w-]*(?:/\w[\w-]*)*"
# src/*.py, *.py, src/
_TRACKED = re.compile(rf"(?:(?P<folder>{_FOLDER})/)?(?P<kind>\*\.\w+)|(?P<all>{_FOLDER})/?")

_ENDS_WITH_NUL = {
    "find": re.compile("-print0"),
    "git": re.compile("-z"),
    "rg": re.compile("-[a-zA-Z]*0|--null"),
}
_GREP_ENDS_WITH_NUL = re.compile("-[a-zA-Z]*Z[a-zA-Z]*|--null")


def listed_by(pipeline: Pipeline) -> list[FileAccess]:
    """Return the trees whose file names a pipeline prints; none where it may print anything."""
    for command, verdict in reversed(pipeline):
        if not command.words or not verdict.read_only or command.reads_redirect:
            return []
        if not _filters(command):
            return _listed(command, verdict)
        if any(access.operation == "read" for access in verdict.accesses):
            return []  # sort a.txt prints what is in the file
    return []


def lists_index(pipeline: Pipeline) -> bool:
    """Whether git lists names for a pipeline.

    They need not be on the disk, and may be options when taken apart.
    """
    return any(command.texts[:1] == ["git"] for command, _ in pipeline)


def ends_names_with_nul(pipeline: Pipeline) -> bool:
    """Whether a pipeline is one command that ends each name that it prints with a NUL."""
    if len(pipeline) != 1:
        return False
    command, _ = pipeline[0]
    if not command.words:
        return False
    name, *words = command.texts
    option = _ENDS_WITH_NUL.get(name, _GREP_ENDS_WITH_NUL)
    return any(map(option.fullmatch, words))


def _options(words: list[str]) -> list[str]:
    return [word for word in words[1:] if word.startswith("-")]


def _filters(command: Simple) -> bool:
    words = command.texts
    shown = " ".join([base_name(words[0]), *_options(words)])
    return _FILTERS.fullmatch(shown) is not None


def _listed(command: Simple, verdict: Verdict) -> list[FileAccess]:
    """Return the trees whose file names one command prints."""
    words = command.texts
    name = base_name(words[0])
    if name == "find":
        return _listed_by_find(command, verdict)
    if name == "ls":
        return _listed_by_ls(words, verdict)
    if name == "rg":
        return _listed_by_rg(words, verdict)
    if words[0] == "git":
        return _listed_by_git(words)
    if _grep_lists(words):
        return [_with_bare_names(access) for access in verdict.accesses if _is_read(access)]
    return []


def _is_read(access: FileAccess) -> bool:
    return access.operation == "read"


def _with_bare_names(access: FileAccess) -> FileAccess:
    tree = access.tree or Tree()
    return access._replace(tree=tree._replace(bare_names=True))


def _listed_by_find(command: Simple, verdict: Verdict) -> list[FileAccess]:
    words = command.texts
    if "-printf" in words or "-ls" in words:
        return []
    if words.count("-exec") > 1:
        return []
    if "-exec" in words:
        # find . -exec grep -l x {} +
        command_at = words.index("-exec") + 1
        if not _grep_lists(words[command_at:]):
            return []
        return list(filter(_is_read, verdict.accesses))
    names = find_words(command.words[1:]).file_names
    found = []
    for access in verdict.accesses:
        if access.operation == "list":
            tree = access.tree or Tree()
            found.append(access._replace(tree=tree._replace(names=names)))
    return found


def _listed_by_ls(words: list[str], verdict: Verdict) -> list[FileAccess]:
    """Read ``ls *.py``; the names in a folder are printed without the folder."""
    if not all(map(_LS_SORTS.fullmatch, _options(words))):
        return []
    found = []
    for access in verdict.accesses:
        if not access.glob:
            return []
        found.append(access._replace(operation="read", only_files=True))
    return found


def _listed_by_rg(words: list[str], verdict: Verdict) -> list[FileAccess]:
    lists = False
    for option in _options(words):
        if _RG_LISTS.fullmatch(option):
            lists = True
        elif not _RG_CHOOSES.fullmatch(option):
            return []
    if not lists:
        return []
    return [_with_bare_names(access) for access in verdict.accesses]


def _listed_by_git(words: list[str]) -> list[FileAccess]:
    if words[1:2] == ["grep"]:
        shown = " ".join(word.replace(" ", "_") for word in words[2:])
        return [_tracked_files()] if _GIT_GREP.fullmatch(shown) else []
    if any(word[:1] in (":", "/") or ".." in word for word in words):
        return []
    if words[1:] == ["diff", "--name-only"]:
        # what a commit names need not be there, and may then be taken apart at its blanks
        return [_tracked_files(tracked=False)]
    if words[1:2] == ["ls-files"] and set(_options(words)) <= _LS_FILES_OPTIONS:
        return _listed_by_ls_files(words)
    return []


def _listed_by_ls_files(words: list[str]) -> list[FileAccess]:
    files = _tracked_files(tracked="-o" not in words and "--others" not in words)
    found = []
    for word in words[2:]:
        if word.startswith("-"):
            continue
        match = _TRACKED.fullmatch(word)
        if match is None:
            return [files]
        names = (match["kind"],) if match["kind"] else ()
        tree = (files.tree or Tree())._replace(names=names)
        found.append(files._replace(path=match["folder"] or match["all"] or ".", tree=tree))
    return found or [files]


def _tracked_files(*, tracked: bool = True) -> FileAccess:
    return FileAccess(".", "read", tree=Tree(tracked=tracked, bare_names=True))


def _grep_lists(words: list[str]) -> bool:
    """Whether a call of grep prints nothing but the names of files."""
    if not words or words[0] not in _GREP_NAMES:
        return False
    if "-" in words:
        return False
    lists = False
    for word in words[1:]:
        if word in ("--", ";", "+"):
            break
        # --label=/etc/shadow names what comes from the input
        if word.startswith("--la"):
            return False
        if _GREP_LISTS.match(word):
            lists = True
    return lists
