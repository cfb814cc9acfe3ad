"""Whether a file holds what looks like a secret, where its name does not show it."""

from __future__ import annotations

import os
import re
import stat
from functools import cache, lru_cache
from typing import Final, NamedTuple

from agenttool_otel.readers.paths.credentials import (
    ASSIGNED,
    KUBERNETES_SECRET,
    LABEL_STARTS,
    data_name,
)
from agenttool_otel.readers.paths.sensitive import is_harmless_name
from agenttool_otel.values.tables import load_table

_MAX_BYTES: Final = 65_536
_FLAGS: Final = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC")
)


class _Shape(NamedTuple):
    """What a kind of secret looks like."""

    texts: tuple[str, ...]  # one of them is in whatever has the shape
    pattern: re.Pattern[str]


class _Patterns(NamedTuple):
    """The table, with patterns compiled."""

    names: re.Pattern[str]
    shapes: tuple[_Shape, ...]
    label_starts: re.Pattern[str]
    assigned: re.Pattern[str]


@cache
def _patterns() -> _Patterns:
    table = load_table(__package__, "data/secret_content.json")
    tokens = load_table("agenttool_otel.readers", "data/token_shapes.json")
    shapes = [_Shape(("Secret",), re.compile(KUBERNETES_SECRET))]
    for texts, pattern in {**table["shapes"], **tokens}.items():
        shape = _Shape(tuple(texts.split("|")), re.compile(pattern))
        shapes.append(shape)
    return _Patterns(
        names=re.compile(data_name(table["data_endings"])),
        shapes=tuple(shapes),
        label_starts=re.compile(LABEL_STARTS),
        assigned=re.compile(ASSIGNED),
    )


def holds_secret(path: str, status: os.stat_result) -> bool:
    """Whether the beginning of a regular file has a private key, a token, or a drawn value after a
    secret's name.

    Looked at are configuration and data by their names, no sources: those read secrets from
    elsewhere, and their tests are full of invented ones. What can't be read here holds nothing for
    a tool of this process either.
    """
    if not stat.S_ISREG(status.st_mode):
        return False
    name = path.rpartition("/")[2].lower()
    if _patterns().names.fullmatch(name) is None or is_harmless_name(name):
        return False
    return _look(path, status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=1024)
def _look(path: str, *_: int) -> bool:
    """Return whether a file holds a secret; the numbers are those of its state."""
    text = _beginning(path)
    for shape in _patterns().shapes:
        if any(known in text for known in shape.texts) and shape.pattern.search(text):
            return True
    assigned = _patterns().assigned
    labels = _patterns().label_starts.finditer(text.lower())
    return any(assigned.match(text, label.start()) for label in labels)


def _beginning(path: str) -> str:
    """Return the beginning of a file, or nothing where it is none or can't be read."""
    try:
        with open(os.open(path, _FLAGS), "rb") as file:
            # a pipe may have taken its place since
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return ""
            return file.read(_MAX_BYTES).decode("latin-1")
    except OSError:
        return ""
