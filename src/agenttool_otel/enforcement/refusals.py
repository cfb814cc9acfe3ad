"""What an exception shows of a refusal, and what the words of an output point to."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from agenttool_otel.enforcement.types import REFUSALS, Violation, ViolationKind

_MOST: Final = 20
_WORDS: Final = re.compile(
    rb"[^\n]*(?:Permission denied|Operation not permitted|Read-only file system|PermissionError"
    rb"|EACCES|EPERM|EROFS|No usable temporary directory|Could not resolve host|Temporary failure in name"
    rb"|Network is unreachable|Function not implemented)[^\n]*"
)
_NETWORK: Final = re.compile(rb"socket|connect|resolve|name resolution|[Nn]etwork")


def refusals_of(error: BaseException, is_masked: Callable[[str], bool]) -> tuple[Violation, ...]:
    """Return the refusals that an exception, its causes or its members are about.

    A path that this process could not have opened either is no refusal of the profile.
    """
    found: list[Violation] = []
    for raised in _chain(error):
        if isinstance(raised, OSError) and raised.errno in REFUSALS:
            found += _of_error(raised, is_masked)
    return tuple(dict.fromkeys(found))[:_MOST]


def _chain(error: BaseException) -> Iterator[BaseException]:
    pending, seen = [error], set()
    while pending:
        raised = pending.pop(0)
        if id(raised) in seen:
            continue
        seen.add(id(raised))
        yield raised
        if isinstance(raised, BaseExceptionGroup):
            pending += raised.exceptions
        pending += filter(None, (raised.__cause__, raised.__context__))


def _of_error(error: OSError, is_masked: Callable[[str], bool]) -> Iterator[Violation]:
    code = error.errno or 0
    if error.filename is None:
        # the filter answers a socket with EACCES and other calls with EPERM
        kind = ViolationKind.CONNECTION if code == errno.EACCES else ViolationKind.CALL
        yield Violation(kind, "", code)
        return
    for name in (error.filename, error.filename2):
        if isinstance(name, (str, bytes)):
            path = os.fsdecode(name)
            # access(2) is not judged by Landlock: it answers as if there were no profile
            if is_masked(path) and os.access(path, os.R_OK):
                yield Violation(ViolationKind.READ, path, code)
            elif _is_writable(path):
                yield Violation(ViolationKind.WRITE, path, code)


def _is_writable(path: str) -> bool:
    if os.path.lexists(path):
        return os.access(path, os.W_OK)
    return os.access(Path(path).parent, os.W_OK)


def suspected_in(output: bytes) -> tuple[Violation, ...]:
    """Return what the words of a command's output point to; none of it is proven."""
    found: list[Violation] = []
    for match in _WORDS.finditer(output):
        line = match[0]
        kind = ViolationKind.CONNECTION if _NETWORK.search(line) else ViolationKind.WRITE
        found.append(Violation(kind, line[:200].decode("utf-8", "replace"), 0, suspected=True))
        if len(found) == _MOST:
            break
    return tuple(dict.fromkeys(found))
