"""The texts of a tool's output, of whatever type it is, each with the trust that its source has
in that field.

Read are JSON values, text, dataclasses, pydantic and attrs objects (so also content blocks and MCP
results), named tuples, enumerations and the plain values of the standard library. Of anything else
no code is run, and the reading is marked as incomplete.
"""

from __future__ import annotations

import binascii
import html
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

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

_Fields: TypeAlias = list[tuple[str | int, Any]]
"""Keys or positions, with their values."""

_Patterns: TypeAlias = tuple[tuple[tuple[str, ...], Trust], ...]
"""Reference tokens of a JSON pointer, with the trust of what it names."""


class _Place(NamedTuple):
    """A value that the walk through an output comes by."""

    value: Any
    patterns: _Patterns | None  # what is stated of this place and those below it
    name: str  # of the field; of what lies in a list, the list's
    typed: bool  # whether a class declares the field


class _Leaf(NamedTuple):
    """A text of an output."""

    text: str
    patterns: _Patterns | None
    name: str
    typed: bool


class OutputId(NamedTuple):
    """An id in an output."""

    kind: str  # of what it is an id
    text: str
    trust: Trust


class OutputTrust:
    """How far a tool's output is trusted, by field; made once, at decoration.

    Args:
        stated: the declaration's ``result_trust``: one word for all of the output, or words by JSON
            pointer, in which ``*`` stands for any key or position; a pointer covers all below it.
        open_world: whether outsiders may have written what nothing is stated about.
        family: where the ids of the output count: tools of one namespace mean the same by ``13``.
        private: whether the output is confidential, so that it matters where it goes.
        infer: whether identity fields of typed records are taken for records.
        confirms: whether the tool may write, so that a short output repeats its arguments.
        looks_up: whether the output comes from a store that the arguments only choose from.
        tool: the tool's name, whose nouns name the store that it reads or writes.

    Raises:
        ConfigurationError: ``stated`` has another word, or a name that is no JSON pointer.
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
        self._patterns = _patterns_of(stated)
        # all of the output
        self.is_trusted = self.default is Trust.TRUSTED and not self._patterns

    def read(self, value: Any, *, ids: bool = False) -> Reading:
        """Return the texts of an output by the trust they have.

        Args:
            value: the output.
            ids: whether the ids of free text are wanted, too: those of data's own fields.
        """
        if not ids and not self._patterns and self.default is Trust.FREE_TEXT:
            texts, complete = texts_of(value, keys=True)
            if complete:  # plain data, in which no class declares a field: all has one trust
                return Reading({self.default: texts})
        reading = Reading(all_ids=ids)
        inner = _structured(value) if self._patterns or ids else value
        self._take(inner, self._patterns or None, reading)
        if inner is not value:
            # the envelope, too: a token of it is a source, as is one of what it holds
            self._take(value, None, reading)
        return reading

    def _take(self, value: Any, patterns: _Patterns | None, reading: Reading) -> None:
        for leaf in _leaves(value, patterns, reading):
            trust = self._trust(leaf, whole=value)
            reading.texts.setdefault(trust, []).append(leaf.text)
            if len(leaf.text) >= _MAX_ID or (trust is Trust.FREE_TEXT and not reading.all_ids):
                continue
            kinds = id_kinds(leaf.name, self.family)
            if kinds:
                reading.ids.append(OutputId(kinds[0], leaf.text, trust))

    def _trust(self, leaf: _Leaf, *, whole: Any) -> Trust:
        """Return how far a text is trusted.

        Args:
            leaf: the text.
            whole: the output that it is found in; a text that is all of it is no field.
        """
        trust = self._stated_trust(leaf.patterns)
        if trust is Trust.RECORD and leaf.text is not whole and _is_prose(leaf.text):
            trust = Trust.FREE_TEXT  # a note's body in a field that is declared a record
        if trust is not Trust.FREE_TEXT or not self.infer or not leaf.typed:
            return trust
        if names_identity(leaf.name) and _is_identity(leaf.text):
            return Trust.INFERRED  # sender="ann@example.org" of a dataclass
        return trust

    def _stated_trust(self, patterns: _Patterns | None) -> Trust:
        if patterns is None:
            return self.default
        stated = [trust for tokens_below, trust in patterns if not tokens_below]
        if not stated:
            return self.default
        # "/*/id" and "/items/id" name the same place: the least trusting counts
        return max(stated, key=_CARE.__getitem__)


def _patterns_of(stated: Mapping[str, str] | str | None) -> _Patterns:
    """Return what a declaration states of its output, by reference tokens."""
    if stated is None:
        return ()
    words = {"": stated} if isinstance(stated, str) else stated
    patterns: list[tuple[tuple[str, ...], Trust]] = []
    for pointer, word in words.items():
        if word not in _STATED or (pointer and not pointer.startswith("/")):
            raise ConfigurationError(
                f"result_trust: {pointer!r}: {word!r} has to be a JSON pointer with one of "
                f"{', '.join(_STATED)}"
            )
        tokens = tuple(map(unescape_token, pointer.split("/")[1:]))
        patterns.append((tokens, Trust(word)))
    return tuple(patterns)


@lru_cache(maxsize=4096)
def stores_of(family: str, tool: str) -> tuple[str, ...]:
    """Return the names of a tool's stores: ``save_note`` and ``read_note`` of a namespace share the
    notes.
    """
    from agenttool_otel.facts.intent import objects_of  # the stemmer is slow to import

    nouns = objects_of(tool) or [""]
    return tuple(f"{family}\0{noun}" for noun in nouns)


OPEN_WORLD: Final = OutputTrust(open_world=True)
"""An output that outsiders may have written, as a whole."""

_STATED: Final = (Trust.TRUSTED.value, Trust.RECORD.value, Trust.FREE_TEXT.value)
_CARE: Final = {trust: care for care, trust in enumerate(Trust)}


@dataclass(slots=True)
class Reading:
    """The texts of an output."""

    texts: dict[Trust, list[str]] = field(default_factory=dict)
    ids: list[OutputId] = field(default_factory=list)
    complete: bool = True  # whether all of it was read
    all_ids: bool = False  # whether those of free text are among the ids


def _leaves(
    value: Any,
    patterns: _Patterns | None,
    reading: Reading,
) -> Iterator[_Leaf]:
    """Walk through an output and return its texts; the reading is marked where some are missing."""
    stack = [_Place(value, patterns, "", False)]
    seen: set[int] = set()
    for _ in range(_MAX_NODES):
        if not stack:
            return
        place = stack.pop()
        text = text_of(place.value)
        if text:
            yield _Leaf(text, place.patterns, place.name, place.typed)
        if text is not None:
            continue
        if place.value is None or isinstance(place.value, bool) or id(place.value) in seen:
            continue
        seen.add(id(place.value))
        fields, is_typed = fields_of(place.value)
        if fields is None:
            reading.complete = False
            continue
        stack += _children(place, fields, is_typed)
        if not is_typed:
            yield from _key_leaves(place, fields)
    if stack:
        reading.complete = False


def _children(place: _Place, fields: _Fields, is_typed: bool) -> Iterator[_Place]:
    """Return what lies in a container."""
    typed = is_typed or place.typed
    for key, child in fields:
        patterns = _below(place.patterns, key)
        name = place.name if isinstance(key, int) else key
        yield _Place(child, patterns, name, typed)


def _key_leaves(place: _Place, fields: _Fields) -> Iterator[_Leaf]:
    """Return the keys of a dict, which are texts as well: {"eve@example.org": 3}."""
    for key, _ in fields:
        if isinstance(key, str):
            yield _Leaf(key, place.patterns, place.name, False)


def _below(patterns: _Patterns | None, key: str | int) -> _Patterns | None:
    """Return what is stated of a child, and of all that lies below it."""
    if patterns is None:
        return None
    covering: list[tuple[tuple[str, ...], Trust]] = []
    matching: list[tuple[tuple[str, ...], Trust]] = []
    for tokens, trust in patterns:
        if not tokens:
            covering.append((tokens, trust))  # "/record" covers "/record/name"
        elif tokens[0] in ("*", str(key)):
            matching.append((tokens[1:], trust))
    return (*covering, *matching)


@lru_cache(maxsize=4096)
def id_kinds(name: str, family: str) -> tuple[str, ...]:
    """Return the kinds of things that a field or argument may name by an id, best first: an id
    counts within its kind.
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


