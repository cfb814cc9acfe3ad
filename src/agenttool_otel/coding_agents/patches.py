"""The files that a patch in the form of Codex' ``apply_patch`` names."""

from __future__ import annotations

from typing import Any, Final

from agenttool_otel.errors import PayloadInvalid

_BEGIN: Final = "*** Begin Patch"
_END: Final = "*** End Patch"
_DELETE: Final = "*** Delete File: "
_NAMES: Final = ("*** Add File: ", "*** Update File: ", "*** Move to: ", _DELETE)
_OTHERS: Final = frozenset({_BEGIN, _END, "*** End of File"})
_MARK: Final = "***"
_CONTENT: Final = ("+", "-")
"""Beginnings of lines that are of a file."""


def paths_of_patch(text: Any) -> tuple[list[str], list[str]]:
    """Return the files that a patch adds, changes or moves to, and those that it deletes.

    Args:
        text: the patch.

    Raises:
        PayloadInvalid: it is no such patch, names no file, or has a line that may name one and is
          not understood.
    """
    if not isinstance(text, str):
        raise PayloadInvalid("the patch is no text")
    # splitlines would also split a name at U+2028
    lines = text.strip().split("\n")
    first = lines[0].strip()
    last = lines[-1].strip()
    if (first, last) != (_BEGIN, _END):
        raise PayloadInvalid("the patch has another form")
    named: list[str] = []
    deleted: list[str] = []
    for line in lines:
        _read_line(line, named, deleted)
    if not named and not deleted:
        raise PayloadInvalid("the patch names no file")
    return named, deleted


def _read_line(line: str, named: list[str], deleted: list[str]) -> None:
    stripped = line.strip()
    for start in _NAMES:
        # " *** Add File: x" is a header or a line of the file: a path too many is only decided
        if line[:1] not in _CONTENT and stripped.startswith(start):
            path = _path(line.partition(start)[2])
            files = deleted if start == _DELETE else named
            files.append(path)
            return
    # "*** Environment ID: x", "*** add file: x", "*** Add File:x"
    if line.startswith(_MARK) and stripped not in _OTHERS:
        raise PayloadInvalid("the patch has a header that is not known")


def _path(text: str) -> str:
    path = text.strip(" \t\r")
    # "x\u00a0" is x to a program that strips it, and another file to one that does not
    if not path or path != path.strip() or not path.isprintable():
        raise PayloadInvalid("the patch names a path that means more than one thing")
    return path
