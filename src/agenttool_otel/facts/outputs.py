"""The texts of a tool's output, read whatever it is, each field with the trust that its source has there.

Read are JSON values, text, dataclasses, pydantic and attrs objects (so also content blocks and MCP
results), named tuples, enumerations and the plain values of the standard library; of anything else
nothing is run, and the ledger is told that it does not know everything.
"""

from __future__ import annotations

import binascii
import html
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.facts.argument_names import names_identity, snake
from agenttool_otel.facts.tokens import text_of, texts_of
from agenttool_otel.names import Trust
from agenttool_otel.values.pointers import unescape_token

_MAX_NODES: Final = 20_000
_FIELDS: Final = ("__dataclass_fields__", "__pydantic_fields__", "__attrs_attrs__")
_MAX_RECORD: Final = 200
_MAX_IDENTITY: Final = 128
_MAX_ID: Final = 64
_MAX_JSON: Final = 200_000
_MIN_ENCODED: Final = 8
_ENCODED: Final = re.compile(r"[\w+/-]{8,8192}={0,2}", re.ASCII)
_SHAPE: Final = bytes.maketrans(
    b"BCDEFGHIJKLMNOPQRSTUVWXYZ\t\n\v\f\r\x1c\x1d\x1e\x1f", b"A" * 25 + b" " * 9
)
# one letter at its start: found faster
_MIXED: Final = re.compile(rb"A(?:(?<=[^ ]A)|(?=[a-z]*[^ a-zA][^ ]))")
_ESCAPE: Final = re.compile(r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})")

_Patterns = tuple[tuple[tuple[str, ...], Trust], ...]
_Leaf = tuple[_Patterns | None, str, str, bool]


class OutputTrust:
    """How far a tool's output is trusted, by field; made once, at decoration.

    Args:
        stated: the declaration's ``result_trust``: one word for all of the output, or words by JSON
            pointer, in which ``*`` stands for any key or position; a pointer covers all below it.
        open_world: whether anybody may have written what nothing is stated about.
        family: where the ids of the output count: tools of one namespace mean the same by ``13``.
        private: whether the output is confidential, so that it matters where it goes.
        infer: whether identity fields of typed records are taken for records.
        confirms: whether the tool may write, so that a short output repeats what it was told to do.
        looks_up: whether the output comes from a store that the arguments only choose from.
        tool: the tool's name, which tells of what store it reads or writes.
    """

    __slots__ = (
        "_patterns",
        "confirms",
        "default",
        "family",
        "infer",
        "is_lookup",
        "is_trusted",
        "private",
        "tool",
    )

    def __init__(
        self,
        stated: Mapping[str, str] | str | None = None,
        *,
        open_world: bool,
        family: str = "",
        private: bool = False,
        infer: bool = False,
        confirms: bool = False,
        looks_up: bool = False,
        tool: str = "",
    ) -> None:
        self.confirms = confirms
        self.is_lookup = looks_up or stated is not None
        self.tool = tool
        self.default = Trust.FREE_TEXT if open_world else Trust.TRUSTED
        self.family = family
        self.private = private
        self.infer = infer and open_world and stated is None
        words = {"": stated} if isinstance(stated, str) else dict(stated or {})
        patterns: list[tuple[tuple[str, ...], Trust]] = []
        for pointer, word in words.items():
            if word not in _STATED or (pointer and not pointer.startswith("/")):
                raise ConfigurationError(
                    f"result_trust: {pointer!r}: {word!r} has to be a JSON pointer with one of "
                    f"{', '.join(_STATED)}"
                )
            tokens = tuple(map(unescape_token, pointer.split("/")[1:]))
            patterns.append((tokens, Trust(word)))
        self._patterns: _Patterns = tuple(patterns)
        self.is_trusted = self.default is Trust.TRUSTED and not patterns  # all of it

    def read(self, value: Any) -> Reading:
        """Return the texts of an output by the trust they have."""
        if not self._patterns and self.default is Trust.FREE_TEXT:
            texts, complete = texts_of(value, keys=True)
            if complete:  # plain data, in which nothing is typed: all of it has one trust
                return Reading({self.default: texts})
        reading = Reading()
        inner = _structured(value) if self._patterns else value
        self._take(inner, self._patterns or None, reading)
        if inner is not value:
            self._take(value, None, reading)  # the whole of it, too: what a record holds stays one
        return reading

    def _take(self, value: Any, patterns: _Patterns | None, reading: Reading) -> None:
        for place, name, leaf, typed in _leaves(value, patterns, reading):
            trust = self._trust(place)
            if trust is Trust.RECORD and leaf is not value and _is_prose(leaf):
                trust = Trust.FREE_TEXT  # whoever fills the field wrote prose into it
            if trust is Trust.FREE_TEXT and self.infer and typed and _identifies(name, leaf):
                trust = Trust.INFERRED
            reading.texts.setdefault(trust, []).append(leaf)
            if trust is Trust.FREE_TEXT or len(leaf) >= _MAX_ID:
                continue
            kinds = id_kinds(name, self.family)
            if kinds:
                reading.ids.append((kinds[0], leaf, trust))

    def _trust(self, place: _Patterns | None) -> Trust:
        if place is None:
            return self.default
        found = [trust for rest, trust in place if not rest]
        # of several that say something about a place, the most careful one counts
        return max(found, key=_CARE.__getitem__) if found else self.default