def fields_of(item: Any) -> tuple[_Fields | None, bool]:
    """Return keys and values of a container, and whether its class declares its fields; no keys
    and values where reading them would run code of its class.
    """
    if isinstance(item, dict):
        members: _Fields = []
        for key, child in dict.items(item):
            name = key if isinstance(key, str) else str(text_of(key))
            members.append((name, child))
        return members, False
    if isinstance(item, tuple):
        names = getattr(type(item), "_fields", None)  # of a named tuple
        if isinstance(names, tuple):
            named = zip(map(str, names), tuple.__iter__(item), strict=False)
            return list(named), True
    for builtin in (list, tuple, set, frozenset):
        if isinstance(item, builtin):
            elements: Any = builtin.__iter__
            return list(enumerate(elements(item))), False
    if not _declares_fields(type(item)):
        return None, False
    attributes = _attributes_of(item)
    extra = attributes.pop("__pydantic_extra__", None)
    attributes.update(extra or {})
    return [(str(name), child) for name, child in attributes.items()], True


def _declares_fields(kind: type) -> bool:
    """Return whether a class is a dataclass, a pydantic model or one of attrs."""
    return any(not base.__dict__.keys().isdisjoint(_FIELDS) for base in kind.__mro__)


def _attributes_of(item: Any) -> dict[str, Any]:
    """Return an object's attributes, without running any code of its class."""
    try:
        return dict(object.__getattribute__(item, "__dict__"))
    except (AttributeError, TypeError):
        pass
    attributes: dict[str, Any] = {}
    for base in type(item).__mro__:
        for name in base.__dict__.get("__slots__", ()):
            if name in base.__dict__:
                attributes[name] = base.__dict__[name].__get__(item)
    return attributes


