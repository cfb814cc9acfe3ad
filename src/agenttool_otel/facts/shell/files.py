"""What a word that names a file means for the proof and for the warning."""

from __future__ import annotations

from agenttool_otel.facts.shell.effects import Verdict
from agenttool_otel.facts.shell.guard import Word
from agenttool_otel.facts.shell.places import device_reason, joined
from agenttool_otel.facts.shell.refused import Refused
from agenttool_otel.facts.shell.secrets import is_listed, names_secret, wide_root

__all__ = ["check_file"]


def check_file(
    word: Word, verdict: Verdict, directories: tuple[str, ...], *, recursive: bool = False, contents: bool = True
) -> None:
    """Accounts for a word that names a file to read, or only to list.

    Args:
        word: the word.
        verdict: where the path, and what reading it means, are added.
        directories: where the line may stand (``places.entered``).
        recursive: what lies below a directory is read too.
        contents: false when only names and sizes are told.
    """
    if word.substitution or word.text == "-":
        return
    verdict.paths.append(word.text)
    for path in dict.fromkeys(joined(directory, word.text) for directory in directories):
        reason = device_reason(path, deep=recursive and contents)
        if reason:
            verdict.network = verdict.network or reason == "network file" or "/dev/tcp" in path or "/dev/udp" in path
            raise Refused(reason)
        if not contents and is_listed(path):
            continue
        if names_secret(path, glob=word.glob and contents) or (recursive and contents and wide_root(path)):
            verdict.sensitive = True
