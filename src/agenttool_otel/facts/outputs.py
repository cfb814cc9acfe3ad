"""What a tool's output says, read whatever it is, each field with the trust that its source has there.

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

_MAX_NODES: Final = 20_000
_FIELDS: Final = ("__dataclass_fields__", "__pydantic_fields__", "__attrs_attrs__")
_MAX_RECORD: Final = 200
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
        for pointer, word in words.items():
            if word not in _STATED or (pointer and not pointer.startswith("/")):
                raise ConfigurationError(
                    f"result_trust: {pointer!r}: {word!r} has to be a JSON pointer with one of {', '.join(_STATED)}"
                )
        self._patterns: _Patterns = tuple(
            (
                tuple(
                    part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]
                ),
                Trust(word),
            )
            for pointer, word in words.items()
        )
        self.is_trusted = self.default is Trust.TRUSTED and not self._patterns  # all of it

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
            if (
                trust is Trust.RECORD
                and leaf is not value
                and ("\n" in leaf.strip() or len(leaf) > _MAX_RECORD)
            ):
                trust = Trust.FREE_TEXT  # whoever fills the field wrote prose into it
            if (
                trust is Trust.FREE_TEXT
                and self.infer
                and typed
                and names_identity(name)
                and _is_identity(leaf)
            ):
                trust = Trust.INFERRED
            reading.texts.setdefault(trust, []).append(leaf)
            if (
                trust is not Trust.FREE_TEXT
                and (kinds := id_kinds(name, self.family))
                and len(leaf) < 64
            ):
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


def _leaves(value: Any, patterns: _Patterns | None, reading: Reading) -> Iterator[_Leaf]:
    """Walk an output: what is stated about the place, its field's name, its text, whether the field
    is typed.
    """
    stack: list[tuple[Any, _Patterns | None, str, bool]] = [(value, patterns, "", False)]
    seen: set[int] = set()
    for _ in range(_MAX_NODES):
        if not stack:
            return
        item, place, name, typed = stack.pop()
        if (text := text_of(item)) is not None:
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
            stack.append(
                (
                    child,
                    _below(place, key),
                    name if isinstance(key, int) else str(key),
                    is_typed or typed,
                )
            )
            if isinstance(key, str) and not is_typed:
                yield place, name, key, False
    reading.complete = reading.complete and not stack


def _below(place: _Patterns | None, key: Any) -> _Patterns | None:
    if place is None:
        return None
    told = [(rest, trust) for rest, trust in place if not rest]
    return tuple(
        told + [(rest[1:], trust) for rest, trust in place if rest and rest[0] in ("*", str(key))]
    )


@lru_cache(maxsize=4096)
def id_kinds(name: str, family: str) -> tuple[str, ...]:
    """Return what kinds of things a field or argument may name by an id, best first: ids count
    within their kind.
    """
    folded = snake(name).rstrip("_")
    folded = folded[:-1] if folded.endswith("ids") else folded
    own = f"{family}\0id"
    return (own,) if folded == "id" else (folded, own) if folded.endswith("_id") else ()


def fields_of(item: Any) -> tuple[list[tuple[str | int, Any]] | None, bool]:
    """Return keys and values of a container, and whether its class says which fields it has."""
    if isinstance(item, dict):
        return [
            (key if isinstance(key, str) else str(text_of(key)), child)
            for key, child in dict.items(item)
        ], False
    if isinstance(item, tuple) and isinstance(names := getattr(type(item), "_fields", None), tuple):
        return list(zip(map(str, names), tuple.__iter__(item), strict=False)), True
    if isinstance(item, (list, tuple, set, frozenset)):
        builtin: Any = next(
            kind for kind in (list, tuple, set, frozenset) if isinstance(item, kind)
        )
        return list(enumerate(builtin.__iter__(item))), False
    if not any(mark in base.__dict__ for base in type(item).__mro__ for mark in _FIELDS):
        return None, False
    try:
        held = dict(object.__getattribute__(item, "__dict__"))
    except (AttributeError, TypeError):  # slots
        held = {}
        for base in type(item).__mro__:
            slots = base.__dict__.get("__slots__", ())
            held.update(
                (name, base.__dict__[name].__get__(item)) for name in slots if name in base.__dict__
            )
    extra = held.pop("__pydantic_extra__", None)
    return [(str(name), child) for name, child in {**held, **(extra or {})}.items()], True


def _structured(value: Any) -> Any:
    """Return the data that an output is about: of an MCP result its structure, of a text that is
    JSON what it says.
    """
    if isinstance(value, (str, bytes)):
        if len(value) <= _MAX_JSON and value[:1] in ("{", "[", b"{", b"["):
            try:
                return json.loads(value)
            except (ValueError, RecursionError):
                return value
        return value
    fields = dict(fields_of(value)[0] or ()) if not isinstance(value, list) else {"content": value}
    inner = fields.get("structuredContent") or fields.get("structured_content")
    if inner is not None:
        return inner
    blocks = fields.get("content")
    block = (
        dict(fields_of(blocks[0])[0] or ()) if isinstance(blocks, list) and len(blocks) == 1 else {}
    )
    told = (
        _structured(block["text"])
        if block.get("type") == "text" and isinstance(block.get("text"), str)
        else value
    )
    return value if isinstance(told, str) else told


def _is_identity(text: str) -> bool:
    return len(text) <= 128 and not any(char.isspace() for char in text) and "://" not in text


def decoded(text: str) -> list[str]:
    """Return what a text says in the encodings that a model undoes unasked."""
    words = () if text.islower() else _mixed(text)
    found = [_unarmoured(piece) for word in words for piece in _ENCODED.findall(word)]
    for mark, undo in _UNDONE:
        if mark in text:
            found += [
                plain
                for line in text.splitlines()
                if mark in line and (plain := undo(line)) != line
            ]
    return list(filter(None, found))


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1] or match[2], 16)), text)


_UNDONE: Final = (("\\u", _unescaped), ("\\x", _unescaped), ("&", html.unescape))


def _mixed(text: str) -> set[str]:
    """Return the words whose capitals stand as in text that is encoded; in time of the
    text's length.
    """
    words, end = set(), 0
    shape = text.encode("ascii", "replace").translate(_SHAPE) + b" "
    while (found := _MIXED.search(shape, end)) is not None:
        start, end = shape.rfind(b" ", end, found.start()) + 1, shape.index(b" ", found.end())
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
