"""JSON text of any value, piece by piece: a result of a gigabyte never exists as text as a whole.

What JSON can't say is written as ``shown_json`` writes it. Unlike there, nothing is left out for
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
from agenttool_otel.values.unicode import escape_surrogates

ValueTransform = Callable[[Any, str], Any]
"""Takes plain JSON data and its JSON pointer in the result, and returns what may be shown of it
(redaction).
"""

PIECE_CHARS: Final = 1 << 16
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
    budget, chars = _SMALL_NODES, PIECE_CHARS
    stack: list[Any] = [value]
    while stack:
        top = stack.pop()
        budget -= len(top)
        if budget < 0:
            return None
        if type(top) is dict:
            for key in top:
                if type(key) is not str or not key.isascii():
                    return None
            top = top.values()
        for item in top:
            cls = type(item)
            if cls is str:
                chars -= len(item)
                if chars < 0:
                    return None
            elif cls in _PLAIN_CONTAINERS:
                if len(stack) > _SMALL_NODES:
                    return None
                stack.append(item)
            elif cls not in _PLAIN_LEAVES:
                return None
    try:
        text = _encode(value)
    except (
        ValueError,
        RecursionError,
    ):  # not a number, a number of too many digits, or a container in itself
        return None
    return text if text.isascii() or escape_surrogates(text) is text else None


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
    # A frame: iterator over the children, whether they are pairs, the closing bracket, id, pointer,
    # first?
    if transform is None and (plain := plain_json(root)) is not None:
        yield plain
        return
    root = opened(root, _WHOLE)
    if _is_small(root):
        yield _encode(whole_json(transform(whole_json(root), "") if transform else root))
        return
    if kind_of(root) not in CONTAINERS:
        yield from _leaf(transform(whole_json(root), "") if transform else root)
        return
    stack: list[_Frame] = [_Frame(root, "")]
    open_ids = {id(root)}
    yield stack[-1].opening
    while stack:
        frame = stack[-1]
        if transform is None and (batch := frame.batch()) is not None:
            yield batch
            continue
        entry: Any = next(frame.children, _END)
        if entry is _END:
            yield frame.closing
            open_ids.discard(id(frame.source))
            stack.pop()
            continue
        yield frame.separator()
        name, child = entry if frame.pairs else (str(frame.count - 1), entry)
        key = _key(name) if frame.pairs else name
        if frame.pairs:
            yield encode_basestring(key) + ":"
        if transform is None and (plain := plain_json(child)) is not None:
            yield plain
            continue
        child = opened(child, _WHOLE)
        kind = Kind.SEQUENCE if type(child) is Items else kind_of(child)
        if kind in CONTAINERS and not _is_small(child):
            if id(child) in open_ids:
                yield '{"$ref":"cycle"}'
            elif len(stack) > _DEEPEST:
                yield '{"$truncated":"depth"}'
            else:
                pointer = f"{frame.pointer}/{escape_token(key)}"
                stack.append(_Frame(child, pointer))
                open_ids.add(id(child))
                yield stack[-1].opening
            continue
        if transform is not None:
            child = _transformed(child, key, frame, transform)
            kind = kind_of(child)
        if kind in CONTAINERS:
            yield _encode(whole_json(child))
        else:
            yield from _leaf(child)


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
        self.opening, self.closing = ("{", "}") if self.pairs else ("[", "]")
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
    """Tell whether a value is a container of few parts and short strings; cycles and unknown
    classes are not small.
    """
    if kind_of(value) not in CONTAINERS:
        return False
    budget, chars = _SMALL_NODES, PIECE_CHARS
    stack = [(value, 0)]
    while stack:
        top, depth = stack.pop()
        kind = kind_of(top)
        if kind in CONTAINERS:
            if depth > 50:
                return False
            children = parts_of(top, kind, budget + 1)
            budget -= len(children)
            if budget < 0:
                return False
            stack.extend((child, depth + 1) for child in children)
        elif kind is Kind.TEXT:
            chars -= len(top)
            if chars < 0:
                return False
        elif kind is Kind.OPAQUE and (type(top) is Items or library_type(top) is not None):
            return False
    return True
