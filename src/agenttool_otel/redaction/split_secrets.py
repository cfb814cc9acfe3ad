"""Secrets that are split over the items of a list: the lines of a private key, the parts of a
streamed text.

A tool that returns a file as a list of lines, or a stream as a list of deltas, returns no item in
which a whole secret stands. So what a list holds one after the other is read as one text too. Only
private keys and distinctive tokens count there, whose beginning has a form of its own: other items
that happen to follow each other mean nothing together.
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
        places = islice(_within(item), _MOST_PLACES)
        for path, text in places:
            if type(text) is not str:
                continue
            # [{"delta": {"text": "ghp_"}}, {"delta": {"text": "CoIF7u"}}]: "delta", "text"
            column = found.setdefault(path, Column([], []))
            column.steps.append((index, *path))
            column.pieces.append(text)
    return [column for column in found.values() if len(column.pieces) >= 2]


def _within(item: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """An item and what stands in it, each with its place."""
    yield path, item
    kind = type(item)
    if kind not in (dict, list):
        return
    if len(item) > _MOST_MEMBERS or len(path) >= _DEEPEST:
        return
    children = item.items() if kind is dict else enumerate(item)
    for step, child in children:
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

    A segment of one space stands for white space, or the middle of a string, that was left out.
    """
    found: list[Segment] = []
    for index, piece in enumerate(pieces):
        size = len(piece)
        # "ghp_CoIF7u" is one word
        if size <= _TOKEN_BYTES and piece.split(None, 1) == [piece]:
            found.append(Segment(index, 0, piece))
            continue
        # "F7uUx and then": what went on from the string before
        beginning = piece[:_TOKEN_BYTES]
        words = beginning.split(None, 1)
        if words and piece.startswith(words[0]):
            found.append(Segment(index, 0, words[0]))
        found.append(Segment(index, size, b" "))
        # "the key is ghp_CoI": what may go on in the next string
        ending = piece[-_TOKEN_BYTES:]
        words = ending.rsplit(None, 1)
        if words and piece.endswith(words[-1]):
            start = size - len(words[-1])
            found.append(Segment(index, start, words[-1]))
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
        first = bisect_right(ends, span.start)
        last = bisect_right(ends, span.end - 1)
        if span.rule == UNTERMINATED:
            last = _last_key_line(segments, first, last)
        covered = segments[first : last + 1]
        # a string that holds all of it is read by itself
        if covered[0].place == covered[-1].place:
            continue
        if span.kind != PRIVATE_KEY and _complete(covered[0], covered[1:], find):
            continue
        secret_end = min(span.end, ends[last])
        secret = data[span.start : secret_end]
        parts: list[Part] = []
        for segment, behind in zip(covered, ends[first:], strict=False):
            # first byte of the segment in all of them put together
            at = behind - len(segment.data) - len(separator)
            part = _part_of(segment, at, span, secret)
            if part is not None:
                parts.append(part)
        yield parts


def _part_of(segment: Segment, at: int, span: Span, secret: bytes) -> Part | None:
    """The part of a find that lies within a segment.

    Args:
        segment: the segment.
        at: its first byte in all segments put together.
        span: the find, in all of them put together.
        secret: the bytes of the find.
    """
    start = max(0, span.start - at)
    end = min(len(segment.data), span.end - at)
    if start >= end:
        return None
    return Part(
        place=segment.place,
        start=segment.start + start,
        end=segment.start + end,
        kind=span.kind,
        rule=span.rule,
        secret=secret,
    )


def _last_key_line(segments: Sequence[Segment], first: int, last: int) -> int:
    """The last of the strings that look like lines of a key that nothing closes."""
    # "-----BEGIN PRIVATE KEY-----", "MIIEvQ...", "and so on"
    for at in range(first + 1, last + 1):
        if not _KEY_LINE.search(segments[at].data):
            return at - 1
    return last


def _complete(
    first: Segment, following: Sequence[Segment], find: Callable[[bytes], list[Span]]
) -> bool:
    """Whether the first string has a whole token at its end, so that what follows is rather a thing
    of its own.
    """
    size = len(first.data)
    spans = find(first.data)
    if not any(span.end == size for span in spans):
        return False
    # ["ghp_... (36 characters)", "main"]: a branch follows the token
    rest = next((segment.data for segment in following if segment.data), b"")
    if len(rest) < _LEAST_REST_BYTES:
        return True
    return reads_like_words(rest)


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
        for step, child in children:
            if type(child) not in (dict, list):
                continue
            below = (*path, step)
            todo.append((below, child))