@lru_cache(maxsize=4096)
def stores_of(family: str, tool: str) -> tuple[str, ...]:
    """Return by which names a tool's store is known: ``save_note`` and ``read_note`` of a namespace
    share the notes.
    """
    from agenttool_otel.facts.intent import objects_of  # the stemmer is slow to import

    return tuple(f"{family}\0{noun}" for noun in objects_of(tool)) or (f"{family}\0",)


ANYBODYS: Final = OutputTrust(open_world=True)
"""An output that anybody may have written, as a whole."""

_STATED: Final = (Trust.TRUSTED.value, Trust.RECORD.value, Trust.FREE_TEXT.value)
_CARE: Final = {trust: care for care, trust in enumerate(Trust)}


@dataclass(slots=True)
class Reading:
    """The texts of one output."""

    texts: dict[Trust, list[str]] = field(default_factory=dict)
    # kind of the id, its text, its trust
    ids: list[tuple[str, str, Trust]] = field(default_factory=list)
    complete: bool = True  # whether all of it was read


def _leaves(
    value: Any,
    patterns: _Patterns | None,
    reading: Reading,
) -> Iterator[_Leaf]:
    """Walk an output: what is stated about the place, its field's name, its text, whether the field
    is typed.
    """
    stack: list[tuple[Any, _Patterns | None, str, bool]] = [(value, patterns, "", False)]
    seen: set[int] = set()
    for _ in range(_MAX_NODES):
        if not stack:
            return
        item, place, name, typed = stack.pop()
        text = text_of(item)
        if text is not None:
            if text:
                yield place, name, text, typed
            continue
        if item is None or isinstance(item, bool) or id(item) in seen:
            continue
        seen.add(id(item))
        fields, is_typed = fields_of(item)
        if fields is None:
            reading.complete = False
            continue
        for key, child in fields:
            below = _below(place, key)
            if isinstance(key, int):
                stack.append((child, below, name, is_typed or typed))
                continue
            stack.append((child, below, key, is_typed or typed))
            if not is_typed:
                yield place, name, key, False
    reading.complete = reading.complete and not stack


def _below(place: _Patterns | None, key: Any) -> _Patterns | None:
    if place is None:
        return None
    here = [(rest, trust) for rest, trust in place if not rest]
    wanted = ("*", str(key))
    for rest, trust in place:
        if rest and rest[0] in wanted:
            here.append((rest[1:], trust))
    return tuple(here)


@lru_cache(maxsize=4096)
def id_kinds(name: str, family: str) -> tuple[str, ...]:
    """Return what kinds of things a field or argument may name by an id, best first: ids count
    within their kind.
    """
    folded = snake(name).rstrip("_")
    if folded.endswith("ids"):
        folded = folded.removesuffix("s")
    own = f"{family}\0id"
    if folded == "id":
        return (own,)
    if folded.endswith("_id"):
        return (folded, own)
    return ()


