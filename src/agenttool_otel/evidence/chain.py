"""Files of records whose lines hold together: each line has a keyed digest of the one before it of
the same producer.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.names import LOSS_RECORD
from agenttool_otel.records.base import JsonObject

PREVIOUS: Final = "previous"
_OLDER: Final = re.compile(r"\.(\d+)(?:\.xz)?$")


class ChainBroken(ConfigurationError):
    """Lines of a file are not what was written, or some are missing between others."""


def chain_key(key: bytes) -> bytes:
    """Return the key of a chain.

    Args:
        key: the key of the records' words, from which it is derived.
    """
    return hashlib.sha256(b"agenttool.decision.chain\0" + key).digest()


def link(line: bytes, key: bytes) -> str:
    """Return what the next line of a producer holds of a line.

    Args:
        line: the line without its end.
        key: of the chain.
    """
    return hashlib.blake2b(line, key=key, digest_size=16).hexdigest()


@dataclass(slots=True)
class Reading:
    """What was found while lines were read."""

    lines: int = 0  # whole lines
    lost: int = 0  # records that were lost before they were written
    torn: list[str] = field(default_factory=list)  # files whose last line was not written whole
    cut: int = 0  # producers whose first lines are in none of the files
    heads: dict[str, str] = field(default_factory=dict)  # the digest of each producer's last line
    sequences: dict[str, int] = field(default_factory=dict)  # the number of its last record


def files_of(paths: Iterable[Path]) -> list[Path]:
    """Return the files of some paths, oldest first: a file's rotated ones come before it.

    Args:
        paths: files, or files that were rotated.

    Raises:
        ConfigurationError: there is no such file.
    """
    found: list[Path] = []
    for path in paths:
        older = [each for each in path.parent.glob(f"{path.name}.*") if _number(path, each)]
        older.sort(key=lambda each: -_number(path, each))
        files = [*older, *([path] if path.is_file() else [])]
        if not files:
            raise ConfigurationError(f"there is no file {path}")
        found += [each for each in files if each not in found]
    return found


def _number(path: Path, older: Path) -> int:
    match = _OLDER.fullmatch(older.name.removeprefix(path.name))
    return int(match[1]) if match else 0


def read_lines(paths: Iterable[Path], key: bytes, reading: Reading) -> Iterator[JsonObject]:
    """Yield the lines of files, oldest first, as far as they hold together.

    Args:
        paths: the files; what was rotated away from one is read before it.
        key: of the records' words.
        reading: takes what is found.

    Raises:
        ChainBroken: a line was changed or taken out, or the key is another one.
        ConfigurationError: a file can't be read.
    """
    chain = _Chain(chain_key(key), reading)
    for path in files_of(paths):
        content = _content(path)
        lines = content.split(b"\n")
        if lines.pop():
            reading.torn.append(str(path))  # the writer was killed while it wrote
        for number, line in enumerate(lines, 1):
            place = f"{path}:{number}"
            record = _decoded(line)
            # the next writer ended the torn line and went on behind it
            if record is None and not chain.is_torn(lines[number:]):
                raise ChainBroken(f"{place}: not a whole record")
            if record is None:
                reading.torn.append(place)
                continue
            yield chain.checked(record, line, place)


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        return lzma.decompress(content) if path.suffix == ".xz" else content
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise ConfigurationError(f"{path} can't be read: {type(error).__name__}") from None


def _decoded(line: bytes) -> JsonObject | None:
    try:
        record: Any = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


class _Chain:
    """Follows the chain of each producer through files."""

    def __init__(self, key: bytes, reading: Reading) -> None:
        self._key = key
        self._reading = reading
        self._links = reading.heads
        self._sequences = reading.sequences

    def checked(self, record: JsonObject, line: bytes, place: str) -> JsonObject:
        """Return a line's content, if it follows the one before it of its producer."""
        producer = str(record.get("producer"))
        previous, sequence = record.get(PREVIOUS), record.get("sequence")
        if type(sequence) is not int or not isinstance(previous, str):
            raise ChainBroken(f"{place}: no line of decision records")
        expected = self._links.get(producer)
        if expected is None:
            self._reading.cut += bool(previous)
            self._sequences[producer] = sequence - 1 if previous else 0
        elif previous != expected:
            raise ChainBroken(
                f"{place}: the line before it was changed or taken out, or the key is another one"
            )
        self._reading.lost += max(0, sequence - self._sequences[producer] - 1)
        self._reading.lines += 1
        self._sequences[producer] = sequence
        self._links[producer] = link(line, self._key)
        if record.get("object") == LOSS_RECORD:
            self._count_killed(record.get("record"), place)
        return record

    def _count_killed(self, loss: Any, place: str) -> None:
        """Count what a killed process lost: what it was given after its last record in the files,
        which may be a later one than it could note. A loss that is named twice is counted once.
        """
        match loss:
            case {"producer": str(producer), "taken": int(taken), "written": int(written)}:
                last = max(written, self._sequences.get(producer, 0))
                self._reading.lost += max(0, taken - last)
                self._sequences[producer] = max(taken, last)
            case _:
                raise ChainBroken(f"{place}: no line of decision records")

    def is_torn(self, rest: list[bytes]) -> bool:
        """Return whether a broken line may be one that its writer could not end: a new producer
        goes on behind it, or one whose link is known and would show that the line was changed.
        """
        for line in rest:
            record = _decoded(line)
            if record is not None:
                return record.get(PREVIOUS) == "" or record.get("producer") in self._links
        return False
