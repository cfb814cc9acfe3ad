"""The files that a command reads, with what is sensitive about them."""

from __future__ import annotations

from agenttool_otel.readers.shell.devices import climbs, device_reason, joined
from agenttool_otel.readers.shell.secrets import is_listed, names_secret, wide_root
from agenttool_otel.readers.shell.syntax import Word
from agenttool_otel.readers.shell.verdict import FileAccess, Follow, Refused, Tree, Verdict


def add_file(
    word: Word,
    verdict: Verdict,
    *,
    contents: bool = True,
    recursive: bool = False,
    tree: Tree | None = None,
    splits_names: bool = False,
) -> None:
    """Add a word that names a file.

    Args:
        word: the file.
        verdict: what is known of the command; the access and the warnings are added.
        contents: it is read; else only looked up or listed.
        recursive: a directory is read with all that lies below it.
        tree: what is read below it.
        splits_names: the program splits its names at blanks.

    Raises:
        Refused: it may be a device, or stand for a connection.
    """
    if word.text == "-":
        return  # standard input
    tree = tree or Tree()
    reads_tree = recursive and contents
    deep = reads_tree or (recursive and tree.follow is not Follow.NONE)
    access = FileAccess(
        word.text,
        "read" if contents else "list",
        glob=word.glob,
        tree=tree if deep else None,
        splits_names=splits_names,
    )
    verdict.accesses.append(access)
    for path in dict.fromkeys(joined(directory, word.text) for directory in verdict.directories):
        _refuse_device(path, verdict, deep=reads_tree)
        if _is_sensitive(path, glob=word.glob, contents=contents, reads_tree=reads_tree):
            verdict.warnings.sensitive = True


def _is_sensitive(path: str, *, glob: bool, contents: bool, reads_tree: bool) -> bool:
    if not contents and _is_plain_listing(path):
        return False
    if names_secret(path, glob=glob and contents):
        return True
    return reads_tree and wide_root(path)


def _refuse_device(path: str, verdict: Verdict, *, deep: bool) -> None:
    reason = device_reason(path, deep=deep)
    if not reason:
        return
    if reason == "network file" or "/dev/tcp" in path or "/dev/udp" in path:
        verdict.warnings.network = verdict.warnings.connects = True
    raise Refused(reason)


def _is_plain_listing(path: str) -> bool:
    """Whether a place may be listed without a look at its name.

    What is there below the directory that one stands in is judged as a place.
    """
    if is_listed(path):
        return True
    elsewhere = path[:1] in ("/", "~") or any(map(climbs, path.split("/")))
    return not elsewhere
