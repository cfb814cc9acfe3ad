"""JSON text of any value, piece by piece: a result of a gigabyte never exists as text as a whole.

What JSON has no form for is written as ``shown_json`` writes it. Unlike there, nothing is left out for
its size.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from json.encoder import encode_basestring
from typing import Any, Final

from agenttool_otel.results.content.libraries import Items, View, library_type
from agenttool_otel.results.content.shown import NO_LIMIT, opened, whole_json
from agenttool_otel.values.inspection import (
    CONTAINERS,
    SEQUENCES,
    Kind,
    kind_of,
    mapping_items,
    parts_of,
    sequence_items,
)
from agenttool_otel.values.pointers import escape_token
from agenttool_otel.values.unicode import escape_surrogates, has_surrogate

ValueTransform = Callable[[Any, str], Any]
"""Takes plain JSON data and its JSON pointer in the result, and returns what may be shown of it
(redaction).
"""

PIECE_CHARS: Final = 1 << 16
_SMALL_DEPTH: Final = 52
_SMALL_NODES: Final = 2048
_BATCH: Final = 128
_DEEPEST: Final = 200
_WHOLE: Final = View(whole=True)
_encode = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), check_circular=False, allow_nan=False
).encode
_PLAIN_CONTAINERS: Final = frozenset({dict, list, tuple})
_PLAIN_LEAVES: Final = frozenset({int, bool, float, type(None)})


def json_text(value: Any, *, max_chars: int) -> str | None:
    """Return the JSON text of a value, or ``None`` if it is longer than ``max_chars``."""
    parts: list[str] = []
    total = 0
    for piece in json_pieces(value):
        total += len(piece)
        if total > max_chars:
            return None
        parts.append(piece)
    return "".join(parts)


def plain_json(value: Any) -> str | None:
    """Return the JSON text of a small container of plain builtins, or ``None`` for anything else;
    the fast way.
    """
    if type(value) not in _PLAIN_CONTAINERS:
        return None
    nodes = _SMALL_NODES
    chars = PIECE_CHARS
    stack: list[Any] = [value]
    while stack:
        top = stack.pop()
        nodes -= len(top)
        if nodes < 0:
            return None
        used = _plain_chars(top, stack)
        if used is None:
            return None
        chars -= used
        if chars < 0:
            return None
    return _encoded_or_none(value)


def _plain_chars(container: Any, stack: list[Any]) -> int | None:
    """Count the characters of a container's texts and put the containers in it on the stack;
    ``None`` where it holds anything that the encoder would not write as it is.
    """
    items = container
    if type(container) is dict:
        for key in container:
            if type(key) is not str or not key.isascii():
                return None
        items = container.values()
    chars = 0
    for item in items:
        cls = type(item)
        if cls is str:
            chars += len(item)
        elif cls in _PLAIN_CONTAINERS:
            # [[[...]]], a list in itself: it never ends
            if len(stack) > _SMALL_NODES:
                return None
            stack.append(item)
        elif cls not in _PLAIN_LEAVES:
            return None
    return chars


def _encoded_or_none(value: Any) -> str | None:
    try:
        text = _encode(value)
    except (ValueError, RecursionError):
        # NaN, a number of more than 4,300 digits, or a container in itself
        return None
    if text.isascii() or not has_surrogate(text):
        return text
    return None


def json_pieces(value: Any, transform: ValueTransform | None = None) -> Iterator[str]:
    """Yield the JSON text of a value in pieces of about ``PIECE_CHARS`` characters."""
    buffer: list[str] = []
    held = 0
    for part in _parts(value, transform):
        buffer.append(part)
        held += len(part)
        if held >= PIECE_CHARS:
            yield "".join(buffer)
            buffer.clear()
            held = 0
    if buffer:
        yield "".join(buffer)


def _parts(root: Any, transform: ValueTransform | None) -> Iterator[str]:
    plain = plain_json(root) if transform is None else None
    if plain is not None:
        yield plain
        return
    root = opened(root, _WHOLE)
    is_small = _is_small(root)
    if not is_small and kind_of(root) in CONTAINERS:
        yield from _Writer(transform).parts(root)
        return
    if transform is not None:
        root = transform(whole_json(root), "")
    if is_small:
        yield _encode(whole_json(root))
    else:
        yield from _leaf(root)


class _Writer:
    """Writes a large container, with a stack instead of recursion."""

    def __init__(self, transform: ValueTransform | None) -> None:
        self._transform = transform
        self._stack: list[_Frame] = []
        self._open_ids: set[int] = set()

    def parts(self, root: Any) -> Iterator[str]:
        """Yield the text of a container in parts of any size."""
        yield self._open(root, "")
        while self._stack:
            frame = self._stack[-1]
            batch = frame.batch() if self._transform is None else None
            if batch is not None:
                yield batch
                continue
            entry: Any = next(frame.children, _END)
            if entry is _END:
                yield self._close()
                continue
            yield frame.separator()
            if frame.pairs:
                name, child = entry
                key = _key(name)
                yield encode_basestring(key) + ":"
            else:
                key = str(frame.count - 1)
                child = entry
            yield from self._child(frame, key, child)

    def _open(self, source: Any, pointer: str) -> str:
        frame = _Frame(source, pointer)
        self._stack.append(frame)
        self._open_ids.add(id(source))
        return frame.opening

    def _close(self) -> str:
        frame = self._stack.pop()
        self._open_ids.discard(id(frame.source))
        return frame.closing

    def _child(self, frame: _Frame, key: str, child: Any) -> Iterator[str]:
        plain = plain_json(child) if self._transform is None else None
        if plain is not None:
            yield plain
            return
        child = opened(child, _WHOLE)
        kind = Kind.SEQUENCE if type(child) is Items else kind_of(child)
        if kind in CONTAINERS and not _is_small(child):
            yield self._enter(frame, key, child)
            return
        if self._transform is not None:
            child = _transformed(child, key, frame, self._transform)
            kind = kind_of(child)
        if kind in CONTAINERS:
            yield _encode(whole_json(child))
        else:
            yield from _leaf(child)

    def _enter(self, frame: _Frame, key: str, child: Any) -> str:
        """Go down into a large container, unless it contains itself or lies too deep."""
        if id(child) in self._open_ids:
            return '{"$ref":"cycle"}'
        if len(self._stack) > _DEEPEST:
            return '{"$truncated":"depth"}'
        return self._open(child, f"{frame.pointer}/{escape_token(key)}")


def _transformed(child: Any, key: str, frame: _Frame, transform: ValueTransform) -> Any:
    child = whole_json(child)
    if not frame.pairs:
        return transform(child, f"{frame.pointer}/{escape_token(key)}")
    # The key travels with the value: {"password": ...} is recognised by its key alone.
    kept = transform({key: child}, frame.pointer)
    return kept.get(key) if isinstance(kept, dict) else None


_END: Final = object()
"""Marks the end of a frame's children."""


