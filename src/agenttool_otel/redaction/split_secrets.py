"""Secrets that are split over the items of a list: the lines of a private key, the parts of a
streamed text.

A tool that returns a file as a list of lines, or a stream as a list of deltas, returns no item in
which a whole secret stands. So what a list holds one after the other is read as one text too. Only
what tells by itself where it begins counts there, private keys and distinctive tokens: other items
that happen to follow each other say nothing together.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import Any, Final, NamedTuple

from agenttool_otel.redaction.detectors.private_keys import PRIVATE_KEY, UNTERMINATED
from agenttool_otel.redaction.types import Path, Span
from agenttool_otel.redaction.words import reads_like_words

_MOST_MEMBERS: Final = 12
_MOST_PLACES: Final = 64
_DEEPEST: Final = 6
_TOKEN_BYTES: Final = 2048
_LEAST_REST_BYTES: Final = 16
_KEY_LINE: Final = re.compile(rb"[A-Za-z0-9+/=]{16}")


class Column(NamedTuple):
    """Strings that follow each other in a list."""

    steps: list[tuple[Any, ...]]  # how to reach each from the list
    pieces: list[str]  # the strings


class Part(NamedTuple):
    """The part of one string that belongs to a secret."""

    place: int  # which string of the column
    start: int  # first byte of its UTF-8 form
    end: int  # one past the last
    kind: str  # what the secret is
    rule: str  # which rule found it
    secret: bytes  # the whole secret, for a placeholder that is the same in all its parts


def columns(items: Sequence[Any]) -> list[Column]:
    """The strings of a list, and those that stand at the same place of its items."""
    found: dict[Path, Column] = {}
    for index, item in enumerate(items):
        for path, text in islice(_within(item), _MOST_PLACES):
            if type(text) is str:
                column = found.setdefault(path, Column([], []))
                column.steps.append((index, *path))
                column.pieces.append(text)
    return [column for column in found.values() if len(column.pieces) >= 2]


def _within(item: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """An item and what stands in it, each with its place."""
    yield path, item
    if type(item) in (dict, list) and len(item) <= _MOST_MEMBERS and len(path) < _DEEPEST:
        for step, child in item.items() if type(item) is dict else enumerate(item):
            yield from _within(child, (*path, step))


class Segment(NamedTuple):
    """A part of a string that may belong to something that goes on in the next string, or came from
    the one before.
    """

    place: int  # which string
    start: int  # first byte of the part
    data: bytes  # its bytes


def whole(pieces: Sequence[bytes]) -> list[Segment]:
    """All of each string."""
    return [Segment(index, 0, piece) for index, piece in enumerate(pieces)]


def edges(pieces: Sequence[bytes]) -> list[Segment]:
    """What of each string could be part of a token that is split: up to, and from, the white space
    in it.

    Where white space or the middle of a string was left out, a segment of one space tells so.
    """
    found: list[Segment] = []
    for index, piece in enumerate(pieces):
        if (
            len(piece) <= _TOKEN_BYTES
            and len(parts := piece.split(None, 1)) == 1
            and parts[0] == piece
        ):
            found.append(Segment(index, 0, piece))
            continue
        head, tail = (
            piece[:_TOKEN_BYTES].split(None, 1)[:1],
            piece[-_TOKEN_BYTES:].rsplit(None, 1)[-1:],
        )
        if head and piece.startswith(head[0]):
            found.append(Segment(index, 0, head[0]))
        found.append(Segment(index, len(piece), b" "))
        if tail and piece.endswith(tail[0]):
            found.append(Segment(index, len(piece) - len(tail[0]), tail[0]))
    return found


def parts_found(
    segments: Sequence[Segment], separator: bytes, find: Callable[[bytes], list[Span]]
) -> Iterator[list[Part]]:
    """What is found in the segments put together, and not within one string: the parts of one
    secret after another.
    """
    data = separator.join(segment.data for segment in segments)
    ends = list(accumulate(len(segment.data) + len(separator) for segment in segments))
    for span in find(data):
        first, last = bisect_right(ends, span.start), bisect_right(ends, span.end - 1)
        # a key that nothing closes goes on as long as the strings look like its lines
        if span.rule == UNTERMINATED:
            ended = (
                at for at in range(first + 1, last + 1) if not _KEY_LINE.search(segments[at].data)
            )
            last = next(ended, last + 1) - 1
        if segments[first].place == segments[last].place:
            continue
        secret = data[span.start : min(span.end, ends[last])]
        parts: list[Part] = []
        for place, begin, text in segments[first : last + 1]:
            at = ends[first + len(parts)] - len(text) - len(separator)
            start, end = max(0, span.start - at), min(len(text), span.end - at)
            parts.append(Part(place, begin + start, begin + end, span.kind, span.rule, secret))
        parts = [part for part in parts if part.start < part.end]
        if span.kind == PRIVATE_KEY or not _complete(
            segments[first], segments[first + 1 : last + 1], find
        ):
            yield parts


def _complete(
    first: Segment, following: Sequence[Segment], find: Callable[[bytes], list[Span]]
) -> bool:
    """Whether the first string has a whole token at its end, so that what follows is rather a thing
    of its own.
    """
    if not any(span.end == len(first.data) for span in find(first.data)):
        return False
    rest = next((segment.data for segment in following if segment.data), b"")
    return len(rest) < _LEAST_REST_BYTES or reads_like_words(rest)


def lists_of(root: Any) -> Iterator[tuple[Path, list[Any]]]:
    """Every list of parsed JSON, and how to reach it."""
    todo: list[tuple[Path, Any]] = [((), root)]
    while todo:
        path, value = todo.pop()
        if type(value) is list:
            yield path, value
            children: Iterable[tuple[str | int, Any]] = enumerate(value)
        else:
            children = value.items()
        todo.extend(
            ((*path, step), child) for step, child in children if type(child) in (dict, list)
        )
