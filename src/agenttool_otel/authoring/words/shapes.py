"""The shape of a value: which types it can have, which texts it can be, which members it has.

A shape never claims more than is certain: of an argument of a tool, which a model wrote, nothing is
known, and nothing is wrong with any use of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

TEXT: Final = "string"
NUMBER: Final = "number"
TRUTH: Final = "boolean"
NULL: Final = "null"
LIST: Final = "array"
OBJECT: Final = "object"
SET: Final = "set"

ALL: Final = frozenset({TEXT, NUMBER, TRUTH, NULL, LIST, OBJECT, SET})
COLLECTIONS: Final = frozenset({LIST, OBJECT, SET})

NAMES: Final[Mapping[str, str]] = {
    TEXT: "a text",
    NUMBER: "a number",
    TRUTH: "true or false",
    NULL: "null",
    LIST: "a list",
    OBJECT: "an object",
    SET: "a set",
}
"""By type, what a message calls it."""

_MAX_WORDS: Final = 500
_MAX_MEMBERS: Final = 300


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands."""

    file: str  # its file
    line: int  # its line


@dataclass(frozen=True, slots=True)
class Words:
    """The texts that a value can be."""

    known: frozenset[str]  # the texts
    open: bool = False  # a program may state words of its own
    stated: bool = False  # they stand in a rule or data file, and are no vocabulary of ours

    def joined(self, other: Words) -> Words | None:
        """Return the words of a value that can have either; ``None`` where they are too many."""
        known = self.known | other.known
        if len(known) > _MAX_WORDS:
            return None
        return Words(known, self.open or other.open, self.stated and other.stated)


@dataclass(frozen=True, slots=True)
class Shape:
    """What is known of a value."""

    kinds: frozenset[str] = ALL  # the types that it can have
    words: Words | None = None  # the texts that it can be; ``None``: any
    members: Mapping[str, Shape] | None = None  # of an object; ``None``: any
    others: Shape | None = None  # further members of an object, by any name
    items: Shape | None = None  # of a list or set, or the values of an object; ``None``: any
    name: str = ""  # what a message calls it: ``input.tool``
    place: Place | None = None  # where it is written
    size: int | None = None  # of a list that is written out
    value: Any = None  # of a number, true or false that is written out

    @property
    def known(self) -> bool:
        """Whether anything is known of its type."""
        return self.kinds != ALL

    @property
    def closed(self) -> bool:
        """Whether it is an object that has no members but those which are known."""
        return self.members is not None and self.others is None

    def called(self, name: str) -> Shape:
        """Return the shape under another name."""
        return replace(self, name=name)

    def could_be(self, kinds: Iterable[str]) -> bool:
        """Return whether the value can be of one of some types."""
        return not self.kinds.isdisjoint(kinds)

    def only(self, kinds: Iterable[str]) -> Shape:
        """Return the shape of a value that is known to be of one of some types."""
        return replace(self, kinds=self.kinds & frozenset(kinds))


ANY: Final = Shape()
NOTHING: Final = Shape(frozenset())
A_TEXT: Final = Shape(frozenset({TEXT}))
A_NUMBER: Final = Shape(frozenset({NUMBER}))
A_TRUTH: Final = Shape(frozenset({TRUTH}))
A_SET: Final = Shape(frozenset({SET}))
A_LIST: Final = Shape(frozenset({LIST}))
AN_OBJECT: Final = Shape(frozenset({OBJECT}))

OF_KINDS: Final[Mapping[str, Shape]] = {
    TEXT: A_TEXT,
    NUMBER: A_NUMBER,
    TRUTH: A_TRUTH,
    SET: A_SET,
    LIST: A_LIST,
    OBJECT: AN_OBJECT,
    NULL: Shape(frozenset({NULL})),
}
"""By type, a value of which nothing else is known."""


def union(shapes: Iterable[Shape]) -> Shape:
    """Return the shape of a value that has one of some shapes; that of nothing where there are none."""
    result = NOTHING
    for shape in shapes:
        result = _either(result, shape)
    return result


def _either(left: Shape, right: Shape) -> Shape:
    if not left.kinds or left is right:
        return right
    if not right.kinds:
        return left
    return Shape(
        kinds=left.kinds | right.kinds,
        words=_either_words(left, right),
        members=_either_members(left, right),
        others=_either_others(left, right),
        items=_either_part(left.items, right.items, left, right, COLLECTIONS),
        name=left.name if left.name == right.name else "",
        place=left.place or right.place,
    )


def _either_words(left: Shape, right: Shape) -> Words | None:
    if TEXT not in left.kinds:
        return right.words
    if TEXT not in right.kinds:
        return left.words
    if left.words is None or right.words is None:
        return None
    return left.words.joined(right.words)


def _either_members(left: Shape, right: Shape) -> Mapping[str, Shape] | None:
    if OBJECT not in left.kinds:
        return right.members
    if OBJECT not in right.kinds:
        return left.members
    if left.members is None or right.members is None:
        return None
    members = dict(left.members)
    for name, member in right.members.items():
        members[name] = _either(members[name], member) if name in members else member
    return members if len(members) <= _MAX_MEMBERS else None


def _either_others(left: Shape, right: Shape) -> Shape | None:
    if left.others is None:
        return right.others
    if right.others is None:
        return left.others
    return _either(left.others, right.others)


def _either_part(
    first: Shape | None, second: Shape | None, left: Shape, right: Shape, kinds: frozenset[str]
) -> Shape | None:
    if not left.could_be(kinds):
        return second
    if not right.could_be(kinds):
        return first
    if first is None or second is None:
        return None
    return _either(first, second)


def merged(left: Shape, right: Shape) -> Shape:
    """Return the shape of ``object.union(left, right)``, whose objects are merged at all depths."""
    if left.members is None or right.members is None:
        return AN_OBJECT
    members = dict(left.members)
    for name, member in right.members.items():
        under = members.get(name)
        if under is not None and under.members is not None and member.members is not None:
            member = merged(under, member)
        members[name] = member
    others = right.others or left.others
    return Shape(AN_OBJECT.kinds, members=members, others=others, place=right.place)


def elements(shape: Shape) -> Shape:
    """Return the shape of what a collection holds."""
    parts = []
    if shape.items is not None:
        parts.append(shape.items)
    if OBJECT in shape.kinds and shape.members is not None:
        parts += shape.members.values()
        if shape.others is not None:
            parts.append(shape.others)
    elif shape.items is None:
        return ANY
    if not parts:
        return ANY
    found = union(parts)
    name = f"{shape.name}[_]" if shape.name else ""
    return found.called(name)


def keys(shape: Shape) -> Shape:
    """Return the shape of the names or numbers by which a collection is read."""
    if shape.kinds <= {LIST}:
        return A_NUMBER
    if shape.kinds <= {OBJECT} and shape.closed and shape.members is not None:
        return Shape(A_TEXT.kinds, words=Words(frozenset(shape.members), stated=True))
    if shape.kinds <= {OBJECT}:
        return A_TEXT
    return ANY