class _Frame:
    """A container that is being written."""

    __slots__ = (
        "children",
        "closing",
        "count",
        "one_by_one",
        "opening",
        "pairs",
        "pointer",
        "source",
    )

    def __init__(self, source: Any, pointer: str) -> None:
        kind = Kind.SEQUENCE if type(source) is Items else kind_of(source)
        self.source = source
        self.pointer = pointer
        self.pairs = kind not in SEQUENCES
        self.opening = "{" if self.pairs else "["
        self.closing = "}" if self.pairs else "]"
        self.count = 0
        self.one_by_one = 0 if type(source) in (list, tuple) else NO_LIMIT
        children: Any
        if type(source) in (list, tuple, Items):
            # exact builtins are walked in place: no copy of a list of ten million
            children = iter(source)
        elif self.pairs:
            children = iter(mapping_items(source, kind, NO_LIMIT))
        else:
            children = iter(sequence_items(source, NO_LIMIT))
        self.children: Iterator[Any] = children

    def batch(self) -> str | None:
        """Return the text of the next items at once, if they are plain; else they come one
        by one.
        """
        if self.one_by_one:
            self.one_by_one -= 1
            return None
        items = self.source[self.count : self.count + _BATCH]
        text = plain_json(items) if items else None
        if text is None:
            self.one_by_one = len(items)  # the next call starts with the first of them
            return None
        first = self.count == 0
        self.count += len(items)
        next(islice(self.children, len(items) - 1, len(items)), None)
        return text[1:-1] if first else "," + text[1:-1]

    def separator(self) -> str:
        self.count += 1
        return "," if self.count > 1 else ""


def _leaf(value: Any) -> Iterator[str]:
    if type(value) is str and len(value) > PIECE_CHARS:
        yield '"'
        for start in range(0, len(value), PIECE_CHARS):
            yield encode_basestring(escape_surrogates(value[start : start + PIECE_CHARS]))[1:-1]
        yield '"'
    else:
        yield _encode(whole_json(value))


def _key(key: Any) -> str:
    if type(key) is str:
        return escape_surrogates(key)
    named = whole_json({key: None})
    return next(iter(named)) if isinstance(named, dict) else "$key"


def _is_small(value: Any) -> bool:
    """Return whether a value is a container of few parts and short strings; cycles and objects of
    libraries are not small.
    """
    if kind_of(value) not in CONTAINERS:
        return False
    nodes = _SMALL_NODES
    chars = PIECE_CHARS
    level = [value]
    for _depth in range(_SMALL_DEPTH):
        below: list[Any] = []
        for item in level:
            kind = kind_of(item)
            if kind in CONTAINERS:
                below += parts_of(item, kind, nodes + 1 - len(below))
            elif kind is Kind.TEXT:
                chars -= len(item)
            elif kind is Kind.OPAQUE and _is_of_library(item):
                return False
        nodes -= len(below)
        if nodes < 0 or chars < 0:
            return False
        if not below:
            return True
        level = below
    return False


def _is_of_library(value: Any) -> bool:
    return type(value) is Items or library_type(value) is not None