def fields_of(item: Any) -> tuple[list[tuple[str | int, Any]] | None, bool]:
    """Return keys and values of a container, and whether its class says which fields it has."""
    if isinstance(item, dict):
        members: list[tuple[str | int, Any]] = []
        for key, child in dict.items(item):
            members.append((key if isinstance(key, str) else str(text_of(key)), child))
        return members, False
    if isinstance(item, tuple):
        names = getattr(type(item), "_fields", None)  # of a named tuple
        if isinstance(names, tuple):
            return list(zip(map(str, names), tuple.__iter__(item), strict=False)), True
    for builtin in (list, tuple, set, frozenset):
        if isinstance(item, builtin):
            elements: Any = builtin.__iter__
            return list(enumerate(elements(item))), False
    if not any(mark in base.__dict__ for base in type(item).__mro__ for mark in _FIELDS):
        return None, False
    held = _attributes_of(item)
    extra = held.pop("__pydantic_extra__", None)
    held.update(extra or {})
    return [(str(name), child) for name, child in held.items()], True


def _attributes_of(item: Any) -> dict[str, Any]:
    """Return what an object holds, without running any code of its class."""
    try:
        return dict(object.__getattribute__(item, "__dict__"))
    except (AttributeError, TypeError):
        pass
    held: dict[str, Any] = {}
    for base in type(item).__mro__:
        for name in base.__dict__.get("__slots__", ()):
            if name in base.__dict__:
                held[name] = base.__dict__[name].__get__(item)
    return held


def _structured(value: Any) -> Any:
    """Return the data that an output is about: of an MCP result its structure, of a text that is
    JSON what it says.
    """
    if isinstance(value, (str, bytes)):
        if len(value) > _MAX_JSON or value[:1] not in ("{", "[", b"{", b"["):
            return value
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    fields: dict[str | int, Any] = {"content": value}
    if not isinstance(value, list):
        fields = dict(fields_of(value)[0] or ())
    inner = fields.get("structuredContent") or fields.get("structured_content")
    if inner is not None:
        return inner
    blocks = fields.get("content")
    if not isinstance(blocks, list) or len(blocks) != 1:
        return value
    block = dict(fields_of(blocks[0])[0] or ())
    if block.get("type") != "text" or not isinstance(block.get("text"), str):
        return value
    data = _structured(block["text"])
    return value if isinstance(data, str) else data


def _is_prose(text: str) -> bool:
    return len(text) > _MAX_RECORD or "\n" in text.strip()


def _identifies(name: str, text: str) -> bool:
    """Return whether a field is called as what identifies, and its text could: ``sender``."""
    return names_identity(name) and _is_identity(text)


def _is_identity(text: str) -> bool:
    if len(text) > _MAX_IDENTITY or "://" in text:
        return False
    return not any(char.isspace() for char in text)


def decoded(text: str) -> list[str]:
    """Return what a text holds in the encodings that a model undoes unasked."""
    found: list[str] = []
    if not text.islower():
        for word in _mixed(text):
            found += map(_unarmoured, _ENCODED.findall(word))
    for mark, undo in _UNDONE:
        if mark not in text:
            continue
        for line in text.splitlines():
            plain = undo(line) if mark in line else line
            if plain != line:
                found.append(plain)
    return list(filter(None, found))


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1] or match[2], 16)), text)


_UNDONE: Final = (("\\u", _unescaped), ("\\x", _unescaped), ("&", html.unescape))


def _mixed(text: str) -> set[str]:
    """Return the words whose capitals stand as in text that is encoded; in time of the
    text's length.
    """
    words: set[str] = set()
    shape = text.encode("ascii", "replace").translate(_SHAPE) + b" "
    end = 0
    while (found := _MIXED.search(shape, end)) is not None:
        start = shape.rfind(b" ", end, found.start()) + 1
        end = shape.index(b" ", found.end())
        word = text[start:end]
        if len(word) >= _MIN_ENCODED and not (word.isupper() or word.istitle()):
            words.add(word)
    return words


def _unarmoured(word: str) -> str:
    """Return the readable text that a base64 word stands for, or an empty one."""
    bare = word.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        plain = binascii.a2b_base64(bare + "=" * (-len(bare) % 4)).decode("utf-8")
    except ValueError:
        return ""
    return plain if plain.isprintable() else ""