def _structured(value: Any) -> Any:
    """Return the data of an output: of an MCP result its structure, of JSON text what it encodes,
    of anything else the value.
    """
    if isinstance(value, (str, bytes)):
        return _parsed(value)
    blocks = value
    if not isinstance(value, list):
        result = dict(fields_of(value)[0] or ())
        structure = result.get("structuredContent") or result.get("structured_content")
        if structure is not None:
            return structure
        blocks = result.get("content")
    text = _only_text(blocks)
    if text is None:
        return value
    data = _parsed(text)
    return value if data is text else data


def _parsed(text: str | bytes) -> Any:
    """Return the object or list that a text encodes as JSON, any other text as it stands."""
    if len(text) > _MAX_JSON or text[:1] not in ("{", "[", b"{", b"["):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _only_text(blocks: Any) -> str | None:
    """Return the text of content that is a single block: [{"type": "text", "text": "[1, 2]"}]."""
    if not isinstance(blocks, list) or len(blocks) != 1:
        return None
    block = dict(fields_of(blocks[0])[0] or ())
    text = block.get("text")
    if block.get("type") != "text" or not isinstance(text, str):
        return None
    return text


def _is_prose(text: str) -> bool:
    return len(text) > _MAX_RECORD or "\n" in text.strip()


def _is_identity(text: str) -> bool:
    """Return whether a text could identify a person or thing: a single word, and no URL."""
    if len(text) > _MAX_IDENTITY or "://" in text:
        return False
    return not any(char.isspace() for char in text)


def decoded(text: str) -> list[str]:
    """Return the plain forms of what a text holds in an encoding that a model undoes unasked."""
    found: list[str] = []
    if not text.islower():
        for word in _mixed(text):
            found += map(_unarmoured, _ENCODED.findall(word))
    for mark, undo in _UNDONE:
        if mark not in text:
            continue
        for line in text.splitlines():
            if mark not in line:
                continue
            plain = undo(line)
            if plain != line:
                found.append(plain)
    return [plain for plain in found if plain]


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_character, text)


def _character(escape: re.Match[str]) -> str:
    digits = escape[1] or escape[2]
    return chr(int(digits, 16))


_UNDONE: Final = (("\\u", _unescaped), ("\\x", _unescaped), ("&", html.unescape))


def _mixed(text: str) -> set[str]:
    """Return the words whose capitals stand as in text that is encoded, such as ``cGF5IGV2ZQ``; in
    time of the text's length.
    """
    words: set[str] = set()
    shape = text.encode("ascii", "replace").translate(_SHAPE) + b" "
    end = 0
    while True:
        found = _MIXED.search(shape, end)
        if found is None:
            return words
        start = shape.rfind(b" ", end, found.start()) + 1
        end = shape.index(b" ", found.end())
        word = text[start:end]
        if len(word) >= _MIN_ENCODED and not (word.isupper() or word.istitle()):
            words.add(word)


def _unarmoured(word: str) -> str:
    """Return the readable text of a word of base64, or an empty text."""
    bare = word.rstrip("=").replace("-", "+").replace("_", "/")
    padding = "=" * (-len(bare) % 4)
    try:
        plain = binascii.a2b_base64(bare + padding).decode("utf-8")
    except ValueError:
        return ""
    return plain if plain.isprintable() else ""
