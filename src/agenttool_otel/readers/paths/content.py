"""Whether a file holds what looks like a secret, where its name says nothing of it."""

from __future__ import annotations

import os
import re
import stat
from functools import cache, lru_cache
from typing import Final, NamedTuple

from agenttool_otel.readers.paths.sensitive import is_harmless_name
from agenttool_otel.values.tables import load_table

_MAX_BYTES: Final = 65_536
_FLAGS: Final = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC")
)


class _Patterns(NamedTuple):
    names: re.Pattern[str]
    # with texts one of which is in whatever has the shape
    shapes: tuple[tuple[list[str], re.Pattern[str]], ...]
    words: re.Pattern[str]
    assigned: re.Pattern[str]


@cache
def _patterns() -> _Patterns:
    table = load_table(__package__, "data/secret_content.json")
    shapes = table["shapes"] | load_table("agenttool_otel.readers", "data/token_shapes.json")
    return _Patterns(
        re.compile(table["names"]),
        tuple((texts.split("|"), re.compile(shape)) for texts, shape in shapes.items()),
        re.compile(table["words"]),
        re.compile(table["assigned"]),
    )


def holds_secret(path: str, status: os.stat_result) -> bool:
    """Whether the beginning of a regular file has a private key, a token, or a drawn value after a
    secret's name.

    Looked at are configuration and data by their names, no sources: those read secrets from
    elsewhere, and their tests are full of invented ones. What can't be read here holds nothing for
    a tool of this process either.
    """
    name = path.rpartition("/")[2].lower()
    data = (
        stat.S_ISREG(status.st_mode)
        and _patterns().names.fullmatch(name)
        and not is_harmless_name(name)
    )
    return bool(data) and _look(
        path, status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size
    )


@lru_cache(maxsize=1024)
def _look(path: str, *_: int) -> bool:
    try:
        with open(os.open(path, _FLAGS), "rb") as file:
            is_file = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            text = file.read(_MAX_BYTES).decode("latin-1") if is_file else ""
    except OSError:
        return False
    patterns = _patterns()
    if any(
        any(known in text for known in texts) and shape.search(text)
        for texts, shape in patterns.shapes
    ):
        return True
    return any(
        patterns.assigned.match(text, word.start())
        for word in patterns.words.finditer(text.lower())
    )
